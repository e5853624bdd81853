"""Which packets carry application data: octets of HTTP, of messages and of its own frames, new or sent again."""

from __future__ import annotations

import numpy as np

from trifecta.analysis.transport.columns import Connection
from trifecta.analysis.transport.rows import NULL, Bools, Rows


def carries_http(connection: Connection, *, up: bool) -> Bools | None:
    """Of each packet of `Connection.sent` whether it has octets of HTTP; None: not known, as without keys."""
    if not connection.row["decrypted"]:
        return None
    return _segments(connection, up) if connection.tcp else _datagrams(connection, up)


def _segments(connection: Connection, up: bool) -> Bools | None:
    """Segments with octets of a TLS record that holds a piece of a frame; without TLS, of the frame itself."""
    own = connection.sent(up=up)
    frames = connection.frames.pick(("application", up), lambda of: _of_http(of, up))
    if (frames["tcp_start"] == NULL).any():
        return None
    low, payload = own["sequence"], own["payload_bytes"]
    # Frames are in the order of the octets: as many have begun as are over where none reaches into a segment.
    begun = np.sort(frames["tcp_start"]).searchsorted(low + payload)
    over = np.sort(frames["tcp_end"]).searchsorted(low, side="right")
    mask: Bools = (payload > 0) & (low != NULL) & (begun > over)
    return mask


def _of_http(rows: Rows, up: bool) -> Bools:
    mask: Bools = rows.is_in("layer", "h1", "h2") & (rows["up"] == int(up))
    return mask


def _datagrams(connection: Connection, up: bool) -> Bools:
    """Datagrams with a STREAM frame."""
    own, frames = connection.sent(up=up), connection.frames_of("quic", up=up)
    mask: Bools = np.isin(own["number"], frames["number"][frames.is_in("type", "STREAM")])
    return mask
