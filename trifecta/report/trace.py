"""Captures in a terminal: what each holds, connection by connection, and what cannot be known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from trifecta import studies
from trifecta.analysis.statements import given
from trifecta.design.model import PROTOCOL_NAMES
from trifecta.report import grids

if TYPE_CHECKING:
    from trifecta.trace.documents import CaptureSummary, ConnectionSummary

_MOST = 30  # connections shown of a capture; the tables have all


def show(
    console: Console,
    captures: Sequence[CaptureSummary],
    connections: Sequence[ConnectionSummary],
    notes: Sequence[str],
) -> None:
    """Print the overview: all captures, then the connections of each, then what cannot be known."""
    named = bool(captures) and all(one["endpoint"] for one in captures)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("endpoint", "mode", "protocol") if named else ("capture",):
        table.add_column(name, no_wrap=True)
    for name in ("packets", "seconds", "wire bytes", "largest", "requests"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in captures:
        claim = (one["endpoint"], one["connection_mode"], PROTOCOL_NAMES.get(one["named_protocol"] or "", ""))
        cells = (
            *(claim if named else (one["capture"],)),
            f"{one['packets']:,}",
            f"{one['seconds']:.4f}",
            f"{one['wire_bytes']:,}",
            f"{one['largest_wire_bytes']:,}",
            str(one["requests"]),
        )
        table.add_row(*(escape(cell) for cell in cells))
    grids.show(console, table)
    for line in published(captures):
        console.print(line, markup=False, highlight=False)
    for one in captures:
        _connections(console, one["capture"], [row for row in connections if row["capture"] == one["capture"]])
    if any(row["time_to_response_ns"] is not None for row in connections):
        console.print("* until the first octet of a response; least: the round trips that the protocol needs")
    for note in notes:
        console.print(f"note: {note}", style="yellow", markup=False, highlight=False, soft_wrap=True)


# Of the metrics that ding2022 published: the overview's column, its scale, how exactly the number was given.
_COLUMNS = {
    "packets": ("packets", 1.0, 0.5),
    "duration_ns": ("seconds", 1e-9, 6e-4),
    "wire_bytes": ("wire_bytes", 1.0, 0.5),
}


def published(captures: Sequence[CaptureSummary]) -> list[str]:
    """What the study ding2022 published of captures with its names, and the artefact in its numbers of frames."""
    study = studies.published()["ding2022"]
    cells = {str(subject["id"]): subject["metrics"] for subject in study.document["numbers"]}
    same, others = 0, []
    for one in captures:
        metrics = cells.get(f"{one['endpoint']}-{one['connection_mode']}", [])
        compared = [
            (_COLUMNS[metric["metric"]], value)
            for metric in metrics
            if metric["metric"] in _COLUMNS and (value := given(metric, one["named_protocol"] or "")) is not None
        ]
        if not compared:
            continue
        ours = {"packets": one["packets"], "seconds": one["seconds"], "wire_bytes": one["wire_bytes"]}
        if all(abs(ours[column] - value * scale) <= off for (column, scale, off), value in compared):
            same += 1
        else:
            sentence = ", ".join(
                f"{column.replace('_', ' ')} {value * scale:,.10g}" for (column, scale, _), value in compared
            )
            others.append(f"{study.id} published of {one['capture']}: {sentence}.")
    if not same and not others:
        return []
    if same:
        others.insert(0, f"{study.id} published the same packets, seconds and bytes of {_captures_in_words(same)}.")
    return [*others, f"loopback-offload: {study.threats['loopback-offload']}."]


def _captures_in_words(captures: int) -> str:
    return "one of these captures" if captures == 1 else f"{captures} of these captures"


def _connections(console: Console, capture: str, connections: Sequence[ConnectionSummary]) -> None:
    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title=escape(capture), title_justify="left"
    )
    for name in ("", "protocol", "client"):
        table.add_column(name, no_wrap=True)
    answered = any(row["time_to_response_ns"] is not None for row in connections)  # never without keys
    for name in ("packets", "wire bytes", *(("trips*", "bytes*", "ms*") if answered else ())):
        table.add_column(name, justify="right", no_wrap=True)
    if any(row["truncated"] for row in connections):
        table.add_column("lacks")
    for one in connections[:_MOST]:
        under = "QUIC" if one["quic_version"] else "TLS" if one["tls_version"] else one["transport"].upper()
        protocol = PROTOCOL_NAMES.get(one["protocol"] or "", "") or f"{under}, ?"
        round_trips, time = one["round_trips_to_response"], one["time_to_response_ns"]
        cells = (
            str(one["connection"]),
            protocol,
            f"{one['client']}:{one['client_port']}",
            f"{one['packets']:,}",
            f"{one['wire_bytes']:,}",
            *(
                (
                    "" if round_trips is None else f"{round_trips}, least {one['round_trip_bound'] or '?'}",
                    "" if one["wire_bytes_to_response"] is None else f"{one['wire_bytes_to_response']:,}",
                    "" if time is None else f"{time / 1e6:.2f}",
                )
                if answered
                else ()
            ),
            one["truncated"] or "",
        )
        table.add_row(*(escape(cell) for cell in cells[: len(table.columns)]))
    grids.show(console, table)
    if len(connections) > _MOST:
        console.print(f"and {len(connections) - _MOST} more connections: they are in the tables (--out)")
