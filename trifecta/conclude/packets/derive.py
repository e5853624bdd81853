"""Works out what the report says of captures: the views ``packet_metrics``, ``packet_parts``, ``packet_times``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from trifecta.analysis.transport.idle_periods import CAUSES
from trifecta.analysis.transport.overhead import PARTS
from trifecta.conclude import queries
from trifecta.conclude.cells import cells_in_order
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.packets import catalogue, metrics, times
from trifecta.conclude.packets.captured import Captured, captures
from trifecta.conclude.packets.labels import HELD, OCTETS
from trifecta.conclude.packets.times import Times
from trifecta.conclude.visits import metrics as of_visits
from trifecta.conclude.visits import published
from trifecta.conclude.visits.published import Claim
from trifecta.contract.trial import TrialValues
from trifecta.design import naming
from trifecta.design.model import AA_SUFFIX

_BLOCKING_PARTS = {
    "by_others": "for other streams' octets",
    "by_records": "for the rest of a TLS record",
    "by_own": "for octets of its own stream",
    "blocked": "for any of them",
}


@dataclass(frozen=True)
class RepresentativeCapture:
    """The capture that stands for an arm: of the captured trials that with the median duration."""

    captured: Captured
    trial: str
    trials: int


@dataclass(frozen=True)
class Packets:
    """Rows of the derived views, by view; what is said to published claims; by cell (and arm) what is shown."""

    rows: queries.Views
    claims: list[Claim]
    cells: list[str]
    shown: dict[str, dict[str, RepresentativeCapture]]
    times: dict[str, Times]  # of cells whose requests could be split


def derive(connection: duckdb.DuckDBPyConnection, about: RunFacts) -> Packets | None:
    """Work it out from the dissected captures; None when the run has none."""
    there = connection.execute("SELECT count(*) FROM connections").fetchone()
    if not there or not there[0]:
        return Packets({}, [], [], {}, {}) if any((about.folder / "captures").glob("*.pcapng")) else None
    trials = metrics.sql_metrics(connection)
    cells = cells_in_order(about, {row["cell"] for row in trials})
    shown, parts = _representatives(connection, about, cells, {row["trial"]: row for row in trials})
    measured = of_visits.rows(about, trials, metrics.METRICS)
    split = {cell: times.times_of(parts.get(cell, []), about.arms, about.baseline, about.confidence) for cell in cells}
    known = {cell: one for cell, one in split.items() if one is not None}
    rows: dict[str, Sequence[Mapping[str, object]]] = {
        "packet_metrics": measured,
        "packet_parts": _parts(shown),
        "packet_times": times.rows(known),
    }
    claims: list[Claim] = []
    if not about.is_browser:  # a browser's published numbers are of its visits
        here = published.places(about, trials, [])
        rows["published"] = published.rows(about, measured, here)
        claims = published.claims(here)
    return Packets(rows, claims, cells, shown, known)


def _representatives(
    connection: duckdb.DuckDBPyConnection, about: RunFacts, cells: Sequence[str], trials: Mapping[str, TrialValues]
) -> tuple[dict[str, dict[str, RepresentativeCapture]], dict[str, list[tuple[int, str, dict[str, float]]]]]:
    """Look at every capture once, one after the other: its numbers go into the rows of the trials.

    Gives what is shown of each cell, and where the time of every trial's requests went.
    """
    chosen = {row["trial"]: row for row in queries.ask(connection, catalogue.CHOSEN).rows}
    representative_captures: dict[tuple[str, str], RepresentativeCapture] = {}
    parts: dict[str, list[tuple[int, str, dict[str, float]]]] = {}
    for one in metrics.captured_trials(connection):
        metrics.add(trials[one.trial], one.summary)
        arm = one.arm.removesuffix(AA_SUFFIX)
        parts.setdefault(one.cell, []).append((one.block, arm, one.summary.parts))
        if one.trial in chosen:
            row = chosen[one.trial]
            captured = captures(one.tables, {row["capture"]: naming.name(arm)})[0]
            captured.summary = one.summary
            representative_captures[one.cell, arm] = RepresentativeCapture(captured, one.trial, row["trials"])
    shown = {
        cell: {arm: representative_captures[cell, arm] for arm in about.arms if (cell, arm) in representative_captures}
        for cell in cells
    }  # fmt: skip
    return shown, parts


Part = tuple[str, str, int, float, float | None]
"""Its name, what it is called, its place, its value and its share of the whole."""


def _parts(shown: Mapping[str, Mapping[str, RepresentativeCapture]]) -> list[Mapping[str, object]]:
    columns = ("cell", "arm", "kind", "unit", "part", "label", "place", "value", "share")
    return [
        dict(zip(columns, (cell, arm, kind, unit, *part), strict=True))
        for cell, arms in shown.items()
        for arm, one in arms.items()
        for kind, unit, parts in (
            ("overhead", "B", _octets(one.captured)),
            ("blocking", "ns", _blocking(one.captured)),
            ("stalls", "ns", _held_parts(one.captured)),
        )
        for part in parts
    ]


def _octets(captured: Captured) -> list[Part]:
    octets, order = captured.octets, list(OCTETS)
    inside = octets["content"]
    return [
        (part, OCTETS[part], order.index(part), octets[part], octets[part] / inside if inside else None)
        for part in PARTS
    ]


def _blocking(captured: Captured) -> list[Part]:
    blocked = captured.summary.blocking
    if not blocked:
        return []
    loads = [wait.load_ns for wait in blocked]
    mean_load = None if None in loads else sum(load for load in loads if load is not None) / len(loads)
    means = {part: sum(getattr(wait, f"{part}_ns") for wait in blocked) / len(blocked) for part in _BLOCKING_PARTS}
    return [
        (part, _BLOCKING_PARTS[part], place, value, value / mean_load if mean_load else None)
        for place, (part, value) in enumerate(means.items())
    ]


def _held_parts(captured: Captured) -> list[Part]:
    held, total = captured.stalled_ns, sum(captured.stalled_ns.values())
    return [
        (cause, HELD[cause], place, held[cause], held[cause] / total if total else None)
        for place, cause in enumerate(CAUSES)
        if held
    ]
