"""Hosts that are virtual machines with Debian's kernel: netem between them, and clocks of their own."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.lab import three_hosts, virtual_hosts
from tests.lab.inside import told_inside
from tests.workloads.test_checks_fail import _engine_missing
from tests.workloads.test_hosts import checks, rows

WHY = three_hosts.missing() or virtual_hosts.missing("ethtool") or _engine_missing()
pytestmark = [
    pytest.mark.long,
    pytest.mark.lab,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(WHY), reason=WHY or "there"),
]
MS = 1_000_000
CHECKS_FAILED = 1
"""Of a run whose trials do not count: interpreted machines add some ms to a path."""

HELPERS = """
import json, os, subprocess, time
from tests.lab.virtual_hosts import BEHIND, CLIENT, DEVICES, MIDDLE, SERVER, virtual_hosts

def study(hosts, out):
    shaped = {"rtt": "40 ms", "loss": "2 %", "rate": "5 Mbit/s"}
    document = {
        "study": "emulated",
        "workload": {"response": "10 kB", "in_flight": 4, "requests": 40, "warmup": "5 requests"},
        "factors": {"protocol": ["h2", "h3"], "path": ["ours", "theirs"], "server": ["origin"]},
        "paths": {"ours": shaped, "theirs": {**shaped, "emulator": "netem"}},
        "hosts": {
            "client": hosts.url(CLIENT),
            "server": {"at": hosts.url(SERVER), "address": BEHIND[SERVER]},
            "middle": {"at": hosts.url(MIDDLE), "devices": list(DEVICES)},
        },
    }
    file = folder / "emulated.yaml"
    file.write_text(json.dumps(document))
    return ["run", str(file), "--blocks", "1", "--out", str(out), "--quiet"]
