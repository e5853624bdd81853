"""A chain over three hosts by SSH: what it measures, what it says of each, and what is left when one is hit."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.lab.inside import told_inside
from tests.lab.three_hosts import missing
from tests.workloads.test_checks_fail import _engine_missing
from tests.workloads.test_failures import assert_whole
from tests.workloads.test_hosts import amiss, checks, private_in, rows
from trifecta.report import terminal
from trifecta.store import views

WHY = missing() or _engine_missing()
pytestmark = [pytest.mark.lab, pytest.mark.skipif(bool(WHY), reason=WHY or "there")]

HELPERS = """
import json, os, signal, subprocess, time
from pathlib import Path
from tests.lab.three_hosts import CLIENT, HERE, SERVER, three_hosts

SHORT = ("requests=40", "warmup=5 requests")

def chain(hosts, out, *changes, blocks=1, lengths=SHORT, depth=("depth=3",)):
    "A is where the user sits, B on the host that the tests of requests call the client, C on the server."
    places = {"client": "here", "B": hosts.url(CLIENT), "C": hosts.url(SERVER)}
    named = [word for role, place in places.items() for word in ("--host", f"{role}={place}")]
    asked = [word for change in (*depth, *lengths, *changes) for word in ("--set", change)]
    return ["run", "chain", *named, *asked, "--blocks", str(blocks), "--out", str(out), "--quiet"]
"""

inside = partial(told_inside, HELPERS)


def test_a_chain_over_three_hosts_is_measured_on_the_clients_clock(tmp_path: Path) -> None:
    """C's host booted 777,777 s before the others: what takes a difference of two clocks shows at once."""
    code, errors, left, urls = inside(
        tmp_path,
        """
        with three_hosts(folder, ahead_s=777_777) as hosts:
            code, said, errors = hosts.run(*chain(hosts, folder / "run"))
            left = hosts.wait_clean(30)
            urls = [hosts.url(CLIENT), hosts.url(SERVER)]
        print(json.dumps([code, errors, left, urls]))
        """,
    )
    assert code == 0, errors
    assert left == {"client": [], "server": []}
    b, c = urls
    run = tmp_path / "run"
    found = rows(run)
    assert len(found) == 2 * 4
    assert amiss(found) == []
    for row in found:
        assert row["samples"] == 40
        assert 0 < row["latency_p50_ns"] < 1_000_000_000
        services = json.loads(row["server_json"])["services"]
        assert [services[name]["host"] for name in "ABC"] == ["here", b, c]
        assert all(services[name]["cpu_ns"] > 0 and services[name]["peak_rss_bytes"] > 0 for name in "ABC")
        for name, ahead_s in (("B", 0), ("C", 777_777)):
            apart = services[name]["clock_offset_ns"] - ahead_s * 10**9
            assert abs(apart) <= services[name]["clock_bound_ns"] <= services[name]["probed_rtt_ns"]
        assert json.loads(row["server_json"])["cycles"] == {"expected_hops": 2, "hops": {"2": 40}, "failures": {}}
        assert json.loads(row["machine_json"])["transport"].keys() == {"client", "B", "C"}
        told = checks(row)
        assert {name: told[name]["status"] for name in ("clocks", "drops", "service", "same_work", "protocol")} == (
            dict.fromkeys(("clocks", "drops", "service", "same_work", "protocol"), "pass")
        )
        assert {told[name]["status"] for name in ("path", "machine", "conntrack")} == {"unknown"}
        assert "on A-B" in told["path"]["evidence"]
        assert "the clock of B's host is" in told["clocks"]["evidence"]
    hops = views.connect(run).execute(
        "SELECT caller, callee, caller_host, callee_host, count(*), count(there_ns), count(back_ns), min(ways_ns) > 0, "
        "max(elapsed_ns) < 1e9, min(at_callee_ns) > 0 FROM spans WHERE NOT warmup GROUP BY ALL ORDER BY caller"
    ).fetchall()  # fmt: skip
    assert hops == [
        ("A", "B", "here", b, 8 * 40, 0, 0, True, True, True),
        ("B", "C", b, c, 8 * 40, 0, 0, True, True, True),
    ]
    document = json.loads((run / "run.json").read_text())
    assert {role: one["address"] for role, one in document["hosts"].items()} == {
        "client": "",
        "B": "10.78.0.2",
        "C": "10.78.0.3",
    }
    assert_whole(run)
    (said,) = terminal.as_data(run)["elsewhere"]["said"]
    assert said.startswith(f"Nothing is emulated: client on here, B on {b} (10.78.0.2)")
    page = (run / "report.html").read_text()
    assert "Each host has its own clock" in page
    assert "Hop by hop: the median cycle" not in page, "its hops are on three clocks"
    assert private_in(run, tmp_path / "home") == []


