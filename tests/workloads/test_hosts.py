"""A race between two hosts by SSH: what it measures, what it says, and what is left when things go wrong."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.lab.inside import told_inside
from tests.lab.three_hosts import missing
from tests.workloads.test_checks_fail import _engine_missing
from tests.workloads.test_failures import assert_whole
from trifecta.lab.engine import find_engine
from trifecta.lab.ssh import keeper
from trifecta.report import terminal

WHY = missing() or _engine_missing()
pytestmark = [pytest.mark.lab, pytest.mark.skipif(bool(WHY), reason=WHY or "there")]
ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("TRIFECTA_HOST_KILLS", "8"))  # of the long test

HELPERS = """
import json, os, random, signal, subprocess, time
from pathlib import Path
from tests.lab.three_hosts import CLIENT, FAR, HERE, SERVER, three_hosts

SHORT = ("requests=40", "warmup=5 requests", "server=origin")

def race(hosts, out, *changes, blocks=2, client=None, lengths=SHORT):
    places = {"client": client or hosts.url(CLIENT), "server": hosts.url(SERVER)}
    named = [word for role, place in places.items() for word in ("--host", f"{role}={place}")]
    asked = [word for change in ("connection=reused", *lengths, *changes) for word in ("--set", change)]
    return ["race", *named, *asked, "--blocks", str(blocks), "--out", str(out), "--quiet"]
"""

inside = partial(told_inside, HELPERS)


def rows(run: Path) -> list[dict[str, Any]]:
    from trifecta.store.run import RunDirectory

    return [dict(row) for row in RunDirectory.open(run).rows()]


def checks(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["check"]: one for one in json.loads(row["checks_json"])}


def amiss(found: list[dict[str, Any]]) -> list[Any]:
    """Errors and failed checks of trials, but for those that a busy machine can upset.

    Nothing lies between these hosts: 40 requests keep the client at work, more than a slow core allows, and a pause of
    20 ms is much of the time that they take.
    """
    failed = [
        (row["trial"], one) for row in found for one in checks(row).values()
        if one["status"] == "fail" and one["check"] not in ("headroom", "gaps", "steady_state")
    ]  # fmt: skip
    return [*failed, *((row["trial"], row["error"]) for row in found if row["error"] is not None)]


def private_in(run: Path, home: Path) -> list[str]:
    """The files of a run that tell where its user's home is, or hold a key of his: runs are handed on."""
    whole = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert len(whole) > 10
    return [str(path) for path, octets in whole.items() if bytes(home) in octets or b"OPENSSH PRIVATE KEY" in octets]


@pytest.mark.parametrize("ahead_s", [0, 777_777])
def test_a_race_between_hosts_is_measured_on_the_clients_clock(tmp_path: Path, ahead_s: int) -> None:
    code, errors, left = inside(
        tmp_path,
        f"""
        with three_hosts(folder, ahead_s={ahead_s}) as hosts:
            code, said, errors = hosts.run(*race(hosts, folder / "run"))
            left = hosts.wait_clean(30)
        print(json.dumps([code, errors, left]))
        """,
    )
    assert code == 0, errors
    assert left == {"client": [], "server": []}
    found = rows(tmp_path / "run")
    assert len(found) == 2 * 4
    assert amiss(found) == []
    for row in found:
        load, probe, server = (json.loads(row[f"{name}_json"]) for name in ("load", "probe", "server"))
        assert row["samples"] == 40
        assert 0 < row["latency_p50_ns"] < 1_000_000_000
        assert 0 <= load["ended_ns"] - load["started_ns"] <= row["ended_ns"] - row["started_ns"]
        assert 0 < probe["rtt_ns"]["p50"] < 100_000_000
        apart = probe["clock_offset_ns"] - ahead_s * 10**9
        assert abs(apart) <= probe["clock_bound_ns"] <= probe["rtt_ns"]["min"]
        assert 0 <= probe["one_way_forward_ns"]["min"] <= probe["rtt_ns"]["p50"]
        assert server["cpu_ns"] > 0
        told = checks(row)
        assert told["clocks"]["status"] == "pass"
        assert told["path"]["status"] == "unknown"
        assert told["drops"]["status"] == "pass"
        assert json.loads(row["machine_json"])["transport"].keys() == {"client", "server"}
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    assert document["hosts"]["server"]["address"] == "10.78.0.3"
    assert document["hosts"]["client"]["kernel"].startswith("Linux")
    assert "mtu_bytes" not in document["parity"]
    assert_whole(tmp_path / "run")
    (said,) = terminal.as_data(tmp_path / "run")["elsewhere"]["said"]
    assert said == (
        "Nothing is emulated: client on ssh://root@10.78.0.2:2222 (10.78.0.2) and server on ssh://root@10.78.0.3:2222 "
        "(10.78.0.3), over the network between them as it was."
    )
    assert "as emulated" not in (tmp_path / "run" / "report.html").read_text()
    assert private_in(tmp_path / "run", tmp_path / "home") == []


