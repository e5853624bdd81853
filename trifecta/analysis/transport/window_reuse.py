"""Later requests of a connection: whether the server goes on with the window it had, or starts from a small one again.

Only responses that began when no other was being sent are looked at: those of one request after the other. Windows are
seen as `flight.rounds` sees them: what was under way when a round trip ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from trifecta.analysis.transport.columns import Connection
from trifecta.analysis.transport.extents import extents
from trifecta.analysis.transport.flight import Flight, flight, rounds
from trifecta.analysis.transport.slow_start import KEPT

_LIMIT = 1_000  # round trips of a response that are looked at
_LAST = 3  # round trips whose largest window is the one that a response ended with: the very last has the remainder


@dataclass(frozen=True, slots=True)
class WindowReuse:
    """A response after another on the same connection. Times in ns at the server's side, windows in octets."""

    stream: int
    start_ns: int  # its first octet was sent
    window_before: int  # that the response before it ended with
    window_first: int  # of its own first round trip
    kept: float | None  # window_first by window_before; None: fewer octets were sent than would tell
    ramp_ns: int | None  # until a round trip began with `slow_start.KEPT` of window_before; 0: it was the first
    regained: bool | None  # False: it never did, and ramp_ns is the whole response


def window_reuses(connection: Connection) -> list[WindowReuse]:
    """Every such response of the server, in order; none where octets or acknowledgements cannot be read."""
    of = flight(connection, up=False)
    if of is None or not len(of.ack_ns):
        return []
    spans = sorted(
        (first, last, stream) for stream, (first, last) in extents(connection, up=False, arrived=False).items()
    )
    if len(spans) < 2:
        return []
    reuses: list[WindowReuse] = []
    before = 0  # window
    ended = -1  # the last octet of all responses so far
    for first, last, stream in spans:
        since, ended = first - ended if ended >= 0 else None, max(ended, last)
        flights = rounds(of, first, _LIMIT, last)
        if not flights:
            continue
        octets = _octets(of, first, last)
        windows = [min(one.window, octets) for one in flights]
        if since is not None and since > 0 and before:
            enough = octets >= KEPT * before
            reached = next((at for at, window in enumerate(windows) if window >= KEPT * before), None)
            end = last if reached is None else flights[reached].start_ns
            reuses.append(
                WindowReuse(
                    stream=stream,
                    start_ns=first,
                    window_before=before,
                    window_first=windows[0],
                    kept=windows[0] / before if enough else None,
                    ramp_ns=end - first if enough else None,
                    regained=reached is not None if enough else None,
                )
            )
        # One that fits into its first round trip says nothing of the window, nor does one smaller than it.
        if len(flights) > 1 and octets >= before:
            before = max(windows[-_LAST:])
    return reuses


def _octets(of: Flight, first: int, last: int) -> int:
    """Sent from one time up to another, both included."""
    low, high = int(of.send_ns.searchsorted(first)), int(of.send_ns.searchsorted(last, side="right"))
    return int(of.sent[high - 1]) - (int(of.sent[low - 1]) if low else 0) if high else 0
