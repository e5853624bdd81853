"""What ding2022 drew, out of runs here: the time of its tests, and the packets of a captured trial of each.

Its numbers are those that its figures print (``figures.pdf`` in its repository); nothing is read off a picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypedDict, cast

import numpy as np

from trifecta.analysis.published import Place
from trifecta.analysis.transport.application import carries_http
from trifecta.conclude import queries
from trifecta.conclude.packets import catalogue
from trifecta.conclude.packets.captured import Array, Captured, captures
from trifecta.conclude.packets.metrics import read
from trifecta.conclude.reproduction.own_cells import own_cells
from trifecta.conclude.reproduction.result import StudyResult
from trifecta.contract.trial import value_of
from trifecta.design import naming

ARMS = ("h3", "h2")
"""The protocols that the study drew, in the order of its figures."""
DIRECTIONS = ("up", "down")
"""Client to server, server to client."""
_DURATION = "duration_ns"


@dataclass(frozen=True)
class PacketTotals:
    """Packets of a direction and their octets on the wire."""

    frames: int
    octets: int


Sums = Mapping[tuple[str, bool], PacketTotals]
"""By direction, and whether with application data as the study has it."""


@dataclass(frozen=True)
class Test:
    """A test of the study: what is fetched three times, over new connections or one, and its figures by protocol."""

    id: str
    words: str
    connection: str
    bytes_between: tuple[int, int]
    sizes: Mapping[str, int]
    sums: Mapping[str, int]
    said_ns: Mapping[str, int]
    said: Mapping[str, Sums]

    def cells(self, study: StudyResult) -> list[Place]:
        """The cells of the study's own programs that are this test."""
        low, high = self.bytes_between
        places = own_cells(study, connection=self.connection)
        return [one for one in places if low <= int(one.levels.get("response_bytes", -1)) <= high]


_HELLO, _SMALL = (1, 100), (1_000_000, 1_048_576)


def _published_sums(
    up_not: tuple[int, int], up: tuple[int, int], down_not: tuple[int, int], down: tuple[int, int]
) -> Sums:
    """The table of a figure, client first: frames and octets without application data, then with it."""
    return {
        ("up", False): PacketTotals(*up_not),
        ("up", True): PacketTotals(*up),
        ("down", False): PacketTotals(*down_not),
        ("down", True): PacketTotals(*down),
    }


# As printed. Of the server's frames with application data figures 10 and 16 have 12 and 2,384, where the dissections
# beside them in its repository have 13 and 2,335, with the same octets.
TESTS = (
    Test(
        "hello-closed", "hello, closed", "new", _HELLO, {"h3": 2, "h2": 3}, {"h3": 10, "h2": 11},
        {"h3": 98_663_000, "h2": 839_784_000},
        {
            "h3": _published_sums((7, 7581), (14, 9409), (9, 4981), (12, 3358)),
            "h2": _published_sums((15, 696), (21, 3066), (7, 344), (21, 5967)),
        },
    ),
    Test(
        "hello-sim", "hello, sim", "reused", _HELLO, {"h3": 4, "h2": 5}, {"h3": 12, "h2": 13},
        {"h3": 29_304_000, "h2": 294_801_000},
        {
            "h3": _published_sums((2, 2464), (11, 3602), (3, 1660), (11, 5382)),
            "h2": _published_sums((5, 232), (11, 1416), (3, 144), (10, 2565)),
        },
    ),
    Test(
        "small-closed", "small, closed", "new", _SMALL, {"h3": 6, "h2": 7}, {"h3": 14, "h2": 15},
        {"h3": 288_780_000, "h2": 1_177_887_000},
        {
            "h3": _published_sums((6, 7392), (858, 60_271), (9, 4958), (2378, 3_347_848)),
            "h2": _published_sums((15, 696), (204, 11_118), (8, 388), (234, 3_165_807)),
        },
    ),
    Test(
        "small-sim", "small, sim", "reused", _SMALL, {"h3": 8, "h2": 9}, {"h3": 16, "h2": 17},
        {"h3": 202_368_000, "h2": 580_477_000},
        {
            "h3": _published_sums((2, 2464), (895, 56_869), (3, 1664), (2384, 3_337_382)),
            "h2": _published_sums((5, 232), (117, 6080), (3, 144), (210, 3_161_523)),
        },
    ),
)  # fmt: skip
"""The four tests of its figures; large, of 10 MB, is in none."""


@dataclass(frozen=True)
class Duration:
    """How long a test took over a protocol, in ns: the median of its trials and their ends; None: not run."""

    test: Test
    arm: str
    trials: int
    median_ns: int | None
    smallest_ns: int | None
    largest_ns: int | None

    @property
    def published_ns(self) -> int:
        """What the study's figure has."""
        return self.test.said_ns[self.arm]


def durations(study: StudyResult) -> list[Duration]:
    """The tests of figure 1, from trials that were not captured where there are any; empty where none was run."""
    test_durations = []
    for test in TESTS:
        every = test.cells(study)
        cells = [one for one in every if not _is_captured(one)] or every  # capturing costs time
        for arm in ARMS:
            values = [
                value
                for cell in cells
                for row in cell.rows
                if row["arm"] == arm and (value := value_of(row, _DURATION)) is not None and np.isfinite(value)
            ]
            ours = [round(one) for one in (median(values), min(values), max(values))] if values else [None] * 3
            test_durations.append(Duration(test, arm, len(values), *ours))
    return test_durations if any(one.trials for one in test_durations) else []


