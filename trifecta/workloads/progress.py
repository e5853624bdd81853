"""What the runner tells while a study runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trifecta.contract.probe import MeasureSummary
from trifecta.contract.trial import TrialRow
from trifecta.design.model import CheckResult, Study, Trial, Verdict


class Progress(Protocol):
    """Receives the events of a run, in the runner's own thread: every method returns at once, and none may fail."""

    def study_started(self, study: Study, run_path: str, committed_trials: int) -> None:
        """The run directory is there; ``committed_trials`` is above 0 when a run is resumed."""

    def phase(self, name: str, detail: str = "") -> None:
        """A phase begins: ``lab``, ``servers``, ``probe``, ``trials``, ``finish``."""

    def level_unsupported(self, factor: str, level: str, reason: str) -> None:
        """A level is kept out of the study, and why."""

    def path_probed(self, path: str, probe: MeasureSummary) -> None:
        """What the probe measured on a path (summary of the engine's probe)."""

    def trial_started(self, trial: Trial, trials_done: int) -> None:
        """A trial begins."""

    def trial_finished(self, trial: Trial, row: TrialRow, checks: Sequence[CheckResult]) -> None:
        """A trial is committed; ``row`` has the columns of ``trials``."""

    def block_finished(self, verdicts: Sequence[Verdict], elapsed_ns: int, budget_ns: int | None, reason: str) -> None:
        """A block of a cell is complete: all verdicts so far, and why the planner ran this block."""

    def note(self, text: str) -> None:
        """Something a user should know at once, in one sentence (a server that had to be restarted, ...)."""

    def finished(self, verdicts: Sequence[Verdict], reason: str) -> None:
        """The run ends: all decided, budget spent, stopped by the user, ..."""


class NoProgress:
    """Tells nobody anything."""

    def study_started(self, study: Study, run_path: str, committed_trials: int) -> None:
        """Nothing."""

    def phase(self, name: str, detail: str = "") -> None:
        """Nothing."""

    def level_unsupported(self, factor: str, level: str, reason: str) -> None:
        """Nothing."""

    def path_probed(self, path: str, probe: MeasureSummary) -> None:
        """Nothing."""

    def trial_started(self, trial: Trial, trials_done: int) -> None:
        """Nothing."""

    def trial_finished(self, trial: Trial, row: TrialRow, checks: Sequence[CheckResult]) -> None:
        """Nothing."""

    def block_finished(self, verdicts: Sequence[Verdict], elapsed_ns: int, budget_ns: int | None, reason: str) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def finished(self, verdicts: Sequence[Verdict], reason: str) -> None:
        """Nothing."""
