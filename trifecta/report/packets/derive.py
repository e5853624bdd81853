"""Works out what the report says of captures: the views ``packet_metrics``, ``packet_parts``, ``packet_times``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from trifecta.analysis.transport.overhead import PARTS
from trifecta.analysis.transport.silences import CAUSES
from trifecta.contract.trial import TrialValues
from trifecta.design.model import AA_SUFFIX
from trifecta.report import content, queries
from trifecta.report.facts import RunFacts
from trifecta.report.figures import style
from trifecta.report.figures.part_bars import HELD, OCTETS
from trifecta.report.packets import catalogue, metrics, times
from trifecta.report.packets.captured import Captured, captures
from trifecta.report.packets.times import Times
from trifecta.report.sections import Views
from trifecta.report.visits import metrics as of_visits
from trifecta.report.visits import published
from trifecta.report.visits.published import Claim

_WAITS = {
    "by_others": "for other streams' octets",
    "by_records": "for the rest of a TLS record",
    "by_own": "for octets of its own stream",
    "blocked": "for any of them",
}


@dataclass(frozen=True)
class Shown:
    """The capture that stands for an arm: of the captured trials that with the median duration."""

    captured: Captured
    trial: str
    trials: int


@dataclass(frozen=True)
class Packets:
    """Rows of the derived views, by view; what is said to published claims; by cell (and arm) what is shown."""

    rows: Views
    claims: list[Claim]
    cells: list[str]
    shown: dict[str, dict[str, Shown]]
    times: dict[str, Times]  # of cells whose requests could be split


def derive(connection: duckdb.DuckDBPyConnection, about: RunFacts) -> Packets | None:
    """Work it out from the dissected captures; None when the run has none."""
    there = connection.execute("SELECT count(*) FROM connections").fetchone()
    if not there or not there[0]:
        return Packets({}, [], [], {}, {}) if any((about.folder / "captures").glob("*.pcapng")) else None
    trials = metrics.counted(connection)
    cells = content.cells_in_order(about, {row["cell"] for row in trials})
    shown, parts = _look(connection, about, cells, {row["trial"]: row for row in trials})
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


def _look(
    connection: duckdb.DuckDBPyConnection, about: RunFacts, cells: Sequence[str], trials: Mapping[str, TrialValues]
) -> tuple[dict[str, dict[str, Shown]], dict[str, list[tuple[int, str, dict[str, float]]]]]:
    """Look at every capture once, one after the other: its numbers go into the rows of the trials.

    Gives what is shown of each cell, and where the time of every trial's requests went.
    """
    chosen = {row["trial"]: row for row in queries.ask(connection, catalogue.CHOSEN).rows}
    found: dict[tuple[str, str], Shown] = {}
    parts: dict[str, list[tuple[int, str, dict[str, float]]]] = {}
    for one in metrics.look(connection):
        metrics.add(trials[one.trial], one.told)
        arm = one.arm.removesuffix(AA_SUFFIX)
        parts.setdefault(one.cell, []).append((one.block, arm, one.told.parts))
        if one.trial in chosen:
            row = chosen[one.trial]
            kept = captures(one.tables, {row["capture"]: style.name(arm)})[0]
            kept.told = one.told
            found[one.cell, arm] = Shown(kept, one.trial, row["trials"])
    shown = {
        cell: {arm: found[cell, arm] for arm in about.arms if (cell, arm) in found}
        for cell in cells
    }  # fmt: skip
    return shown, parts


def _parts(shown: Mapping[str, Mapping[str, Shown]]) -> list[Mapping[str, object]]:
    made: list[Mapping[str, object]] = []
    for cell, arms in shown.items():
        for arm, one in arms.items():
            head: dict[str, object] = {"cell": cell, "arm": arm}
            octets = one.captured.octets
            inside = octets["content"]
            order = list(OCTETS)
            made += [
                head | {"kind": "overhead", "part": part, "label": OCTETS[part].words, "unit": "B"}
                | {"place": order.index(part), "value": octets[part]}
                | {"share": octets[part] / inside if inside else None}
                for part in PARTS
            ]  # fmt: skip
            waits = one.captured.told.waits
            for place, (part, label) in enumerate(_WAITS.items()):
                if waits:
                    value = sum(getattr(wait, f"{part}_ns") for wait in waits) / len(waits)
                    loads = [wait.load_ns for wait in waits]
                    whole = None if None in loads else sum(load for load in loads if load is not None) / len(loads)
                    row: dict[str, object] = {
                        "kind": "blocking",
                        "part": part,
                        "label": label,
                        "unit": "ns",
                        "place": place,
                    }
                    made.append(head | row | {"value": value, "share": value / whole if whole else None})
            held = one.captured.held
            whole_ns = sum(held.values())
            made += [
                head | {"kind": "stalls", "part": cause, "label": HELD[cause].words, "unit": "ns", "place": place}
                | {"value": held[cause], "share": held[cause] / whole_ns if whole_ns else None}
                for place, cause in enumerate(CAUSES) if held
            ]  # fmt: skip
    return made
