"""Under which condition each side of a pair is true, in sentences and as rows: treatments, then experiments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trifecta.analysis.conditions import Branch, Cell, Truth
from trifecta.analysis.reconciling import Place
from trifecta.conclude.comparisons import UNTOLD
from trifecta.conclude.reconcile.read import PairFound
from trifecta.design import numbers
from trifecta.design.phrases import counted, listed
from trifecta.report.figures.style import name

_WORDS: Mapping[tuple[str, str], str] = {
    ("connection", "new"): "a new connection for every request",
    ("connection", "reused"): "an open connection",
    ("tls_version", "1.2/1.3"): "TLS 1.2 over TCP",
    ("tls_version", "1.3"): "TLS 1.3",
    ("zero_rtt", "true"): "early data in resumed sessions",
    ("zero_rtt", "false"): "resumed sessions without early data",
    ("tcp_nodelay", "false"): "Nagle's algorithm on",
    ("tcp_nodelay", "true"): "Nagle's algorithm off",
    ("client", "load"): "Trifecta's own client",
    ("client", "python-client"): "the Python client",
    ("server", "origin"): "Trifecta's own server",
    ("server", "caddy"): "Caddy",
    ("server", "hypercorn"): "Hypercorn",
    ("hosts", "1"): "both on one host (loopback)",
    ("hosts", "2"): "two hosts",
}
_SHORT = {("connection", "new"): "new connection", ("connection", "reused"): "reused"}
# Of threats/loopback-offload: both leave packets alone, and differ in how large frames are.
_PATHS = {"wire: no impairment": "frames of a wire's size", "merged: no impairment": "frames merged up to 64 KB"}
_ZEROS = re.compile(r"(\d)\.0+ ")
_HELD: Mapping[Truth, str] = {"true": "true", "further": "true, and goes further", "false": "false", "open": "open"}


def level(factor: str, value: str) -> str:
    """``a new connection for every request``, ``TLS 1.2 over TCP``, ``in flight 32``; a path as it is described."""
    if factor == "path":
        return _ZEROS.sub(r"\1 ", _PATHS.get(value, value))
    return _WORDS.get((factor, value), f"{factor.replace('_', ' ')} {value}")


def short(one: PairFound) -> list[str]:
    """Of each side in which treatments it held, at what experiments make it true, or that nothing does."""
    made = []
    for side, told in enumerate(one.found.pair.sides):
        found = [branch for branch in one.branches(side) if branch.truth in ("true", "further")]
        if one.found.holds[side] == "yes":
            made.append(f"“{told.says}” held in {_held(one, side)}.")
        for experiment in dict.fromkeys(branch.experiment for branch in found):
            for truth, more in (("true", ""), ("further", ", and goes further,")):
                here = [branch for branch in found if (branch.experiment, branch.truth) == (experiment, truth)]
                if here:
                    at = listed([_branch(one, branch) for branch in here])
                    made.append(f"“{told.says}” becomes true{more} {at}: experiment {experiment}.")
        if not found and one.found.holds[side] in ("no", "open"):
            nor = ", nor in any experiment" if told.test is not None and one.cells else "; no experiment here tests it"
            made.append(f"“{told.says}” held in no treatment of the studies{nor}.")
    return made


def _held(one: PairFound, side: int) -> str:
    """The treatments in which a side was confirmed: ``bourbon2020, single-A (no impairment; new connections)``."""
    places = [place for place in one.found.places[side] if place.state == "confirmed"]
    made = []
    for study in dict.fromkeys(place.levels["study"] for place in places):
        here = [place for place in places if place.levels["study"] == study]
        runs = listed(list(dict.fromkeys(place.levels["run"] for place in here)))
        factors = dict.fromkeys(name for place in here for name in place.levels if name not in ("study", "run"))
        told = filter(None, (_levels(one, factor, here) for factor in factors))
        made.append(f"{study}, {runs} ({'; '.join(told)})")
    return "; ".join(made)


def _levels(one: PairFound, factor: str, places: Sequence[Place]) -> str:
    """What a factor was in these places: ``request 128 B and 10.24 kB``; a path as what it does."""
    values = list(dict.fromkeys(place.levels[factor] for place in places if factor in place.levels))
    if factor == "path":
        known = [one.paths.get((place.run, place.levels["path"]), "") for place in places if "path" in place.levels]
        return f"path {listed(values)}: {listed(list(dict.fromkeys(filter(None, known))))}".removesuffix(": ")
    if any((factor, value) in UNTOLD for value in values):
        return ""
    if len(values) == 1:
        return level(factor, values[0])
    return f"{factor.replace('_', ' ')} {listed(values)}"


def _branch(one: PairFound, branch: Branch) -> str:
    """``with a new connection for every request and TLS 1.2, at 40 and 70 ms round trip (HTTP/3 ÷ HTTP/2 0.50)``."""
    told = listed([level(factor, value) for factor, value in branch.levels.items()])
    arms = f"{name(one.found.pair.arm)} ÷ {name(one.found.pair.to)}"
    parts = [f"with {told}" if told else "", _sweep(branch.along)]
    return f"{', '.join(filter(None, parts)) or 'in all its cells'} ({arms} {_range(branch.ratios)})"


def _sweep(levels: Sequence[str]) -> str:
    """``at 40 and 70 ms round trip`` of paths that differ in that alone; else their words; empty without any."""
    tail = " ms round trip"
    told = [level("path", one) for one in levels]
    if told and all(one.endswith(tail) for one in told):
        return f"at {listed([one.removesuffix(tail) for one in told])}{tail}"
    return f"on the path {listed([f'“{one}”' for one in told])}" if told else ""


def _range(ends: tuple[float, float] | None) -> str:
    """``0.50``, ``0.67 to 0.68``."""
    if ends is None:
        return "no ratio"
    low, high = map(numbers.ratio, ends)
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True)
class Row:
    """A cell of an experiment as the page's table has it."""

    experiment: str
    first: bool
    condition: str
    ratio: str
    expected: str
    blocks: int
    truths: tuple[str, ...]


def rows(one: PairFound) -> list[Row]:
    """The table: a row a cell."""
    made, last = [], ""
    for cell in one.cells:
        told = [level(factor, value) for factor, value in cell.levels.items()]
        made.append(
            Row(
                experiment=cell.experiment,
                first=cell.experiment != last,
                condition=", ".join(told),
                ratio=ratio(cell),
                expected="" if cell.expected is None else numbers.ratio(cell.expected),
                blocks=cell.blocks,
                truths=tuple("" if truth is None else _HELD[truth] for truth in cell.truths),
            )
        )
        last = cell.experiment
    return made


def ratio(cell: Cell) -> str:
    """``0.50 [0.499, 0.509]``; or that no block counts."""
    if cell.ratio is None:
        return "no block counts"
    return f"{numbers.ratio(cell.ratio)} {numbers.interval((cell.low, cell.high))}"


def label(cell: Cell, changed: Sequence[str]) -> str:
    """``40 ms round trip, new connection, TLS 1.2 over TCP``: what the experiment changes, briefly."""
    told = [_SHORT.get((factor, cell.levels[factor])) or level(factor, cell.levels[factor]) for factor in changed]
    return ", ".join(told)


def missing(one: PairFound) -> str:
    """What experiments the folder lacks, and how they are made; empty where none."""
    if not one.not_run:
        return ""
    names = listed(list(one.not_run))
    were = "was" if len(one.not_run) == 1 else "were"
    return f"{counted(len(one.not_run), 'experiment')} ({names}) {were} not run, or cannot be read, in this folder."
