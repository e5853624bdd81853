"""Captured trials: what lies in the run's folder opens decrypted in Wireshark, and tells what the link did."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.engine.netns import ENGINE, can_make_namespaces
from tests.trace import qvis
from tests.workloads import drive
from trifecta.store.manifest import Manifest
from trifecta.store.run import RunDirectory
from trifecta.store.views import connect

TSHARK = shutil.which("tshark")
pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(not ENGINE.exists(), reason="the engine is not built"),
    pytest.mark.skipif(not can_make_namespaces(), reason="network namespaces are not allowed here"),
]
LOST = 6  # of the client's packets; every protocol sends more
SETTINGS = [
    "path=lossy", "paths.lossy={rtt: 4 ms, loss_schedule: {forward: [6], backward: []}}", "server=origin",
    "connection=reused", "capture=true", "budget=none", "blocks={at_least: 1, at_most: 1}", "conformance=off",
    "workload.requests=150", "workload.warmup=2 requests",
]  # fmt: skip
REQUESTS = 152  # of 10 kB: over 1,000 packets, within which quinn-proto has updated its keys


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("captured") / "run"
    code, _, outcome, errors = drive.finish(folder, set=SETTINGS)
    assert code == 0, errors
    return folder, outcome


def tshark(file: Path, *arguments: str) -> list[list[str]]:
    """Fields of packets, without any option that would bring keys."""
    if TSHARK is None:
        pytest.skip("tshark is not here; scripts/setup.sh dev installs it")
    command = [TSHARK, "-n", "-r", str(file), "-T", "fields", "-o", "tls.keylog_file:", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_a_captured_study_ends_and_gives_no_verdicts(run: tuple[Path, dict[str, Any]]) -> None:
    folder, outcome = run
    assert (outcome["kind"], outcome["trials"], outcome["valid"]) == ("captured", 4, 0)
    # On a busy machine other checks may fail as well.
    assert {scope for scope, check, _ in outcome["failed"] if check == "capture"} == {f"t0000{n}" for n in range(4)}
    assert "captured_trials_count" in outcome["reason"]
    assert {verdict.verdict for verdict in RunDirectory.open(folder).verdicts()} == {"undecided"}


def test_only_what_belongs_there_is_left_and_only_the_owner_reads_it(run: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = run
    found = sorted((folder / "captures").iterdir())
    assert [each.name for each in found] == [f"t0000{number}.pcapng" for number in range(4)]
    assert {each.stat().st_mode & 0o777 for each in found} == {0o600}
    assert (folder / "captures").stat().st_mode & 0o777 == 0o700
    assert not list(folder.rglob(".tmp-*"))
    of_h3 = [row["trial"] for row in RunDirectory.open(folder).rows() if row["protocol"] == "h3"]
    assert [each.name for each in (folder / "qlog").iterdir()] == of_h3
    logs = list((folder / "qlog" / of_h3[0]).rglob("*.*log"))
    assert {file.parent.name for file in logs} == {"load", "origin"}
    for file in logs:
        assert not qvis.complaints(file), file
        head, events = qvis.load(file)
        assert head["trace"]["vantage_point"]["type"] == ("client" if file.parent.name == "load" else "server")
        assert any(one["name"] == "transport:packet_sent" for one in events)
    lines = Manifest(folder).entries()
    kept = [*logs, *found, *(folder / "link").iterdir(), folder / "planner.jsonl"]
    assert {file.relative_to(folder).as_posix() for file in kept} <= set(lines)
    assert Manifest(folder).faults() == []


def test_the_capture_is_that_of_the_link_and_agrees_with_its_log(run: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = run
    for row in RunDirectory.open(folder).rows():
        link = json.loads(row["link_json"])
        seen = tshark(
            folder / "captures" / f"{row['trial']}.pcapng", "-e", "frame.interface_id", "-e", "frame.time_epoch"
        )
        assert len(seen) == link["captured_packets"] == link["capture"]["packets"]
        assert [each[1] for each in seen] == sorted(each[1] for each in seen)
        arrived = link["a_to_b"]["wire_packets"] + link["b_to_a"]["delivered"]
        assert Counter(each[0] for each in seen) == {"0": arrived, "1": len(seen) - arrived}
    fates = connect(folder).execute("SELECT trial, wire, direction, ordinal FROM link_packets WHERE fate = 'lost'")
    assert fates.fetchall() == [(f"t0000{number}", None, 0, LOST) for number in range(4)]


def one_side(file: Path, interface: int, to: Path) -> Path:
    """As docs/capture.md says, because of key updates of QUIC."""
    if TSHARK is None:
        pytest.skip("tshark is not here; scripts/setup.sh dev installs it")
    command = [TSHARK, "-r", str(file), "-Y", f"frame.interface_id == {interface}", "-w", str(to)]
    subprocess.run(command, capture_output=True, check=True, timeout=60)
    return to


def test_every_protocol_opens_decrypted_without_options(run: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, _ = run
    for row in RunDirectory.open(folder).rows():
        file, protocol = folder / "captures" / f"{row['trial']}.pcapng", row["protocol"]
        # tshark 4.0 tells the frames of HTTP/3, but not what is in the field sections.
        field, wanted = {
            "h1": ("http.request.uri", "/bytes/10000"),
            "h2": ("http2.headers.path", "/bytes/10000"),
            "h3": ("http3.frame_type", "1"),
        }[protocol]
        opened = one_side(file, 0, tmp_path / "client.pcapng") if protocol == "h3" else file
        up = f"frame.interface_id == 0 && ip.src == 10.77.0.1 && {field}"
        requests = [text for line in tshark(opened, "-Y", up, "-e", field) for text in line[0].split(",")]
        # The requests, and those that the loss made the client send again.
        assert REQUESTS <= requests.count(wanted) <= REQUESTS + 10, protocol


def test_after_a_key_update_each_side_of_quic_opens_and_both_together_do_not(
    run: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, _ = run
    (trial,) = [row["trial"] for row in RunDirectory.open(folder).rows() if row["protocol"] == "h3"]
    file = folder / "captures" / f"{trial}.pcapng"
    failed = ("-Y", '_ws.expert.message contains "Decryption failed"', "-e", "frame.number")
    for interface in (0, 1):
        side = one_side(file, interface, tmp_path / f"{interface}.pcapng")
        assert len(tshark(side, "-Y", "quic", "-e", "frame.number")) > 1000
        assert tshark(side, "-Y", "quic.key_phase == 1", "-e", "frame.number")
        assert tshark(side, *failed) == []
    assert tshark(file, *failed)  # else docs/capture.md need not say so


def test_the_lost_packet_says_so_and_no_other(run: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = run
    for row in RunDirectory.open(folder).rows():
        file = folder / "captures" / f"{row['trial']}.pcapng"
        said = tshark(
            file, "-Y", "frame.comment", "-e", "frame.interface_id", "-e", "frame.comment", "-e", "frame.number"
        )
        # The last acknowledgements may still be under way when the trial ends.
        said = [each for each in said if not each[1].startswith("under_way: ")]
        assert [each[0] for each in said] == ["0"]
        assert said[0][1].startswith("lost: ")
        before = tshark(file, "-Y", f"frame.interface_id == 0 && frame.number <= {said[0][2]}", "-e", "ip.src")
        assert Counter(each[0] for each in before)[before[-1][0]] == LOST + 1


def test_captured_trials_count_where_the_study_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    settings = [*SETTINGS, "protocol=h2", "captured_trials_count=true", "workload.keylog=true"]
    code, _, outcome, errors = drive.finish(folder, set=settings)
    assert code == 0, errors
    assert outcome["kind"] != "captured"
    assert not [text for _, check, text in outcome["failed"] if check == "capture"]
    assert sorted(each.suffix for each in (folder / "captures").iterdir()) == [".keys", ".keys", ".pcapng", ".pcapng"]


def test_every_wire_of_services_is_captured_and_opens_on_a_path_that_does_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    settings = [
        "capture=true", "path=normal", "protocol=h2", "connection=reused", "depth=3", "hosts=3", "requests=4",
        "warmup=0 requests", "budget=none", "blocks={at_least: 1, at_most: 1}",
    ]  # fmt: skip
    code, _, outcome, errors = drive.finish(folder, study="chain", set=settings)
    assert code == 0, errors
    assert outcome["kind"] == "captured"
    wires = ("host1-host2", "host2-host3")
    names = [f"t0000{number}-{wire}" for number in range(2) for wire in wires]
    assert sorted(each.name for each in (folder / "captures").iterdir()) == [f"{name}.pcapng" for name in names]
    for name in names:  # the keys of the second hop are those of a service
        asked = tshark(folder / "captures" / f"{name}.pcapng", "-Y", "http2.headers.path", "-e", "http2.headers.method")
        assert sum(line[0].split(",").count("POST") for line in asked) >= 4, name
    seen = connect(folder).execute("SELECT DISTINCT wire FROM link_packets ORDER BY 1").fetchall()
    assert seen == [(wire,) for wire in wires]
