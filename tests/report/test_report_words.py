"""What a report says of the checks when most trials do not count."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from trifecta.conclude import evidence_queries
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.report.next_commands import command_line
from trifecta.report.open_verdicts import _open, reach
from trifecta.report.scope import conditions, hosts, seed
from trifecta.report.words import _checks, _mostly_excluded

FAILED = {"check_name": "machine", "passed": 0, "warned": 0, "failed": 9, "unknown": 0}
MENDS = "To fix most of them: end other programs."


@pytest.mark.parametrize(("excluded", "said"), [(10, True), (5, True), (4, False), (0, False)])
def test_where_most_trials_do_not_count_it_says_what_would_mend_them(excluded: int, said: bool) -> None:
    rows = [FAILED | {"remedy": "end other programs"}, FAILED | {"failed": 2, "remedy": "wait"}]
    words = _checks({"excluded_trials": excluded, "trials": 10}, QueryResult(evidence_queries.CHECK_MATRIX, rows))
    assert (MENDS in words) == said


@pytest.mark.parametrize(
    ("excluded", "said"),
    [
        (8, " All 8 trials failed a check and do not count."),
        (5, " Most trials (5 of 8) failed a check and do not count."),
        (4, ""),
    ],
)
def test_most_trials_are_not_all_of_them(excluded: int, said: str) -> None:
    assert _mostly_excluded({"excluded_trials": excluded, "trials": 8}) == said


def test_without_a_remedy_it_says_nothing_of_one() -> None:
    words = _checks(
        {"excluded_trials": 9, "trials": 10}, QueryResult(evidence_queries.CHECK_MATRIX, [FAILED | {"remedy": None}])
    )
    assert "left out of every verdict" in words
    assert "fix" not in words


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["/here/.venv/bin/trifecta", "race", "--set", "response=1 kB"], "trifecta race --set 'response=1 kB'"),
        (["/here/trifecta/__main__.py", "race"], "trifecta race"),
        (["/here/my-study.py", "race"], "/here/my-study.py race"),
        ([], ""),
    ],
)
def test_a_command_is_told_without_where_the_program_lies(argv: list[str], said: str) -> None:
    assert command_line(argv) == said


def opened(blocks: int, low: int | None, high: int | None, likely: str | None = None, invalid: int = 0) -> Comparison:
    row = {"blocks": blocks, "blocks_needed_low": low, "blocks_needed_high": high, "likely": likely,
           "invalid_trials": invalid}  # fmt: skip
    return Comparison("c", "h3", "h2", "undecided", row)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([opened(10, 11, 81), opened(20, 30, 40)], "2 would need an estimated 1 to 71 more blocks each."),
        ([opened(9, 18, 3069), opened(20, 30, 40)], "2 would need an estimated 9 to 3,060 more blocks each."),
        ([opened(10, 13, None), opened(20, 30, 40)], "2 would need an estimated 3 or more further blocks each."),
        ([opened(10, 11, 11)], "1 would need an estimated 1 more block."),
        ([opened(30, None, None)], "1 would need more than ten times the blocks so far."),
        ([opened(2, None, None), opened(0, None, None, invalid=3)], "1 has too few blocks for a forecast. "
         "1 has no valid block at all."),
        ([opened(0, None, None), opened(0, None, None)], "2 have not been measured yet."),
        ([opened(10, 12, 14, "faster")], "1 would be decided if it were the only comparison (likely). "
         "1 would need an estimated 2 to 4 more blocks."),
        ([opened(10, 14, 14, "same"), opened(14, 16, 16, "same")], "1 would be decided if it were the only comparison "
         "(likely). 1 lies within the margin but needs 14 blocks to be called the same (likely). "
         "2 would need an estimated 2 to 4 more blocks each."),
    ],
)  # fmt: skip
def test_how_far_off_open_verdicts_are(found: list[Comparison], said: str) -> None:
    assert reach(found) == said


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [(0, "There is no verdict yet."), (1, "The one verdict is decided."), (2, "All 2 verdicts are decided.")],
)
def test_one_verdict_is_not_all_of_them(verdicts: int, said: str) -> None:
    decided = SimpleNamespace(decided=True)
    assert _open(SimpleNamespace(arms=["a", "b"]), [decided] * verdicts) == said


def test_between_hosts_nothing_is_emulated_and_nothing_of_the_network_repeated() -> None:
    machines = {"client": {"at": "here", "address": None}, "server": {"at": "ssh://b", "address": None}}
    facts = RunFacts(Path("run"), {"hosts": machines}, 7, [], rest={"hosts": {"server": {"address": "192.0.2.7"}}})
    said = "client on here and server on ssh://b (192.0.2.7), over the network between them as it was."
    assert list(hosts(facts)) == [f"Nothing is emulated: {said}"]
    assert conditions(facts) == "the network between these hosts at that time, these programs"
    assert "losses" not in seed(facts)
    lab = RunFacts(Path("run"), {}, 7, [])
    assert (list(hosts(lab)), conditions(lab)) == ([], "these paths as emulated, these programs")
    assert "the same orders, losses and arrivals" in seed(lab)


def test_a_host_in_the_middle_emulates_paths_whose_losses_a_seed_repeats() -> None:
    machines = {role: {"at": f"ssh://{role}", "address": None} for role in ("client", "server", "middle")}
    facts = RunFacts(Path("run"), {"hosts": machines}, 7, [])
    (said,) = hosts(facts)
    assert "middle on ssh://middle, where the paths are emulated" in said
    assert not facts.is_as_it_was
    assert conditions(facts) == "these paths as emulated, these programs"
    assert "the same orders, losses and arrivals" in seed(facts)
