"""What the four studies published, as it is kept: every claim is their own, and finds its cells in our campaigns."""

from __future__ import annotations

from typing import Any

import pytest

from trifecta import studies
from trifecta.analysis.published import Place, matching
from trifecta.analysis.statements import parse
from trifecta.conclude.visits.published import levels_of
from trifecta.design import plan
from trifecta.design.campaign import parse_campaign


def campaign_cells(name: str, depth: Any) -> list[Place]:
    """The cells of a study's campaign, without any run."""
    campaign = parse_campaign(studies.read_text(studies.campaigns()[name]), name, depth)
    return [
        Place(run, cell.key, levels_of(one, cell), [])
        for run, one in campaign.studies.items()
        for cell in plan.cells(one)
    ]


def test_all_four_studies_are_there_with_every_claim_and_figure() -> None:
    found = {
        name: (len(one.claims), len(one.statements) - len(one.claims)) for name, one in studies.published().items()
    }
    assert found == {
        "bourbon2020": (38, 16),
        "baccichet2021": (6, 36),
        "ding2022": (11, 24),
        "milicevic2023": (5, 16),
    }


def test_every_statement_has_a_source_and_either_a_comparison_or_a_reason_for_none() -> None:
    for study in studies.published().values():
        for one in study.statements:
            assert one.source, one.id
            assert one.says is not None or one.not_compared, one.id
            assert one.id.startswith(f"{study.id}."), one.id


def test_every_claim_quotes_the_study() -> None:
    """A claim is made with the study's text open at the page."""
    for study in studies.published().values():
        for one in study.claims:
            assert len(one.quote.split()) >= 4, one.id
        assert study.here, study.id  # which programs stand in for the study's


def test_nobody_claims_what_no_author_said() -> None:
    """Ratios that we derived, growth with the payload, more CPU of containers, readings of a table (issue 18)."""
    known = {one.id for study in studies.published().values() for one in study.statements}
    withdrawn = {
        "bourbon2020.clean-gap-grows",
        "bourbon2020.containers-cpu",
        "milicevic2023.new-half-near",
        "milicevic2023.new-half-far",
        "milicevic2023.reused-five-times",
        "baccichet2021.video-h2-starts-later",
        "baccichet2021.video-h2-bitrate-over-h3",
        "baccichet2021.video-h2-bitrate-over-h1",
        "baccichet2021.video-h2-drops-less-than-h3",
        "baccichet2021.video-h2-drops-less-than-h1",
        "ding2022.h2-restarts-window",
    }
    assert not known & withdrawn
    for study in studies.published().values():
        for one in study.claims:  # "about" is a study's own word with a number of its own
            assert one.says is not None
            assert one.says.relation != "about" or one.id == "ding2022.fifth-of-the-time"


def test_what_a_study_measured_is_what_is_compared_with_it() -> None:
    """baccichet2021's TTFB is DevTools' waiting, its video's figures are those of segments; CPU is a share."""
    metrics: dict[str, set[str]] = {name: set() for name in studies.published()}
    for study in studies.published().values():
        metrics[study.id] |= {one.says.metric for one in study.statements if one.says is not None}
    assert {"request_ns", "segment_ttfb_ns", "throughput_bits_per_s"} <= metrics["baccichet2021"]
    assert not metrics["baccichet2021"] & {"ttfb_ns", "live_latency_ns", "bitrate_bits_per_s"}
    assert "cpu_share" in metrics["bourbon2020"] and "cpu_ns_per_request" not in metrics["bourbon2020"]
    light = {one.id: one for one in studies.published()["baccichet2021"].statements}
    assert light["baccichet2021.light.request-h3"].published == pytest.approx(2.83 / 3.21)
    assert light["baccichet2021.video.throughput_bits_per_s-h3"].published == pytest.approx(64.17 / 139.57)


PROGRAMS = {
    "bourbon2020": {"place": {"native", "docker-host"}, "path": {"normal", "lag", "lossy"}},
    "milicevic2023": {"client": {"python-client"}, "server": {"hypercorn"}},
    "baccichet2021": {"server": {"origin"}, "path": {"bare"}, "client": {"chromium", "load"}},
    "ding2022": {"server": {"caddy"}, "client": {"curl", "load"}},
}


@pytest.mark.parametrize("depth", ["quick", "full"])
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_statement_is_put_to_the_studys_programs_and_paths_only(name: str, depth: str) -> None:
    """What is ours beside them (other servers, clients, paths) is never averaged with what the study had."""
    for one in studies.published()[name].statements:
        cells = matching(one, campaign_cells(name, depth))
        for factor, allowed in PROGRAMS[name].items():
            found = {cell.levels[factor] for cell in cells if factor in cell.levels}
            assert found <= allowed, (one.id, factor, found)
            if factor == "client":  # one client in each statement; another than the study's is named
                assert len(found) <= 1, one.id
                assert found != {"load"} or "Trifecta's own" in one.here, one.id


