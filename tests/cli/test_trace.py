"""`trifecta trace`: what it prints, writes, and refuses."""

from __future__ import annotations

import csv
import itertools
import json
import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from trifecta.cli.main import run
from trifecta.report.trace import published

CAPTURES = Path(__file__).resolve().parents[1] / "trace" / "captures"
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
STUDY = Path(os.environ.get("TRIFECTA_DING_CAPTURES", Path(__file__).resolve().parents[3] / "shared/ding-captures"))
# What its own captures and dissections come to (frames, seconds, octets): trifecta/studies/published/ding2022.yaml.
CELLS = {
    "hello-closed-http2": (64, 0.840, 10073),
    "hello-closed-http3": (43, 0.0987, 25329),
    "hello-sim-http2": (29, 0.295, 4357),
    "hello-sim-http3": (27, 0.0293, 13108),
    "small-closed-http2": (461, 1.178, 3178009),
    "small-closed-http3": (3251, 0.289, 3420469),
    "small-sim-http2": (335, 0.580, 3167979),
    "small-sim-http3": (3235, 0.202, 3398379),
    "large-closed-http2": (2308, 3.802, 31608847),
    "large-closed-http3": (31995, 1.546, 33828684),
    "large-sim-http2": (2348, 3.234, 31606124),
    "large-sim-http3": (30053, 1.140, 33689669),
}


@needs_tshark
def test_a_capture_is_told_in_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", str(CAPTURES / "h2.pcapng"), "--keys", str(CAPTURES / "h2.keys")]) == 0
    out = capsys.readouterr().out
    assert "HTTP/2" in out
    assert "3, least 3" in out  # round trips until the response, and those that TCP and TLS 1.3 need
    assert "20,090" in out


@needs_tshark
def test_without_keys_columns_that_need_them_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", str(CAPTURES / "aioquic-moved.pcap")]) == 0
    out = capsys.readouterr().out
    assert "trips*" not in out and "until the first octet" not in out
    assert "lacks" in out and "keys" in out


def test_captures_of_the_study_stand_beside_what_it_published() -> None:
    def capture(name: str, protocol: str, packets: int, seconds: float, octets: int) -> dict[str, object]:
        endpoint, mode = name.split("-")[:2]
        told = {"capture": name, "endpoint": endpoint, "connection_mode": mode, "named_protocol": protocol}
        return told | {"packets": packets, "seconds": seconds, "wire_bytes": octets}

    theirs = [capture(name, f"h{name[-1]}", *numbers) for name, numbers in CELLS.items()]
    said = published(theirs)
    assert said[0] == "ding2022 published the same packets, seconds and bytes of 12 of these captures."
    assert len(said) == 2 and said[1].startswith("loopback-offload: ") and "65,539 B" in said[1]
    ours = capture("small-closed-http3", "h3", 2290, 1.2, 3300000)
    assert published([theirs[0], ours])[:2] == [
        "ding2022 published the same packets, seconds and bytes of one of these captures.",
        "ding2022 published of small-closed-http3: seconds 0.289, wire bytes 3,420,469, packets 3,251.",
    ]
    assert published([capture("t00012-x", "h2", 1, 1.0, 1) | {"endpoint": None}]) == []
    assert published([capture("hello-closed-http1", "h1", 1, 1.0, 1)]) == []  # of HTTP/1.1 nothing was published


