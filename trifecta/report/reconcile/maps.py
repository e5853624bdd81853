"""What maps say to the two sentences of a pair, in words."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from trifecta.analysis.conditions import Test
from trifecta.analysis.mapping.result import MapResult
from trifecta.analysis.reconciling import Pair
from trifecta.conclude.reconcile.maps import Map, spread
from trifecta.design import numbers
from trifecta.design.phrases import counted, listed
from trifecta.report.map import words

_NAMES = {"rtt": "round-trip time"}


def command(one: Map) -> str:
    """What makes it again, into a folder of the reader's own."""
    words_, skip = [], False
    for word in [str(word) for word in one.result.about.get("argv") or ()][1:] or ["map"]:
        if not skip and word != "--out" and not word.startswith("--out="):
            words_.append(word)
        skip = word == "--out"
    return shlex.join(["trifecta", *words_])


def summary(one: Map) -> str:
    """What it says by itself, and how it was made."""
    about = one.result.about
    day = str(about.get("started_utc") or "")[:10] or "an unknown day"
    blocks = counted(one.result.blocks, "block")
    origin = f"{blocks} from {day}, seed {about.get('seed', 'unknown')}, by “{command(one)}”."
    return f"{words.headline(one.result)} {origin}"


def sentences(pair: Pair, maps: Sequence[Map]) -> list[str]:
    """What the maps of a pair's protocols say to its two sentences; nothing where a pair is not about what they map."""
    if not pair.maps:
        return []
    return [
        sentence
        for one in maps
        if {one.result.plan.arm, one.result.plan.reference} == {pair.arm, pair.to}
        for side in pair.sides
        if side.test is not None and (sentence := _side(pair, one.result, side.says, side.test))
    ]


def _side(pair: Pair, result: MapResult, claim: str, test: Test) -> str:
    """``On the map of rtt and loss: “HTTP/3 is the fastest” is true on 15 % of the plane, all of it within ...``."""
    plan = result.plan
    x, y = (_NAMES.get(axis.name, axis.name) for axis in (plan.x, plan.y))
    head = f"On the map of {x} and {y} ({result.traffic}): “{claim}” is"
    interval = spread(pair, result, test)
    if interval is None:
        return f"{head} not decided: no block counts."
    rest = f"; {numbers.percent(interval.open / interval.places)} of the plane is open" if interval.open else ""
    if not interval.true:
        return f"{head} true nowhere{rest}."
    spans = []
    for name, axis, own in ((x, plan.x, [i for i, _ in interval.true]), (y, plan.y, [j for _, j in interval.true])):
        first, last = (axis.kind.format(axis.values[end]) for end in (min(own), max(own)))
        spans.append(f"{name} {first}" if first == last else f"{name} {first} to {last}")
    share = numbers.percent(len(interval.true) / interval.places)
    return f"{head} true on {share} of the plane, all of it within {listed(spans)}{rest}."
