"""Slow start, and what a sender does after a pause.

The window that a sender uses is seen as what it had under way when a round trip ended (`flight.rounds`). It is a lower
bound of its congestion window: exact where the sender had more to send.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trifecta.analysis.transport.columns import Connection
from trifecta.analysis.transport.flight import Flight, Round, flight, rounds
from trifecta.analysis.transport.octets import new_of_streams
from trifecta.analysis.transport.rows import NULL, Bools, Rows

# Less growth than this in three round trips: the pipe counts as full (draft-ietf-ccwg-bbr, exiting Startup).
GROWTH, ROUNDS_WITHOUT = 1.25, 3
# After a pause RFC 5681, section 4.1, resets the window, and Linux halves it for each timeout in it (RFC 2861); what is
# above this is kept.
KEPT = 0.75
LEAST_PAUSE_NS = 1_000_000  # on loopback a round trip is shorter than what a process takes to go on
_LIMIT = 1_000  # round trips that are looked at


@dataclass(frozen=True, slots=True)
class SlowStart:
    """From the first octet of HTTP on. Windows in octets; ``growth``: mean factor a round trip, 2 is doubling."""

    connection: int
    up: bool
    initial_window: int
    exit_window: int
    rounds: int  # round trips until the exit
    duration_ns: int
    growth: float | None  # None: it ended in its first round trip
    exit: str  # loss, full (no more growth), end (the data ended while it grew), pause (the sender paused)
    windows: list[int]  # of every round trip up to the exit
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Restart:
    """A pause: at least a round trip without a send after everything was acknowledged; and the window after it."""

    start_ns: int  # when the sender went on
    kept: bool | None  # None: too little was sent after it to tell


def slow_start(connection: Connection, *, up: bool) -> SlowStart | None:
    """Of the sender of a direction; None: it sent nothing whose acknowledgement can be read."""
    of = flight(connection, up=up)
    if of is None or not len(of.ack_ns):
        return None
    notes = _notes(connection)
    start = _first_http(connection, up, notes)
    flights = _flights(connection, of, start, up)
    if not flights:
        return None
    pauses = connection.keep(("pauses", start, up), lambda: _pauses(of, _rtt(flights), start))
    before = [trip for trip in flights if not pauses or trip.start_ns < pauses[0][1]]
    windows = [trip.window for trip in before]
    last, why = _exit(windows, paused=bool(pauses))
    lost = _first_loss(connection, up)
    if lost is not None and lost >= start:
        at = max((index for index, trip in enumerate(before) if trip.start_ns <= lost), default=0)
        # A loss shows a round trip after the window that caused it.
        if lost <= (before[-1].end_ns or lost) and at <= last + 1:
            last, why = min(last, at), "loss"
    end = before[last].end_ns
    return SlowStart(
        connection=connection.number,
        up=up,
        initial_window=windows[0],
        exit_window=windows[last],
        rounds=last,
        duration_ns=(end if end is not None else int(of.send_ns[-1])) - before[0].start_ns,
        growth=(windows[last] / windows[0]) ** (1 / last) if last and windows[0] else None,
        exit=why,
        windows=windows[: last + 1],
        notes=notes,
    )


def restarts(connection: Connection, *, up: bool) -> list[Restart]:
    """Every pause of a sender after its first octet of HTTP."""
    of = flight(connection, up=up)
    if of is None or not len(of.ack_ns):
        return []
    start = _first_http(connection, up, [])
    flights = _flights(connection, of, start, up)
    pauses = connection.keep(("pauses", start, up), lambda: _pauses(of, _rtt(flights), start))
    found_restarts, largest, since = [], 0, start
    for index, (stop, resumed) in enumerate(pauses):
        before = [trip.window for trip in rounds(of, since, _LIMIT, stop)]
        largest, since = max([largest, *before]), resumed
        until = pauses[index + 1][0] if index + 1 < len(pauses) else int(of.send_ns[-1])
        first = int(of.send_ns.searchsorted(resumed))
        octets = int(of.sent[int(of.send_ns.searchsorted(until, side="right")) - 1] - of.sent[first - 1])
        window = min(rounds(of, resumed, 1)[0].window, octets)
        kept_window = None if octets < KEPT * largest else window >= KEPT * largest
        found_restarts.append(Restart(resumed, kept_window))
    return found_restarts


def _flights(connection: Connection, of: Flight, start_ns: int, up: bool) -> list[Round]:
    return connection.keep(("trips", start_ns, up), lambda: rounds(of, start_ns, _LIMIT))


def _notes(connection: Connection) -> list[str]:
    if connection.both_sides:
        return []
    return ["windows hold only for a capture made at the sender: elsewhere acknowledgements are seen too early or late"]


def _first_http(connection: Connection, up: bool, notes: list[str]) -> int:
    def mask(of: Rows) -> Bools:
        mine: Bools = of["up"] == int(up)
        return mine & of.is_in("layer", "h1", "h2", "h3") & of.is_in("type", "HEADERS", "DATA")

    frames = connection.frames.pick(("messages", up), mask)
    if len(frames):
        return int(frames["time_ns"][0])
    notes.append("no HTTP could be read: windows are counted from the first octet of the connection")
    return 0


def _rtt(flights: list[Round]) -> int:
    known = [trip.end_ns - trip.start_ns for trip in flights if trip.end_ns is not None]
    return min(known, default=0)


def _pauses(of: Flight, rtt_ns: int, start_ns: int) -> list[tuple[int, int]]:
    """Last send before and first after each pause: at least a round trip (or 1 ms) after all was acknowledged."""
    first = int(of.send_ns.searchsorted(start_ns))
    at = of.send_ns[first:]
    if len(at) < 2:
        return []
    least = max(rtt_ns, LEAST_PAUSE_NS)
    quiet = (np.diff(at) >= least).nonzero()[0]
    if not len(quiet):
        return []
    emptied = of.acked.searchsorted(of.sent[first + quiet])  # the acknowledgement after which nothing was under way
    known = emptied < len(of.ack_ns)
    free = of.ack_ns[np.minimum(emptied, len(of.ack_ns) - 1)]
    paused = quiet[known & (at[quiet + 1] - np.maximum(free, at[quiet]) >= least)]
    return [(int(at[index]), int(at[index + 1])) for index in paused]


def _exit(windows: list[int], *, paused: bool) -> tuple[int, str]:
    """The last round trip of slow start, and why it was."""
    for index, window in enumerate(windows):
        after = windows[index + 1 : index + 1 + ROUNDS_WITHOUT]
        if len(after) == ROUNDS_WITHOUT and max(after) < GROWTH * window:
            return index, "full"
    largest = int(np.argmax(windows))
    return largest, "pause" if paused else "end"


def _first_loss(connection: Connection, up: bool) -> int | None:
    """When something was sent again for the first time."""
    if connection.tcp:
        retransmitted = connection.sent(up=up).pick(
            "again", lambda of: (of["retransmission"] == 1) & (of["payload_bytes"] > 0)
        )
        return int(retransmitted["time_ns"][0]) if len(retransmitted) else None
    data = connection.frames_of("quic", up=up).pick(
        "data", lambda of: of.is_in("type", "STREAM") & (of["length"] > 0) & (of["offset"] != NULL)
    )
    old = data.derived("new octets", new_of_streams) == 0
    return int(data["time_ns"][old].min()) if old.any() else None
