"""Names inside the lab: what is answered, by whom programs are sent there, and that the machine does not notice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dns.flags
import dns.message
import dns.name
import dns.rcode
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.inside import run_inside, start_inside
from trifecta.lab.names import Names, answer

ZONE = {"b.lab": ("10.78.0.2", "fd78::2"), "c.lab": ("10.78.0.3", "fd78::3")}


def ask(name: str, kind: str = "A", klass: str = "IN") -> dns.message.Message:
    wire = answer(dns.message.make_query(name, kind, klass).to_wire(), ZONE)
    assert wire is not None
    return dns.message.from_wire(wire)


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        ("b.lab", "A", ["10.78.0.2"]),
        ("B.LaB", "AAAA", ["fd78::2"]),
        ("c.lab", "ANY", ["10.78.0.3", "fd78::3"]),
        ("b.lab", "MX", []),
        ("lab", "A", []),
    ],
)
def test_names_of_the_zone_are_answered_with_authority(name: str, kind: str, found: list[str]) -> None:
    reply = ask(name, kind)
    assert reply.rcode() == dns.rcode.NOERROR
    assert reply.flags & dns.flags.AA
    assert [str(record) for rrset in reply.answer for record in rrset] == found
    assert bool(reply.authority) is not bool(found)  # nothing there: the SOA says so


@pytest.mark.parametrize(
    ("name", "klass", "code"),
    [
        ("d.lab", "IN", dns.rcode.NXDOMAIN),
        ("x.b.lab", "IN", dns.rcode.NXDOMAIN),
        ("example.com", "IN", dns.rcode.REFUSED),
        ("notlab", "IN", dns.rcode.REFUSED),
        ("b.lab", "CH", dns.rcode.REFUSED),
    ],
)
def test_other_names_do_not_exist_or_are_refused(name: str, klass: str, code: dns.rcode.Rcode) -> None:
    reply = ask(name, klass=klass)
    assert reply.rcode() == code
    assert not reply.answer


def test_names_outside_the_zone_are_answered_as_given_and_unknown_ones_are_told() -> None:
    names = {"www.example.com": ("192.168.2.2",), "b.lab": ("192.168.2.3",), "six.lab": ("fd7a:2::2",)}
    strays: list[str] = []

    def asked(name: str, kind: str = "A") -> tuple[str, list[str], list[str]]:
        wire = answer(dns.message.make_query(name, kind).to_wire(), names, strays.append)
        assert wire is not None
        reply = dns.message.from_wire(wire)
        records = [str(record) for rrset in reply.answer for record in rrset]
        return dns.rcode.to_text(reply.rcode()), records, [str(rrset.name) for rrset in reply.authority]

    assert asked("WWW.example.com") == ("NOERROR", ["192.168.2.2"], [])
    # There is the name, but no IPv6 address: another answer than for a name that is not there.
    assert asked("www.example.com", "AAAA") == ("NOERROR", [], ["www.example.com."])
    assert [asked("six.lab", kind)[1] for kind in ("A", "AAAA", "ANY")] == [[], ["fd7a:2::2"], ["fd7a:2::2"]]
    assert asked("b.lab", "HTTPS") == ("NOERROR", [], ["lab."])
    assert asked("lab") == ("NOERROR", [], ["lab."])
    assert strays == []
    assert asked("example.com")[0] == "REFUSED"
    assert asked("a.www.example.com")[0] == "REFUSED"
    assert asked("Update.lab")[0] == "NXDOMAIN"
    assert strays == ["example.com", "a.www.example.com", "update.lab"]


def test_what_is_no_plain_question_is_turned_down() -> None:
    query = dns.message.make_query("b.lab", "A")
    wire = bytearray(query.to_wire())
    wire[2] |= 0x20  # opcode 4: notify
    reply = answer(bytes(wire), ZONE)
    assert reply is not None
    assert reply[3] & 15 == dns.rcode.NOTIMP
    cut = answer(query.to_wire()[:-3], ZONE)
    assert cut is not None
    assert cut[:2] == query.to_wire()[:2]
    assert cut[3] & 15 == dns.rcode.FORMERR
    assert dns.message.from_wire(cut).rcode() == dns.rcode.FORMERR
    assert answer(query.to_wire()[:11], ZONE) is None
    response = answer(query.to_wire(), ZONE)
    assert response is not None
    assert answer(response, ZONE) is None  # else two servers could talk for ever


@given(st.binary(max_size=200), st.booleans())
def test_no_message_brings_it_down(message: bytes, real_head: bool) -> None:
    head = dns.message.make_query("b.lab", "A").to_wire()[:12] if real_head else b""
    reply = answer(head + message, ZONE)
    if reply is not None:
        dns.message.from_wire(reply)


def test_the_sandbox_is_required() -> None:
    with pytest.raises(RuntimeError, match="inside a sandbox only"):
        Names((), ZONE)


LOOK_UP = """
import json, os, socket, subprocess, sys
from trifecta.lab.names import Names
from trifecta.lab.host_graph import host_graph
from trifecta.lab.topology import Wire
SEEK = '''
import json, socket, sys
def find(name, family):
    try:
        return sorted({row[4][0] for row in socket.getaddrinfo(name, 80, family)})
    except socket.gaierror as error:
        return error.errno
print(json.dumps([find(name, family) for name in sys.argv[1:] for family in (socket.AF_INET, socket.AF_INET6)]))
'''
def look_up(host, *names):
    child = host.popen([sys.executable, "-c", SEEK, *names], stdout=subprocess.PIPE)
    return json.loads(child.communicate()[0])
