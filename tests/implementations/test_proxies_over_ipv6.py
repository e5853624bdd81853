"""Proxies and the servers behind them, over IPv6 as over IPv4: by the sockets and counters of the kernel."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.implementations.fake_program import make_site
from tests.lab.inside import run_inside
from tests.workloads import drive
from trifecta.implementations.registry import SERVERS
from trifecta.implementations.server import Unsupported
from trifecta.implementations.servers.origin_backend import backend_address
from trifecta.store.run import RunDirectory

PROXIES = ("haproxy", "envoy")
STAND_IN = "stand-in"
# As /proc/net has an address: 32 bits after the other, each as the machine has it.
BEHIND = {"127.0.0.2": "0200007F", "::1": "00000000000000000000000001000000"}
ESTABLISHED = "01"

SOCKETS = """
import json, socket, ssl
from pathlib import Path
from tests.implementations.proxying_caddy import ProxyingCaddy
from trifecta.implementations.registry import SERVERS
from trifecta.implementations.running import RunningServer
from trifecta.implementations.server import ServerOptions, Site
from trifecta.lab.certificates import make_certificates
from trifecta.lab.network import server_address, two_hosts
from trifecta.lab.place import LocalPlace

folder, name, ipv6 = Path(FOLDER), NAME, IPV6
adapter = SERVERS[name] if name in SERVERS else ProxyingCaddy(name)
certificates = make_certificates(folder / "pki", [name + ".lab"], [])
(folder / "site").mkdir()
with two_hosts() as lab:
    host, address, answers = lab.host("server"), server_address(ipv6), []
    site = Site(folder / "site", certificates, address, 8443, folder / "state")
    place, options = LocalPlace(host), ServerOptions(ipv6=ipv6)
    server = RunningServer(adapter, adapter.find(), site, options, place, log=folder / "log", cpus=None)
    server.start()
    context = ssl.create_default_context(cafile=certificates.authority)

    def ask():
        with host.inside():
            try:
                raw = socket.create_connection((address, 8443), 2)
            except OSError as error:
                return str(error)
        with context.wrap_socket(raw, server_hostname=name + ".lab") as tls:
            asked = b"GET /bytes/3 HTTP/1.1\\r\\nHost: " + name.encode() + b".lab\\r\\nConnection: close\\r\\n\\r\\n"
            tls.sendall(asked)
            answer = b""
            while chunk := tls.recv(65536):
                answer += chunk
        if b" 200 OK" not in answer.split(b"\\r\\n")[0]:  # its backend may not be up yet
            return repr(answer)
        answers.append(answer.rpartition(b"\\r\\n\\r\\n")[2].decode())

    server.wait_ready(ask, lambda: False)
    tables = {}
    for table in ("tcp", "udp", "tcp6", "udp6"):
        rows = [line.split() for line in host.read("/proc/thread-self/net/" + table).splitlines()[1:]]
        tables[table] = [[row[1].split(":")[0], row[2].split(":")[0], row[3]] for row in rows]
    server.close()
print(json.dumps([answers, tables]))
"""


@pytest.mark.parametrize(
    ("at", "behind"),
    [
        ("10.77.0.2", "127.0.0.2"),
        ("127.0.0.1", "127.0.0.2"),
        ("fd77::2", "::1"),
        ("2001:db8::1", "::1"),
        ("::1", "127.0.0.2"),  # the port is taken there, and loopback has no second address of IPv6
        ("0:0:0:0:0:0:0:1", "127.0.0.2"),
    ],
)
def test_the_server_behind_a_proxy_has_the_version_of_the_proxy(tmp_path: Path, at: str, behind: str) -> None:
    site = make_site(tmp_path, "haproxy", 9444)
    assert backend_address(replace(site, address=at)) == behind


def missing(name: str) -> str | None:
    """Why it cannot be tried here."""
    try:
        SERVERS["caddy" if name == STAND_IN else name].find()
    except Unsupported as error:
        return str(error)
    return None


@pytest.mark.lab
@pytest.mark.parametrize("ipv6", [True, False])
@pytest.mark.parametrize("name", [STAND_IN, *PROXIES])
def test_no_socket_of_a_proxy_and_its_backend_is_of_the_other_version(tmp_path: Path, name: str, ipv6: bool) -> None:
    if (why := missing(name)) is not None:
        pytest.skip(why)
    code = SOCKETS.replace("FOLDER", repr(str(tmp_path))).replace("NAME", repr(name)).replace("IPV6", str(ipv6))
    done = run_inside(code, 120)
    assert done.returncode == 0, done.stderr
    answers, tables = json.loads(done.stdout)
    assert answers == ["abc"], "the origin answered through the proxy"
    mine, others = (("tcp6", "udp6"), ("tcp", "udp")) if ipv6 else (("tcp", "udp"), ("tcp6", "udp6"))
    behind = BEHIND["::1" if ipv6 else "127.0.0.2"]
    assert [row for row in tables[mine[0]] if row[1:] == [behind, ESTABLISHED]], tables
    assert [tables[table] for table in others] == [[], []]


@pytest.mark.lab
@pytest.mark.parametrize("name", [STAND_IN, *PROXIES])
def test_requests_pass_a_proxy_over_the_version_of_their_arm(tmp_path: Path, name: str) -> None:
    if (why := missing(name)) is not None:
        pytest.skip(why)
    server = PROXIES[0] if name == STAND_IN else name
    settings = [
        "path=clean", f"server={server}", "connection=new", "in_flight=2", "budget=2 min", "blocks.at_least=1",
        "blocks.at_most=1", "requests=12", "warmup=4 requests", "compare=ip", "ip=IPv4,IPv6", "congestion_control=reno",
    ]  # fmt: skip
    instead = {"proxies": [server]} if name == STAND_IN else {}
    code, _, outcome, errors = drive.finish(tmp_path / "run", set=settings, **instead)
    assert code == 0, errors
    assert outcome["trials"] == 9
    seen = set()
    for row in RunDirectory.open(tmp_path / "run").rows():
        assert (row["error"], row["error_classes_json"]) == (None, "{}")
        seen.add((row["arm"], row["protocol"]))
        # What the server's host says to itself is what the proxy and its backend say.
        within = json.loads(row["machine_json"])["transport"]["server"]["loopback"]
        six = within.get("rx_ipv6_packets", 0)
        own, other = (six, within["rx_packets"] - six)[:: 1 if row["arm"] == "IPv6" else -1]
        assert own >= 2 * 16, "no fewer than questions and answers"
        assert other <= 4, "the last acknowledgements of the trial before, of two connections"
        facts = json.loads(row["server_json"])
        assert (facts["proxy"], facts["backend_congestion_control"]) == (True, "reno")
    assert seen == {(arm, protocol) for arm in ("IPv4", "IPv6", "IPv4#aa") for protocol in ("h1", "h2", "h3")}
