"""Maps as evidence: on which part of a plane of two factors either sentence of a pair is true."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trifecta.analysis.conditions import Test, put
from trifecta.analysis.intervals import Estimate
from trifecta.analysis.mapping.result import MapResult
from trifecta.analysis.reconciling import Pair
from trifecta.report import numbers
from trifecta.report.figures.panels import Drawn
from trifecta.report.map import page, picture, words
from trifecta.report.words import counted, listed

_NAMES = {"rtt": "round-trip time"}


@dataclass(frozen=True)
class Map:
    """A map and its name on the page."""

    name: str
    made: MapResult

    def drawn(self) -> Drawn:
        """Its picture."""
        return picture.draw(self.made)

    @property
    def command(self) -> str:
        """What makes it again, into a folder of the reader's own."""
        words_, skip = [], False
        for word in [str(word) for word in self.made.about.get("argv") or ()][1:] or ["map"]:
            if not skip and word != "--out" and not word.startswith("--out="):
                words_.append(word)
            skip = word == "--out"
        return shlex.join(["trifecta", *words_])

    @property
    def told(self) -> str:
        """What it says by itself, and how it was made."""
        about = self.made.about
        day = str(about.get("started_utc") or "")[:10] or "an unknown day"
        blocks = counted(self.made.blocks, "block")
        made = f"{blocks} from {day}, seed {about.get('seed', 'unknown')}, by “{self.command}”."
        return f"{words.headline(self.made)} {made}"


def read(folders: Sequence[Path]) -> list[Map]:
    """The maps of these folders; UserError when one is none."""
    return [Map(f"map-{number}", page.load(folder)) for number, folder in enumerate(folders, 1)]


def sentences(pair: Pair, maps: Sequence[Map]) -> list[str]:
    """What the maps of a pair's protocols say to its two sentences; nothing where a pair is not about what they map."""
    if not pair.maps:
        return []
    return [
        said
        for one in maps
        if {one.made.plan.arm, one.made.plan.reference} == {pair.arm, pair.to}
        for side in pair.sides
        if side.test is not None and (said := _side(pair, one.made, side.says, side.test))
    ]


def _side(pair: Pair, made: MapResult, says: str, test: Test) -> str:
    """``On the map of rtt and loss: “HTTP/3 is the fastest” is true on 15 % of the plane, all of it within ...``."""
    sides = made.sides()
    plan = made.plan
    x, y = (_NAMES.get(axis.name, axis.name) for axis in (plan.x, plan.y))
    head = f"On the map of {x} and {y} ({made.traffic}): “{says}” is"
    if sides is None:
        return f"{head} not decided: no block counts."
    margin = max(made.margin, made.noise.floor)
    turn = -1.0 if plan.arm == pair.arm else 1.0  # a map has speed-ups of its arm, a pair times of its own
    truths = []
    for mean, low, high in zip(sides.mean, sides.low, sides.high, strict=True):
        ends = sorted((turn * float(low), turn * float(high)))
        truths.append(put(test, Estimate(turn * float(mean), ends[0], ends[1], made.blocks), margin))
    true = [place for place, truth in zip(plan.places(), truths, strict=True) if truth in ("true", "further")]
    total, left = len(truths), truths.count("open")
    rest = f"; {numbers.percent(left / total)} of the plane is open" if left else ""
    if not true:
        return f"{head} true nowhere{rest}."
    spans = []
    for name, axis, own in ((x, plan.x, [i for i, _ in true]), (y, plan.y, [j for _, j in true])):
        first, last = (axis.kind.format(axis.values[end]) for end in (min(own), max(own)))
        spans.append(f"{name} {first}" if first == last else f"{name} {first} to {last}")
    return f"{head} true on {numbers.percent(len(true) / total)} of the plane, all of it within {listed(spans)}{rest}."
