"""What a dissection comes to: a row a capture and a row a connection, for a terminal and for a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trifecta.analysis.transport import columns
from trifecta.analysis.transport.columns import Connection
from trifecta.analysis.transport.setup import setup
from trifecta.design.errors import UserError
from trifecta.store import manifest, results_manifest
from trifecta.store.run import RunDirectory
from trifecta.trace.documents import CaptureSummary, ConnectionSummary
from trifecta.trace.names import study_name

if TYPE_CHECKING:
    from trifecta.trace.dissection import Dissection


def find_captures(given: Sequence[Path]) -> tuple[list[Path], dict[Path, Path], Path | None]:
    """Captures to dissect, the link's logs that belong to them, and the run they are of.

    A run stands for all its captures; its folder is then where the tables go unless told otherwise.
    """
    files: list[Path] = []
    logs: dict[Path, Path] = {}
    run: Path | None = None
    for path in given:
        if not (path / "run.json").is_file():
            files.append(path)
            continue
        RunDirectory.open(path)
        manifest.check(path.resolve())
        captures = sorted((path / "captures").glob("*.pcapng"))
        if not captures:
            raise UserError(f"{path}: has no captures; make some with trifecta run --capture")
        if len(given) == 1:
            run = path
        files += captures
        for capture in captures:
            log = path / "link" / f"{capture.stem}.parquet"
            if log.is_file():
                logs[capture] = log
    return files, logs, run


def note_tables(run: Path) -> None:
    """Keep the digests of what was dissected into a run's ``trace/``: `views.connect` refuses anything else there."""
    results_manifest.note(run, [path.relative_to(run).as_posix() for path in sorted((run / "trace").glob("*.parquet"))])


def by_capture(dissection: Dissection) -> list[CaptureSummary]:
    """A row a capture: what the study ding2022 counted of each, and what its name says."""
    names = dissection.packets["capture"]
    rows: list[CaptureSummary] = []
    requests = dissection.messages["capture"].to_pylist()
    for name in (str(one) for one in names.unique().to_pylist()):
        mine = dissection.packets.filter(pc.is_in(names, pa.array([name])))
        # Of a link that was captured on both sides each packet counts once, at the client.
        near = mine.filter(pc.invert(pc.is_in(mine["side"], pa.array(["b"]))))
        near = near if near.num_rows else mine
        times = near["time_ns"].to_numpy()
        claim = study_name(name)
        rows.append(
            {
                "capture": name,
                "endpoint": claim.endpoint if claim else None,
                "connection_mode": claim.connection if claim else None,
                "named_protocol": claim.protocol if claim else None,
                "packets": near.num_rows,
                "seconds": (int(times.max()) - int(times.min())) / 1e9,
                "wire_bytes": pc.sum(near["wire_bytes"]).as_py(),
                "payload_bytes": pc.sum(near["payload_bytes"]).as_py(),
                "largest_wire_bytes": pc.max(near["wire_bytes"]).as_py(),
                "tcp_packets": int(np.sum(near["transport"].to_numpy(zero_copy_only=False) == "tcp")),
                "requests": requests.count(name),
            }
        )
    return rows


def connections(dissection: Dissection) -> list[Connection]:
    """The connections of a dissection, for `by_connection` and `summary.trace_metrics`."""
    return columns.connections(dissection.packets, dissection.frames, dissection.messages, dissection.connections)


def by_connection(dissection: Dissection, of: list[Connection] | None = None) -> list[ConnectionSummary]:
    """A row a connection: its size, and what passed until the first octet of a response."""
    rows = []
    for one in connections(dissection) if of is None else of:
        result = setup(one)
        first = result.to_response
        row = one.row
        columns = {
            **{name: row[name] for name in ("capture", "connection", "protocol", "transport", "client", "server")},
            **{name: row[name] for name in ("client_port", "server_port", "tls_version", "decrypted", "truncated")},
            **{name: row[name] for name in ("quic_version", "cipher", "alpn", "alpn_offered", "server_name")},
            **{name: row[name] for name in ("packets", "wire_bytes", "payload_bytes", "largest_wire_bytes")},
            "requests": len(one.messages),
            "round_trip_bound": result.bound,
            "round_trips_to_response": first.round_trips if first else None,
            "packets_to_response": first.packets_up + first.packets_down if first else None,
            "wire_bytes_to_response": first.wire_bytes_up + first.wire_bytes_down if first else None,
            "time_to_response_ns": first.time_ns if first else None,
            "notes": result.notes,
        }
        rows.append(cast(ConnectionSummary, columns))
    return rows
