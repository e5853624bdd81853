"""Paths between hosts by SSH that a third host emulates: what they do, what is said of them, what is refused."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from tests.lab.inside import told_inside
from tests.lab.three_hosts import missing
from tests.workloads.test_checks_fail import LATE, _engine_missing
from tests.workloads.test_failures import assert_whole
from tests.workloads.test_hosts import checks, rows
from trifecta.report import terminal

WHY = missing() or _engine_missing()
pytestmark = [pytest.mark.lab, pytest.mark.skipif(bool(WHY), reason=WHY or "there")]
MS = 1_000_000
# A packet in a hundred that left late, or, where the host takes the processor, every other one.
MADE_LATE = re.compile(rf"{LATE.pattern}|median (delay|RTT) \S+ ms, requested (20|40) ms")
NOTHING = {"client": [], "server": [], "middle": []}

HELPERS = """
import json, os, signal, subprocess, time
from tests.lab.three_hosts import BEHIND, CLIENT, DEVICES, MIDDLE, SERVER, three_hosts

LENGTH = {"requests": 40, "warmup": "5 requests"}

def study(hosts, out, blocks=2, devices=DEVICES, address=BEHIND[SERVER], length=LENGTH, **path):
    document = {
        "study": "emulated",
        "workload": {"response": "10 kB", "in_flight": 4, **length},
        "factors": {"protocol": ["h2", "h3"], "path": ["far"], "server": ["origin"]},
        "paths": {"far": {"rtt": "40 ms", **path}},
        "hosts": {
            "client": hosts.url(CLIENT),
            "server": {"at": hosts.url(SERVER), "address": address},
            "middle": {"at": hosts.url(MIDDLE), "devices": list(devices)},
        },
    }
    file = folder / "emulated.yaml"
    file.write_text(json.dumps(document))
    return ["run", str(file), "--blocks", str(blocks), "--out", str(out), "--quiet"]
"""

inside = partial(told_inside, HELPERS)


def test_a_path_is_emulated_between_hosts(tmp_path: Path) -> None:
    code, errors, left = inside(
        tmp_path,
        """
        with three_hosts(folder, middle=True) as hosts:
            code, said, errors = hosts.run(*study(hosts, folder / "run"))
            left = hosts.wait_clean(30)
        print(json.dumps([code, errors, left]))
        """,
    )
    assert code == 0, errors
    assert left == NOTHING
    found = rows(tmp_path / "run")
    assert len(found) == 2 * 3
    for row in found:
        assert row["error"] is None
        assert row["samples"] == 40
        assert row["latency_p50_ns"] >= 40 * MS, "no packet came another way"
        link, probe = json.loads(row["link_json"]), json.loads(row["probe_json"])
        assert link["seed"] == row["seed"]
        assert link["run_delay_ns"] >= 0
        for direction in ("a_to_b", "b_to_a"):
            assert link[direction]["wire_packets"] > 10
            assert link[direction]["delay_given_ns"]["min"] >= 20 * MS
            # What the link meant to do is exact, however late a busy machine let it.
            assert 20 * MS <= link[direction]["delay_scheduled_ns"]["p50"] <= 20 * MS + MS // 10
            assert link[direction]["refused"]["arp"] == 0
        assert probe["rtt_ns"]["min"] >= 40 * MS
        assert probe["largest_payload_bytes"] == 1472
        path = checks(row)["path"]
        # Else the machine was busy, and nothing else is said.
        assert path["status"] == "pass" or all(MADE_LATE.search(text) for text in path["evidence"].split("; ")), path
        assert json.loads(row["machine_json"])["transport"].keys() == {"client", "server"}
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    assert document["hosts"].keys() == {"client", "server", "middle"}
    assert document["hosts"]["server"]["address"] == "10.79.0.3"
    assert_whole(tmp_path / "run")
    (said,) = terminal.as_data(tmp_path / "run")["elsewhere"]["said"]
    assert "middle on ssh://root@10.78.0.4:2222 (10.78.0.4), where the paths are emulated" in said
    assert "Nothing is emulated" not in said


@pytest.mark.long
def test_losses_of_a_seed_are_those_of_the_link(tmp_path: Path) -> None:
    """The check `path` recounts the link's draws, which neighbour discovery must not shift."""
    code, errors = inside(
        tmp_path,
        """
        with three_hosts(folder, middle=True) as hosts:
            length = {"requests": 200, "warmup": "5 requests"}
            code, said, errors = hosts.run(*study(hosts, folder / "run", blocks=1, length=length, loss="3 %"))
        print(json.dumps([code, errors]))
        """,
    )
    assert code == 0, errors
    found = rows(tmp_path / "run")
    assert sum(json.loads(row["link_json"])["a_to_b"]["lost"] for row in found) > 0
    for row in found:
        assert "the plan's seed gives exactly" not in checks(row)["path"]["evidence"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("devices=DEVICES[::-1]", "the client's packets come by eth1; write devices: [eth1, eth2]"),
        ("address='10.78.0.3'", "the client reaches 10.78.0.3 without crossing this host; give the server"),
        ("devices=('eth1', 'eth9')", "no such device"),
    ],
)
def test_a_host_that_is_not_in_the_middle_is_told_in_one_line(tmp_path: Path, change: str, said: str) -> None:
    code, errors, left = inside(
        tmp_path,
        f"""
        with three_hosts(folder, middle=True) as hosts:
            code, said, errors = hosts.run(*study(hosts, folder / "run", {change}))
            left = hosts.wait_clean(30)
        print(json.dumps([code, errors, left]))
        """,
    )
    assert code == 3
    (line,) = errors.splitlines()
    assert said in line
    assert left == NOTHING