"""

inside = partial(told_inside, HELPERS, timeout_s=900)


def test_netem_on_the_host_between_does_what_our_link_does(tmp_path: Path) -> None:
    told, code, errors, left = inside(
        tmp_path,
        """
        with virtual_hosts(folder) as hosts:
            told = hosts.run("doctor", "--json", "--host", hosts.url(MIDDLE), timeout_s=200)[1]
            code, said, errors = hosts.run(*study(hosts, folder / "run"), timeout_s=600)
            left = hosts.wait_clean(60)
        print(json.dumps([told, code, errors, left]))
        """,
    )
    assert code in (0, CHECKS_FAILED), errors
    (examined,) = json.loads(told)["hosts"].values()
    assert [one["status"] for one in examined["findings"] if one["name"] == "netem"] == ["ok"], told
    assert left == {"client": [], "server": [], "middle": []}
    found = rows(tmp_path / "run")
    assert len(found) == 2 * 3
    probes = {}
    for row in found:
        link, probe = json.loads(row["link_json"]), json.loads(row["probe_json"])
        probes[row["path"]] = probe
        print(row["path"], row["arm"], checks(row)["path"]["status"], checks(row)["path"]["evidence"])
        assert row["error"] is None
        assert row["latency_p50_ns"] >= 40 * MS
        assert probe["rtt_ns"]["min"] >= 40 * MS
        for direction in ("a_to_b", "b_to_a"):
            assert link[direction]["wire_packets"] > 10
            assert link[direction]["rate_asked_bits_per_s"] == 5_000_000
        if row["path"] == "theirs":
            assert link["netem"]["kernel"].startswith("6.")
            assert any("netem limit" in command for command in link["netem"]["commands"])
            assert link["a_to_b"]["delay_given_ns"] == dict.fromkeys(("min", "p50", "p90", "p99", "max"))
        else:
            assert "netem" not in link
    for name, probe in probes.items():
        numbers = {key: probe[key] for key in ("rtt_ns", "loss_forward", "loss_backward", "rate_bits_per_s")}
        print(name, json.dumps(numbers))
    # Interpreted machines add some ms of their own: by the quickest packet, which waited least for a machine's turn.
    ours, theirs = (probes[name]["rtt_ns"]["min"] for name in ("ours", "theirs"))
    assert abs(ours - theirs) < 4 * MS, (ours, theirs)
    for probe in probes.values():
        assert probe["rate_bits_per_s"] == pytest.approx(5e6, rel=0.1)


def test_a_link_that_is_killed_leaves_nothing_of_netem(tmp_path: Path) -> None:
    before, during, left, stale, again, refused = inside(
        tmp_path,
        """
        asked = "tc qdisc show dev eth1; tc qdisc show dev eth2; ethtool -k eth1 | grep generic-receive"
        limited = [{"kind": "rate", "bits_per_s": 5_000_000, "queue_packets": 10}, {"kind": "delay", "delay_ns": 1}]
        config = json.dumps({
            "a_device": DEVICES[0], "b_device": DEVICES[1], "bridge": True, "emulator": "netem", "b_to_a": limited,
        })
        engine = os.environ.get("TRIFECTA_ENGINE") or os.path.abspath("engine/target/release/trifecta-engine")
        (folder / "link.sh").write_text(f"(echo '{config}'; sleep 1000) | {engine} link - >/tmp/said 2>&1\\n")
        start = f"setsid sh {folder}/link.sh </dev/null >/dev/null 2>&1 & sleep 5; cat /tmp/said"
        with virtual_hosts(folder) as hosts:
            before = hosts.ask(MIDDLE, asked)
            first = hosts.ask(MIDDLE, start)
            during = first + hosts.ask(MIDDLE, asked)
            hosts.ask(MIDDLE, "pkill -KILL -f '[t]rifecta-engine link'")
            time.sleep(3)
            left = hosts.ask(MIDDLE, asked)
            # With its guard, which nothing outlives: the next one clears up.
            hosts.ask(MIDDLE, start)
            hosts.ask(MIDDLE, "pkill -KILL -f '[t]rifecta-netem'; pkill -KILL -f '[t]rifecta-engine link'; :")
            stale = hosts.ask(MIDDLE, "ls /sys/class/net | grep tf-")
            again = hosts.ask(MIDDLE, f"{start}; sleep 15; cat /tmp/said; ls /sys/class/net | grep tf-")
            hosts.ask(MIDDLE, "pkill -KILL -f '[t]rifecta-engine link'; :")
            # What somebody gave a device is refused, and stays.
            own = "tc qdisc add dev eth2 root handle 8001: pfifo limit 7; "
            refused = hosts.ask(MIDDLE, f"sleep 3; {own}{start}; tc qdisc show dev eth2; ls /sys/class/net")
        print(json.dumps([before, during, left, stale, again, refused]))
        """,
    )
    print(before, during, left, again, refused, sep="\n--\n")
    assert "netem" not in before and "generic-receive-offload: on" in before
    assert '"ready"' in during and "tbf" in during and "netem" in during and "generic-receive-offload: off" in during
    assert left == before
    assert '"ready"' in again
    assert stale.strip()
    assert "tf-netem" in again
    assert '"ready"' not in refused
    assert "eth2 has a discipline of its own (pfifo 8001:); remove it: sudo tc qdisc del dev eth2 root" in refused
    assert "pfifo 8001: root" in refused
    assert "tf-netem" not in refused


def test_two_clocks_are_bounded_by_packets_and_by_chronyd(tmp_path: Path) -> None:
    """Each machine counts for itself, and one began 2 s ahead; chronyd on a third keeps both."""
    code, errors, tracked = inside(
        tmp_path,
        """
        conf = "server 10.81.0.1 iburst minpoll 0 maxpoll 2\\nmakestep 0.05 -1\\ndriftfile /tmp/drift\\n"
        (folder / "chrony.conf").write_text(conf)
        serving = f"local stratum 5\\nallow\\ncmdport 0\\nbindcmdaddress /\\npidfile {folder}/pid\\n"
        (folder / "here.conf").write_text(serving)
        keep = f"mkdir -p /run/chrony; chmod 700 /run/chrony; chronyd -u root -f {folder}/chrony.conf"
        ahead = "date -s @$(( $(date +%s) + 2 )) >/dev/null; "
        with virtual_hosts(folder, {CLIENT: keep, SERVER: ahead + keep}) as hosts:
            keeper = hosts.here.popen(
                ["chronyd", "-d", "-x", "-u", "root", "-f", str(folder / "here.conf")],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, yielding=False,
            )
            time.sleep(40)
            tracked = {name: hosts.ask(name, "chronyc -n -c tracking") for name in (CLIENT, SERVER)}
            code, said, errors = hosts.run(*study(hosts, folder / "run"), timeout_s=600)
            keeper.kill()
            keeper.wait()
        print(json.dumps([code, errors, tracked]))
        """,
    )
    print(tracked)
    assert code in (0, CHECKS_FAILED), errors
    for row in rows(tmp_path / "run"):
        probe = json.loads(row["probe_json"])
        print({key: value for key, value in probe.items() if key.startswith("clock")}, checks(row)["clocks"])
        assert checks(row)["clocks"]["status"] == "pass", checks(row)["clocks"]
        assert probe["clock_chrony_bound_ns"] < probe["clock_exchange_bound_ns"], "chronyd bounds nothing"
