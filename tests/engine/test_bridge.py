"""The link as a bridge between two networks whose hosts know no neighbour beforehand, measured from outside."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.marks import IN_NAMESPACES
from tests.engine.netns import CLIENT_MAC, ENGINE, ROOT, SERVER, SERVER_6, SERVER_MAC, Hosts

pytestmark = IN_NAMESPACES

TRAFFIC = ROOT / "tests/engine/traffic.py"
MS = 1_000_000
EVERY = [{"kind": "loss", "probability": 1.0}]


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with Hosts(neighbours=False) as hosts:
        yield hosts


def send_one(hosts: Hosts, host: str, address: str) -> None:
    hosts.run(host, [sys.executable, str(TRAFFIC), "udp-send", "--address", address, "--count", "1"])


def test_neighbours_are_found_over_a_bridge_and_nothing_of_it_is_impaired(hosts: Hosts) -> None:
    with hosts.link(EVERY, EVERY, bridge=True) as link:
        for address in (SERVER, SERVER_6):
            send_one(hosts, "client", address)
        hosts.run("client", ["sleep", "0.5"])
        known = hosts.run("client", ["ip", "neigh", "show", "dev", "eth0"])
        summary = link.stop()
    for address in (SERVER, SERVER_6):
        assert f"{address} lladdr {SERVER_MAC}" in known
    assert summary["neighbours_a_to_b"] >= 2
    assert summary["neighbours_b_to_a"] >= 2
    for direction in ("a_to_b", "b_to_a"):
        assert summary[direction]["refused"]["arp"] == 0
        assert summary[direction]["refused"]["neighbour_discovery"] == 0
        assert summary[direction]["delivered"] == 0
    assert summary["a_to_b"]["lost"] == summary["a_to_b"]["wire_packets"] == 2


def test_a_bridge_impairs_packets_as_a_link_does(hosts: Hosts) -> None:
    there, back = ([{"kind": "delay", "delay_ns": delay_ns}] for delay_ns in (20 * MS, 7 * MS))
    with hosts.link(there, back, bridge=True):
        measured = [hosts.probe(address=address, packets=50, largest=True) for address in (SERVER, SERVER_6)]
    for one in measured:
        assert one["received"] == 50
        assert one["one_way_forward_ns"]["min"] >= 20 * MS
        assert one["one_way_backward_ns"]["min"] >= 7 * MS
    assert [one["largest_payload_bytes"] for one in measured] == [1472, 1452]


@pytest.mark.parametrize("bridge", [False, True])
def test_devices_are_promiscuous_for_as_long_as_a_bridge_runs(hosts: Hosts, bridge: bool) -> None:
    def promiscuous(device: str) -> bool:
        shown = hosts.run("middle", ["ip", "-d", "link", "show", "dev", device])
        assert "promiscuity" in shown
        return "promiscuity 0" not in shown

    with hosts.link(bridge=bridge) as link:
        assert [promiscuous(device) for device in ("ra", "rb")] == [bridge, bridge]
        assert ("neighbours_a_to_b" in link.stop()) is bridge
    assert not promiscuous("ra")
    assert not promiscuous("rb")


def test_frames_with_a_vlan_tag_do_not_pass_a_bridge_without_it(hosts: Hosts) -> None:
    macs = bytes.fromhex((SERVER_MAC + CLIENT_MAC).replace(":", ""))
    datagram = bytes.fromhex("4500001d0000400040110000 0a580001 0a580002 9c402328 00090000 78")
    tagged, plain = macs + b"\x81\x00\x00\x05\x08\x00" + datagram, macs + b"\x08\x00" + datagram
    code = f"""import socket
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind(("eth0", 0))
for frame in ({tagged!r}, {plain!r}, {tagged!r}):
    raw.send(frame)"""
    with hosts.link(EVERY, bridge=True) as link:
        hosts.run("client", [sys.executable, "-c", code])
        hosts.run("client", ["sleep", "0.2"])
        summary = link.stop()
    assert summary["a_to_b"]["wire_packets"] == 1


@pytest.mark.skipif(shutil.which("setcap") is None or shutil.which("setpriv") is None, reason="needs setcap, setpriv")
def test_an_ordinary_user_keeps_no_capability_once_the_devices_are_open(hosts: Hosts) -> None:
    """What the file gives would hide the process from its user, who has to end it."""
    nobody = 65534
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        engine = Path(shutil.copy(ENGINE, folder))
        made = subprocess.run(["setcap", "cap_net_raw+ep", engine], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            pytest.skip(f"files are given no capabilities here: {made.stderr}")
        user = ["setpriv", "--reuid", str(nobody), "--clear-groups", str(engine), "link", "-"]
        pipe = subprocess.PIPE
        command = hosts.command("middle", user)
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"a_device": "ra", "b_device": "rb", "bridge": True}) + "\n")
            process.stdin.flush()
            ready = json.loads(process.stdout.readline())["ready"]
            status = Path(f"/proc/{process.pid}/status").read_text()
            owner = Path(f"/proc/{process.pid}").stat().st_uid
            process.terminate()
            _, errors = process.communicate(timeout=20)
        assert process.returncode == 0, errors
    assert ready["a_device"] == "ra"
    assert "CapPrm:\t0000000000000000" in status
    assert owner == nobody


def test_devices_on_one_network_end_a_bridge_before_it_goes_round(hosts: Hosts) -> None:
    lines = ["link add br0 type bridge"]
    for number in (1, 2):
        lines += [f"link add x{number} type veth peer name p{number}", f"link set p{number} master br0"]
        lines += [f"link set x{number} up", f"link set p{number} up"]
    lines += ["link set br0 up", "address add 10.99.0.1/24 dev br0"]
    command = hosts.command("middle", ["ip", "-batch", "-"])
    made = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"no bridge can be made here: {made.stderr}")
    link = hosts.start_engine("middle", "link", {"a_device": "x1", "b_device": "x2", "bridge": True})
    send_one(hosts, "middle", "10.99.0.9")
    summary = link.wait(20)
    assert link.process.returncode == 3
    assert summary["ended"] == "device"
    assert link.errors.startswith("error: x2: ")
    assert "both are on one network" in link.errors
    assert link.errors.count("\n") == 1
    assert summary["neighbours_a_to_b"] + summary["neighbours_b_to_a"] < 10
