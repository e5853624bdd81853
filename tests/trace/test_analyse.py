"""The analysis in parts, on more than one core, says what it says as a whole."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pyarrow as pa
import pytest

from tests.report.synthetic_packets import World, tables
from trifecta.analysis.transport.columns import Connection
from trifecta.store.trace_schema import TABLES
from trifecta.trace import overview
from trifecta.trace.analyse import analyse
from trifecta.trace.dissection import Dissection
from trifecta.trace.summary import METRICS, trace_metrics

ONE_SIDE = "one side was captured"


def together(*worlds: World) -> Dissection:
    """Worlds as the connections of one dissection, in their order."""
    made = [tables(world) for world in worlds]
    return Dissection(**{name: pa.concat_tables([getattr(one, name) for one in made]) for name in TABLES})


def several(**last: object) -> Dissection:
    worlds = [World(arm=arm, connection=at, size=30_000, lose=(5,)) for at, arm in enumerate(["h2", "h3", "h1", "h2"])]
    return together(*worlds, World(arm="h3", connection=7, size=60_000, lose=(), **last))  # type: ignore[arg-type]


@pytest.mark.parametrize("processes", [2, 3, 9])
def test_parts_say_what_the_whole_says(processes: int) -> None:
    found = several()
    whole = trace_metrics(found)
    told = analyse(found, processes)
    assert told.metrics.schema == METRICS and told.metrics.equals(whole)
    assert told.connections == overview.by_connection(found)
    assert [row["connection"] for row in told.connections] == [0, 1, 2, 3, 7]


def test_a_connection_says_alone_what_it_says_among_others() -> None:
    found = several()
    whole = trace_metrics(found)
    for number in (0, 1, 2, 3, 7):
        alone = {name: _only(getattr(found, name), number) for name in TABLES}
        assert trace_metrics(Dissection(**alone)).equals(_only(whole, number))


def test_what_one_side_leaves_open_is_said_of_every_part() -> None:
    found = several(sides=False)
    told = analyse(found, 2).metrics
    assert told.equals(trace_metrics(found))
    of_first = [row for row in _only(told, 0).to_pylist() if row["family"] == "recovery"]
    assert of_first and all(ONE_SIDE in row["note"] for row in of_first)


def test_numbers_that_are_not_in_order_are_not_parted() -> None:
    found = several()
    turned = pa.concat_tables([found.connections.slice(3), found.connections.slice(0, 3)])
    again = Dissection(found.packets, found.frames, found.messages, turned)
    assert [row["connection"] for row in analyse(again, 2).connections] == [3, 7, 0, 1, 2]


def _only(table: pa.Table, number: int) -> pa.Table:
    keep = pa.array([one == number for one in table["connection"].to_pylist()])
    return table.filter(keep).combine_chunks()


def test_a_part_leaves_no_connection_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker looks for no rubbish: what stays of one part is there, too, while the next is worked on."""
    seen: list[weakref.ref[Connection]] = []

    def watched(found: Dissection, real: Any = overview.connections) -> list[Connection]:
        of: list[Connection] = real(found)
        seen.extend(map(weakref.ref, of))
        return of

    monkeypatch.setattr(overview, "connections", watched)
    found = several()
    gc.disable()
    try:
        analyse(found, 1)
        assert len(seen) == 5 and not any(one() for one in seen)
    finally:
        gc.enable()
