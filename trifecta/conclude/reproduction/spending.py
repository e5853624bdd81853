"""How the time of a budget is spent: which blocks come next, and why, or why there is nothing more to spend it on.

Every open claim has looks ahead (`analysis.interim_looks`), each with a chance that it decides the claim
(`analysis.predictive_power`) and a cost, the measured time of the blocks that its cells lack. The claim with the most
decisions per second gets the blocks of its next look; open claims about the same cells count, for they get the same
blocks. Then all is judged again.
No answer rests on any of this: what a look says does not depend on how its blocks came about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trifecta.analysis import predictive_power
from trifecta.analysis.interim_looks import blocks_at, look_of, waiting
from trifecta.analysis.judging import OPEN
from trifecta.analysis.places import Place, matching
from trifecta.analysis.published import Evaluation
from trifecta.conclude.reproduction.result import Result
from trifecta.contract.reproduction import Spending, Step, UndecidedClaim
from trifecta.design import numbers

Key = tuple[str, str]
"""A run (``STUDY/RUN``) and a cell."""
BUDGET_SPENT = "the budget was spent"
_LOOKS = 20  # no claim is looked at so often: blocks grow by half each time


@dataclass(frozen=True)
class Claim:
    """An open claim: the cells it waits for, the chances of its looks ahead, or why none is any use."""

    evaluation: Evaluation
    cells: Mapping[Key, Place]
    chances: Mapping[int, float] = field(default_factory=dict)
    """By look."""
    no_use: str = ""

    @property
    def id(self) -> str:
        """That of the statement."""
        return self.evaluation.statement.id

    @property
    def look(self) -> int:
        """The last look."""
        return self.evaluation.look

    def targets(self, look: int) -> dict[Key, int]:
        """How many blocks its cells have at a look; those only that have fewer."""
        wanted = {key: blocks_at(place.first, look) for key, place in self.cells.items()}
        return {key: blocks for key, blocks in wanted.items() if blocks > self.cells[key].done}

    def look_with(self, targets: Mapping[Key, int]) -> int:
        """The look it would reach with these blocks."""
        return min(look_of(place.first, max(place.done, targets.get(key, 0))) for key, place in self.cells.items())

    def blocks(self, look: int) -> int:
        """The most blocks of any of its cells at a look."""
        return max(blocks_at(place.first, look) for place in self.cells.values())


@dataclass(frozen=True)
class SpendingEnd:
    """There is nothing more to spend time on."""

    reason: str
    open: tuple[UndecidedClaim, ...]


def choose(result: Result, left_s: float, steps: Sequence[Step]) -> Step | SpendingEnd:
    """What to measure next with the time that is left, after these steps; or why to end."""
    claims = open_claims(result, steps)
    purse = _Purse(left_s, _pace(steps))
    best: tuple[float, Claim, int] | None = None
    for claim in claims:
        for look in claim.chances:
            cost = purse.cost(claim, look)
            if claim.chances[look] < predictive_power.LEAST or cost > left_s:
                continue
            value = sum(_gain(other, claim.targets(look)) for other in claims) / max(cost, 1e-3)
            if best is None or value > best[0]:
                best = value, claim, look
    if best is None:
        return _ended(claims, purse, bool(result_claims(result)))
    _, claim, look = best
    return {**_step(claim, look, claims, purse), "step": len(steps) + 1}


def open_claims(result: Result, steps: Sequence[Step]) -> list[Claim]:
    """The claims that are open."""
    stuck = {step["claim"]: step for step in steps if "took_s" in step and not step.get("reached", True)}
    claims = []
    for study in result.studies:
        for one in study.claims:
            if one.state != OPEN:
                continue
            places = waiting(matching(one.statement, study.places))
            cells = {(place.run, place.cell): place for place in places}
            why = _stuck(stuck.get(one.statement.id), one) or predictive_power.no_use(one)
            if not why and (not cells or one.look < 1):
                why = one.reason
            claims.append(Claim(one, cells, no_use=why) if why else Claim(one, cells, _chances(one, cells)))
    return claims


def result_claims(result: Result) -> list[Evaluation]:
    """Those that can be decided at all: the claims of every study."""
    return [one for study in result.studies for one in study.claims]


def spending(
    result: Result, budget_s: float, spent_s: float, steps: Sequence[Step], ended: SpendingEnd | None
) -> Spending:
    """As ``reproduction.json`` has it."""
    claims = result_claims(result)
    return Spending(
        budget_s=round(budget_s, 1),
        spent_s=round(spent_s, 1),
        decided=sum(one.state != OPEN for one in claims),
        claims=len(claims),
        ended=ended.reason if ended else "",
        open=list(ended.open) if ended else [],
        steps=list(steps),
    )


def _chances(evaluation: Evaluation, cells: Mapping[Key, Place]) -> dict[int, float]:
    first = max(place.first for place in cells.values())
    ahead = [
        look
        for look in range(evaluation.look + 1, _LOOKS)
        if blocks_at(first, look) <= predictive_power.MOST_BLOCKS or look == evaluation.look + 1
    ]
    return {look: predictive_power.chance(evaluation, first, look) for look in ahead}


def _stuck(step: Step | None, evaluation: Evaluation) -> str:
    """Why a claim does not get the blocks that were asked for."""
    if step is None or evaluation.look >= step["look"] or step.get("problem") == BUDGET_SPENT:
        return ""
    why = step.get("problem") or "its runs ended before they had them"
    return f"further blocks of it could not be measured: {why}"


def _gain(claim: Claim, targets: Mapping[Key, int]) -> float:
    """The chance that these blocks decide a claim."""
    if not claim.chances or not targets.keys() & claim.cells.keys():
        return 0.0
    return claim.chances.get(claim.look_with(targets), 0.0)


@dataclass(frozen=True)
class _Purse:
    """The time that is left, in seconds, and by run how many times as long as its blocks a step took (`_pace`)."""

    left_s: float
    pace: Mapping[str, float]

    def cost(self, claim: Claim, look: int) -> float:
        """What the blocks take that a claim lacks for a look, in seconds."""
        return sum(ns * self.pace.get(run, 1.0) for run, ns in _blocks_s(claim, look).items())


def _blocks_s(claim: Claim, look: int) -> dict[str, float]:
    """By run the time of the blocks that a claim lacks for a look, in seconds."""
    seconds_by_run: dict[str, float] = {}
    for key, blocks in claim.targets(look).items():
        place = claim.cells[key]
        seconds_by_run[key[0]] = seconds_by_run.get(key[0], 0.0) + (blocks - place.done) * place.block_ns / 1e9
    return seconds_by_run


def _pace(steps: Sequence[Step]) -> dict[str, float]:
    """By run how many times as long as expected its earlier steps took: starting a lab costs time, too."""
    took: dict[str, list[float]] = {}
    for step in steps:
        if step.get("took_s") is None or not step.get("reached") or step["step_s"] <= 0:
            continue
        for run in step["targets"]:
            pair = took.setdefault(run, [0.0, 0.0])
            pair[0] += step["took_s"]
            pair[1] += step["step_s"] / step.get("pace", 1.0)
    return {run: min(10.0, max(0.25, spent / forecast)) for run, (spent, forecast) in took.items()}


def _step(claim: Claim, look: int, claims: Sequence[Claim], purse: _Purse) -> Step:
    """The blocks of a claim's next look, for the sake of what a later one may decide."""
    targets = claim.targets(claim.look + 1)
    by_run: dict[str, dict[str, int]] = {}
    for (run, cell), blocks in targets.items():
        by_run.setdefault(run, {})[cell] = blocks
    expected, now = purse.cost(claim, look), purse.cost(claim, claim.look + 1)
    plain = sum(_blocks_s(claim, claim.look + 1).values())
    also = [one.id for one in claims if one is not claim and _gain(one, targets) >= predictive_power.LEAST]
    seconds = numbers.wall(round(expected * 1e9))
    why = (
        f"with {claim.blocks(look)} blocks a cell, {seconds} from here, it is decided with a chance of "
        f"{100 * claim.chances[look]:.0f} %; {claim.evaluation.reason}"
    )
    return Step(
        claim=claim.id,
        why=why,
        look=claim.look + 1,
        blocks=claim.blocks(look),
        chance=round(claim.chances[look], 3),
        expected_s=round(expected, 1),
        step_s=round(now, 3),
        pace=round(now / plain, 4) if plain else 1.0,
        left_s=round(purse.left_s, 1),
        also=also,
        targets=by_run,
    )


