"""Works out what the report says of captures: the views ``packet_metrics``, ``packet_parts`` and ``published``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from trifecta.analysis.transport.attribution import attribute
from trifecta.analysis.transport.blocking import RequestBlocking, blocking
from trifecta.analysis.transport.differences import mean_parts
from trifecta.analysis.transport.overhead import PARTS, overhead
from trifecta.report import content, queries
from trifecta.report.facts import RunFacts
from trifecta.report.figures import style
from trifecta.report.figures.part_bars import OCTETS, TIME
from trifecta.report.packets import catalogue, metrics
from trifecta.report.packets.captured import Captured, captures
from trifecta.report.visits import metrics as of_visits
from trifecta.report.visits import published
from trifecta.report.visits.published import Claim, Row
from trifecta.trace.schema import SCHEMAS

_WAITS = {
    "by_others": "for other streams' octets",
    "by_records": "for the rest of a TLS record",
    "by_own": "for octets of its own stream",
    "blocked": "for any of them",
}


@dataclass(frozen=True)
class Shown:
    """The capture that stands for an arm, and how long its requests waited."""

    captured: Captured
    trial: str
    trials: int
    waits: list[RequestBlocking]
    parts: dict[str, float]  # of a request's time, mean over requests in ns; empty where it cannot be split


@dataclass(frozen=True)
class Packets:
    """Rows of the derived views, by view; what is said to published claims; by cell and arm what is shown."""

    rows: dict[str, list[Row]]
    claims: list[Claim]
    cells: list[str]
    shown: dict[str, dict[str, Shown]]


def derive(connection: duckdb.DuckDBPyConnection, about: RunFacts) -> Packets | None:
    """Work it out from the dissected captures; None when the run has none."""
    there = connection.execute("SELECT count(*) FROM connections").fetchone()
    if not there or not there[0]:
        return Packets({}, [], [], {}) if any((about.folder / "captures").glob("*.pcapng")) else None
    trials = metrics.trial_values(connection)
    cells = content.cells_in_order(about, {row["cell"] for row in trials})
    measured = of_visits.rows(about, trials, metrics.METRICS)
    shown = _shown(connection, about, cells)
    rows = {"packet_metrics": measured, "packet_parts": _parts(shown)}
    claims: list[Claim] = []
    if not about.is_browser:  # a browser's published numbers are of its visits
        here = published.places(about, trials, [])
        rows["published"] = published.rows(about, measured, here)
        claims = published.claims(here)
    return Packets(rows, claims, cells, shown)


def _shown(connection: duckdb.DuckDBPyConnection, about: RunFacts, cells: list[str]) -> dict[str, dict[str, Shown]]:
    found: dict[str, dict[str, Shown]] = {cell: {} for cell in cells}
    chosen = queries.ask(connection, catalogue.CHOSEN).rows
    for arm in about.protocols:
        for row in chosen:
            if row["arm"] == arm:
                tables = read(connection, row["capture"])
                one = captures(tables, {row["capture"]: style.name(arm)})[0]
                waits = [wait for wait in blocking(tables).requests if wait.direction == "down"]
                times, _ = attribute(tables)
                parts = mean_parts(times) if times else {}
                found[row["cell"]][arm] = Shown(one, row["trial"], row["trials"], waits, parts)
    return found


def read(connection: duckdb.DuckDBPyConnection, capture: str) -> Mapping[str, pa.Table]:
    """The tables of one capture."""
    made = {}
    for name, schema in SCHEMAS.items():
        answer = connection.sql(f"SELECT * FROM {name} WHERE capture = ?", params=[capture])  # noqa: S608 - constants
        made[name] = answer.to_arrow_table().select(schema.names).cast(schema)
    return made


def _parts(shown: Mapping[str, Mapping[str, Shown]]) -> list[Row]:
    made: list[Row] = []
    for cell, arms in shown.items():
        for arm, one in arms.items():
            head: Row = {"cell": cell, "arm": arm}
            octets = dict.fromkeys(PARTS, 0)
            for connection in one.captured.analysed:
                for part, value in overhead(connection).parts.items():
                    octets[part] += value
            inside = octets["content"]
            order = list(OCTETS)
            made += [
                head | {"kind": "overhead", "part": part, "label": OCTETS[part].words, "unit": "B"}
                | {"place": order.index(part), "value": float(value), "share": value / inside if inside else None}
                for part, value in octets.items()
            ]  # fmt: skip
            for place, (part, label) in enumerate(_WAITS.items()):
                if one.waits:
                    value = sum(getattr(wait, f"{part}_ns") for wait in one.waits) / len(one.waits)
                    loads = [wait.load_ns for wait in one.waits]
                    whole = None if None in loads else sum(load for load in loads if load is not None) / len(loads)
                    row: Row = {"kind": "blocking", "part": part, "label": label, "unit": "ns", "place": place}
                    made.append(head | row | {"value": value, "share": value / whole if whole else None})
            whole_ns = sum(one.parts.values())
            made += [
                head | {"kind": "attribution", "part": part, "label": TIME[part].words, "unit": "ns"}
                | {"place": place, "value": value, "share": value / whole_ns if whole_ns else None}
                for place, (part, value) in enumerate(one.parts.items())
            ]  # fmt: skip
    return made
