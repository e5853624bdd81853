from __future__ import annotations

from typing import Any

import pytest

from trifecta.conclude.comparisons import Comparison, levels, rank_arms
from trifecta.report import verdict_words
from trifecta.report.verdict_words import place_words

ARMS = ["h1", "h2", "h3"]


def verdict(arm: str, reference: str, kind: str, **row: Any) -> Comparison:
    return Comparison("c", arm, reference, kind, {"metric": "latency_p50_ns", **row})


@pytest.mark.parametrize(
    ("h3_h2", "h3_h1", "h1_h2", "words"),
    [
        ("faster", "faster", "slower", ["1st HTTP/3", "2nd HTTP/2", "3rd HTTP/1.1"]),
        ("slower", "slower", "faster", ["1st HTTP/1.1", "2nd HTTP/2", "3rd HTTP/3"]),
        ("faster", "faster", "undecided", ["1st HTTP/3", "2nd–3rd open"]),
        ("faster", "faster", "same", ["1st HTTP/3", "2nd–3rd HTTP/1.1 = HTTP/2"]),
        ("same", "same", "same", ["1st–3rd HTTP/1.1 = HTTP/2 = HTTP/3"]),
        ("undecided", "undecided", "undecided", ["open"]),
        # HTTP/2 loses to both, but which of them wins is open.
        ("faster", "undecided", "faster", ["1st–2nd open", "3rd HTTP/2"]),
        # "Same" is not transitive: HTTP/3 beats HTTP/2, HTTP/1.1 is told from neither, so no place is certain.
        ("faster", "same", "same", ["open"]),
    ],
)
def test_a_place_is_given_only_when_the_verdicts_leave_no_other(
    h3_h2: str, h3_h1: str, h1_h2: str, words: list[str]
) -> None:
    found = [verdict("h3", "h2", h3_h2), verdict("h3", "h1", h3_h1), verdict("h1", "h2", h1_h2)]
    assert verdict_words.standing_words(rank_arms(ARMS, found)) == words


def test_two_protocols() -> None:
    assert verdict_words.standing_words(rank_arms(["h2", "h3"], [verdict("h3", "h2", "slower")])) == [
        "1st HTTP/2",
        "2nd HTTP/3",
    ]


def test_headline_and_interval() -> None:
    one = verdict("h3", "h2", "faster", ratio=0.7, factor=1.4285, factor_low=1.38, factor_high=1.49)
    assert (
        verdict_words.statement(one, "median latency")
        == "HTTP/3 has 0.70 × the median latency of HTTP/2: 1.43× faster [1.38, 1.49]"
    )
    assert verdict_words.headline(one, "x") == "1.43x faster"
    assert verdict_words.interval(one) == "[1.38, 1.49]"
    assert verdict_words.needed_blocks(one) == ""


def test_what_is_open_says_what_it_needs() -> None:
    near = verdict(
        "h3", "h2", "undecided", factor_low=None, factor_high=1.2, blocks=8, blocks_needed_low=20, blocks_needed_high=31
    )
    assert verdict_words.interval(near) == "[0, 1.20]"
    assert verdict_words.needed_blocks(near) == "needs 12 to 23 more blocks"
    assert verdict_words.needed_short(near) == "12-23 more"
    some = verdict("h3", "h2", "undecided", blocks=8, blocks_needed_low=20, blocks_needed_high=None)
    assert (verdict_words.needed_blocks(some), verdict_words.needed_short(some)) == (
        "needs 12 or more further blocks",
        "12+ more",
    )
    soon = verdict("h3", "h2", "undecided", blocks=8, blocks_needed_low=9, blocks_needed_high=9)
    assert (verdict_words.needed_blocks(soon), verdict_words.needed_short(soon)) == (
        "needs 1 more block",
        "1 more",
    )
    far = verdict(
        "h3",
        "h2",
        "undecided",
        factor_low=None,
        factor_high=None,
        blocks=10,
        blocks_needed_low=None,
        blocks_needed_high=None,
    )
    assert verdict_words.interval(far) == "[no interval]"
    assert (verdict_words.needed_blocks(far), verdict_words.needed_short(far)) == ("not within reach", "far off")
    early = verdict("h3", "h2", "undecided", blocks=9, blocks_needed_low=None, blocks_needed_high=None)
    assert (verdict_words.needed_blocks(early), verdict_words.needed_short(early)) == (
        "too few blocks for a forecast",
        "too early",
    )


def test_what_is_likely_says_so_and_columns_have_one_scale() -> None:
    ends = {"low": 0.6, "high": 0.8, "family_low": 0.5, "family_high": 1.1}
    one = verdict("h3", "h2", "undecided", likely="faster", factor=1.37, blocks=6, **ends)
    assert verdict_words.headline(one, "x") == "likely 1.37x faster"
    assert (verdict_words.ratio_interval(one), verdict_words.family_interval(one)) == ("[0.60, 0.80]", "{0.50, 1.10}")
    decided = verdict("h3", "h2", "faster", likely=None, factor=1.37, blocks=9, **ends)
    assert (verdict_words.headline(decided, "x"), verdict_words.ratio_interval(decided)) == (
        "1.37x faster",
        "[0.60, 0.80]",
    )


def test_cells_in_words() -> None:
    cell = "path=far,connection=new,server=caddy,in_flight=10"
    assert levels(cell) == {"path": "far", "connection": "new", "server": "caddy", "in_flight": "10"}
    assert place_words(cell) == "new connections, caddy, in flight 10"
    assert place_words("t00012", without="") == "t00012"
    assert place_words("path=far,resumption=true,zero_rtt=false") == "resumption on, 0-RTT off"
    assert place_words(cell, without="") == "far, new connections, caddy, in flight 10"


@pytest.mark.parametrize(
    ("metric", "kind", "said"),
    [
        ("bitrate_mean_bits_per_s", "faster", "1.49× higher"),
        ("bitrate_mean_bits_per_s", "slower", "1.49× lower"),
        ("requests_per_s", "faster", "1.49× more"),
        ("requests_per_s", "slower", "1.49× fewer"),
        ("client_cpu_ns_per_request", "faster", "1.49× lower"),
        ("latency_p50_ns", "slower", "1.49× slower"),
    ],
)
def test_a_headline_fits_the_metric(metric: str, kind: str, said: str) -> None:
    assert verdict_words.headline(verdict("h3", "h2", kind, metric=metric, factor=1.49, likely=None)) == said