def _ended(claims: Sequence[Claim], purse: _Purse, any_claim: bool) -> SpendingEnd:
    """Why it ends, and of each open claim why no more time, or no time that is left, would decide it."""
    open_claims_left = tuple(UndecidedClaim(claim=one.id, why=_open_reason(one, purse)) for one in claims)
    if not any_claim:
        return SpendingEnd("there is no claim", open_claims_left)
    if not claims:
        return SpendingEnd("every claim is decided", open_claims_left)
    if any(not one.no_use and max(one.chances.values(), default=0.0) >= predictive_power.LEAST for one in claims):
        return SpendingEnd("what is left of the budget decides nothing more", open_claims_left)
    return SpendingEnd("no further block decides anything more here", open_claims_left)


def _open_reason(claim: Claim, purse: _Purse) -> str:
    if claim.no_use:
        return claim.no_use
    hopes = [look for look, share in claim.chances.items() if share >= predictive_power.LEAST]
    likely = [look for look in hopes if claim.chances[look] >= predictive_power.LIKELY]
    if not hopes:
        return f"more blocks hardly help: {claim.evaluation.reason}"
    look = (likely or hopes)[0]
    takes = numbers.wall(round(purse.cost(claim, look) * 1e9))
    left = numbers.wall(round(purse.left_s * 1e9)) if purse.left_s > 0 else "nothing"
    words = "would decide" if likely else f"might decide (a chance of {100 * claim.chances[look]:.0f} %)"
    return f"about {claim.blocks(look)} blocks a cell {words}, which take {takes}; {left} is left"
