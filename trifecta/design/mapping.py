"""A map as a study: a cell at each place of the plane, two levels of a factor, and what the search needs besides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trifecta.contract.run import MapPlanDocument
from trifecta.design.axes import Axis, parse_axis, place_text
from trifecta.design.by_protocol import format_octets
from trifecta.design.document import Document, did_you_mean
from trifecta.design.errors import UserError
from trifecta.design.factors import KNOWN_FACTORS, parse_level
from trifecta.design.levels import CLEAN
from trifecta.design.model import PROTOCOL_FACTOR, PROTOCOL_NAMES, Cell, RequestsWorkload, Study
from trifecta.design.overrides import apply_overrides
from trifecta.design.plan import level_text
from trifecta.design.quantity import QuantityError

MOST_BLOCKS = 10_000
_POINT = re.compile(r"x(\d+)-y(\d+)")


@dataclass(frozen=True)
class MapPlan:
    """What is mapped: ``arm`` against ``reference``, levels of the factor ``compare``.

    ``blocks`` and ``budget_ns`` end it early (None: no such end).
    """

    x: Axis
    y: Axis
    resolution: tuple[int, int]
    arm: str
    reference: str
    blocks: int | None = None
    budget_ns: int | None = None
    compare: str = PROTOCOL_FACTOR

    def places(self) -> list[tuple[int, int]]:
        """Every place, as the numbers of its values on both axes."""
        return [(i, j) for i in range(len(self.x.values)) for j in range(len(self.y.values))]

    def shares(self) -> list[tuple[float, float]]:
        """The places in the unit square."""
        across, up = self.x.shares(), self.y.shares()
        return [(across[i], up[j]) for i, j in self.places()]

    def place_of(self, cell: Cell) -> int:
        """The number of the place that a cell is."""
        match = _POINT.fullmatch(str(cell.levels["path"]))
        both = [int(match[1]), int(match[2])] if match else [0, 0]
        for number, axis in enumerate((self.x, self.y)):
            if axis.kind.where == "workload":
                both[number] = axis.texts.index(str(cell.levels[axis.name]))
        return both[0] * len(self.y.values) + both[1]

    def document(self) -> MapPlanDocument:
        """What :func:`read_plan` reads back."""
        own: MapPlanDocument = {} if self.compare == PROTOCOL_FACTOR else {"compare": self.compare}
        return {
            **own,
            "x": self.x.text(),
            "y": self.y.text(),
            "resolution": list(self.resolution),
            "arms": [self.arm, self.reference],
            "blocks": self.blocks,
            "budget_ns": self.budget_ns,
        }

    def where(self, x: float, y: float) -> str:
        """A place in words: ``at 35 ms and 0.5 % loss``."""
        return f"at {self.x.words(x)} and {self.y.words(y)}"


def make_plan(
    x: str,
    y: str,
    resolution: str,
    arms: str,
    *,
    blocks: int | None = None,
    budget_ns: int | None = None,
    compare: str = PROTOCOL_FACTOR,
) -> MapPlan:
    """The plan that a command line asks for; UserError in one line."""
    sides = re.fullmatch(r"\s*(\d{1,3})\s*[x×]\s*(\d{1,3})\s*", resolution)
    if not sides:
        raise UserError(f"option --resolution: {resolution!r} is not a resolution; write for example 16x16")
    counts = int(sides[1]), int(sides[2])
    axes = parse_axis("--x", x, counts[0]), parse_axis("--y", y, counts[1])
    if axes[0].name == axes[1].name:
        raise UserError(f"option --y: {axes[0].name} is the other axis already; choose another factor")
    _refuse_compared(compare, axes)
    try:
        pair = [level_text(parse_level(compare, part.strip())) for part in arms.split(",")]
    except QuantityError as error:
        raise UserError(f"option --arms: {error}") from None
    if len(pair) != 2 or pair[0] == pair[1]:
        what = "protocols; write for example h3,h2" if compare == PROTOCOL_FACTOR else f"levels of {compare}; name two"
        raise UserError(f"option --arms: {arms!r} are not two {what}")
    return MapPlan(axes[0], axes[1], counts, pair[0], pair[1], blocks=blocks, budget_ns=budget_ns, compare=compare)


def _refuse_compared(compare: str, axes: tuple[Axis, Axis]) -> None:
    known = [name for name in KNOWN_FACTORS if name != "path"]
    if compare == "path":
        raise UserError("option --compare: a map has a path at each of its places, so it compares none; name another")
    if compare not in known:
        raise UserError(f"option --compare: no factor {compare!r}; {did_you_mean(compare, known)}")
    if compare in (axes[0].name, axes[1].name):
        raise UserError(f"option --compare: {compare} is an axis already; compare another factor")


def read_plan(document: MapPlanDocument) -> MapPlan:
    """The plan of a map that was begun."""
    x, y = document["resolution"]
    return make_plan(
        document["x"],
        document["y"],
        f"{x}x{y}",
        ",".join(document["arms"]),
        blocks=document["blocks"],
        budget_ns=document["budget_ns"],
        compare=document.get("compare", PROTOCOL_FACTOR),
    )


def parse_place(option: str, plan: MapPlan, text: str) -> tuple[float, float]:
    """``rtt=35ms,loss=0.5%`` as values of both axes; UserError when one is missing, twice there, unknown or outside."""
    parts = [part.partition("=") for part in text.split(",")]
    given = {name.strip().removeprefix("path.").removeprefix("workload."): value.strip() for name, _, value in parts}
    axes = (plan.x, plan.y)
    names = [axis.name for axis in axes]
    if sorted(given) != sorted(names) or len(parts) != len(names) or not all(given.values()):
        example = ",".join(f"{axis.name}={axis.texts[len(axis.texts) // 2].replace(' ', '')}" for axis in axes)
        raise UserError(f"option {option} {text}: give a value of {names[0]} and of {names[1]}, for example {example}")
    x, y = (place_text(option, axis, given[axis.name]) for axis in axes)
    return x, y


def change_to_map(document: Document, plan: MapPlan, overrides: Sequence[str]) -> None:
    """Make the study in the document that of a map: its cells are the plan's places, everything else has one level."""
    apply_overrides(document, overrides)
    _refuse_own(document, plan)
    tree = document.tree
    factors = tree.setdefault("factors", {})
    if not isinstance(factors, dict):
        raise document.error(("factors",), "is not a mapping; write 'name: value' lines below it")
    paths = tree.get("paths") or {}
    base = _only_level(document, "path", factors.get("path") or list(paths) or [CLEAN])
    if plan.compare != PROTOCOL_FACTOR:
        factors.setdefault(PROTOCOL_FACTOR, list(PROTOCOL_NAMES.values()))
    for name in [name for name in factors if name not in (plan.compare, "path")]:
        if name not in (plan.x.name, plan.y.name):
            factors[name] = [_only_level(document, name, factors[name])]
    fields = dict(paths.get(base) or {})
    for axis in (plan.x, plan.y):
        if axis.kind.where == "workload":
            tree.get("workload", {}).pop(axis.name, None)
            factors[axis.name] = list(axis.texts)
    points: dict[str, Any] = {}
    for i in range(len(plan.x.texts)) if plan.x.kind.where == "path" else (0,):
        for j in range(len(plan.y.texts)) if plan.y.kind.where == "path" else (0,):
            own = {axis.name: axis.texts[n] for axis, n in ((plan.x, i), (plan.y, j)) if axis.kind.where == "path"}
            if "rtt" in own:
                fields.pop("delay", None)
            points[f"x{i:02}-y{j:02}"] = fields | own
    options = {place[2:]: option for place, option in document.options.items() if place[:2] == ("paths", base)}
    for rest, option in options.items():  # the path is that of every place now
        del document.options["paths", base, *rest]
        document.options |= {("paths", point, *rest): option for point in points}
    tree["paths"] = points
    factors["path"] = list(points)
    tree.get("workload", {}).pop(plan.compare, None)
    factors[plan.compare] = [PROTOCOL_NAMES.get(plan.reference, plan.reference), PROTOCOL_NAMES.get(plan.arm, plan.arm)]
    tree["baseline"] = factors[plan.compare][0]
    tree["compare"] = plan.compare
    tree["blocks"] = {"at_least": "1", "at_most": str(MOST_BLOCKS)}
    tree["budget"] = "none"
    if str(tree.get("capture", "")).lower() in ("true", "yes", "on"):
        tree["captured_trials_count"] = "true"


