"""Claims that contradict each other: where each of them holds, by runs, and what distinguishes those places.

A place is a cell of a run with the effect that was measured there. A side of a pair is confirmed in a place when the
evaluation of one of its claims says so there (`published`). Places of both sides are compared by what is known of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal, TypedDict, cast

from trifecta.analysis.conditions import Test
from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, OTHER_SIZE, State, rank
from trifecta.contract.reproduction import Judged

Outcome = Literal["both", "first", "second", "neither", "open", "not run"]


SideDocument = TypedDict(
    "SideDocument",
    {"says": str, "claims": list[str], "is": Literal["above", "below", "same", "about"], "ratio": float},
    total=False,
)
"""A side of a pair, as ``trifecta/studies/contradictions/pairs.yaml`` has it."""


class DecideDocument(TypedDict, total=False):
    """What stays to be decided there, and by which command."""

    what: str
    run: str


class PairDocument(TypedDict, total=False):
    """A pair there."""

    id: str
    question: str
    arm: str
    to: str
    sides: list[SideDocument]
    condition: str
    threats: list[str]
    experiments: list[str]
    decide: list[DecideDocument]
    maps: bool


class PairsDocument(TypedDict):
    """The whole file."""

    pairs: list[PairDocument]


@dataclass(frozen=True)
class Side:
    """One of two claims that contradict each other: what it says, and the ids of the claims that say it.

    ``test`` is the same as a test of a ratio of times, for the cells of experiments; None where it is about no time.
    """

    says: str
    claims: tuple[str, ...]
    test: Test | None = None


@dataclass(frozen=True)
class Pair:
    """Two sides, the protocols that are compared, the conjecture that would reconcile them, and threats to them.

    ``experiments`` are those whose cells are put to both sides; ``decide`` says what stays to be decided, and by which
    command (empty: by none of Trifecta's).
    """

    id: str
    question: str
    arm: str
    to: str
    sides: tuple[Side, Side]
    condition: str
    threats: tuple[str, ...]
    experiments: tuple[str, ...] = ()
    decide: tuple[tuple[str, str], ...] = ()
    maps: bool = False
    """Whether maps of its protocols are about it."""


@dataclass(frozen=True)
class Place:
    """What one cell says to one claim: a ratio, below 1 where ``arm`` is the faster or has less."""

    claim: str
    run: str
    cell: str
    state: str
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    metric: str
    levels: Mapping[str, str]

    @property
    def of_time(self) -> bool:
        """Whether its ratio is one of times, or of rates upside down."""
        return not self.metric.endswith(("_bytes", "_count", "_packets"))


@dataclass(frozen=True)
class PairEvidence:
    """A pair as runs see it. ``places`` has those of either side, ``states`` the state of each claim."""

    pair: Pair
    outcome: Outcome
    states: tuple[Mapping[str, str], Mapping[str, str]]
    places: tuple[tuple[Place, ...], tuple[Place, ...]]
    holds: tuple[str, str]
    """Of either side ``yes`` (confirmed somewhere), ``no`` (contradicted, confirmed nowhere), ``open``, ``not run``."""
    differ: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    """By factor the levels at which the first and the second side were confirmed, where none is in both."""


def parse(document: PairsDocument) -> tuple[Pair, ...]:
    """The pairs of ``trifecta/studies/contradictions/pairs.yaml``; ValueError names what is wrong with it."""
    pairs = []
    for one in document["pairs"]:
        sides = [Side(str(side["says"]), tuple(map(str, side["claims"])), _test(side)) for side in one["sides"]]
        if len(sides) != 2:
            raise ValueError(f"contradictions/pairs.yaml: {one['id']} has {len(sides)} sides; give two")
        pairs.append(
            Pair(
                id=str(one["id"]),
                question=str(one["question"]),
                arm=str(one["arm"]),
                to=str(one["to"]),
                sides=(sides[0], sides[1]),
                condition=str(one["condition"]),
                threats=tuple(map(str, one.get("threats") or ())),
                experiments=tuple(map(str, one.get("experiments") or ())),
                decide=tuple((str(each["what"]), str(each.get("run", ""))) for each in one.get("decide") or ()),
                maps=bool(one.get("maps", False)),
            )
        )
    return tuple(pairs)


def _test(side: SideDocument) -> Test | None:
    relation = side.get("is")
    if relation is None:
        return None
    if relation not in ("above", "below", "same", "about"):
        raise ValueError(f"contradictions/pairs.yaml: 'is' is {relation!r}; give above, below, same or about")
    if (relation == "about") != ("ratio" in side):
        raise ValueError("contradictions/pairs.yaml: 'is: about' and 'ratio' come together; give both or neither")
    return Test(relation, float(side["ratio"]) if "ratio" in side else None)


def reconcile(pair: Pair, claims: Mapping[str, Judged]) -> PairEvidence:
    """Where either side holds; ``claims`` by id as ``reproduction.json`` has them."""
    places = tuple(
        tuple(place for claim in side.claims if claim in claims for place in _places(pair, side, claims[claim]))
        for side in pair.sides
    )
    states = tuple(
        {claim: str(claims[claim]["state"]) if claim in claims else "not run" for claim in side.claims}
        for side in pair.sides
    )
    holds = [
        _holds({_truth(side, state) for state in one.values()}, side_places)
        for side, one, side_places in zip(pair.sides, states, places, strict=True)
    ]
    return PairEvidence(
        pair=pair,
        outcome=_outcome(holds, places),
        states=(states[0], states[1]),
        places=(places[0], places[1]),
        holds=(holds[0], holds[1]),
        differ=_differ(places[0], places[1]),
    )


def _truth(side: Side, state: str) -> str:
    """What a claim's state says of the side's sentence, which may have a direction only where the claim has a size."""
    if state != OTHER_SIZE:
        return state
    return CONTRADICTED if side.test is not None and side.test.ratio is not None else CONFIRMED


def _places(pair: Pair, side: Side, claim: Judged) -> list[Place]:
    """The places of a claim with a ratio of the pair's protocols: those of two cells, or to others, are left out.

    What a claim says against several ("the fastest") is true of a place where it is against each.
    """
    places = []
    cells = claim.get("cells") or ()
    states: dict[tuple[str, str], list[State]] = {}
    for cell in cells:
        states.setdefault((cell["run"], cell["cell"]), []).append(cast(State, _truth(side, cell["state"])))
    for cell in cells:
        if claim.get("form") == "difference" or cell.get("against") or cell.get("to") not in (pair.to, pair.arm):
            continue
        ends = [cell.get("value"), cell.get("low"), cell.get("high")]
        # Of a rate more is faster; and where the claim is about the pair's other protocol the ratio is upside down.
        if str(claim["metric"]).endswith("_per_s") != (cell.get("to") == pair.arm):
            ends = [None if end in (None, 0) else 1 / end for end in (ends[0], ends[2], ends[1])]
        places.append(
            Place(
                claim=str(claim["id"]),
                run=str(cell["run"]),
                cell=str(cell["cell"]),
                state=min(states[cell["run"], cell["cell"]], key=rank),
                ratio=ends[0],
                low=ends[1],
                high=ends[2],
                blocks=int(cell.get("blocks") or 0),
                metric=str(claim["metric"]),
                levels=levels(str(cell["run"]), str(cell["cell"])),
            )
        )
    return places


def levels(run: str, cell: str) -> dict[str, str]:
    """What is known of a place: its study and run, and the levels of its cell."""
    study, _, name = run.partition("/")
    levels_by_factor = {"study": study, "run": name}
    for part in cell.split(","):
        factor, equals, level = part.partition("=")
        if equals:
            levels_by_factor[factor] = level
    return levels_by_factor


def _holds(states: Set[str], places: Sequence[Place]) -> str:
    """Whether a side is confirmed somewhere, contradicted wherever it is decided, open, or not run."""
    all_states = {place.state for place in places} | {state for state in states if state != "not run"}
    if not places and all_states <= {"open", "not compared"}:
        return "open" if all_states else "not run"
    if "confirmed" in all_states:
        return "yes"
    return "no" if "contradicted" in all_states else "open"


def _outcome(holds: Sequence[str], places: Sequence[Sequence[Place]]) -> Outcome:
    first, second = holds
    if "not run" in holds and not (places[0] or places[1]):
        return "not run"
    if first == second == "yes":
        return "both"
    if first == "yes":
        return "first"
    if second == "yes":
        return "second"
    return "neither" if first == second == "no" else "open"


def _differ(first: Sequence[Place], second: Sequence[Place]) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """The factors whose levels tell the places where the first side is confirmed from those of the second."""
    sides = [
        [place for place in confirmed_levels if place.state == "confirmed"] for confirmed_levels in (first, second)
    ]
    if not all(sides):
        return {}
    shared = set.intersection(*({*place.levels} for side in sides for place in side)) - {"run"}
    confirmed_levels = {}
    for name in sorted(shared):
        one, other = (tuple(dict.fromkeys(place.levels[name] for place in side)) for side in sides)
        if not set(one) & set(other):
            confirmed_levels[name] = (one, other)
    return confirmed_levels