def names_of(topology):
    return {f"{letter}.lab": (topology.address(host), topology.address_6(host))
            for letter, host in zip("bc", topology.names)}
"""

LOOK_UP_IN_TWO_HOSTS = (
    LOOK_UP
    + """
before = open("/etc/resolv.conf").read()
with host_graph(["host1", "host2"], [Wire("host1", "host2")]) as topology:
    with Names(topology.hosts.values(), names_of(topology)):
        for host in topology.hosts.values():
            print(json.dumps(look_up(host, "b.lab", "c.lab", "d.lab")))
    print(json.dumps([open("/etc/resolv.conf").read() == before, open("/proc/mounts").read().count("trifecta")]))
"""
)
FOUND = [["10.78.0.1"], ["fd78::1"], ["10.78.0.2"], ["fd78::2"], -2, -2]  # EAI_NONAME, netdb.h


@pytest.mark.lab
def test_programs_of_every_host_find_the_names() -> None:
    done = run_inside(LOOK_UP_IN_TWO_HOSTS)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [FOUND, FOUND, [True, 0]]


@pytest.mark.lab
def test_a_name_can_be_pointed_elsewhere_and_strays_are_counted() -> None:
    done = run_inside(
        LOOK_UP
        + """
page = {"www.example.com": ("192.168.2.2",)}
with host_graph(["host1"], []) as topology, Names(topology.hosts.values(), page) as names:
    host = topology.host("host1")
    print(json.dumps(look_up(host, "www.example.com")))
    print(json.dumps(names.take_strays()))
    names.point({"www.example.com": ("192.168.2.11",)})
    print(json.dumps(look_up(host, "www.example.com", "telemetry.example.org")[0]))
    print(json.dumps([sorted(names.take_strays()), names.take_strays()]))
    try:
        names.point({"a..b": ("192.168.2.2",)})
    except ValueError as error:
        print(json.dumps(str(error)[:25]))
"""
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        [["192.168.2.2"], -5],  # EAI_NODATA, netdb.h
        {},
        ["192.168.2.11"],
        [["telemetry.example.org"], {}],
        "'a..b' is not a DNS name:",
    ]


@pytest.mark.lab
def test_they_are_served_over_ipv6_too() -> None:
    done = run_inside(
        LOOK_UP
        + """
