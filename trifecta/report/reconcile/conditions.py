"""Under which condition each side of a pair is true, in sentences and as rows: treatments, then experiments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trifecta.analysis.conditions import Branch, Cell, Truth
from trifecta.analysis.reconciling import Place
from trifecta.conclude.comparisons import UNTOLD
from trifecta.conclude.reconcile.read import PairResult
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


def short(pair: PairResult) -> list[str]:
    """Of each side in which treatments it held, at what experiments make it true, or that nothing does."""
    lines = []
    for side, side_claim in enumerate(pair.evidence.pair.sides):
        branches = [branch for branch in pair.branches(side) if branch.truth in ("true", "further")]
        if pair.evidence.holds[side] == "yes":
            lines.append(f"“{side_claim.says}” held in {_confirmed_in(pair, side)}.")
        for experiment in dict.fromkeys(branch.experiment for branch in branches):
            for truth, more in (("true", ""), ("further", ", and goes further,")):
                here = [branch for branch in branches if (branch.experiment, branch.truth) == (experiment, truth)]
                if here:
                    at = listed([_branch(pair, branch) for branch in here])
                    lines.append(f"“{side_claim.says}” becomes true{more} {at}: experiment {experiment}.")
        if not branches and pair.evidence.holds[side] in ("no", "open"):
            nor = (
                ", nor in any experiment"
                if side_claim.test is not None and pair.cells
                else "; no experiment here tests it"
            )
            lines.append(f"“{side_claim.says}” held in no treatment of the studies{nor}.")
    return lines


def _confirmed_in(pair: PairResult, side: int) -> str:
    """The treatments in which a side was confirmed: ``bourbon2020, single-A (no impairment; new connections)``."""
    places = [place for place in pair.evidence.places[side] if place.state == "confirmed"]
    studies = []
    for study in dict.fromkeys(place.levels["study"] for place in places):
        here = [place for place in places if place.levels["study"] == study]
        runs = listed(list(dict.fromkeys(place.levels["run"] for place in here)))
        factors = dict.fromkeys(name for place in here for name in place.levels if name not in ("study", "run"))
        levels = filter(None, (_levels(pair, factor, here) for factor in factors))
        studies.append(f"{study}, {runs} ({'; '.join(levels)})")
    return "; ".join(studies)


def _levels(pair: PairResult, factor: str, places: Sequence[Place]) -> str:
    """What a factor was in these places: ``request 128 B and 10.24 kB``; a path as what it does."""
    values = list(dict.fromkeys(place.levels[factor] for place in places if factor in place.levels))
    if factor == "path":
        known = [pair.paths.get((place.run, place.levels["path"]), "") for place in places if "path" in place.levels]
        return f"path {listed(values)}: {listed(list(dict.fromkeys(filter(None, known))))}".removesuffix(": ")
    if any((factor, value) in UNTOLD for value in values):
        return ""
    if len(values) == 1:
        return level(factor, values[0])
    return f"{factor.replace('_', ' ')} {listed(values)}"


def _branch(pair: PairResult, branch: Branch) -> str:
    """``with a new connection for every request and TLS 1.2, at 40 and 70 ms round trip (HTTP/3 ÷ HTTP/2 0.50)``."""
    levels = listed([level(factor, value) for factor, value in branch.levels.items()])
    arms = f"{name(pair.evidence.pair.arm)} ÷ {name(pair.evidence.pair.to)}"
    parts = [f"with {levels}" if levels else "", _sweep(branch.along)]
    return f"{', '.join(filter(None, parts)) or 'in all its cells'} ({arms} {_range(branch.ratios)})"


def _sweep(levels: Sequence[str]) -> str:
    """``at 40 and 70 ms round trip`` of paths that differ in that alone; else their words; empty without any."""
    tail = " ms round trip"
    names = [level("path", one) for one in levels]
    if names and all(one.endswith(tail) for one in names):
        return f"at {listed([one.removesuffix(tail) for one in names])}{tail}"
    return f"on the path {listed([f'“{one}”' for one in names])}" if names else ""


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


def rows(pair: PairResult) -> list[Row]:
    """The table: a row a cell."""
    table, last = [], ""
    for cell in pair.cells:
        levels = [level(factor, value) for factor, value in cell.levels.items()]
        table.append(
            Row(
                experiment=cell.experiment,
                first=cell.experiment != last,
                condition=", ".join(levels),
                ratio=ratio(cell),
                expected="" if cell.expected is None else numbers.ratio(cell.expected),
                blocks=cell.blocks,
                truths=tuple("" if truth is None else _HELD[truth] for truth in cell.truths),
            )
        )
        last = cell.experiment
    return table


def ratio(cell: Cell) -> str:
    """``0.50 [0.499, 0.509]``; or that no block counts."""
    if cell.ratio is None:
        return "no block counts"
    return f"{numbers.ratio(cell.ratio)} {numbers.interval((cell.low, cell.high))}"


def label(cell: Cell, changed: Sequence[str]) -> str:
    """``40 ms round trip, new connection, TLS 1.2 over TCP``: what the experiment changes, briefly."""
    changes = [_SHORT.get((factor, cell.levels[factor])) or level(factor, cell.levels[factor]) for factor in changed]
    return ", ".join(changes)


def missing(pair: PairResult) -> str:
    """What experiments the folder lacks, and how they are made; empty where none."""
    if not pair.not_run:
        return ""
    names = listed(list(pair.not_run))
    were = "was" if len(pair.not_run) == 1 else "were"
    return f"{counted(len(pair.not_run), 'experiment')} ({names}) {were} not run, or cannot be read, in this folder."