def test_chronyd_on_both_hosts_bounds_their_clocks_too(tmp_path: Path) -> None:
    ahead_s = 777_777
    code, errors = inside(
        tmp_path,
        f"""
        # Both have the wall clock of this machine, so that one which says it is off by 1 µs at most says the truth.
        said = "C0A80101,192.0.2.1,2,1764202000.0,0.000000000,0,0,0,0,0,0.000000000,0.000001000,64.2,Normal"
        with three_hosts(folder, ahead_s={ahead_s}) as hosts:
            for name in FAR:
                program = folder / name / "bin/chronyc"
                program.parent.mkdir()
                program.write_text(f"#!/bin/sh\\necho '{{said}}'\\n")
                program.chmod(0o755)
            code, said, errors = hosts.run(*race(hosts, folder / "run", blocks=1))
        print(json.dumps([code, errors]))
        """,
    )
    assert code == 0, errors
    for row in rows(tmp_path / "run"):
        probe = json.loads(row["probe_json"])
        read_ns = probe["realtime_bound_ns"] + probe["far_realtime_bound_ns"]
        assert probe["clock_chrony_bound_ns"] == 2_000 + read_ns
        assert abs(probe["clock_chrony_offset_ns"] - ahead_s * 10**9) <= read_ns
        assert probe["clock_bound_ns"] <= min(probe["clock_chrony_bound_ns"], probe["clock_exchange_bound_ns"])
        clocks = checks(row)["clocks"]
        assert (clocks["status"], "chronyd on both hosts agrees" in clocks["evidence"]) == ("pass", True), clocks
    hosts = json.loads((tmp_path / "run" / "run.json").read_text())["hosts"]
    for role in ("client", "server"):
        bounds = {when: told["bound_ns"] for when, told in hosts[role]["clock"].items()}
        assert bounds == {"before": 1_000, "after": 1_000}
        assert hosts[role]["engine"]["linkage"] in ("shared", "static")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_hosts_measure_with_the_static_engine(tmp_path: Path) -> None:
    made = tmp_path / "built" / "trifecta-engine"
    target = {"CARGO_TARGET_DIR": str(find_engine().parents[1])}
    build = subprocess.run(
        [ROOT / "scripts/static.sh", made], capture_output=True, text=True, check=False, env=os.environ | target
    )
    assert build.returncode == 0, build.stderr
    code, errors = inside(
        tmp_path,
        f"""
        os.environ["TRIFECTA_STATIC_ENGINE"] = {str(made)!r}
        with three_hosts(folder) as hosts:
            code, said, errors = hosts.run(*race(hosts, folder / "run", blocks=1))
        print(json.dumps([code, errors]))
        """,
    )
    assert code == 0, errors
    assert amiss(rows(tmp_path / "run")) == []
    brought = {"sha256": hashlib.sha256(made.read_bytes()).hexdigest(), "linkage": "static"}
    hosts = json.loads((tmp_path / "run" / "run.json").read_text())["hosts"]
    assert [hosts[role]["engine"] for role in ("client", "server")] == [brought, brought]


def test_what_only_a_lab_has_is_left_out_with_the_reason(tmp_path: Path) -> None:
    code, errors = inside(
        tmp_path,
        """
        with three_hosts(folder) as hosts:
            asked = race(hosts, folder / "run", "server=origin,caddy", blocks=1, lengths=("requests=40",))
            code, said, errors = hosts.run(*asked)
        print(json.dumps([code, errors]))
        """,
    )
    assert code == 0, errors
    (left_out,) = json.loads((tmp_path / "run" / "run.json").read_text())["unsupported"]
    assert left_out["level"] == "caddy"
    assert left_out["reason"] == "only the engine's own programs are brought to a host; use server: origin"


def test_a_server_that_nobody_lets_through_is_told_in_one_line(tmp_path: Path) -> None:
    code, errors = inside(
        tmp_path,
        """
        with three_hosts(folder) as hosts:
            hosts.cut(CLIENT, SERVER)
            soon = "from trifecta.workloads.hosts import server\\nserver.ANSWER_S = 1.0"
            code, said, errors = hosts.run(*race(hosts, folder / "run", blocks=1), given=soon)
        print(json.dumps([code, errors]))
        """,
    )
    assert code == 3
    (line,) = errors.splitlines()
    assert "origin at 10.78.0.3 does not answer the client's host" in line
    assert "open TCP and UDP port 8443 between the hosts" in line