import dns.message
with host_graph(["host1"], []) as topology:
    at = topology.address_6("host1")
    with Names(topology.hosts.values(), {"b.lab": (at,)}, also_at={"host1": at}):
        host = topology.host("host1")
        query = dns.message.make_query("b.lab", "AAAA").to_wire()
        with host.inside():
            udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            tcp = socket.create_connection((at, 53))
        udp.sendto(query, (at, 53))
        tcp.sendall(len(query).to_bytes(2) + query)
        replies = [udp.recv(512)]
        replies.append(tcp.makefile("rb").read(2 + len(replies[0]))[2:])
        print(json.dumps([str(dns.message.from_wire(reply).answer[0][0]) for reply in replies]))
        print(json.dumps(look_up(host, "b.lab")))
"""
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [["fd78::1"] * 2, [-5, ["fd78::1"]]]  # EAI_NODATA


@pytest.mark.lab
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv to give capabilities up")
def test_they_are_found_in_a_user_namespace_too() -> None:
    # CAP_SETFCAP is what user_namespaces(7) asks of uid 0 to map itself; an ordinary user needs nothing.
    wrapper = ("setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all") if os.geteuid() == 0 else ()
    code = "from trifecta.lab import sandbox\nsandbox.enter()\n" + LOOK_UP_IN_TWO_HOSTS
    done = subprocess.run(
        [*wrapper, sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [FOUND, FOUND, [True, 0]]


@pytest.mark.lab
def test_the_machine_keeps_its_own_file_meanwhile_and_after_a_kill() -> None:
    def seen() -> list[str]:
        return [Path(file).read_text(encoding="utf-8") for file in ("/etc/resolv.conf", "/etc/nsswitch.conf")]

    before = seen()
    process = start_inside(
        LOOK_UP
        + """
import time
with host_graph(["host1"], []) as topology, Names(topology.hosts.values(), names_of(topology)):
    print(json.dumps(open("/etc/resolv.conf").read()), flush=True)
    time.sleep(60)
"""
    )
    assert process.stdout is not None
    assert "127.0.0.53" in process.stdout.readline()
    assert seen() == before
    process.kill()
    process.wait(timeout=20)
    assert seen() == before


@pytest.mark.lab
def test_tcp_answers_several_questions_even_in_pieces_and_many_connections() -> None:
    done = run_inside(
        LOOK_UP
        + """
import dns.message
with host_graph(["host1"], []) as topology, Names(topology.hosts.values(), names_of(topology)):
    with topology.host("host1").inside():
        idle = [socket.create_connection(("127.0.0.53", 53)) for _ in range(100)]
        talking = socket.create_connection(("127.0.0.53", 53))
    talking.settimeout(10)
    query = dns.message.make_query("b.lab", "A").to_wire()
    for octet in 2 * (len(query).to_bytes(2) + query):
        talking.sendall(bytes([octet]))
    received = talking.makefile("rb")
    found = []
    for _ in range(2):
        reply = dns.message.from_wire(received.read(int.from_bytes(received.read(2))))
        found.append(str(reply.answer[0][0]))
    print(json.dumps(found))
"""
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["10.78.0.1", "10.78.0.1"]


@pytest.mark.lab
def test_an_address_that_is_taken_is_one_clear_line() -> None:
    done = run_inside(
        LOOK_UP
        + """
from trifecta.design.errors import CannotError
with host_graph(["host1"], []) as topology:
    with topology.host("host1").inside():
        taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        taken.bind(("127.0.0.53", 53))
    try:
        Names(topology.hosts.values(), {}).__enter__()
    except CannotError as error:
        print(error)
print(open("/proc/mounts").read().count("trifecta"))
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("names cannot be served at 127.0.0.53 in host1: Address already in use; ")
    assert done.stdout.endswith("\n0\n")
