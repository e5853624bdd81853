"""Every check fails for real: with the real engine, on a real path, for the reason it is there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.workloads import drive
from trifecta.design.errors import CannotError
from trifecta.lab.engine import find_engine
from trifecta.observers.machine import MachineObserver
from trifecta.store.run import RunDirectory


def _engine_missing() -> str:
    try:
        find_engine()
    except CannotError as error:
        return str(error)
    return ""


pytestmark = [pytest.mark.lab, pytest.mark.skipif(bool(_engine_missing()), reason=_engine_missing() or "built")]
SETTINGS = [
    "server=origin", "connection=reused", "blocks.at_least=1", "blocks.at_most=1", "budget=2 min",
    "workload.requests=100", "workload.warmup=10 requests",
]  # fmt: skip
LATE = re.compile(r"9[09] % of packets left within .* \(limit ")
CLEAN = [*SETTINGS, "path=clean"]
FAR = [*SETTINGS, "path=far"]


def failures(folder: Path, **request: Any) -> dict[str, list[str]]:
    """Check to the evidence of its failures in the trials of one block."""
    code, _, outcome, errors = drive.finish(folder, **request)
    assert code == 0, errors
    assert outcome["trials"] == 4
    found: dict[str, list[str]] = {}
    for scope, check, evidence in outcome["failed"]:
        if scope.startswith("t"):
            found.setdefault(check, []).append(evidence)
    return found


def test_nothing_but_the_machine_fails_without_a_fault(tmp_path: Path) -> None:
    """What other work on this machine may disturb is left out: the other checks must pass."""
    machine = MachineObserver()
    machine.begin(time.monotonic_ns(), 0)
    found = failures(tmp_path / "run", set=FAR)
    # A host that takes the processor for milliseconds makes the link late, which the check is there to say; one that
    # takes more of it makes the link slow as well.
    disturbed = (machine.end(time.monotonic_ns(), 0)["steal_share"] or 0) > 0.02
    wrong = [text for texts in found.pop("path", []) for text in texts.split("; ") if not LATE.search(text)]
    assert not [text for text in wrong if not disturbed or "Mbit/s" not in text]
    assert not set(found) - {"machine", "headroom", "gaps", "steady_state"}, found


def test_protocol_when_the_server_speaks_http1_only(tmp_path: Path) -> None:
    settings = [*CLEAN, "protocol=h1,h2"]
    code, _, outcome, errors = drive.finish(tmp_path / "run", set=settings, origin={"protocols": ["h1"]})
    assert code == 0, errors
    said = [evidence for _, check, evidence in outcome["failed"] if check == "protocol"]
    assert len(said) == 2  # the baseline runs twice
    assert all("HTTP/2 was requested" in evidence for evidence in said)


def test_path_when_the_link_delays_a_tenth_more(tmp_path: Path) -> None:
    delay = [{"kind": "delay", "delay_ns": 44_000_000}]
    found = failures(tmp_path / "run", set=FAR, faults={"link": {"a_to_b": delay, "b_to_a": delay}})
    assert len(found["path"]) == 4
    told_ms = [re.findall(r"median RTT ([\d.]+) ms, requested 60 ms", evidence) for evidence in found["path"]]
    assert all(88 <= float(one_ms) < 93 for (one_ms,) in told_ms), told_ms


def test_headroom_when_the_client_has_too_little_cpu(tmp_path: Path) -> None:
    found = failures(tmp_path / "run", set=[*CLEAN, "workload.requests=10000"], faults={"client_competitors": 4})
    assert len(found["headroom"]) == 4
    assert "waited for a core" in found["headroom"][0]


def test_drops_when_the_receive_buffer_is_too_small(tmp_path: Path) -> None:
    settings = [*CLEAN, "workload.response=1 MB", "paths.clean.trial.reused={requests: 100, warmup: 5 requests}"]
    small = {"h3": {"udp_receive_buffer_bytes": 4096}}
    # A client that has a core for itself empties even this buffer in time; one that shares it cannot.
    found = failures(tmp_path / "run", set=settings, faults={"load": small, "client_competitors": 2})
    assert len(found["drops"]) == 1
    assert "buffer" in found["drops"][0] or "Rcvbuf" in found["drops"][0]


def test_same_work_when_a_byte_is_missing(tmp_path: Path) -> None:
    found = failures(tmp_path / "run", set=CLEAN, origin={"faults": {"truncate_bytes": 1}})
    assert len(found["same_work"]) == 4


def test_parity_when_one_arm_speaks_tls_1_2(tmp_path: Path) -> None:
    changes = {"tls_version": "1.2", "cipher": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}
    found = failures(
        tmp_path / "run", set=CLEAN, faults={"load": {"h1": changes}}, origin={"tls_versions": ["1.2", "1.3"]}
    )
    assert any("TLS version is 1.2" in evidence for evidence in found["parity"])


def test_parity_when_the_server_shows_a_longer_chain_over_one_protocol(tmp_path: Path) -> None:
    """Seven certificates more over HTTP/3 alone exceed what a server may send at first."""
    settings = [*SETTINGS, "path=far", "connection=new", "workload.requests=20"]
    longer = {"faults": {"extra_certificates": 7, "only": "h3"}}
    found = failures(tmp_path / "run", set=settings, origin=longer)
    assert found["parity"]
    chain = (
        r"the server sends (\d) certificates? of \d+ B in (\d) flights? here and (\d) certificates? of \d+ B in (\d)"
    )
    for evidence in found["parity"]:
        said = re.search(chain, evidence)
        assert said, evidence
        assert abs(int(said[1]) - int(said[3])) == 7
        assert {said[2], said[4]} == {"1", "2"}


def test_parity_when_nagle_is_on_in_one_arm(tmp_path: Path) -> None:
    found = failures(tmp_path / "run", set=CLEAN, faults={"load": {"h1": {"tcp_nodelay": False}}})
    assert any("TCP_NODELAY" in evidence for evidence in found["parity"])


def test_machine_when_other_programs_use_the_cpus(tmp_path: Path) -> None:
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        found = failures(tmp_path / "run", set=FAR)
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert found["machine"]


def test_gaps_when_the_client_is_stopped_for_a_fifth_of_a_second(tmp_path: Path) -> None:
    process = drive.start(tmp_path / "run", set=[*FAR, "protocol=h2", "workload.requests=600"])
    try:
        client = drive.measuring(process)
        time.sleep(0.5)  # handshake and warm-up of the path take some 0.25 s
        os.kill(client, signal.SIGSTOP)
        began = time.monotonic()
        time.sleep(0.2)
        os.kill(client, signal.SIGCONT)
        stopped_ms = 1000 * (time.monotonic() - began)
        out, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    outcome = json.loads(out.splitlines()[-1])
    said = [(scope, evidence) for scope, check, evidence in outcome["failed"] if check == "gaps"]
    stood_ms = {
        scope: int(found[1])
        for scope, evidence in said
        if (found := re.search(r"paused for at most (\d+) ms", evidence))
    }
    assert stood_ms.keys() == {scope for scope, _ in said}
    first = RunDirectory.open(tmp_path / "run").rows()[0]  # a busy machine may stop others, too
    assert stopped_ms - 60 <= stood_ms[first["trial"]] <= stopped_ms + 200
    assert json.loads(first["load_json"])["longest_gap_ns"] > 100_000_000


def test_errors_when_the_path_loses_everything_and_the_run_ends_by_itself(tmp_path: Path) -> None:
    settings = [
        *CLEAN, "paths.clean.loss=100 %", "workload.connect_timeout=10 ms", "blocks.at_least=3", "blocks.at_most=9",
        "paths.clean.trial.reused={requests: 20, warmup: 0 requests}",
    ]  # fmt: skip
    code, _, outcome, errors = drive.finish(tmp_path / "run", set=settings)
    assert code == 0, errors
    assert outcome["kind"] == "unmeasurable"
    assert outcome["valid"] == 0
    assert "cannot be decided" in outcome["reason"]
    assert any(check == "errors" for _, check, _ in outcome["failed"])