@pytest.mark.parametrize(
    "what",
    [
        "killed client",
        pytest.param("killed sshd of client", marks=pytest.mark.long),
        pytest.param("frozen sshd of server", marks=pytest.mark.long),
        pytest.param("killed server", marks=pytest.mark.long),
        pytest.param("cut for 5 s", marks=pytest.mark.long),
        pytest.param("frozen client", marks=pytest.mark.long),
    ],
)
def test_a_trial_that_is_hit_is_marked_and_the_run_goes_on(tmp_path: Path, what: str) -> None:
    code, errors, left = inside(
        tmp_path,
        f"""
        what = {what!r}
        with three_hosts(folder) as hosts:
            lengths = ("duration=3 s", "requests=0", "warmup=100 ms", "server=origin", "protocol=h2,h3")
            asked = race(hosts, folder / "run", blocks=1, lengths=lengths)
            process = hosts.start(*asked, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            load = hosts.at_work(folder / "run", CLIENT, "load")
            time.sleep(0.5)
            origin = hosts.engines(SERVER, "origin")
            if what == "killed client":
                os.kill(load[0], signal.SIGKILL)
            elif what == "frozen client":
                os.kill(load[0], signal.SIGSTOP)
            elif what == "killed server":
                os.kill(origin[0], signal.SIGKILL)
            elif what == "killed sshd of client":
                os.kill(hosts.sessions(CLIENT)[-1], signal.SIGKILL)
            elif what == "frozen sshd of server":
                for pid in hosts.sessions(SERVER):
                    os.kill(pid, signal.SIGSTOP)
            else:
                hosts.cut(HERE, CLIENT)
                time.sleep(5)
                hosts.cut(HERE, CLIENT, mend=True)
            _, errors = process.communicate(timeout=200)
            left = hosts.wait_clean(35)
        print(json.dumps([process.returncode, errors.decode(), left]))
        """,
    )
    assert code == 0, errors
    assert left == {"client": [], "server": []}
    found = rows(tmp_path / "run")
    assert len(found) == 3, "that which was hit is not the first, and one comes after it"
    marked = [row for row in found if row["error"] is not None]
    if what == "cut for 5 s":
        assert len(marked) <= 1  # a trial outlives it, or is marked
    else:
        assert len(marked) == 1, [row["error"] for row in found]
    assert not any(row["valid"] for row in marked)
    assert_whole(tmp_path / "run")


EACH_S = 60 + 3 + 1 + 20 + 45 + 20  # until it works, at work, cut, killed, clean again, mended
"""What one kill takes at most: beyond it something waits that should not, and says so where it does."""


@pytest.mark.parametrize("kills", [2, pytest.param(KILLS, marks=pytest.mark.long)])
@pytest.mark.timeout(EACH_S * max(2, KILLS) + 180)
def test_a_user_who_is_killed_or_cut_off_leaves_nothing(tmp_path: Path, kills: int) -> None:
    found = inside(
        tmp_path,
        f"""
        found, random = [], random.Random(7)
        with three_hosts(folder) as hosts:
            for number in range({kills}):
                out, said = folder / f"run{{number}}", folder / f"said{{number}}"
                # Who is cut off has to be waited for by the watch; who is killed, by nobody.
                soon = "from trifecta.lab.ssh import keeper\\nkeeper.PATIENCE_S = 5" if number % 2 else ""
                with said.open("wb") as words:
                    process = hosts.start(*race(hosts, out, blocks=50), given=soon, stdout=words, stderr=words)
                until = time.monotonic() + 60
                while not hosts.engines(random.choice(FAR)):
                    assert process.poll() is None, said.read_text()
                    assert time.monotonic() < until, f"run {{number}} does not come to work: {{said.read_text()}}"
                    time.sleep(0.05)
                time.sleep(3 * random.random())
                found_there = sum(len(hosts.processes(name)) for name in FAR)
                if number % 2:
                    hosts.cut(HERE, random.choice(FAR))
                    time.sleep(1)
                assert process.poll() is None, said.read_text()
                process.kill()
                process.wait(20)
                began = time.monotonic()
                left = hosts.wait_clean(45)
                took_s = time.monotonic() - began
                for name in FAR:
                    hosts.cut(HERE, name, mend=True)
                found.append([left, took_s, found_there])
        print(json.dumps(found))
        """,
        timeout_s=EACH_S * kills + 120,
    )
    assert len(found) == kills
    for number, (left, took_s, there) in enumerate(found):
        assert there > 2, "it was not killed at work"
        assert left == {"client": [], "server": []}, number
        if number % 2 == 0:  # nobody had to wait for the watch: the connection itself said that it was over
            assert took_s < keeper.PATIENCE_S, number
        assert_whole(tmp_path / f"run{number}")
