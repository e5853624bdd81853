"""The link measured from outside: what arrives on the other side, not what the link says of itself, unless it is that
which is checked.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from tests.engine.marks import IN_NAMESPACES
from tests.engine.netns import ENGINE, ROOT, SERVER, SERVER_6, Hosts

pytestmark = IN_NAMESPACES

TRAFFIC = ROOT / "tests/engine/traffic.py"
MS = 1_000_000


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts() as hosts:
        yield hosts


def transfer(
    hosts: Hosts, program: str, *send: str, address: str = SERVER, receive: tuple[str, ...] = (), reverse: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a sender and a receiver of traffic.py, and what each says."""
    near, far = ("server", "client") if reverse else ("client", "server")
    receiver = hosts.python(far, TRAFFIC, f"{program}-receive", "--address", address, *receive)
    assert receiver.stdout is not None
    assert json.loads(receiver.stdout.readline()) == {"ready": True}
    sent = json.loads(hosts.run(near, [*_python(), f"{program}-send", "--address", address, *send], timeout=120))
    out, errors = receiver.communicate(timeout=120)
    assert receiver.returncode == 0, errors
    return sent, json.loads(out.splitlines()[-1])


def _python() -> list[str]:
    return [sys.executable, str(TRAFFIC)]


def datagrams(
    hosts: Hosts, tmp_path: Path, count: int, payload: int = 1000, segments: int = 16, rate: float = 20_000
) -> np.ndarray[Any, Any]:
    """Send numbered datagrams in super-packets; rows of (number, one-way delay in ns) in order of arrival."""
    file = tmp_path / "datagrams.bin"
    send = ("--count", str(count), "--payload", str(payload), "--segments", str(segments), "--rate", str(rate))
    transfer(hosts, "udp", *send, receive=("--gro", "--file", str(file)))
    return np.fromfile(file, dtype=np.int64).reshape(-1, 2)


def assert_share(count: int, of: int, probability: float) -> None:
    """The count lies within the central 99.9 % of its binomial distribution."""
    low, high = stats.binom.interval(0.999, of, probability)
    assert low <= count <= high, f"{count} of {of} is not {probability}"


def delay(ms: float) -> dict[str, Any]:
    return {"kind": "delay", "delay_ns": int(ms * MS)}


def test_delay_is_that_asked_for_in_each_direction(hosts: Hosts) -> None:
    with hosts.link([delay(20)], [delay(7)]):
        measured = hosts.probe(packets=200)
    assert measured["received"] == 200
    # The machine may be busy: never early, and the quickest not late by a tenth.
    assert 20 * MS <= measured["one_way_forward_ns"]["p50"] < 25 * MS
    assert 7 * MS <= measured["one_way_backward_ns"]["p50"] < 12 * MS
    assert 20 * MS <= measured["one_way_forward_ns"]["min"] < 22 * MS
    assert 7 * MS <= measured["one_way_backward_ns"]["min"] < 7.7 * MS


