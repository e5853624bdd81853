"""Live progress of what ends by a question of its own, a map's or a gate's: what is open of it, instead of verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.design.model import Verdict
from trifecta.design.phrases import counted
from trifecta.report.progress import LiveProgress


class QuestionProgress(LiveProgress):
    """As that of a run; cells are not judged one by one."""

    def block_finished(self, verdicts: Sequence[Verdict], elapsed_ns: int, budget_ns: int | None, reason: str) -> None:
        """A block is complete."""
        super().block_finished((), elapsed_ns, budget_ns, reason)

    def finished(self, verdicts: Sequence[Verdict], reason: str) -> None:
        """It ends."""
        self._say(f"{counted(self._done, 'trial')}: {reason}")

    def _decided_words(self) -> str:
        return standing_words(self._reason)


def standing_words(reason: str) -> str:
    """How the question stands, from why the planner went on."""
    return reason or "no block yet"