def _refuse_own(document: Document, plan: MapPlan) -> None:
    """UserError for an option that sets what a map sets itself."""
    own = {
        ("blocks",): "use --blocks, how many in all",
        ("budget",): "use --budget",
        ("baseline",): "use --arms",
        ("compare",): "use --compare",
        ("factors", plan.compare): "use --arms",
        ("workload", plan.compare): "use --arms",
    }
    for option, axis in (("--x", plan.x), ("--y", plan.y)):
        own |= {(where, axis.name): f"it is an axis; use {option}" for where in ("workload", "factors")}
    of_paths = {axis.name: option for option, axis in (("--x", plan.x), ("--y", plan.y)) if axis.kind.where == "path"}
    if "rtt" in of_paths:
        of_paths["delay"] = of_paths["rtt"]
    for place, option in document.options.items():
        remedy = next((text for start, text in own.items() if place[: len(start)] == start), None)
        if place[0] == "paths" and len(place) > 2 and place[2] in of_paths:
            remedy = f"it is an axis; use {of_paths[str(place[2])]}"
        if remedy is not None:
            raise UserError(f"option {option}: a map sets {place[-1]} itself; {remedy}, and leave this out")


def _only_level(document: Document, factor: str, levels: Any) -> Any:
    listed = levels if isinstance(levels, list) else [levels]
    if len(listed) != 1:
        sentence = ", ".join(str(level) for level in listed)
        raise UserError(
            f"{document.name}: factors.{factor}: has the levels {sentence}, and a map has one beside its axes; "
            f"add --set {factor}={listed[0] if listed else 'LEVEL'}"
        )
    return listed[0]


def traffic(study: Study) -> str:
    """What is asked for, in words: ``20 objects of 30 kB``."""
    workload: RequestsWorkload = study.workload
    levels = {name: level[0] for name, level in study.factors.items() if len(level) == 1}
    if workload.visiting:
        return f"the {workload.kind} {levels.get(workload.kind) or getattr(workload, 'page', '') or 'watched'}".strip()
    if not workload.direct:
        return f"cycles of the workload {workload.kind}"
    size = "" if "response" in study.factors and len(study.factors["response"]) > 1 else _of_size(levels, workload)
    fresh = "a new connection each" if "new" in study.factors["connection"] else ""
    lengths = [path.length(str(study.factors["connection"][0])) for path in study.paths.values()]
    requests = next((length.requests for length in lengths if length), workload.requests)
    flight = "in_flight" in study.factors and len(study.factors["in_flight"]) > 1
    if not flight and requests == workload.in_flight:
        return ", ".join(filter(None, (f"{requests} objects{size}", fresh)))
    abreast = "" if flight else f"{workload.in_flight} at a time"
    return ", ".join(filter(None, (f"requests{size}", abreast, fresh)))


def _of_size(levels: dict[str, Any], workload: RequestsWorkload) -> str:
    return f" of {levels.get('response') or format_octets(workload.response_bytes)}"
