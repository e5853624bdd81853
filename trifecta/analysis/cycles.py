"""The parts of a cycle over blocks: the way of every hop there and back, its handshake, and the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, cast

from trifecta.analysis.means import Mean, block_logs, geometric_mean
from trifecta.contract.trial import TrialRow
from trifecta.design.metric import Metric


class Call(TypedDict):
    """One call of a cycle; ``ordinal`` is its place in the order in which they begin, ``depth`` how many it is in."""

    ordinal: int
    depth: int
    caller: str
    callee: str


class HopRow(Call):
    """What a trial's cycles took at one call: medians in ns, of the whole with failures as infinite."""

    cell: str
    arm: str
    block: int
    trial: str
    handshake_ns: float | None
    there_ns: float | None
    back_ns: float | None
    whole_ns: float


@dataclass(frozen=True)
class Part:
    """A part of the cycles of one cell and arm: geometric mean over blocks of the median of each trial, in ns."""

    position: int  # in the order of time; the whole cycle last
    name: str
    mean: Mean


@dataclass(frozen=True)
class _Kind:
    ordinal: int
    column: str  # handshake_ns, there_ns, back_ns or whole_ns


def elapsed(caller: str, callee: str) -> str:
    """``elapsedAB`` as the study of 2020 calls it, ``AMF → UDM`` where services have names."""
    return f"elapsed{caller}{callee}" if len(caller) == len(callee) == 1 else f"{caller} → {callee}"


def parts(rows: Sequence[HopRow], arm: str, confidence: float) -> list[Part]:
    """The parts of one cell for an arm, from medians by trial and hop (``whole_ns`` with failures as infinite)."""
    hops = {int(row["ordinal"]): row for row in sorted(rows, key=lambda row: int(row["ordinal"]))}
    means = []
    for kind, name in _in_time([hops[ordinal] for ordinal in sorted(hops)]):
        metric = Metric(kind.column, name, "ns", quantile=0.5 if kind.column == "whole_ns" else None)
        logs = block_logs([_row(row) for row in rows if row["ordinal"] == kind.ordinal], metric, arm)
        if len(logs):
            means.append((name, geometric_mean(logs, confidence)))
    return [Part(position, name, mean) for position, (name, mean) in enumerate(means)]


def one_way_times(rows: Sequence[HopRow]) -> dict[str, dict[str, float]]:
    """By trial the ways there and back between two services, in ns: ``AB`` and ``BA``.

    Of a pair with several calls in a cycle there is no such one.
    """
    pairs = Counter((row["trial"], row["caller"], row["callee"]) for row in rows)
    times_by_trial: dict[str, dict[str, float]] = {}
    for row in rows:
        caller, callee = row["caller"], row["callee"]
        if pairs[row["trial"], caller, callee] == 1:
            for name, time in ((caller + callee, row["there_ns"]), (callee + caller, row["back_ns"])):
                if time is not None:
                    times_by_trial.setdefault(row["trial"], {})[name] = time
    return times_by_trial


def _row(row: HopRow) -> TrialRow:
    """As `estimate.log_value` wants it: a median among failures is censored."""
    failed = row["whole_ns"] == float("inf")
    return cast(TrialRow, {**row, "valid": True, "samples": 1, "success_rate": 0 if failed else 1})


def _in_time(hops: Sequence[HopRow]) -> list[tuple[_Kind, str]]:
    """Ways there and back in the order in which a cycle makes them, from hops in the order of their calls."""
    names = _names(hops)
    ordered_kinds: list[tuple[_Kind, str]] = []
    within: list[HopRow] = []

    def back(hop: HopRow) -> None:
        ordered_kinds.append((_Kind(int(hop["ordinal"]), "back_ns"), names[int(hop["ordinal"])][1]))

    for hop in hops:
        while within and within[-1]["depth"] >= hop["depth"]:
            back(within.pop())
        there = names[int(hop["ordinal"])][0]
        ordered_kinds.append((_Kind(int(hop["ordinal"]), "there_ns"), there))
        ordered_kinds.append((_Kind(int(hop["ordinal"]), "handshake_ns"), f"{there}, of it handshake"))
        within.append(hop)
    while within:
        back(within.pop())
    if hops:
        ordered_kinds.append((_Kind(int(hops[0]["ordinal"]), "whole_ns"), whole_name(hops)))
    return ordered_kinds


def _names(hops: Sequence[HopRow]) -> dict[int, tuple[str, str]]:
    """There and back of every hop; where a pair of services has several calls, each with its number."""
    pairs = [(hop["caller"], hop["callee"]) for hop in hops]
    names = {}
    for hop, pair in zip(hops, pairs, strict=True):
        number = f"{hop['ordinal']}: " if len(set(pairs)) < len(pairs) else ""
        caller, callee = pair
        names[int(hop["ordinal"])] = (f"{number}{elapsed(caller, callee)}", f"{number}{elapsed(callee, caller)}")
    return names


def whole_name(hops: Sequence[Call]) -> str:
    """``elapsedABCDA`` for a chain of letters, else ``whole cycle``."""
    services = [str(hops[0]["caller"]), *(str(hop["callee"]) for hop in hops)]
    is_chain = [int(hop["depth"]) for hop in hops] == list(range(len(hops)))
    letters = all(len(service) == 1 for service in services)
    return f"elapsed{''.join(services)}{services[0]}" if is_chain and letters else "whole cycle"