@pytest.mark.long
def test_many_clients_ask_a_service_on_another_host(tmp_path: Path) -> None:
    code, errors, left = inside(
        tmp_path,
        """
        with three_hosts(folder) as hosts:
            asked = [word for one in ("clients=4", "requests=10", "connection=new") for word in ("--set", one)]
            placed = ["--host", f"client={hosts.url(CLIENT)}", "--host", f"B={hosts.url(SERVER)}"]
            ending = ["--blocks", "1", "--quiet", "--out", str(folder / "run")]
            code, said, errors = hosts.run("run", "fan-in", *placed, *asked, *ending)
            left = hosts.wait_clean(30)
        print(json.dumps([code, errors, left]))
        """,
    )
    assert code == 0, errors
    assert left == {"client": [], "server": []}
    found = rows(tmp_path / "run")
    assert [(row["samples"], row["valid"]) for row in found] == [(40, True)] * 4


@pytest.mark.long
def test_services_of_one_host_are_told_apart_and_its_loopback_is_not_known(tmp_path: Path) -> None:
    code, errors = inside(
        tmp_path,
        """
        with three_hosts(folder) as hosts:
            asked = chain(hosts, folder / "run", "depth=4", "connection=reused", "inside=HTTP/2", depth=())
            asked += ["--host", f"D={hosts.url(SERVER)}"]
            code, said, errors = hosts.run(*asked)
        print(json.dumps([code, errors]))
        """,
    )
    assert code == 0, errors
    for row in rows(tmp_path / "run"):
        told = checks(row)
        assert row["valid"], [one for one in told.values() if one["status"] == "fail"]
        assert told["frames"]["status"] == "unknown"
        assert json.loads(row["machine_json"])["transport"].keys() == {"client", "B", "C+D"}
    ways = views.connect(tmp_path / "run").execute(
        "SELECT caller, count(there_ns) = count(*) FROM spans WHERE NOT warmup GROUP BY ALL ORDER BY caller"
    ).fetchall()  # fmt: skip
    assert ways == [("A", False), ("B", False), ("C", True)], "C and D have one clock"


@pytest.mark.long
@pytest.mark.parametrize("what", ["killed sshd", "killed service"])
def test_a_host_that_is_hit_costs_its_trial_and_the_run_goes_on(tmp_path: Path, what: str) -> None:
    code, errors, left = inside(
        tmp_path,
        f"""
        what = {what!r}
        with three_hosts(folder) as hosts:
            lengths = ("duration=3 s", "requests=0", "warmup=100 ms", "protocol=h2,h3", "connection=reused")
            asked = chain(hosts, folder / "run", blocks=2, lengths=lengths)
            process = hosts.start(*asked, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            hosts.at_work(folder / "run", SERVER, "origin")  # services are new for every trial
            time.sleep(1)
            if what == "killed service":
                os.kill(hosts.engines(SERVER, "origin")[0], signal.SIGKILL)
            else:
                os.kill(hosts.sessions(SERVER)[-1], signal.SIGKILL)
            _, errors = process.communicate(timeout=200)
            left = hosts.wait_clean(35)
        print(json.dumps([process.returncode, errors.decode(), left]))
        """,
    )
    assert code == 0, errors
    assert left == {"client": [], "server": []}
    found = rows(tmp_path / "run")
    assert len(found) == 2 * 3
    (hit,) = [row for row in found if row["error"] is not None]
    assert not hit["valid"]
    services = json.loads(hit["server_json"])["services"]
    if what == "killed service":
        assert "service C died: was killed by signal 9" in hit["error"]
        assert [services[name]["running"] for name in "BC"] == [True, False]
    else:
        assert "is lost" in hit["error"]
        assert services["C"]["running"] is False
    assert_whole(tmp_path / "run")


@pytest.mark.long
def test_hosts_that_do_not_let_each_other_through_are_told_in_one_line(tmp_path: Path) -> None:
    code, errors, url = inside(
        tmp_path,
        """
        with three_hosts(folder) as hosts:
            hosts.cut(CLIENT, SERVER)
            code, said, errors = hosts.run(*chain(hosts, folder / "run"))
            url = hosts.url(CLIENT)
        print(json.dumps([code, errors, url]))
        """,
    )
    assert code == 3
    (line,) = errors.splitlines()
    assert f"service C: origin at 10.78.0.3 does not answer {url}" in line
    assert "open TCP and UDP port 8445 through" in line