@needs_tshark
def test_json_and_tables_have_the_same_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["trace", str(CAPTURES / "h3.pcapng"), "--keys", str(CAPTURES / "h3.keys")]
    assert run([*arguments, "--out", str(tmp_path / "t"), "--csv", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (capture,), (connection,) = told["captures"], told["connections"]
    packets = pq.read_table(tmp_path / "t" / "packets.parquet").to_pylist()
    near = [one for one in packets if one["side"] == "a"]
    assert capture["packets"] == connection["packets"] == len(near)
    assert capture["wire_bytes"] == connection["wire_bytes"] == sum(one["wire_bytes"] for one in near)
    assert connection["round_trips_to_response"] == connection["round_trip_bound"] == 2
    assert connection["requests"] == capture["requests"] == 4
    assert {file.name for file in (tmp_path / "t").iterdir()} >= {"packets.csv", "messages.parquet", "metrics.csv"}
    ratio = {row["metric"]: row for row in pq.read_table(tmp_path / "t" / "metrics.parquet").to_pylist()}["ratio"]
    assert ratio["bound"] == 1 and ratio["value"] > 1


@needs_tshark
def test_a_run_stands_for_its_captures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_directory = tmp_path / "run"
    for folder in ("captures", "link"):
        (run_directory / folder).mkdir(parents=True)
    (run_directory / "run.json").write_text('{"schema": 1}')
    assert run(["trace", str(run_directory)]) == 2
    assert "has no captures" in capsys.readouterr().err
    shutil.copy(CAPTURES / "h3.pcapng", run_directory / "captures" / "t00001.pcapng")
    shutil.copy(CAPTURES / "h3.link.parquet", run_directory / "link" / "t00001.parquet")
    assert run(["trace", str(run_directory)]) == 0
    fates = pq.read_table(run_directory / "trace" / "packets.parquet")["fate"].to_pylist()
    assert fates.count("lost") == 1


@needs_tshark
def test_what_cannot_be_read_is_one_line_and_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    note = tmp_path / "note.txt"
    note.write_text("This is a letter and no capture.")
    for arguments in ([str(note)], [str(tmp_path)], [str(CAPTURES / "h2.pcapng"), "--csv"]):
        assert run(["trace", *arguments]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "; " in error


@needs_tshark
@pytest.mark.skipif(not STUDY.is_dir(), reason="the study's captures are not here (TRIFECTA_DING_CAPTURES)")
def test_the_published_cells_are_recomputed(capsys: pytest.CaptureFixture[str]) -> None:
    files = [STUDY / f"{name}.pcapng" for name in CELLS if (STUDY / f"{name}.pcapng").is_file()]
    assert files
    assert run(["trace", *map(str, files), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["capture"] for one in told["captures"]] == [file.stem for file in files]
    for one in told["captures"]:
        packets, seconds, octets = CELLS[one["capture"]]
        assert (one["packets"], one["wire_bytes"]) == (packets, octets)
        assert one["seconds"] == pytest.approx(seconds, rel=0.002)
        endpoint, mode, http = one["capture"].split("-")
        assert (one["endpoint"], one["connection_mode"], one["named_protocol"]) == (endpoint, mode, f"h{http[-1]}")
        if http == "http3":
            assert one["largest_wire_bytes"] <= 1476
        elif endpoint != "hello":
            assert 16_000 < one["largest_wire_bytes"] <= 65_539
            assert any(f"{one['capture']}.pcapng: frames are not wire packets" in note for note in told["notes"])


@pytest.mark.skipif(not STUDY.is_dir(), reason="the study's captures are not here (TRIFECTA_DING_CAPTURES)")
@pytest.mark.parametrize(("name", "waited_ms"), [("hello-closed", 667), ("hello-sim", 225), ("small-closed", 644)])
def test_the_studys_client_waits_before_tls_over_http2_alone(name: str, waited_ms: int) -> None:
    """What `wait-before-tls` of the published study says, by the dissections beside its captures."""

    def frames(http: str) -> list[dict[str, str]]:
        with (STUDY / f"{name}-{http}.csv").open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    connected: dict[str, float] = {}
    waits = []
    for row in frames("http2"):
        at, port = float(row["Time"]) * 1000, row["Source"]
        if row["Destination"] == "7443" and "[ACK]" in row["Info"]:
            connected.setdefault(port, at)
        elif row["Info"] == "Client Hello":
            waits.append(at - connected[port])
    assert round(sum(waits)) == waited_ms
    assert all(205 < one < 228 for one in waits)
    times = [float(row["Time"]) * 1000 for row in frames("http3")]
    assert max(after - before for before, after in itertools.pairwise(times)) < 100


@needs_tshark
def test_pictures_are_written_where_they_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["trace", str(CAPTURES / "h2.pcapng"), "--keys", str(CAPTURES / "h2.keys")]
    assert run([*arguments, "--figures", str(tmp_path / "pictures")]) == 0
    assert f"pictures: {tmp_path / 'pictures'}" in capsys.readouterr().out.replace("\n", "")
    kinds = {file.suffix for file in (tmp_path / "pictures").iterdir()}
    assert kinds == {".svg", ".png"}
    (tmp_path / "file").write_text("")
    assert run([*arguments, "--figures", str(tmp_path / "file")]) == 2
    assert "--figures" in capsys.readouterr().err
