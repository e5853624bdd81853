"""Pictures of captures: their points against an invented capture whose truth is known, and the files of them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from tests.report.synthetic_packets import MS, World, tables
from trifecta.analysis.transport import blocking, overhead
from trifecta.analysis.transport import parts as request_parts
from trifecta.conclude.packets import flights, series
from trifecta.conclude.packets.captured import Captured, captures
from trifecta.conclude.packets.derive import RepresentativeCapture, _parts
from trifecta.conclude.packets.points import Flight, Ladder
from trifecta.report.figures import part_bars, svg
from trifecta.report.figures.blocking import BlockedRequest
from trifecta.report.figures.blocking import blocking as blocked
from trifecta.report.figures.packet_sizes import packet_sizes
from trifecta.report.figures.panels import DescribedFigure
from trifecta.report.figures.part_bars import TIME, Bar
from trifecta.report.figures.setup_ladder import setup_ladder
from trifecta.report.figures.time_sequence import time_sequence
from trifecta.report.packets import parts, write_figures
from trifecta.report.packets.pictures import groups, pictures
from trifecta.store.trace_schema import SCHEMAS


def made(*worlds: World) -> dict[str, pa.Table]:
    found = [tables(world) for world in worlds]
    return {name: pa.concat_tables([getattr(one, name) for one in found]) for name in SCHEMAS}


def only(**changes: Any) -> Captured:
    return captures(made(World(**changes)))[0]


@pytest.mark.parametrize(("arm", "of"), [("h1", "TCP sequence"), ("h2", "TCP sequence"), ("h3", "stream offset")])
def test_one_lost_packet_is_lost_once_and_sent_again_once(arm: str, of: str) -> None:
    found = series.octets(only(arm=arm, lose=(40,)))
    assert found.of == of
    assert (len(found.lost), len(found.retransmitted)) == (1, 1)
    assert found.retransmitted[0, 1] == found.lost[0, 1], "the same octets"
    assert found.retransmitted[0, 0] - found.lost[0, 0] == 60 * MS
    assert len(found.arrived) == len(found.sent) + len(found.retransmitted) - 1
    lag = np.sort(found.arrived[:, 0])[0] - found.sent[:, 0].min()
    assert lag == 20 * MS


def test_nothing_lost_nothing_sent_again() -> None:
    for arm in ("h1", "h2", "h3"):
        found = series.octets(only(arm=arm, lose=()))
        assert (len(found.lost), len(found.retransmitted)) == (0, 0)


def test_streams_of_quic_and_connections_stand_on_top_of_each_other() -> None:
    points = series.octets(only(arm="h3", requests=3, size=200_000, lose=())).sent
    assert {int(place // 200_000) for place in points[:, 1]} == {0, 1, 2}
    captured = only(arm="h2", lose=())
    both = Captured("two", "h2", doubled(captured), *_rest(captured))
    top = series.octets(captured).sent[:, 1].max()
    assert series.octets(both).sent[:, 1].max() > 1.9 * top
    # A connection whose start is not here, and that nobody asked anything on, is what a former trial left over.
    (row,) = captured.connections.to_pylist()
    rows = pa.Table.from_pylist([row, row | {"connection": 1, "truncated": "start"}], captured.connections.schema)
    late = Captured("late", "h2", both.packets, captured.frames, captured.messages, rows)
    assert late.left_over == {1}
    assert series.octets(late).sent[:, 1].max() == top
    # One with requests is none, wherever it began; and it is not the set-up that is drawn.
    rows = pa.Table.from_pylist([row | {"truncated": "start"}], captured.connections.schema)
    assert Captured("cut", "h2", captured.packets, captured.frames, captured.messages, rows).left_over == frozenset()
    early = row | {"connection": 1, "truncated": "start", "start_ns": row["start_ns"] - MS}
    rows = pa.Table.from_pylist([early, row], captured.connections.schema)
    drawn = flights.ladder(Captured("early", "h2", captured.packets, captured.frames, captured.messages, rows))
    assert drawn == flights.ladder(captured)


def doubled(captured: Captured) -> pa.Table:
    """Its packets, and the same of another connection."""
    index = captured.packets.schema.get_field_index("connection")
    again = captured.packets.set_column(index, "connection", pa.array([1] * captured.packets.num_rows, pa.uint32()))
    return pa.concat_tables([captured.packets, again])


def _rest(captured: Captured) -> tuple[pa.Table, pa.Table, pa.Table]:
    return captured.frames, captured.messages, captured.connections


def test_without_keys_datagrams_are_counted_and_no_stream_is_told() -> None:
    captured = only(arm="h3", keys=False)
    found = series.octets(captured)
    assert found.of == "datagrams"
    assert len(found.retransmitted) == 0, "whether octets came again cannot be known"
    assert series.lanes(captured) == []
    names = {one.name for one in pictures([captured])}
    assert "streams" not in names
    said = next(one.caption for one in pictures([captured]) if one.name == "time-sequence")
    assert "Without keys" in said


def test_lanes_are_the_requests() -> None:
    for arm in ("h2", "h3"):
        found = series.lanes(only(arm=arm, lose=(40,)))
        assert [one.name for one in found] == [f"stream {s}" for s in ((1, 3, 5) if arm == "h2" else (0, 4, 8))]
        assert sum(len(one.lost_ns) for one in found) == 1
        assert all(one.started_ns < (one.first_ns or 0) < (one.done_ns or 0) for one in found)
        assert all(one.sent_ns.min() + 20 * MS == one.first_ns for one in found)


def test_gaps_are_those_where_packets_arrive() -> None:
    captured = only(arm="h2", lose=(40,))
    found = series.gaps(captured, "down")
    assert len(found) == captured.far("down").num_rows - 1
    assert (np.diff(found) >= 0).all()
    assert found.sum() == captured.far("down")["time_ns"].to_numpy().max() - captured.far("down")["time_ns"][0].as_py()
    both = series.gaps(Captured("two", "h2", doubled(captured), *_rest(captured)), "down")
    assert len(both) == 2 * len(found)  # between packets of a connection, not of both


def test_rates_are_those_of_all_octets_that_arrive() -> None:
    captured = only(arm="h2", lose=(40,))
    found = series.rates(captured)
    for direction, rates in (("down", found.down), ("up", found.up)):
        octets = sum(captured.far(direction)["wire_bytes"].to_pylist())
        assert rates.sum() * found.bin_ns / 8e9 == pytest.approx(octets)


def test_what_a_queue_dropped_is_lost_too() -> None:
    captured = only(arm="h2", lose=(40,))
    place = captured.packets.schema.get_field_index("fate")
    fates = ["queue_dropped" if fate == "lost" else fate for fate in captured.packets["fate"].to_pylist()]
    dropped = captured.packets.set_column(place, "fate", pa.array(fates, pa.string()))
    assert len(series.octets(Captured("x", "h2", dropped, *_rest(captured))).lost) == 1


def test_waits_are_of_the_streams_they_are_told_of() -> None:
    captured = only(arm="h2", lose=(40,))
    found = [(one.other_ns, one.own_ns) for one in parts._waited(captured)]
    assert found == [(wait.by_others_ns, wait.by_own_ns) for wait in captured.summary.blocking]
    assert any(others != own for others, own in found)


@pytest.mark.parametrize(("arm", "trips"), [("h1", 3), ("h2", 3), ("h3", 2)])
def test_the_ladder_ends_with_the_first_octet_of_a_response(arm: str, trips: int) -> None:
    captured = only(arm=arm)
    found = flights.ladder(captured)
    assert found is not None
    assert found.round_trip_ns == 40 * MS
    assert found.least_round_trips == trips
    first = captured.messages["response_start_ns"].to_numpy().min() - captured.start_ns
    assert found.first_response_ns == first
    assert trips <= first / (40 * MS) < trips + 0.2
    assert [one.direction for one in found.flights[:3]] == ["up", "down", "up"]
    assert all(one.sent_ns[1] <= first for one in found.flights)
    assert sum(one.lost for one in found.flights) == 0
    assert all(one.arrived_ns and one.arrived_ns[0] == one.sent_ns[0] + 20 * MS for one in found.flights)


@pytest.mark.parametrize("arm", ["h1", "h2", "h3"])
def test_a_flight_that_goes_on_beyond_the_first_octet_is_cut_there(arm: str) -> None:
    # The second packet of the response leaves 2.4 ms after the first, whose octets are there after 2 ms.
    found = flights.ladder(only(arm=arm, rtt_ns=4 * MS, rate_bits_per_s=5e6, lose=()))
    assert found is not None
    assert found.first_response_ns is not None
    last = found.flights[-1]
    assert (last.direction, last.packets) == ("down", 1)
    assert last.sent_ns[1] + 2 * MS == found.first_response_ns


def test_the_ladder_counts_what_was_lost_on_the_way() -> None:
    found = flights.ladder(only(arm="h2", lose=(0,)))
    assert found is not None
    assert [one.lost for one in found.flights if one.lost] == [1]


def test_of_one_side_nobody_says_when_the_other_saw_a_packet() -> None:
    found = flights.ladder(only(arm="h2", sides=False))
    assert found is not None
    assert not found.sides
    assert all(one.arrived_ns is None and one.lost == 0 for one in found.flights)
    assert len(series.octets(only(arm="h2", sides=False)).arrived) == 0


def words_of(drawn: DescribedFigure) -> list[str]:
    return [text.get_text() for target in drawn.figure.axes for text in target.texts if text.get_text()]


def test_words_of_flights_that_lie_too_close_say_when_they_were_sent() -> None:
    flight = Flight("up", 1, 80, (1.0 * MS, 1.0 * MS), None, "ACK")
    close = [flight, replace(flight, direction="down", sent_ns=(1.1 * MS, 1.1 * MS))]
    apart = [flight, replace(flight, direction="down", sent_ns=(150.0 * MS, 150.0 * MS))]
    for shown, said in ((close, "1.10 ms: ACK (80 B)"), (apart, "ACK (80 B)")):
        late = replace(flight, sent_ns=(300.0 * MS, 300.0 * MS))
        found = words_of(setup_ladder([("x", "h2", Ladder([*shown, late], None, None, None, False))]))
        assert found[1:3] == ["ACK (80 B)", said]


def test_frames_of_a_flight_are_cut_at_their_ends() -> None:
    what = "1-RTT HANDSHAKE_DONE+NEW_TOKEN+CRYPTO+STREAM, HEADERS, DATA"
    flight = Flight("down", 9, 13_400, (1.0 * MS, 2.0 * MS), (21.0 * MS, 22.0 * MS), what)
    ladder = Ladder([flight], 20 * MS, 21.0 * MS, 2, True)
    three, two = (words_of(setup_ladder([("x", "h3", ladder)] * panels)) for panels in (3, 2))
    assert "9 × 1-RTT HANDSHAKE_DONE+… (13.4 kB)" in three
    assert "9 × 1-RTT HANDSHAKE_DONE+NEW_TOKEN+CRYPTO+STREAM, … (13.4 kB)" in two


def test_rates_side_by_side_have_the_same_bins() -> None:
    short, long = only(arm="h2", requests=1, lose=()), only(arm="h3", requests=6, lose=())
    longest = max(short.end_ns, long.end_ns)
    assert series.rates(short).bin_ns < series.rates(long).bin_ns
    assert series.rates(short, longest).bin_ns == series.rates(long, longest).bin_ns
    carried = series.rates(short, longest)
    assert carried.down.sum() * carried.bin_ns / 8e9 == pytest.approx(sum(series.sizes(short, "down")[1]))


def test_few_acknowledgements_stand_in_few_bins() -> None:
    few, many = (series.acknowledged(only(arm="h2", size=size, lose=())) for size in (3_000, 400_000))
    assert len(few.each) <= 6 < len(many.each)
    assert np.isfinite(few.each).any()


@pytest.mark.parametrize(("size", "width"), [(3_000, 4.5), (60_000, 3.2), (400_000, 2.2)])
def test_few_marks_are_large_enough_to_be_seen(size: int, width: float) -> None:
    captured = only(arm="h2", size=size, lose=())
    drawn = [
        time_sequence([("x", "h2", series.octets(captured))]),
        packet_sizes([("x", "h2", series.sizes(captured, "down"), series.sizes(captured, "up"))]),
    ]
    for one in drawn:
        assert max(patch.get_linewidth() for patch in one.figure.axes[0].patches) == width


def test_where_nothing_waited_the_panel_says_so() -> None:
    waited = [BlockedRequest("0", 0.0, 3.0 * MS), BlockedRequest("1", 4.0 * MS, 0.0)]
    drawn = blocked([("x", "h2", waited), ("y", "h3", [BlockedRequest("0", 0.0, 0.0)])])
    assert [["nothing waited" in text.get_text() for text in one.texts].count(True) for one in drawn.figure.axes] == [
        0,
        1,
    ]
    heights = sorted(bar.get_height() for bar in drawn.figure.axes[0].patches)
    assert heights == [0.0, 0.0, 3.0 * MS, 4.0 * MS]
    assert all(bar.get_y() == 0 for bar in drawn.figure.axes[0].patches)  # side by side: they may overlap in time


def test_captures_that_differ_by_protocol_stand_side_by_side() -> None:
    names = ("small-closed-http2", "hello-sim-http3", "small-closed-http3", "hello-sim-http2", "small-closed-http1.1")
    found = groups([Captured(name, "h2", *[pa.table({})] * 4) for name in names])
    assert [(name, [one.label for one in group]) for name, group in found] == [
        ("small-closed", ["small-closed-http2", "small-closed-http3", "small-closed-http1.1"]),
        ("hello-sim", ["hello-sim-http3", "hello-sim-http2"]),
    ]
    many = groups([Captured(f"capture{n}", "?", *[pa.table({})] * 4) for n in range(6)])
    assert [(name, len(group)) for name, group in many] == [("captures-1", 4), ("captures-2", 2)]


def test_files_need_nothing_else(tmp_path: Path) -> None:
    worlds = [World(arm=arm, capture=f"small-closed-http{arm[1]}.pcapng", size=60_000) for arm in ("h2", "h3")]
    written = write_figures(made(*worlds), tmp_path)
    of_packets = ("time-sequence", "streams", "packet-sizes", "set-up", "packet-gaps", "rate", "acknowledgements")
    of_parts = ("attribution", "overhead", "stalls", "blocking")
    assert {file.name for file in written} == {
        f"small-closed-{name}.{kind}" for name in of_packets + of_parts for kind in ("svg", "png")
    }
    # A page has its legends in HTML, a file in the picture.
    assert re.search(r"<text[^>]*>rest</text>", (tmp_path / "small-closed-attribution.svg").read_text())
    for file in written:
        if file.suffix == ".png":
            with Image.open(file) as image:
                assert image.width >= 760
                colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 24) or []}
            assert (0x01, 0, 0x01) not in colours
            assert (255, 255, 255) in colours
            assert not any(colour[0] in (1, 2) and colour[1] == 0 and 0 < colour[2] < 0x20 for colour in colours)
            continue
        text = file.read_text()
        used, defined = set(re.findall(r"var\((--[\w-]+)\)", text)), set(re.findall(r"(--[\w-]+):", text))
        assert used <= defined
        assert "http" not in re.sub(r"http://www\.w3\.org/[\w/]+|HTTP|small-closed-http\d", "", text)


def test_empty_tables_make_no_picture(tmp_path: Path) -> None:
    assert write_figures({name: schema.arrow().empty_table() for name, schema in SCHEMAS.items()}, tmp_path) == []


def test_no_capture_makes_no_picture() -> None:
    with svg.drawing():
        assert [one.draw() for one in pictures([])] == []


def test_a_name_never_leaves_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    written = write_figures(made(World(capture="../../x/..", size=5_000, lose=())), folder)
    assert written
    assert {file.parent for file in written} == {folder}


def test_waits_of_more_requests_than_bars_are_drawn_as_whole_nanoseconds() -> None:
    waits = [BlockedRequest(str(number), number * MS, 2 * MS) for number in range(200)]
    with svg.drawing():
        assert "HTTP/2" in blocked([("HTTP/2", "h2", waits)]).label


def test_bars_add_up_and_know_their_parts() -> None:
    time = {"handshake": 80e6, "head-of-line blocking": 40e6, "rest": 3e6}
    with svg.drawing():
        drawn = part_bars.part_bars([Bar("HTTP/2", time)], TIME, "time", lambda value: f"{(value or 0) / 1e6:.0f} ms")
        assert "HTTP/2: 123 ms" in drawn.label
        with pytest.raises(KeyError):
            part_bars.part_bars([Bar("x", {"unheard-of": 1.0})], TIME, "time", str)
    assert tuple(TIME) == request_parts.PARTS
    assert set(part_bars.OCTETS) == set(overhead.PARTS)


def test_overhead_is_told_in_shares_of_the_content() -> None:
    captured = only(arm="h2", size=5_000, lose=())
    for content, expected in ((800.0, (1.0, 0.25, 0.0)), (0.0, (None, None, None))):
        captured.octets = dict.fromkeys(overhead.PARTS, 0.0) | {"content": content, "ip": 200.0}
        rows = _parts({"cell": {"h2": RepresentativeCapture(captured, "t00001", 1)}})
        shares = {row["part"]: row["share"] for row in rows if row["kind"] == "overhead"}
        assert tuple(shares[part] for part in ("content", "ip", "padding")) == expected


def test_frames_whose_octets_are_not_known_are_no_crash() -> None:
    found = made(World(arm="h2", size=30_000, lose=(12,)))
    for name in ("tcp_start", "tcp_end"):
        place = found["frames"].schema.get_field_index(name)
        nothing = pa.nulls(found["frames"].num_rows, pa.uint64())
        found["frames"] = found["frames"].set_column(place, name, nothing)
    assert blocking.blocking(found).requests == []
