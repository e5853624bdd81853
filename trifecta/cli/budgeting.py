"""The loop of ``reproduce --budget``: judge every claim, measure the blocks worth most, judge again, until it ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from trifecta.contract.reproduction import Spending, Step
from trifecta.store import reproduction

if TYPE_CHECKING:
    from trifecta.conclude.reproduction.result import Result


class Lab(Protocol):
    """What measures, and says what was found."""

    def read(self, changed: Collection[str]) -> Result:
        """Every claim judged; ``changed``: the runs (``STUDY/RUN``) that have other blocks than before."""

    def measure(self, run: str, cells: Mapping[str, int], left_s: float) -> str:
        """Go on with a run until these cells have so many blocks, at most so long; why it could not, or nothing."""

    def elapsed_s(self, run: str) -> float:
        """How long a run took in all."""


@dataclass
class Budget:
    """The time there is; ``spent_s`` keeps and says how much is gone, over all sessions."""

    folder: Path
    budget_s: float
    spent_s: Callable[[], float]
    stop: Callable[[], bool]
    say: Callable[[str], None]

    @property
    def left_s(self) -> float:
        """What is left."""
        return self.budget_s - self.spent_s()

    def spend(self, lab: Lab) -> tuple[Result, Spending]:
        """Spend it; what was found, and how the time went. A step that was interrupted is ended first."""
        from trifecta.conclude.reproduction import spending

        steps = reproduction.steps(self.folder)
        result, ended = lab.read(()), None
        if not steps or "took_s" in steps[-1]:
            self._say_standing(result, steps)
        while not self.stop():
            if steps and "took_s" not in steps[-1]:
                step = steps[-1]
            else:
                chosen = spending.choose(result, self.left_s, steps)
                if isinstance(chosen, spending.SpendingEnd):
                    ended = chosen
                    break
                step = self._begun(chosen, lab)
                steps.append(step)
                reproduction.write_steps(self.folder, steps)
            self.say(step_words(step))
            problem = self._measure(step, lab)
            result = lab.read(step["targets"])
            if self.stop():  # the step is gone on with; what it took so far is kept by now
                steps[-1] = with_elapsed(step, lab.elapsed_s)
                reproduction.write_steps(self.folder, steps)
                break
            steps[-1] = self._over(step, problem, result, lab)
            reproduction.write_steps(self.folder, steps)
            self._say_standing(result, steps)
            if problem == spending.BUDGET_SPENT:  # no block fits: the run's own clock has the start of its lab, too
                chosen = spending.choose(result, 0.0, steps)
                ended = chosen if isinstance(chosen, spending.SpendingEnd) else None
                break
        summary = spending.spending(result, self.budget_s, self.spent_s(), steps, ended)
        if ended is not None:
            self.say(f"budget: {ended.reason}")
        return result, summary

    def _say_standing(self, result: Result, steps: Sequence[Step]) -> None:
        from trifecta.conclude.reproduction import spending
        from trifecta.report.reproduction.words import standing_words

        summary = spending.spending(result, self.budget_s, self.spent_s(), steps, None)
        self.say(f"budget: {standing_words(summary)}")

    def _begun(self, step: Step, lab: Lab) -> Step:
        return {
            **step,
            "utc": datetime.now(UTC).isoformat(timespec="seconds"),
            "before_s": {run: round(lab.elapsed_s(run), 3) for run in step["targets"]},
        }

    def _measure(self, step: Step, lab: Lab) -> str:
        """Run its blocks; what could not be done."""
        from trifecta.conclude.reproduction.spending import BUDGET_SPENT

        problems = []
        for run, cells in step["targets"].items():
            if self.stop():
                break
            if self.left_s <= 0:
                problems.append(BUDGET_SPENT)
                break
            problem = lab.measure(run, cells, self.left_s)
            if problem:
                problems.append(problem)
        return "; ".join(dict.fromkeys(problems))

    def _over(self, step: Step, problem: str, result: Result, lab: Lab) -> Step:
        from trifecta.analysis.judging import OPEN
        from trifecta.conclude.reproduction.spending import BUDGET_SPENT, result_claims

        claims = result_claims(result)
        one = next(claim for claim in claims if claim.statement.id == step["claim"])
        reached = one.look >= step["look"]
        if not reached and not problem and self.left_s <= 0:
            problem = BUDGET_SPENT
        took = _took_s(step, lab.elapsed_s)
        result_step: Step = {
            **step,
            "took_s": round(took, 3),
            "reached": reached,
            "state": one.state,
            "decided": sum(claim.state != OPEN for claim in claims),
            "claims": len(claims),
        }
        return {**result_step, "problem": problem} if problem else result_step


def lost_s(folder: Path, elapsed_s: Callable[[str], float]) -> float:
    """What a step took that was killed, which nobody counted: what its runs took since it began."""
    steps = reproduction.steps(folder)
    if not steps or "took_s" in steps[-1]:
        return 0.0
    return max(0.0, _took_s(steps[-1], elapsed_s) - steps[-1].get("counted_s", 0.0))


def with_elapsed(step: Step, elapsed_s: Callable[[str], float]) -> Step:
    """A step that did not end, what it took so far being in the time spent."""
    return {**step, "counted_s": round(_took_s(step, elapsed_s), 3)}


def _took_s(step: Step, elapsed_s: Callable[[str], float]) -> float:
    return sum(elapsed_s(run) - before for run, before in step["before_s"].items())


def step_words(step: Step) -> str:
    """What comes next, and why."""
    from trifecta.design import numbers
    from trifecta.design.phrases import counted

    cells = sum(len(one) for one in step["targets"].values())
    where = " and ".join(step["targets"])
    also = f", and {len(step['also'])} more" if step["also"] else ""
    takes = numbers.wall(round(step["step_s"] * 1e9))
    return (
        f"budget: next blocks of {counted(cells, 'cell')} of {where} (about {takes}) "
        f"for {step['claim']}{also}: {step['why']}"
    )
