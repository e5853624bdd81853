"""Loss recovery, head-of-line blocking and attribution of a dissection, as metrics by connection.

They are worked out for all connections at once. Definitions: docs/packets.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from trifecta.analysis.transport.attribution import RequestTime, attribute
from trifecta.analysis.transport.blocking import RequestBlocking, blocking
from trifecta.analysis.transport.delivery import passage
from trifecta.analysis.transport.parts import PARTS
from trifecta.analysis.transport.recovery import Recovery, recovery

if TYPE_CHECKING:
    import pyarrow as pa

    from trifecta.analysis.transport.columns import Connection

Found = tuple[str, Any, str, float | None]  # metric, value, unit, bound
Family = tuple[str, bool | None, list[Found], list[str]]  # name, up (None: both), metrics, notes
_COUNTS = (
    "packets",
    "carrying",
    "lost",
    "lost_carrying",
    "retransmissions",
    "spurious",
    "by_acknowledgement",
    "by_probe",
    "by_timeout",
    "timeouts",
    "probes",
    "reordered",
    "reordered_taken_for_lost",
    "late",
)
_PARTS = [(part, part.replace(" ", "_").replace("-", "_")) for part in PARTS]
_NO_SPLIT = "the time of no request can be split: it needs both sides of a link, keys, and a whole response"
_NO_OCTETS = "no octets of a message can be placed (no keys, or frames whose octets are not known)"


class Delays:
    """The metrics of every connection."""

    def __init__(
        self, tables: Mapping[str, pa.Table], of: Sequence[Connection], *, one_side: bool | None = None
    ) -> None:
        all_passages = passage(tables["packets"], tables["frames"], tables["connections"], one_side=one_side)
        recovered, recovery_notes = recovery(tables, all_passages)
        waited = blocking(tables, all_passages)
        times, unsplit = attribute(tables, known_passage=all_passages, recovered=recovered, of=of)
        self._recovered = {(one.connection, one.direction): one for one in recovered}
        self._requests: dict[tuple[int, str], list[RequestBlocking]] = defaultdict(list)
        self._holes: dict[tuple[int, str], list[int | None]] = defaultdict(list)
        self._times: dict[int, list[RequestTime]] = defaultdict(list)
        for wait in waited.requests:
            self._requests[wait.connection, wait.direction].append(wait)
        for hole in waited.holes:
            took = None if hole.filled_ns is None else hole.filled_ns - hole.opened_ns
            self._holes[hole.connection, hole.direction].append(took)
        for time in times:
            self._times[time.connection].append(time)
        # What holds for a whole capture names no connection.
        self._notes = {
            "recovery": _by_connection(recovery_notes), "blocking": _by_connection(waited.notes),
            "attribution": _by_connection(unsplit),
        }  # fmt: skip

    def families(self, connection: int) -> Iterator[Family]:
        """Those of one connection."""
        for up, direction in ((True, "up"), (False, "down")):
            one = self._recovered.get((connection, direction))
            yield "recovery", up, _recovery(one), self._notes_of("recovery", connection)
        for up, direction in ((True, "up"), (False, "down")):
            requests = self._requests.get((connection, direction), [])
            notes = self._notes_of("blocking", connection)
            yield (
                "blocking",
                up,
                _blocking(requests, self._holes.get((connection, direction), [])),
                notes
                if requests
                else [
                    *notes,
                    _NO_OCTETS,
                ],
            )
        times = self._times.get(connection, [])
        notes = self._notes_of("attribution", connection)
        yield "attribution", None, _attribution(times), notes if times else [*notes, _NO_SPLIT]

    def _notes_of(self, family: str, connection: int) -> list[str]:
        notes = self._notes[family]
        return list(dict.fromkeys([*notes[connection], *notes[None]]))


def _by_connection(notes: Iterable[str]) -> Mapping[int | None, list[str]]:
    """Notes by the connection that they begin with (``connection 3, up: ...``); None: of all."""
    by_number: Mapping[int | None, list[str]] = defaultdict(list)
    for note in notes:
        words = note.removeprefix("connection ").split(",")[0].split(":")[0]
        by_number[int(words) if note.startswith("connection ") and words.isdigit() else None].append(note)
    return by_number


def _recovery(recovery: Recovery | None) -> list[Found]:
    rows: list[Found] = [(name, None if recovery is None else getattr(recovery, name), "1", None) for name in _COUNTS]
    took = [] if recovery is None else [each.took_ns for each in recovery.repairs if each.took_ns is not None]
    unrepaired = (
        None
        if recovery is None or recovery.lost is None or recovery.retransmissions is None
        else sum(each.took_ns is None for each in recovery.repairs)
    )
    rows += [
        ("retransmitted_bytes", None if recovery is None else recovery.retransmitted_octets, "B", None),
        ("repair_p50", median(took) if took else None, "ns", None),
        ("repair_most", max(took) if took else None, "ns", None),
        ("not_repaired", unrepaired, "1", 0.0),
    ]
    return rows


def _blocking(requests: Sequence[RequestBlocking], holes: Sequence[int | None]) -> list[Found]:
    """Means over requests; holes of all."""
    if not requests:
        names = ("by_others", "by_records", "by_own", "blocked", "end_by_others")
        return [
            *((name, None, "ns", None) for name in names),
            ("by_others_share", None, "1", 0.0),
            ("holes", None, "1", None),
        ]
    shares = [one.share for one in requests if one.share is not None]
    return [
        ("by_others", fmean(one.by_others_ns for one in requests), "ns", 0.0),
        ("by_records", fmean(one.by_records_ns for one in requests), "ns", None),
        ("by_own", fmean(one.by_own_ns for one in requests), "ns", None),
        ("blocked", fmean(one.blocked_ns for one in requests), "ns", None),
        ("end_by_others", fmean(one.end_by_others_ns for one in requests), "ns", 0.0),
        ("by_others_share", fmean(shares) if shares else None, "1", 0.0),
        ("holes", len(holes), "1", None),
    ]


def _attribution(times: Sequence[RequestTime]) -> list[Found]:
    """Means over the requests whose time can be split; the parts add up to the whole."""
    rows: list[Found] = [("requests", len(times) or None, "1", None)]
    rows.append(("whole", fmean(one.whole_ns for one in times) if times else None, "ns", None))
    parts = [one.parts for one in times]
    for part, name in _PARTS:
        rows.append((name, fmean([each[part] for each in parts]) if parts else None, "ns", None))
    return rows