def test_loss_acts_on_wire_packets_of_super_packets(hosts: Hosts, tmp_path: Path) -> None:
    with hosts.link([{"kind": "loss", "probability": 0.05}, delay(2)], seed=3) as link:
        rows = datagrams(hosts, tmp_path, 20_000)
    summary = link.stop()["a_to_b"]
    assert summary["super_packets"] >= 20_000 / 16
    assert_share(20_000 - len(rows), 20_000, 0.05)
    assert len(set(rows[:, 0])) == len(rows)
    # With whole super-packets lost, the losses of a group of 16 would come together.
    missing = set(range(20_000)) - set(rows[:, 0].tolist())
    whole_groups = sum(all(16 * group + i in missing for i in range(16)) for group in range(20_000 // 16))
    assert whole_groups == 0
    assert summary["lost"] == len(missing)


def test_same_seed_same_fates(hosts: Hosts, tmp_path: Path) -> None:
    fates: list[Counter[int]] = []
    for seed in (5, 5, 6):
        impairments = [{"kind": "loss", "probability": 0.1}, {"kind": "duplicate", "probability": 0.1}]
        with hosts.link(impairments, seed=seed):
            rows = datagrams(hosts, tmp_path, 3_000, segments=16 if len(fates) else 1)
        fates.append(Counter(rows[:, 0].tolist()))
    assert fates[0] == fates[1]
    assert fates[0] != fates[2]


def test_loss_schedule_loses_exactly_these(hosts: Hosts, tmp_path: Path) -> None:
    with hosts.link([{"kind": "loss_schedule", "drop": [0, 17, 99]}]):
        rows = datagrams(hosts, tmp_path, 100)
    assert set(range(100)) - set(rows[:, 0].tolist()) == {0, 17, 99}


def test_duplicates_arrive_twice(hosts: Hosts, tmp_path: Path) -> None:
    with hosts.link([{"kind": "duplicate", "probability": 0.1}], seed=1) as link:
        rows = datagrams(hosts, tmp_path, 10_000)
    counts = np.bincount(rows[:, 0])
    assert set(counts) == {1, 2}
    assert_share(int((counts == 2).sum()), 10_000, 0.1)
    assert link.stop()["a_to_b"]["duplicated"] == (counts == 2).sum()


def test_reordered_packets_come_early_by_the_gap(hosts: Hosts, tmp_path: Path) -> None:
    with hosts.link([delay(30), {"kind": "reorder", "probability": 0.1, "gap_ns": 25 * MS}], seed=1) as link:
        rows = datagrams(hosts, tmp_path, 10_000)
    early = int((rows[:, 1] < 17 * MS).sum())
    reordered = link.stop()["a_to_b"]["reordered"]
    assert_share(reordered, 10_000, 0.1)
    assert len(rows) == 10_000
    assert 0.5 * reordered < early <= reordered  # a machine that stalls for 12 ms makes early ones late
    assert 5 * MS <= np.median(rows[rows[:, 1] < 17 * MS, 1]) < 7 * MS


def test_jitter_without_reorder_keeps_the_order(hosts: Hosts, tmp_path: Path) -> None:
    jitter = {"kind": "jitter", "distribution": "normal", "sigma_ns": 3 * MS}
    with hosts.link([delay(15), jitter], seed=1):
        kept = datagrams(hosts, tmp_path, 3_000, segments=1, rate=3_000)
    with hosts.link([delay(15), {**jitter, "reorder": True}], seed=1):
        free = datagrams(hosts, tmp_path, 3_000, segments=1, rate=3_000)
    assert (np.diff(kept[:, 0]) > 0).all()
    assert (np.diff(free[:, 0]) < 0).sum() > 100
    assert abs(np.median(free[:, 1]) - 15 * MS) < 2 * MS


def test_rate_is_that_asked_for(hosts: Hosts, tmp_path: Path) -> None:
    with hosts.link([{"kind": "rate", "bits_per_s": 20_000_000, "queue_bytes": 600_000}]):
        measured = hosts.probe(packets=1, train_packets=300)  # 180 ms, of which a late wake-up is a small part
    assert abs(measured["rate_bits_per_s"] / 20e6 - 1) < 0.1
    with hosts.link([{"kind": "rate", "bits_per_s": 20_000_000, "queue_bytes": 60_000}]) as link:
        rows = datagrams(hosts, tmp_path, 3_000, rate=10_000)
    summary = link.stop()["a_to_b"]
    assert summary["queue_dropped"] > 100
    assert summary["queue_peak_bytes"] <= 60_000
    assert abs(summary["rate_given_bits_per_s"] / 20e6 - 1) < 0.02
    assert len(rows) + summary["queue_dropped"] == 3_000


def test_codel_keeps_the_standing_queue_short(hosts: Hosts, tmp_path: Path) -> None:
    rate = {"kind": "rate", "bits_per_s": 20_000_000, "queue_packets": 1_000}
    medians = {}
    for discipline in ("droptail", "codel"):
        with hosts.link([{**rate, "discipline": discipline}]):
            rows = datagrams(hosts, tmp_path, 7_500, segments=1, rate=2_500)
        medians[discipline] = float(np.median(rows[-500:, 1]))
    assert medians["codel"] < medians["droptail"] / 2


def test_trace_gives_its_opportunities(hosts: Hosts, tmp_path: Path) -> None:
    with hosts.link([{"kind": "trace", "opportunities_ms": [10, 20, 30]}]):
        rows = datagrams(hosts, tmp_path, 40, payload=1472, segments=1, rate=0)
    spacing = np.diff(np.sort(rows[:, 1]))
    assert abs(np.median(spacing) - 10 * MS) < 2 * MS


@pytest.mark.parametrize("split", ["merge", "real"])
@pytest.mark.parametrize("address", [SERVER, SERVER_6])
def test_tcp_stream_stays_whole_through_everything(hosts: Hosts, split: str, address: str) -> None:
    """Corrupted packets are noticed by their checksums: not one octet at the application is wrong."""
    impairments = [
        {"kind": "loss", "probability": 0.003},
        {"kind": "corrupt", "probability": 0.01},
        {"kind": "duplicate", "probability": 0.01},
        delay(2),
        {"kind": "reorder", "probability": 0.01, "gap_ns": MS},
    ]
    with hosts.link(impairments, impairments, split=split, seed=9) as link:
        sent, received = transfer(hosts, "tcp", "--size", str(8 << 20), address=address)
    summary = link.stop()
    assert received["received"] == sent["sent"] == 8 << 20
    assert received["sha256"] == sent["sha256"]
    forward = summary["a_to_b"]
    assert forward["corrupted"] > 10
    assert forward["super_packets"] > 10
    assert forward["refused"]["malformed"] == 0
    for direction in ("a_to_b", "b_to_a"):
        s = summary[direction]
        gone = s["lost"] + s["queue_dropped"] + s["memory_dropped"] + s["send_errors"] + s["in_flight"]
        assert s["wire_packets"] + s["duplicated"] == s["delivered"] + gone


def test_corrupted_datagrams_do_not_reach_the_application(hosts: Hosts, tmp_path: Path) -> None:
    with hosts.link([{"kind": "corrupt", "probability": 0.2}], seed=2) as link:
        rows = datagrams(hosts, tmp_path, 5_000)
    corrupted = link.stop()["a_to_b"]["corrupted"]
    assert_share(corrupted, 5_000, 0.2)
    # A flip in a port number that still passes the checksum is impossible: one bit always changes the sum.
    assert len(rows) == 5_000 - corrupted


@pytest.mark.parametrize("split", ["merge", "real"])
def test_super_packets_of_udp_pass(hosts: Hosts, tmp_path: Path, split: str) -> None:
    with hosts.link([delay(1)], split=split) as link:
        rows = datagrams(hosts, tmp_path, 3_000, segments=32)
    assert rows[:, 0].tolist() == list(range(3_000))
    assert link.stop()["a_to_b"]["super_packets"] >= 90


def test_ipv6_passes_and_is_impaired(hosts: Hosts) -> None:
    with hosts.link([delay(5)], [delay(5)]):
        measured = hosts.probe(address=SERVER_6, packets=50, largest=True)
    assert measured["received"] == 50
    assert measured["largest_payload_bytes"] == 1500 - 48
    assert measured["one_way_forward_ns"]["min"] >= 5 * MS


def test_arp_does_not_cross() -> None:
    with Hosts(neighbours=False) as hosts, hosts.link([]) as link:
        subprocess.run(
            hosts.command("client", [*_python(), "udp-send", "--address", SERVER, "--count", "1"]), check=True
        )
        hosts.run("client", ["sleep", "1.5"])
        summary = link.stop()
    assert summary["a_to_b"]["refused"]["arp"] >= 1
    assert summary["a_to_b"]["delivered"] == 0


def test_log_holds_every_wire_packet(hosts: Hosts, tmp_path: Path) -> None:
    log = tmp_path / "link.parquet"
    impairments = [{"kind": "loss", "probability": 0.1}, {"kind": "duplicate", "probability": 0.1}, delay(3)]
    with hosts.link(impairments, log_file=str(log)) as link:
        datagrams(hosts, tmp_path, 2_000)
    summary = link.stop()
    rows = pq.read_table(log).to_pylist()
    forward = [row for row in rows if row["direction"] == 0]
    fates = Counter(row["fate"] for row in forward)
    counts = summary["a_to_b"]
    assert summary["log_rows"] == len(rows)
    assert summary["log_rows_dropped"] == 0
    assert fates == {"delivered": fates["delivered"], "lost": counts["lost"], "duplicate": fates["duplicate"]}
    assert fates["delivered"] + fates["duplicate"] == counts["delivered"]
    assert {row["ordinal"] for row in forward} == set(range(counts["wire_packets"]))
    assert len({row["flow_hash"] for row in forward}) == 1
    for row in forward:
        if row["fate"] == "lost":
            assert row["left_ns"] is None
        else:
            assert row["due_ns"] - row["arrived_ns"] == 3 * MS
            assert row["left_ns"] >= row["due_ns"]


def test_gilbert_elliott_loses_in_bursts(hosts: Hosts, tmp_path: Path) -> None:
    burst = {"kind": "gilbert_elliott", "good_to_bad": 0.01, "bad_to_good": 0.25, "loss_bad": 1.0}
    with hosts.link([burst, delay(1)], seed=4) as link:
        rows = datagrams(hosts, tmp_path, 20_000)
    lost = link.stop()["a_to_b"]["lost"]
    assert lost == 20_000 - len(rows)
    missing = np.setdiff1d(np.arange(20_000), rows[:, 0])
    bursts = 1 + int((np.diff(missing) > 1).sum())
    # Mean length of a burst: 1 / 0.25, its standard deviation sqrt(0.75) / 0.25.
    assert abs(len(missing) / bursts - 4) < 3.3 * (0.75**0.5 / 0.25) / bursts**0.5


def run_engine(hosts: Hosts, host: str, config: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    command = hosts.command(host, [str(ENGINE), "link", "-"])
    return subprocess.run(
        command, input=json.dumps(config) + "\n", capture_output=True, text=True, timeout=20, check=False
    )


def test_what_is_wrong_is_said_in_one_line(hosts: Hosts) -> None:
    cases: list[tuple[dict[str, Any], int, str]] = [
        (
            {"a_device": "ra", "b_device": "rb", "a_to_b": [{"kind": "loss", "probability": 2}]},
            2,
            "a_to_b[0].probability",
        ),
        ({"a_device": "ra", "b_device": "rb", "colour": "red"}, 2, "config"),
        ({"a_device": "ra", "b_device": "none"}, 3, "b_device"),
        ({"a_device": "ra", "b_device": "rb", "log_file": "/nowhere/link.parquet"}, 3, "log_file"),
        ({"a_device": "ra", "b_device": "rb", "cpu": 1000}, 3, "cpu"),
    ]
    for config, code, field in cases:
        done = run_engine(hosts, "middle", config)
        assert done.returncode == code, done
        assert done.stderr.startswith(f"error: {field}: "), done.stderr
        assert done.stderr.count("\n") == 1
        assert ";" in done.stderr


def test_it_ends_when_its_standard_input_closes(hosts: Hosts) -> None:
    done = run_engine(hosts, "middle", {"a_device": "ra", "b_device": "rb"})
    assert done.returncode == 0
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert "ready" in lines[0]
    assert lines[1]["summary"]["ended"] == "stdin"


def test_it_carries_on_for_a_while_after_its_say_and_then_closes_its_output(hosts: Hosts) -> None:
    config = {"a_device": "ra", "b_device": "rb", "a_to_b": [delay(1)], "linger_ns": 8000 * MS}
    link = hosts.start_engine("middle", "link", config)
    assert link.process.stdout is not None
    began = time.monotonic()
    link.process.terminate()
    said = json.loads(link.process.stdout.readline())["summary"]
    assert said["a_to_b"]["wire_packets"] == 0
    assert hosts.probe(packets=5)["received"] == 5, "still carried, and in no summary"
    assert link.process.stdout.read() == "", "nothing more is said"
    assert 7.5 < time.monotonic() - began < 20
    assert link.process.wait(5) == 0


def test_a_device_that_goes_away_is_said(hosts: Hosts) -> None:
    with Hosts() as own:
        link = own.start_engine("middle", "link", {"a_device": "ra", "b_device": "rb"})
        own.run("middle", ["ip", "link", "set", "ra", "down"])
        summary = link.wait(20)
        assert link.process.returncode == 3
        assert summary["ended"] == "device"
        assert link.errors.startswith("error: ra: ")


def test_an_empty_link_carries_full_packets_and_loses_none(hosts: Hosts) -> None:
    with hosts.link():
        measured = hosts.probe(packets=50, largest=True)
    assert (measured["received"], measured["loss_forward"], measured["loss_backward"]) == (50, 0, 0)
    assert measured["largest_payload_bytes"] == 1472


def test_it_runs_in_a_user_namespace_without_real_time_scheduling() -> None:
    """There the limit on locked memory holds; the link must not lock itself out of memory."""
    config = json.dumps({"a_device": "ra", "b_device": "rb", "a_to_b": [delay(1)]})
    script = f"""ip link add c type veth peer name ra && ip link add s type veth peer name rb &&
        for device in c ra s rb; do ip link set $device up; done &&
        (echo '{config}'; sleep 0.3) | {ENGINE} link -"""
    command = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    if "Operation not permitted" in done.stderr and not done.stdout:
        pytest.skip("user namespaces are not allowed here")
    assert done.returncode == 0, done.stderr
    ready, summary = (json.loads(line) for line in done.stdout.splitlines())
    assert ready["ready"]["memory_locked"] is False
    assert ready["ready"]["realtime"] is False
    assert summary["summary"]["ended"] == "stdin"
