"""The connections of a capture with their final numbers, and each packet at both of its sides."""

from __future__ import annotations

import numpy as np

from trifecta.trace.capture_file import Ints
from trifecta.trace.rows import Packed, Trace


class CorrelatedTrace:
    """Connections with their final numbers, and what is found at both sides."""

    def __init__(self, trace: Trace, parts: list[Packed], first: int) -> None:
        self.trace, self.parts = trace, parts
        flows = trace.flows
        count = len(flows.connection)
        # (part, key in the part) -> number; what no part tells of keeps the number of its addresses and ports.
        self.connection = flows.connection.copy()
        self.numbers: list[dict[int, int]] = []
        following = flows.count
        taken: set[int] = set()
        self.migrated: set[int] = set()
        for part in parts:
            names = {} if len(part.quic_rows) else {key: key for key in part.facts}
            if len(part.quic_rows):
                rows_of = _by_key(part.quic_rows, part.quic_connections)
                for key in part.facts:
                    mine = rows_of[key]
                    flow = int(flows.connection[mine[0]])
                    names[key] = flow if flow not in taken else following
                    following += flow in taken
                    taken.add(flow)
                    if len(np.unique(flows.connection[mine])) > 1:
                        self.migrated.add(names[key])
                    self.connection[mine] = names[key]
            self.numbers.append(names)
        self.connection = self.connection[flows.origin]
        used, place = np.unique(self.connection, return_inverse=True)
        self.connection = place + first
        moved = {int(one): at + first for at, one in enumerate(used)}
        self.numbers = [{key: moved[one] for key, one in names.items() if one in moved} for names in self.numbers]
        self.migrated = {moved[one] for one in self.migrated if one in moved}
        self.time_ns = trace.capture.time_ns[trace.headers.index]
        # The first arrival at the far side, by the place of the original; -1: none.
        self.arrival = np.full(count, -1, dtype=np.int64)
        far = np.flatnonzero(flows.origin != np.arange(count))[::-1]
        self.arrival[flows.origin[far]] = far
        # What came to the link and is not seen at the far side: delivered; neither that nor lost. From `_fates`.
        nothing = np.zeros(0, dtype=np.int64)
        self.unseen = nothing, nothing

    def seen_by_client(self, rows: Ints, direction: Ints) -> Ints:
        """Places where packets (of the view) are seen at the client's side; -1: never."""
        flows = self.trace.flows
        two_sides = flows.side[rows] >= 0
        there = np.where(flows.side[rows] == 0, rows, self.arrival[rows])
        return np.where(two_sides, there, rows)


def _by_key(rows: Ints, keys: Ints) -> dict[int, Ints]:
    """The rows that have each key, in their order."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    parts = np.split(rows[order], np.flatnonzero(np.diff(keys)) + 1)
    return dict(zip(np.unique(keys).tolist(), parts, strict=True))
