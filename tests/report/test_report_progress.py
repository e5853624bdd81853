from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from tests.report.synthetic import Shape
from trifecta.contract.common import Quantiles
from trifecta.contract.probe import MeasureSummary
from trifecta.design.model import Cell, CheckResult, Trial
from trifecta.report.progress import LiveProgress
from trifecta.report.question_progress import QuestionProgress
from trifecta.store.run import RunDirectory
from trifecta.workloads.progress import Progress

TIMES = Quantiles(min=79_000_000, p50=80_000_000, p90=81_000_000, p99=82_000_000, max=83_000_000)
PROBED = MeasureSummary(
    sent=200, received=196, send_errors=0, ended="done", loss_forward=0.01, loss_backward=0.01, loss=0.02,
    rtt_ns=TIMES, one_way_forward_ns=TIMES, one_way_backward_ns=TIMES, reordered=0, duplicates=0, reordered_forward=0,
    duplicates_forward=0, train_received=0, rate_bits_per_s=None, largest_payload_bytes=None,
    realtime_offset_ns=0, realtime_bound_ns=0,
)  # fmt: skip


def told(run: Path, *, terminal: bool) -> str:
    directory = RunDirectory.open(run)
    verdicts, rows = directory.verdicts(), directory.rows()
    stream = io.StringIO()
    console = Console(file=stream, width=80, force_terminal=terminal, color_system=None)
    with LiveProgress(console) as live:
        progress: Progress = live
        progress.study_started(Shape().study, "runs/x", 0)
        progress.phase("lab")
        progress.level_unsupported("server", "nginx", "not installed")
        progress.path_probed("far", PROBED)
        for number, row in enumerate(rows[:8]):
            trial = Trial(row["trial"], row["block"], Cell(row["cell"], {}), row["arm"], row["position"], 1)
            progress.trial_started(trial, number)
            bad = [CheckResult("path", row["trial"], "fail", "The path was 14 % too long.")] if number == 3 else []
            live._drawn_s = 0.0  # draw although the last picture is recent
            progress.trial_finished(trial, row | {"valid": not bad}, bad)
        progress.block_finished(verdicts, 30_000_000_000, 180_000_000_000, "undecided verdicts")
        progress.note("The server had to be started again.")
        progress.finished(verdicts, "the budget is spent")
    return stream.getvalue()


def test_plain_lines_without_a_terminal(run: Path) -> None:
    text = told(run, terminal=False)
    assert "\x1b" not in text
    assert "left out: server nginx: not installed" in text
    assert "path far: round trip 80.0 ms, 2 % lost both ways" in text
    assert "t00003 does not count: The path was 14 % too long." in text
    assert "The server had to be started again." in text
    assert "of 36 verdicts decided after 8 trials: the budget is spent" in text
    assert len(text.splitlines()) < 15


def test_what_a_campaign_tolerates_is_told_once_and_counts(run: Path) -> None:
    stream, row = io.StringIO(), RunDirectory.open(run).rows()[0]
    spoke = CheckResult("protocol", "t", "fail", "HTTP/2 was asked for, HTTP/1.1 was spoken.")
    other = CheckResult("machine", "t", "fail", "Another program ran.")
    with LiveProgress(Console(file=stream, width=120), tolerated={"protocol"}) as live:
        live.study_started(Shape().study, "runs/x", 0)
        for number, found in enumerate(([spoke], [spoke], [spoke, other])):
            trial = Trial(f"t{number}", number, Cell(row["cell"], {}), row["arm"], 0, 1)
            live.trial_finished(trial, row | {"valid": False}, found)
        assert live._invalid == 1
        live.finished([], "the one verdict is open")
    text = stream.getvalue()
    ended = "3 trials: the one verdict is open; 2 trials count here that the run's own verdicts leave out"
    assert ended in " ".join(text.split())
    assert text.count("protocol, no reason to leave trials out here: HTTP/2 was asked for") == 1
    assert text.count("does not count") == 1
    assert "t2 does not count: Another program ran." in text


