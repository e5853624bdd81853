"""The figures of ding2022 out of runs here: times of the tests, packets one by one, and what they carried."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.report.own_figures import asked, assert_sound, records, result, text_of
from tests.report.synthetic import Shape, write_run
from tests.report.synthetic_packets import write_traces
from trifecta.conclude.packets import catalogue
from trifecta.conclude.reproduction.own_ding2022 import opens_or_closes
from trifecta.report.reproduction.own.ding2022 import figures
from trifecta.report.reproduction.own.study_figure import StudyFigure

SHAPE: dict[str, Any] = {
    "samples_per_trial": 12,
    "paths": ("clean",),
    "servers": ("caddy",),
    "in_flight": 1,
    "troubles": False,
}
TIMED, CAPTURED = "ding2022/timed-transfers", "ding2022/captured-transfers"
NAMES = {"h2": "HTTP/2", "h3": "HTTP/3"}
NEAR = "(side = 'a') = (direction = 'up')"  # a packet as its sender's side saw it


def write_captured(folder: Path, *, blocks: int = 1, left_out: str = "", **changes: Any) -> None:
    shape = Shape(
        **SHAPE, blocks=blocks, clients=("curl",), connections=("new",), responses=("13 B",), left_out=left_out
    )
    write_run(folder / CAPTURED, shape)
    write_traces(folder / CAPTURED, **{"size": 9_000, "lose": (3,), **changes})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("reproduced")
    both = ("curl", "load")  # what is asked by load is not the study's
    write_run(made / TIMED, Shape(**SHAPE, blocks=3, clients=both, connections=("new", "reused"), responses=("13 B",)))
    write_captured(made, blocks=3)
    return made


@pytest.fixture(scope="module")
def drawn(folder: Path) -> dict[str, StudyFigure]:
    found = figures(folder, result(folder, "ding2022", ["timed-transfers", "captured-transfers"]))
    assert_sound(found)
    return {one.id.removeprefix("ding2022-"): one for one in found}


def chosen(folder: Path) -> dict[str, str]:
    """By protocol the trial whose packets are drawn: that with the median duration."""
    rows = asked(folder / CAPTURED, catalogue.CHOSEN.text())
    return {str(row[1]): str(row[2]) for row in rows if str(row[1]) in NAMES}


def test_what_was_run_of_the_study_s_figures_is_drawn(drawn: dict[str, StudyFigure]) -> None:
    assert list(drawn) == ["figure-1", "figures-2-3", "figures-10-11"]


def test_a_bar_is_the_median_of_the_timed_trials_beside_the_study_s(
    folder: Path, drawn: dict[str, StudyFigure]
) -> None:
    told = {(one["test"], one["protocol"]): one for one in records(drawn["figure-1"])}
    assert len(told) == 8
    for connection, test in (("new", "hello, closed"), ("reused", "hello, sim")):
        for arm, name in NAMES.items():
            spans = asked(
                folder / TIMED,
                "SELECT max(s.done_ns) - min(s.started_ns) FROM samples AS s JOIN trials AS t USING (trial) WHERE "
                f"t.valid AND t.arm = '{arm}' AND NOT s.warmup AND t.connection = '{connection}' "
                "AND t.client = 'curl' GROUP BY s.trial",
            )
            values = [int(str(row[0])) for row in spans]
            one = told[test, name]
            assert (one["trials"], one["duration_ns"]) == (len(values), round(median(values)))
            assert (one["min_ns"], one["max_ns"]) == (min(values), max(values))
    said = {key: one["published_duration_ns"] for key, one in told.items()}
    assert said["hello, closed", "HTTP/2"] == 839_784_000
    assert said["small, sim", "HTTP/3"] == 202_368_000
    assert told["small, sim", "HTTP/3"]["missing"] == "not run"
    assert text_of(drawn["figure-1"]).count("not run") == 4


def test_a_line_of_the_csv_is_a_packet_of_the_trial_that_is_named(folder: Path, drawn: dict[str, StudyFigure]) -> None:
    figure = drawn["figures-2-3"]
    for arm, trial in chosen(folder).items():
        rows = asked(
            folder / CAPTURED,
            f"SELECT number, time_ns - min(time_ns) OVER (), direction, wire_bytes FROM packets WHERE {NEAR} AND "
            f"capture = '{trial}.pcapng' ORDER BY time_ns, number",
        )
        words = {"up": "client to server", "down": "server to client"}
        told = [one for one in records(figure) if one["protocol"] == NAMES[arm]]
        assert [(one["packet"], one["time_ns"], one["direction"], one["length_bytes"]) for one in told] == [
            (number, time_ns, words[str(way)], octets) for number, time_ns, way, octets in rows
        ]
        assert {(one["figure"], one["trial"]) for one in told} == {({"h3": 2, "h2": 3}[arm], trial)}
        assert f"{NAMES[arm]} captured-transfers {trial}" in figure.caption


# No application data as the study counts it, and octets of HTTP: over QUIC the packets themselves say STREAM, over TCP
# it is what lies behind the octets of the handshake.
APART = {
    "h3": "header_form LIKE '%long%'",
    "h2": "flags LIKE '%SYN%' OR (payload_bytes = 0 AND direction = 'up' AND acknowledged = 1)",
}
HTTP = {"h3": "frames LIKE '%STREAM%'", "h2": "payload_bytes > 0 AND sequence >= if(direction = 'up', 598, 2349)"}


def test_the_tables_count_the_packets_that_the_study_counted(folder: Path, drawn: dict[str, StudyFigure]) -> None:
    told = {(one["protocol"], one["what"]): one for one in records(drawn["figures-10-11"])}
    for arm, trial in chosen(folder).items():
        lines = {
            "not application data": f"({APART[arm]})",
            "application data": f"NOT coalesce({APART[arm]}, false)",
            "overall": "true",
            "with octets of HTTP": HTTP[arm],
        }
        for what, condition in lines.items():
            for direction, side in (("up", "client"), ("down", "server")):
                ((frames, octets),) = asked(
                    folder / CAPTURED,
                    f"SELECT count(*), coalesce(sum(wire_bytes), 0) FROM packets WHERE {NEAR} AND {condition} AND "
                    f"capture = '{trial}.pcapng' AND direction = '{direction}'",
                )
                one = told[NAMES[arm], what]
                assert frames
                assert (one[f"{side}_frames"], one[f"{side}_octets"]) == (frames, octets), (arm, what, side)
        share = told[NAMES[arm], "share of application data"]["server_octets"]
        assert share == pytest.approx(
            float(told[NAMES[arm], "application data"]["server_octets"] or 0)
            / float(told[NAMES[arm], "overall"]["server_octets"] or 1),
            abs=5e-5,
        )
        assert one["trial"] == trial


def test_the_study_s_tables_stand_beside_ours_as_printed(drawn: dict[str, StudyFigure]) -> None:
    told = {(one["figure"], one["what"]): one for one in records(drawn["figures-10-11"])}
    names = [f"published_{name}" for name in ("client_frames", "server_frames", "client_octets", "server_octets")]
    assert [told[10, "not application data"][name] for name in names] == [7, 9, 7581, 4981]
    assert [told[11, "application data"][name] for name in names] == [21, 21, 3066, 5967]
    assert [told[10, "overall"][name] for name in names] == [21, 21, 16990, 8339]
    shares = [told[11, "share of application data"][name] for name in names]
    assert shares == pytest.approx([0.5833333333, 0.75, 0.8149920255, 0.9454919981], abs=5e-5)
    assert [told[10, "with octets of HTTP"][name] for name in names] == [None] * 4


def test_tcp_s_opening_and_closing_is_no_application_data() -> None:
    # The first connection of the study's capture hello-closed-http2, but for its requests.
    packets = [
        ("up", "SYN", 0, 0, 0), ("down", "SYN,ACK", 0, 1, 0), ("up", "ACK", 1, 1, 0), ("up", "ACK,PSH", 1, 1, 517),
        ("down", "ACK", 1, 518, 0), ("down", "ACK,PSH", 1, 518, 1658), ("up", "ACK", 518, 1659, 0),
        ("up", "FIN,ACK", 715, 1659, 0), ("down", "ACK", 1659, 716, 0), ("down", "ACK,PSH", 1659, 716, 24),
        ("up", "ACK", 716, 1683, 0), ("up", "RST,ACK", 716, 1683, 0), ("down", "FIN,ACK", 1683, 716, 0),
        ("up", "RST", 716, 0, 0),
    ]  # fmt: skip
    names = ("direction", "flags", "sequence", "acknowledged", "payload_bytes")
    rows = [
        {"number": number, "connection": 0, "header_form": None} | dict(zip(names, one, strict=True))
        for number, one in enumerate(packets, 1)
    ]
    assert opens_or_closes(rows) == {1, 2, 3, 8, 9, 12, 13, 14}


def test_a_protocol_that_was_not_captured_keeps_its_place(tmp_path: Path) -> None:
    write_captured(tmp_path, left_out="h3")
    found = {one.id: one for one in figures(tmp_path, result(tmp_path, "ding2022", ["captured-transfers"]))}
    assert "no trial counts" in text_of(found["ding2022-figures-2-3"])
    # Nothing was timed without a capture, so that the captured trials give the time, as the study's.
    bars = {(one["test"], one["protocol"]): one for one in records(found["ding2022-figure-1"])}
    assert (bars["hello, closed", "HTTP/2"]["trials"], bars["hello, closed", "HTTP/3"]["missing"]) == (
        1,
        "no trial counts",
    )
    for name in ("ding2022-figures-2-3", "ding2022-figures-10-11"):
        assert {one["missing"] for one in records(found[name]) if one["protocol"] == "HTTP/3"} == {"no trial counts"}
        assert {one["missing"] for one in records(found[name]) if one["protocol"] == "HTTP/2"} == {""}


def test_without_keys_nobody_knows_what_carries_http(tmp_path: Path) -> None:
    write_captured(tmp_path, keys=False)
    found = {one.id: one for one in figures(tmp_path, result(tmp_path, "ding2022", ["captured-transfers"]))}
    rows = [one for one in records(found["ding2022-figures-10-11"]) if one["what"] == "with octets of HTTP"]
    assert {(one["server_frames"], one["missing"]) for one in rows} == {(None, "not known without keys")}
    assert {one["octets_of_http"] for one in records(found["ding2022-figures-2-3"])} == {None}


def test_nothing_is_drawn_of_nothing(folder: Path) -> None:
    assert figures(folder, result(folder, "ding2022", [])) == []