@dataclass(frozen=True)
class Packet:
    """A packet as its sender's side saw it: ns since the first one, octets with its link-layer header.

    ``application``: whether the study counts it as application data: all but TCP's opening and closing (so its TLS
    handshake, too), of QUIC all without a long header. ``http``: whether it has octets of HTTP; None: not known.
    """

    number: int
    time_ns: int
    direction: str
    octets: int
    application: bool
    http: bool | None


Sizes = tuple[Array, Array]
"""Times in ns since the first packet, and octets."""
NO_PACKETS: Sizes = (np.empty(0), np.empty(0))


@dataclass(frozen=True)
class Trace:
    """The captured trial of a test that stands for a protocol, of ``trials`` that with the median duration."""

    test: Test
    arm: str
    run: str
    trial: str
    trials: int
    packets: Sequence[Packet]

    def sizes(self, direction: str) -> Sizes:
        """The packets of a direction as a picture takes them."""
        own = [one for one in self.packets if one.direction == direction]
        return np.array([one.time_ns for one in own], float), np.array([one.octets for one in own], float)

    def sums(self) -> Sums:
        """What the study's tables count."""
        keys = [(direction, application) for direction in DIRECTIONS for application in (False, True)]
        return {
            key: _sum([one for one in self.packets if (one.direction, one.application) == key]) for key in keys
        }  # fmt: skip

    def of_http(self) -> Mapping[str, PacketTotals] | None:
        """By direction the packets with octets of HTTP; None: not known, as without keys."""
        if any(one.http is None for one in self.packets):
            return None
        return {way: _sum([one for one in self.packets if one.direction == way and one.http]) for way in DIRECTIONS}


def _sum(packets: Sequence[Packet]) -> PacketTotals:
    return PacketTotals(len(packets), sum(one.octets for one in packets))


def traces(folder: Path, study: StudyResult) -> list[Trace]:
    """The traces of figures 2 to 17 that were captured, in the order of the tests; ``folder`` is the reproduction's."""
    cells = [(test, cell) for test in TESTS for cell in test.cells(study) if _is_captured(cell)]
    found_traces = []
    for run in dict.fromkeys(cell.run for _, cell in cells):
        with queries.connect(folder / run) as connection:
            chosen = {(row["cell"], row["arm"]): row for row in queries.ask(connection, catalogue.CHOSEN)}
            for test, cell in cells:
                for arm in ARMS if cell.run == run else ():
                    row = chosen.get((cell.cell, arm))
                    if row is None:
                        continue
                    captured = captures(read(connection, row["capture"]), {row["capture"]: naming.name(arm)})[0]
                    packets = tuple(_packets(captured))
                    found_traces.append(Trace(test, arm, run, row["trial"], row["trials"], packets))
    return found_traces


def _is_captured(cell: Place) -> bool:
    return any("setup_packets" in row for row in cell.rows)


def _packets(captured: Captured) -> list[Packet]:
    """Every packet that was sent, in the order of time."""
    holds: dict[int, bool] = {}
    for connection in captured.analysed:
        for up in (True, False):
            mask = carries_http(connection, up=up)
            if mask is not None:
                holds |= zip(connection.sent(up=up)["number"].tolist(), mask.tolist(), strict=True)
    columns = ("number", "time_ns", "direction", "connection", "wire_bytes", "payload_bytes", "flags", "sequence",
               "acknowledged", "header_form")  # fmt: skip
    rows = [row for way in DIRECTIONS for row in captured.sent_packets(way).select(columns).to_pylist()]
    rows = [row for row in rows if row["connection"] not in captured.left_over]
    rows.sort(key=lambda row: (row["time_ns"], row["number"]))
    apart = opens_or_closes(cast(list[Frame], rows))
    return [
        Packet(
            row["number"],
            row["time_ns"] - captured.start_ns,
            row["direction"],
            row["wire_bytes"],
            row["number"] not in apart,
            holds.get(row["number"]),
        )
        for row in rows
    ]


class Frame(TypedDict):
    """What of a packet's row tells whether it opens or closes a connection."""

    number: int
    connection: int
    direction: str
    flags: str | None
    sequence: int | None
    payload_bytes: int
    acknowledged: int | None
    header_form: str | None


def opens_or_closes(rows: Sequence[Frame]) -> set[int]:
    """Numbers of the packets that are no application data for the study; ``rows`` are in the order of time.

    By this rule the tables of figures 10 to 15 and 17 come out of its own captures, but for one frame: of the server's
    in figure 13 it has one more, which only acknowledges.
    """
    packet_numbers: set[int] = set()
    opened: set[int] = set()
    ends: dict[tuple[int, str], int] = {}  # what acknowledges the FIN of a direction
    for row in rows:
        flags, connection, way = (row["flags"] or "").split(","), row["connection"], row["direction"]
        if "FIN" in flags and row["sequence"] is not None:
            ends[connection, "down" if way == "up" else "up"] = row["sequence"] + row["payload_bytes"] + 1
        if "long" in (row["header_form"] or ""):
            packet_numbers.add(row["number"])
        elif not row["payload_bytes"] and flags != [""]:
            answer, end = row["acknowledged"], ends.get((connection, way))
            opens = way == "up" and answer == 1 and connection not in opened
            if {"SYN", "FIN", "RST"} & set(flags) or opens or (end is not None and answer == end):
                packet_numbers.add(row["number"])
            if opens and "SYN" not in flags:
                opened.add(connection)
    return packet_numbers