def test_what_is_tolerated_in_one_cell_counts_in_it_alone(run: Path) -> None:
    stream, row = io.StringIO(), RunDirectory.open(run).rows()[0]
    spoke = CheckResult("parity", "t", "fail", "the server's TCP_NODELAY is False")
    with LiveProgress(Console(file=stream, width=120), tolerated={row["cell"]: frozenset({"parity"})}) as live:
        live.study_started(Shape().study, "runs/x", 0)
        for number, cell in enumerate((row["cell"], "path=elsewhere")):
            trial = Trial(f"t{number}", number, Cell(cell, {}), row["arm"], 0, 1)
            live.trial_finished(trial, row | {"valid": False, "cell": cell}, [spoke])
    text = stream.getvalue()
    assert "parity, no reason to leave trials out here: the server's TCP_NODELAY is False" in text
    assert "t0 does not count" not in text
    assert "t1 does not count: the server's TCP_NODELAY is False" in text


def test_a_terminal_is_redrawn(run: Path) -> None:
    text = told(run, terminal=True)
    assert "trial 8" in text
    assert "block 1 of" in text
    assert "left" in text
    assert "the budget is spent" in text


def test_drawing_starts_no_thread(run: Path) -> None:
    import threading

    before = threading.active_count()
    console = Console(file=io.StringIO(), force_terminal=True)
    with LiveProgress(console) as live:
        live.phase("lab")
        assert threading.active_count() == before


def fixed(run: Path, *, capture: bool = False) -> str:
    """What is said of a study whose blocks are set in advance: 4 cells, 3 arms, 2 blocks."""
    from trifecta.design.study import requests, study

    one = study(
        "s", workload=requests(requests=10), blocks={"at_least": 2, "at_most": 2}, budget="none", capture=capture,
        factors={"path": ["clean"], "connection": ["new", "reused"], "protocol": ["HTTP/2", "HTTP/3"],
                 "response": ["1 kB", "2 kB"]},
    )  # fmt: skip
    directory = RunDirectory.open(run)
    row = directory.rows()[0]
    stream = io.StringIO()
    with LiveProgress(Console(file=stream, width=80, force_terminal=False)) as live:
        live.study_started(one, "runs/x", 5)
        for number in range(5, 9):
            trial = Trial(f"t{number:05d}", 0, Cell(row["cell"], {}), row["arm"], 0, 1)
            live.trial_started(trial, number)
            why = CheckResult("capture", trial.trial, "fail", "captured: not used for verdicts")
            live.trial_finished(trial, row | {"valid": not capture}, [why] if capture else [])
        live._said_s = -1e9  # the last line is long ago
        live.block_finished(directory.verdicts(), 90_000_000_000, None, "why")
        live.finished(directory.verdicts(), "every cell has had its 2 blocks")
    return stream.getvalue()


def test_with_blocks_set_in_advance_it_says_what_is_left(run: Path) -> None:
    text = fixed(run)
    assert "continuing after 5 trials" in text
    assert "9 of 24 trials, about 2 min left" in text  # 90 s for 9 trials, so 150 s for 15
    assert "verdicts" not in text
    assert "9 trials: every cell has had its 2 blocks" in text


def test_captured_trials_are_told_of_once(run: Path) -> None:
    text = fixed(run, capture=True)
    assert "packets are captured, so no trial counts for a verdict" in text
    assert "does not count" not in text


def test_what_ends_by_a_question_of_its_own_tells_that_and_no_verdicts(run: Path) -> None:
    stream, verdicts = io.StringIO(), RunDirectory.open(run).verdicts()
    with QuestionProgress(Console(file=stream, width=80)) as progress:
        progress.study_started(Shape().study, "runs/x", 0)
        progress._said_s = -1e9  # the last line was long ago
        progress.block_finished(verdicts, 30_000_000_000, None, "1 of 2 tests is open")
        progress.finished(verdicts, "all 2 tests pass")
    said = stream.getvalue().splitlines()
    assert said[1].startswith("1 of 2 tests is open, 0 trials")
    assert said[2:] == ["0 trials: all 2 tests pass"]