@pytest.mark.long
def test_a_link_that_is_killed_marks_its_trial_and_the_run_goes_on(tmp_path: Path) -> None:
    code, errors, left = inside(
        tmp_path,
        """
        with three_hosts(folder, middle=True) as hosts:
            asked = study(hosts, folder / "run", blocks=3, length={"duration": "3 s", "warmup": "100 ms"})
            process = hosts.start(*asked, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            hosts.wait_trial(folder / "run")
            time.sleep(1.5)
            os.kill(hosts.engines(MIDDLE, "link")[0], signal.SIGKILL)
            _, errors = process.communicate(timeout=200)
            left = hosts.wait_clean(35)
        print(json.dumps([process.returncode, errors.decode(), left]))
        """,
    )
    assert code == 0, errors
    assert left == NOTHING
    found = rows(tmp_path / "run")
    assert len(found) == 3 * 3
    (marked,) = [row for row in found if row["error"] is not None]
    assert not marked["valid"]
    assert "link" in marked["error"]
    assert_whole(tmp_path / "run")


@pytest.mark.long
def test_a_user_who_is_killed_leaves_nothing_in_the_middle(tmp_path: Path) -> None:
    before, left, promiscuous = inside(
        tmp_path,
        """
        with three_hosts(folder, middle=True) as hosts:
            process = hosts.start(*study(hosts, folder / "run", blocks=50), stdout=subprocess.DEVNULL)
            before = len(hosts.at_work(folder / "run", MIDDLE, "link"))
            process.kill()
            process.wait(20)
            left = hosts.wait_clean(45)
            shown = hosts.lab.host(MIDDLE).popen(["ip", "-d", "link", "show"], stdout=subprocess.PIPE)
            promiscuous = shown.communicate(timeout=20)[0].decode()
        print(json.dumps([before, left, promiscuous]))
        """,
    )
    assert before > 0, "it was not killed at work"
    assert left == NOTHING
    assert "promiscuity 0" in promiscuous
    assert "promiscuity 1" not in promiscuous


def test_doctor_says_that_the_emulator_can_be_on_a_host(tmp_path: Path) -> None:
    code, said, errors = inside(
        tmp_path,
        """
        with three_hosts(folder, middle=True) as hosts:
            done = hosts.run("doctor", "--json", "--host", hosts.url(MIDDLE))
        print(json.dumps(done))
        """,
    )
    assert code == 0, errors
    (of_host,) = json.loads(said)["hosts"].values()
    (found,) = [one for one in of_host["findings"] if one["name"] == "emulator"]
    assert (found["status"], found["remedy"]) == ("ok", "")