@pytest.mark.parametrize("depth", ["quick", "full"])
def test_a_fifth_of_the_time_is_of_the_four_tests_of_figure_1_by_curl(depth: str) -> None:
    """The short string (35 B by its Caddyfile) and 1 MB, closed and sim; 10 MB is in no bar of it."""
    claim = next(one for one in studies.published()["ding2022"].claims if one.id.endswith(".fifth-of-the-time"))
    cells = [one for one in campaign_cells("ding2022", depth) if not one.run.startswith("captured")]
    found = [cell.levels for cell in matching(claim, cells)]
    four = [(way, size) for way in ("new", "reused") for size in ("35", "1000000")]
    assert sorted((one["connection"], one["response_bytes"]) for one in found) == sorted(four)
    assert {(one["client"], one["server"]) for one in found} == {("curl", "caddy")}


def test_the_bars_of_figure_1_make_up_its_mean() -> None:
    """0.840/0.0987, 0.295/0.0293, 1.178/0.289 and 0.580/0.202 s: of their ratios the study says 20.6 %."""
    figures = {one.id: one.published for one in studies.published()["ding2022"].statements}
    bars = [figures[f"ding2022.{size}-{way}.duration-h3"] for size in ("hello", "small") for way in ("closed", "sim")]
    ratios = [one for one in bars if isinstance(one, float)]
    assert len(ratios) == 4
    assert sum(ratios) / 4 == pytest.approx(0.206, abs=0.005)


def test_what_ding2022_says_of_time_has_the_wait_before_tls_and_a_quarter_of_nothing_is_no_size() -> None:
    """Its client waits 0.2 s before TLS over HTTP/2; loopback's frames of 64 KB are TCP's advantage, so no reason."""
    study = studies.published()["ding2022"]
    claims = {one.id.removeprefix("ding2022."): one for one in study.claims}
    for name in ("fifth-of-the-time", "data-earlier", "reuse-helps"):
        assert "wait-before-tls" in claims[name].threats, name
        assert "loopback-offload" not in claims[name].threats, name
    assert {name for one in study.claims for name in one.threats} <= set(study.threats)
    quarter = claims["data-earlier"]
    assert quarter.says is not None
    assert (quarter.says.relation, quarter.says.size, quarter.said) == ("below", None, "around 25 %")
    judged = {one.id: one for one in study.statements}["ding2022.data-start.first_response-h3"]
    assert judged.not_compared


def test_containers_of_bourbon2020_are_on_the_hosts_network() -> None:
    """4.9.2 of the study; on a bridge they pay for address translation that it had not."""
    places = {cell.levels["place"] for cell in campaign_cells("bourbon2020", "full")}
    assert places == {"native", "docker-host"}


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("depth", ["quick", "full"])
def test_the_fan_in_of_bourbon2020_is_judged_at_the_studys_places(depth: Any, as_published: bool) -> None:
    """128 B, or by protocol as its programs had it; 50 clients took a further host (annex V)."""
    text = studies.read_text(studies.campaigns()["bourbon2020"])
    campaign = parse_campaign(text, "bourbon2020", depth, as_published=as_published)
    cells = [
        Place(run, cell.key, levels_of(one, cell), [])
        for run, one in campaign.studies.items()
        for cell in plan.cells(one)
    ]
    sizes: set[str] = set()
    crowds: set[tuple[str, str]] = set()
    for one in studies.published(as_published=as_published)["bourbon2020"].statements:
        found = matching(one, cells)
        assert found or (as_published and depth == "quick"), one.id
        if one.where.get("kind") == "fan-in" and not one.not_compared:
            sizes |= {cell.levels["response"] for cell in found}
            crowds |= {(cell.levels["hosts"], cell.levels["clients"]) for cell in found}
    assert sizes == ({"128 B/1 kB/10 kB"} if as_published else {"128 B"})
    assert crowds == {("1", "4"), ("2", "4"), ("2", "50")}


def test_times_of_the_fan_in_are_means_as_the_study_has_them() -> None:
    """6.2.1: "the elapsed time corresponds to the average of the diverse clients of msA"."""
    for one in studies.published()["bourbon2020"].statements:
        if one.where.get("kind") == "fan-in" and one.says is not None and one.says.metric.startswith("latency"):
            assert one.says.metric == "latency_mean_ns", one.id


def test_a_published_ratio_is_on_the_side_that_is_said() -> None:
    for study in studies.published().values():
        for one in study.statements:
            if one.published is None or one.says is None or one.says.relation not in ("above", "below"):
                continue
            even = 0.0 if one.says.by_difference else 1.0
            assert (one.published > even) == (one.says.relation == "above"), one.id


def test_claims_about_cells_name_cells_that_the_campaign_runs() -> None:
    """Every claim finds its cells in the campaign of its study, at the quick depth already."""
    for name, study in studies.published().items():
        cells = campaign_cells(name, "quick")
        lost = [one.id for one in study.statements if not matching(one, cells)]
        assert lost == [], name


def test_two_statements_of_one_name_are_refused() -> None:
    one = {"id": "x", "text": "t", "where": {}, "says": {"metric": "m", "arm": "h3", "to": "h2", "is": "above"}}
    document = {"id": "s", "title": "", "year": 1, "stack": "", "facts": "", "baseline": "h2", "claims": [one, one]}
    with pytest.raises(ValueError, match="appears twice"):
        parse(document)
