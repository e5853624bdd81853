"""Live progress of a run on standard error.

On a terminal a few lines that are redrawn; elsewhere a plain line now and then. Nothing is drawn by a thread: what is
shown changes only between trials, so that drawing never takes CPU from a measurement.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trifecta.conclude.comparisons import levels
from trifecta.contract.probe import MeasureSummary
from trifecta.contract.trial import TrialRow
from trifecta.design import duration, numbers
from trifecta.design.metrics import METRICS
from trifecta.design.model import CheckResult, Study, Trial, Verdict
from trifecta.report.figures import style

REDRAW_S = 0.1
PLAIN_LINE_S = 10.0


class LiveProgress:
    """Shows what a run does; use it as a context manager. It receives the events of ``workloads.progress.Progress``."""

    def __init__(
        self,
        console: Console | None = None,
        planned: int | None = None,
        tolerated: AbstractSet[str] | Mapping[str, AbstractSet[str]] = frozenset(),
    ) -> None:
        """Write to ``console`` (default: standard error).

        ``planned`` trials, where the study alone does not tell. Checks that are ``tolerated``, in all cells or by
        cell, exclude no trial from what the run is made for.
        """
        self._tolerated = tolerated
        self._told: set[str] = set()
        self._taken = 0  # trials that fail such checks alone
        self._requested = planned
        self.console = console or Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._drawn_s = -1e9
        self._said_s = time.monotonic()
        self._started_s = time.monotonic()
        self._budget_ns: int | None = None
        self._spent_ns = 0  # by the runner's clock, at the last block
        self._spent_at_s = time.monotonic()
        self._phase = "starting"
        self._trial: Trial | None = None
        self._done = 0
        self._planned: int | None = None
        self._captured = False
        self._invalid = 0
        self._verdicts: Sequence[Verdict] = ()
        self._reason = ""
        self._last = ""

    def __enter__(self) -> LiveProgress:
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            self._live = Live(self._picture(), console=self.console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def study_started(self, study: Study, run_path: str, committed_trials: int) -> None:
        """The run directory is there."""
        self._budget_ns = study.budget_ns
        self._done, self._planned = committed_trials, self._requested or duration.trials(study)
        self._captured = not study.gives_verdicts
        resumed = f", continuing after {committed_trials} trials" if committed_trials else ""
        self._say(f"{study.title or study.name}: {run_path}{resumed}")
        if self._captured:
            self._say("packets are captured, so no trial counts for a verdict", "dim")

    def phase(self, name: str, detail: str = "") -> None:
        """A phase begins."""
        self._phase = f"{name}: {detail}" if detail else name
        if name != "trials":
            self._trial = None
        self._show(plain=self._phase, now=True)

    def level_unsupported(self, factor: str, level: str, reason: str) -> None:
        """A level is kept out, and why."""
        self._say(f"left out: {factor} {level}: {reason}", "yellow")

    def path_probed(self, path: str, probe: MeasureSummary) -> None:
        """What the probe measured."""
        lost = f", {numbers.percent(1 - probe.received / probe.sent)} lost both ways" if probe.sent else ""
        self._say(f"path {path}: round trip {numbers.duration(probe.rtt_ns.p50)}{lost}", "dim")

    def trial_started(self, trial: Trial, trials_done: int) -> None:
        """A trial begins."""
        self._trial, self._done, self._phase = trial, trials_done, "trials"
        self._show()

    def trial_finished(self, trial: Trial, row: TrialRow, checks: Sequence[CheckResult]) -> None:
        """A trial is committed."""
        self._done += 1
        rate, median, errors = row.get("requests_per_s"), row.get("latency_p50_ns"), row.get("errors") or 0
        failed = f", {numbers.count(errors)} failed" if errors else ""
        self._last = f"{style.name(trial.arm)}: {numbers.per_second(rate)}, median {numbers.duration(median)}{failed}"
        against = [check for check in checks if check.status == "fail"]
        tolerated = self._tolerated
        if isinstance(tolerated, Mapping):
            tolerated = tolerated.get(row["cell"], frozenset())
        if against and {check.check for check in against} <= tolerated and not row.get("error"):
            self._taken += 1
            for check in against:
                if check.check not in self._told:
                    self._told.add(check.check)
                    self._say(f"{check.check}, no reason to leave trials out here: {check.evidence}", "dim")
        elif not row.get("valid", True):
            self._invalid += 1
            reasons = [check.evidence for check in against if check.check not in tolerated]
            why = next(iter(reasons), row.get("error") or "")
            if not (self._captured and against and all(check.check == "capture" for check in against)):
                self._say(counts_not(trial.trial, why), "yellow")
        self._show()

    def block_finished(self, verdicts: Sequence[Verdict], elapsed_ns: int, budget_ns: int | None, reason: str) -> None:
        """A block is complete."""
        self._verdicts, self._reason, self._budget_ns = verdicts, reason, budget_ns
        self._spent_ns, self._spent_at_s = elapsed_ns, time.monotonic()
        of = "" if self._planned is None else f" of {self._planned}"
        sentences = [f"{self._done}{of} trials{self._left_words()}"]
        if self._planned is None and (verdicts or reason):  # with blocks set in advance nothing ends when it is decided
            sentences.insert(0, self._decided_words())
        self._show(plain=", ".join(sentences))

    def note(self, text: str) -> None:
        """Something to know at once."""
        self._say(text, "yellow")

    def finished(self, verdicts: Sequence[Verdict], reason: str) -> None:
        """The run ends."""
        self._verdicts = verdicts
        decided = f"{self._decided_words()} after " if self._planned is None and verdicts else ""
        count = "1 trial counts" if self._taken == 1 else f"{self._taken} trials count"
        taken = f"; {count} here that the run's own verdicts leave out" if self._taken else ""
        self._say(f"{decided}{self._done} trials: {reason}{taken}")

    def _decided_words(self) -> str:
        return decided_words([one.verdict for one in self._verdicts])

    def _left_ns(self) -> float | None:
        """What is left of the budget, or of the trials that were set in advance at the pace so far."""
        if self._planned is not None and self._done and self._spent_ns:
            return self._spent_ns / self._done * max(0, self._planned - self._done)
        if self._budget_ns is None:
            return None
        since = (
            (time.monotonic() - self._spent_at_s) * 1e9
            if self._spent_ns
            else (time.monotonic() - self._started_s) * 1e9
        )
        return max(0.0, self._budget_ns - self._spent_ns - since)

    def _left_words(self) -> str:
        return left_words(self._left_ns(), self._planned)

    def _say(self, text: str, how: str = "") -> None:
        """A line that stays."""
        self.console.print(Text(text, style=how), soft_wrap=True)
        self._said_s = time.monotonic()

    def _show(self, plain: str = "", now: bool = False) -> None:
        """Redraw, or say a plain line when the last one is long ago."""
        at = time.monotonic()
        if self._live is not None:
            if now or at - self._drawn_s >= REDRAW_S:
                self._live.update(self._picture(), refresh=True)
                self._drawn_s = at
        elif plain and (now or at - self._said_s >= PLAIN_LINE_S):
            self._say(plain)

    def _picture(self) -> Group:
        kinds: Counter[str] = Counter(one.verdict for one in self._verdicts)
        decided = len(self._verdicts) - kinds["undecided"]
        bars = Table.grid(padding=(0, 1))
        if self._verdicts and self._planned is None:
            bars.add_row("verdicts", _bar(len(self._verdicts), decided), self._kinds(kinds, decided))
        left = self._left_ns()
        if self._planned:
            bars.add_row("trials", _bar(self._planned, self._done), f"of {self._planned}{self._left_words()}")
        elif left is not None and self._budget_ns:
            spent = self._budget_ns - left
            bars.add_row("budget", _bar(self._budget_ns, spent), self._left_words().removeprefix(", "))
        lines: list[Any] = [Text(self._where(), no_wrap=True, overflow="ellipsis"), bars]
        if self._last:
            lines.append(Text(f"last   {self._last}", style="dim", no_wrap=True, overflow="ellipsis"))
        if self._reason:
            lines.append(Text(f"why    {self._reason}", style="dim", no_wrap=True, overflow="ellipsis"))
        return Group(*lines)

    def _kinds(self, kinds: Counter[str], decided: int) -> str:
        word = METRICS[self._verdicts[0].metric].word if self._verdicts else str
        sentence = ", ".join(f"{kinds[kind]} {word(kind)}" for kind in ("faster", "slower", "same") if kinds[kind])
        return f"{decided} of {len(self._verdicts)} decided" + (f" ({sentence})" if sentence else "")

    def _where(self) -> str:
        if self._trial is None:
            return self._phase
        place = ", ".join(levels(self._trial.cell.key).values())
        invalid = f", {self._invalid} do not count" if self._invalid else ""
        block = f"block {self._trial.block + 1} of {place}"
        return f"trial {self._done + 1}{invalid}   {block}   {style.name(self._trial.arm)}"


def counts_not(trial: str, why: str) -> str:
    """``t00012 does not count: the hypervisor took 12 % of the machine's CPU time``."""
    return f"{trial} does not count: {why}"


def decided_words(kinds: Sequence[str]) -> str:
    """``3 of 12 verdicts decided``."""
    decided = sum(one != "undecided" for one in kinds)
    return f"{decided} of {len(kinds)} verdicts decided" if kinds else "no verdict yet"


def left_words(left_ns: float | None, planned: int | None) -> str:
    """``, about 2 min left`` of trials that were planned, else ``, 2:31 left`` of the budget; empty where unknown."""
    if left_ns is not None and planned is not None:
        return f", about {numbers.wall(left_ns)} left" if left_ns else ""
    return "" if left_ns is None else f", {int(left_ns / 60e9)}:{int(left_ns / 1e9) % 60:02d} left"


def _bar(total: float, completed: float) -> ProgressBar:
    return ProgressBar(total, completed, width=24, complete_style="cyan", finished_style="cyan")
