"""What is seen of services in a real run: resources of each, and a full table of connections."""

from __future__ import annotations

import json
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.workloads import drive
from tests.workloads.test_failures import MARK, marked, wait_until
from tests.workloads.test_services import ONE_BLOCK, ask, run
from trifecta.analysis.costs import work
from trifecta.conclude.services.catalogue import TRIAL_USAGE
from trifecta.design.errors import CannotError
from trifecta.lab.engine import find_engine
from trifecta.store.run import RunDirectory
from trifecta.store.views import connect
from trifecta.studies import load
from trifecta.workloads import supported
from trifecta.workloads.services.supported import services_supported

NFT = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin")
TABLE, CLIENTS, EACH = 20, 4, 8


def rows_of(folder: Path, view: str) -> list[dict[str, Any]]:
    """Rows of the first trial in a view."""
    cursor = connect(folder).execute(f"SELECT * FROM {view} WHERE trial = 't00000'")
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


@pytest.mark.lab
def test_every_service_and_host_is_read_with_what_it_costs(tmp_path: Path) -> None:
    run(tmp_path / "run", "chain", ["protocol=h2", "workload.depth=3", "hosts=2", "path=normal", "connection=reused"])
    found = ask(
        tmp_path / "run",
        "SELECT process, count(*), min(cpu_ns), min(rss_bytes), min(threads), max(voluntary_switches), "
        "max(sent_bytes), max(sent_packets) FROM resources WHERE trial = 't00000' GROUP BY 1 ORDER BY 1",
    )
    by_name = {row[0]: row[1:] for row in found}
    assert list(by_name) == ["A", "B", "C", "host host1", "host host1 lo", "host host2", "host host2 lo"]
    for service in "ABC":
        readings, cpu_ns, rss, threads, switches, *_ = by_name[service]
        assert readings >= 2
        assert min(cpu_ns, rss, threads, switches) > 0
    assert by_name["A"][5] == by_name["host host1"][5], "A has its host for itself"
    assert by_name["B"][5] is by_name["C"][5] is None, "B and C share theirs"
    assert by_name["host host2 lo"][6] > 0, "B calls C over the loopback"
    (trial,) = rows_of(tmp_path / "run", "trials")
    done = work(trial)
    used = {(row[0], row[1]): row[2] for row in connect(tmp_path / "run").execute(TRIAL_USAGE.text()).fetchall()}
    for service in "ABC":
        assert (done.per_1000_requests(used["t00000", service]) or 0) > 0
        assert (done.per_mb(used["t00000", service]) or 0) > 0
    assert json.loads(trial["machine_json"])["sampler"]["samples"] >= 2


@pytest.mark.lab
@pytest.mark.skipif(NFT is None, reason="nft is missing")
def test_quic_fills_a_small_table_of_connections_and_the_bypass_mends_it(tmp_path: Path) -> None:
    """The trouble of bourbon2020: over HTTP/3 every new connection stays in the table, so later ones find no room."""
    assert TABLE < CLIENTS * EACH
    settings = [
        "protocol=h2,h3", "connection=new", "path=normal", f"clients={CLIENTS}", "hosts=2",
        f"conntrack={TABLE},bypass", f"workload.requests={EACH}", "workload.connect_timeout=5 s",
    ]  # fmt: skip
    code, _, outcome, errors = drive.finish(tmp_path / "run", study="fan-in", set=[*ONE_BLOCK, *settings])
    assert code in (0, 1), errors
    assert outcome is not None
    answered = {
        (arm, table): count
        for arm, table, count in ask(
            tmp_path / "run",
            "SELECT arm, factors_json ->> 'conntrack', samples - errors FROM trials WHERE NOT is_aa",
        )
    }
    assert answered["h3", "bypass"] == answered["h2", "bypass"] == CLIENTS * EACH
    # Each connection keeps its place, and nobody tries again. One that by chance gets the port of an earlier one is in.
    assert TABLE <= answered["h3", str(TABLE)] < CLIENTS * EACH
    said = ask(
        tmp_path / "run",
        "SELECT factors_json ->> 'conntrack', status, evidence, remedy FROM checks JOIN trials ON scope = trial "
        "WHERE \"check\" = 'conntrack' AND arm = 'h3' ORDER BY 1",
    )
    assert [row[:2] for row in said] == [(str(TABLE), "warn"), ("bypass", "pass")]
    assert "its full connection table dropped" in said[0][2]
    assert f"the lab's limit {TABLE}" in said[0][2]
    assert "conntrack: bypass" in said[0][3]


def test_tables_of_connections_are_left_out_with_the_reason_where_nft_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> str:
        raise CannotError("`nft` is missing; install nftables (apt-get install nftables)")

    monkeypatch.setattr(supported, "find_nft", missing)
    settings = ["path=normal", "hosts=2", "connection=new", "clients=4", "budget=none"]
    here = services_supported(load("fan-in", [*settings, "conntrack=off,20,bypass"]), find_engine())
    assert {cell.levels["conntrack"] for cell in here.cells} == {"off"}
    assert [(left["factor"], left["level"]) for left in here.left_out] == [("conntrack", "20"), ("conntrack", "bypass")]
    with pytest.raises(CannotError, match="`nft` is missing") as caught:
        services_supported(load("fan-in", [*settings, "conntrack=20,bypass"]), find_engine())
    assert str(caught.value).count("is missing") == 1, "the reason is said once"


@pytest.mark.lab
def test_a_service_that_is_killed_mid_cycle_fails_its_trial_by_name_and_no_other(tmp_path: Path) -> None:
    folder, mark = tmp_path / "run", uuid.uuid4().hex
    settings = [
        "protocol=h2", "connection=reused", "path=normal", "hosts=1", "workload.depth=3", "workload.requests=0",
        "workload.duration=2 s", "workload.connect_timeout=2 s", "workload.request_timeout=2 s",
    ]  # fmt: skip
    process = drive.start(folder, {MARK: mark}, study="chain", set=[*ONE_BLOCK, *settings])
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)[0] == "trial_started":
            break
    assert wait_until(lambda: _kill_one_at_work(mark), timeout_s=60)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    first, second = RunDirectory.open(folder).rows()
    assert first["valid"] is False
    assert second["error"] is None
    assert first["errors"] > 0, "cycles that needed it failed, and are counted"
    dead = [name for name, facts in json.loads(first["server_json"])["services"].items() if facts.get("ended")]
    assert len(dead) == 1
    said = {check["check"]: check for check in json.loads(first["checks_json"])}
    assert said["service"]["status"] == "fail"
    assert f"service {dead[0]} on host1 died" in said["service"]["evidence"]
    assert "killed" in said["service"]["evidence"] or "signal 9" in said["service"]["evidence"]
    fine = {check["check"]: check["status"] for check in json.loads(second["checks_json"])}
    assert fine["service"] == "pass"
    last = ask(folder, "SELECT process, max(time_ns) FROM resources WHERE trial = 't00000' GROUP BY 1")
    ends = dict(last)
    assert ends[dead[0]] <= ends["A"], "what is dead is read no more"


def _kill_one_at_work(mark: str) -> bool:
    """Kill a service that has had work; False when there is none yet."""
    for candidate in marked(mark):
        with suppress(psutil.NoSuchProcess):  # others end meanwhile
            if "origin" in candidate.cmdline() and sum(candidate.cpu_times()[:2]) > 0.1:
                candidate.kill()
                return True
    return False
