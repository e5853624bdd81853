"""Connection tracking in a host: off, with a small table, full, bypassed; and the check that sees it."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.analysis.checks.sound import judge
from tests.lab.inside import run_inside

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin") is None, reason="nft is missing"),
]

BEGIN = """
import json, os, socket, sys
sys.path.insert(0, os.getcwd())
from tests.lab import flows
from trifecta.lab import conntrack
from trifecta.lab.host_graph import host_graph
from trifecta.lab.topology import Wire
from trifecta.observers.transport import TransportObserver

with host_graph(["host1", "host2"], [Wire("host1", "host2")]) as lab:
    host = lab.host("host2")
    observer = TransportObserver(lab.hosts.values())
    def seen(count, dropped=lambda: 0):
        observer.begin()
        arrived = flows.reached(lab, count, dropped)
        return [arrived, observer.end()]
"""


def inside(code: str) -> Any:
    done = run_inside(BEGIN + code, timeout_s=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_new_flows_beyond_a_small_table_are_dropped_counted_and_let_through_by_the_remedy() -> None:
    found = inside(
        """
    untouched = seen(20)
    tracking = conntrack.track(host, 8)
    full = seen(20, tracking.refused)
    still = seen(5, tracking.refused)
    conntrack.bypass(host)
    bypassed = seen(20, tracking.refused)
    tracking = conntrack.track(host, 8)
    anew = seen(12, tracking.refused)
    conntrack.bypass(host, [flows.PORT])
    by_port = seen(20, tracking.refused)
    roomy = conntrack.track(host)
    tracked = seen(20, roomy.refused)
    conntrack._apply(host, conntrack._remove())
    removed = seen(20)
    print(json.dumps([untouched, full, still, bypassed, anew, by_port, tracked, removed]))
        """
    )
    arrived = [entry[0] for entry in found]
    assert arrived == [20, 8, 0, 20, 8, 20, 20, 20]
    tables = [entry[1]["host2"]["conntrack"] for entry in found]
    assert [table.get("refused") for table in tables] == [None, 12, 5, 0, 4, 0, None, None]
    assert [table["limit"] for table in tables] == [None, 8, 8, 8, 8, 8, None, None]
    assert tables[0]["entries"] == 0, "nothing is tracked before it is asked for"
    assert tables[1]["entries"] == 8
    assert tables[6]["entries"] == tables[5]["entries"] + 20
    judged = [judge("conntrack", transport=entry[1]) for entry in found]
    assert [result.status for result in judged] == [
        "pass", "warn", "warn", "pass", "warn", "pass", "pass", "pass",
    ]  # fmt: skip
    assert "host host2: its full connection table dropped 12 packets of new connections" in judged[1].evidence
    assert "the lab's limit 8" in judged[1].evidence
    assert "notrack" in judged[1].remedy


def test_a_new_tcp_connection_finds_no_room_either_and_an_old_one_goes_on() -> None:
    found = inside(
        """
    tracking = conntrack.track(host, 1)
    with host.inside():
        server = socket.create_server((lab.address("host2"), 80))
    with lab.host("host1").inside():
        old = socket.create_connection((lab.address("host2"), 80))
        new = socket.socket()
    accepted = server.accept()[0]
    new.setblocking(False)
    new.connect_ex((lab.address("host2"), 80))
    while not tracking.refused():
        pass
    old.sendall(b"still here")
    print(json.dumps([accepted.recv(16).decode(), new.connect_ex((lab.address("host2"), 80)) != 0]))
        """
    )
    assert found == ["still here", True]


def test_a_program_of_the_host_itself_is_refused_as_by_a_full_table() -> None:
    found = inside(
        """
    conntrack.track(host, 1)
    with host.inside():
        clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    clients[0].sendto(b"x", (lab.address("host1"), 9))
    try:
        clients[1].sendto(b"x", (lab.address("host1"), 9))
        print(json.dumps("sent"))
    except PermissionError as error:
        print(json.dumps(error.strerror))
        """
    )
    assert found == "Operation not permitted"


def test_the_kernels_own_table_when_it_is_full_does_the_same_and_the_check_sees_it() -> None:
    """No shrunken table: the namespace's real one is filled, which leaves the machine as it is."""
    found = inside(
        """
    most = flows.table_size()
    if not 0 < most <= 300_000:
        print(json.dumps(most))
        sys.exit()
    conntrack.track(host)
    def dropped():
        with host.inside(), open("/proc/thread-self/net/stat/nf_conntrack") as file:
            from trifecta.observers.kernel_text import parse_conntrack
            return parse_conntrack(file.read())["drop"]
    entries = flows.fill(host, most + 10)
    full = seen(20, dropped)
    conntrack.bypass(host)
    print(json.dumps([most, entries, full, seen(20, dropped)]))
        """
    )
    if isinstance(found, int):
        pytest.skip(f"a table of {found} connections is too large to fill in a test")
    most, entries, full, bypassed = found
    assert entries >= most
    assert full[0] == 0
    assert full[1]["host2"]["conntrack"]["drop"] == 20
    result = judge("conntrack", transport=full[1])
    assert result.status == "fail"
    assert f"its full connection table dropped 20 packets of new connections ({entries} connections" in (
        result.evidence
    )
    assert bypassed[0] == 20
    after = judge("conntrack", transport=bypassed[1])
    assert after.status == "warn", "nothing is dropped any more, but the table is still full"


def test_what_nft_refuses_is_one_clear_line() -> None:
    found = inside(
        """
    from trifecta.design.errors import CannotError
    said = []
    real = conntrack.shutil.which
    for which in (lambda *_, **__: None, lambda *_, **__: real("false")):
        conntrack.shutil.which = which
        try:
            conntrack.track(host, 8)
        except CannotError as error:
            said.append(str(error))
    try:
        conntrack.track(host, 0)
    except ValueError as error:
        said.append(str(error))
    print(json.dumps(said))
        """
    )
    assert found[0] == "`nft` is missing; install nftables (apt-get install nftables)"
    assert found[1].startswith("host host2: the kernel refuses to track connections")
    assert found[2] == "a table of 0 connections"
