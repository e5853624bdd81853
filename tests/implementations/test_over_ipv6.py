"""How adapters write an address of IPv6: in brackets before a port, bare where it stands alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.implementations.browsers.driving import config
from tests.implementations.fake_program import put_on_path
from tests.implementations.test_curl import CAPABLE, job, program
from tests.implementations.test_haproxy import _SAYS as HAPROXY_SAYS
from tests.implementations.test_nginx import _HTTP3
from tests.implementations.test_nginx import _SAYS as NGINX_SAYS
from trifecta.design.builds import ServerProgram
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.browsers import jobs
from trifecta.implementations.browsers.firefox_profile import preferences
from trifecta.implementations.clients import curl
from trifecta.implementations.clients.h2load import H2load
from trifecta.implementations.registry import SERVERS
from trifecta.implementations.server import ServerOptions, Site, Unsupported
from trifecta.implementations.servers import envoy, hypercorn
from trifecta.implementations.servers.caddy import Caddy
from trifecta.implementations.servers.from_data import FromData
from trifecta.implementations.servers.quic_go import QuicGo
from trifecta.implementations.servers.quiche import Quiche
from trifecta.lab.certificates import make_certificates

OPTIONS = ServerOptions(ipv6=True)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    state = tmp_path / "state"
    state.mkdir()
    (tmp_path / "site").mkdir()
    return Site(tmp_path / "site", make_certificates(tmp_path / "pki", ["a.lab"], []), "fd77::2", 8443, state)


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that only tell their versions, in the place of those that adapters look for."""
    put_on_path("nginx", NGINX_SAYS.format(version="1.30.6", module=_HTTP3), tmp_path, monkeypatch)
    put_on_path("haproxy", HAPROXY_SAYS.format(version="3.2.26-1", features="+QUIC "), tmp_path, monkeypatch)
    for adapter in (Caddy, QuicGo, Quiche):
        monkeypatch.setattr(adapter, "program", lambda _: Path("/bin/true"))
    monkeypatch.setattr(envoy, "_program", lambda: Path("/bin/true"))
    monkeypatch.setattr(hypercorn.RECIPE, "python", lambda: Path("/bin/true"))


def told(name: str, site: Site) -> str:
    """All that a server is told: its command line and the files that its adapter writes."""
    command = SERVERS[name].command(site, OPTIONS)
    files = (path for path in sorted(site.state.rglob("*")) if path.is_file())
    return "\n".join([*map(str, command.arguments), *(path.read_text() for path in files)])


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("nginx", ["listen [fd77::2]:8443 ssl;", "listen [fd77::2]:8443 quic rcvbuf=4m;"]),
        (
            "haproxy",
            ["bind [fd77::2]:8443 ssl crt", "bind quic6@[fd77::2]:8443 ssl crt", "server origin [::1]:8443 ssl"],
        ),
        ("caddy", ['"[fd77::2]:8443"']),
        ("hypercorn", ['"bind": "[fd77::2]:8443"']),
        ("quic-go", ["-address\n[fd77::2]:8443\n"]),
        ("quiche", ["--address\n[fd77::2]:8443\n"]),
        ("envoy", ['"fd77::2"', 'address: "::1", port_value: 8443']),
    ],
)
def test_servers_are_told_it(name: str, written: list[str], site: Site) -> None:
    text = told(name, site)
    assert [each for each in written if each not in text] == []
    assert "fd77::2:8443" not in text


def test_a_server_as_data_is_told_it_where_it_says_endpoint(site: Site) -> None:
    pki = ("--cert", "{cert}", "--key", "{key}")
    able = FromData("mine", ServerProgram(("/bin/true", "--listen", "{endpoint}", *pki)))
    apart = FromData("mine", ServerProgram(("/bin/true", "--host", "{address}", "--port", "{port}", *pki)))
    for adapter, written in ((able, ("[fd77::2]:8443",)), (apart, ("fd77::2", "--port", "8443"))):
        adapter.check_workload(RequestsWorkload(ip="IPv6"))
        arguments = adapter.command(site, OPTIONS).arguments
        assert arguments[2 : 2 + len(written)] == written
    four = replace(site, address="10.77.0.2")
    assert able.command(four, ServerOptions()).arguments[2] == "10.77.0.2:8443"


@pytest.mark.parametrize("in_a_file", [False, True])
def test_one_that_is_told_where_an_address_cannot_be_told_from_a_port_is_left_out(in_a_file: bool) -> None:
    joined = "listen {address}:{port}"
    given = ServerProgram(("/bin/true", "{port}", "{cert}", "{key}"), files={"a.conf": joined} if in_a_file else {})
    if not in_a_file:
        given = replace(given, command=(*given.command, joined))
    adapter = FromData("mine", given)
    adapter.check_workload(RequestsWorkload())
    with pytest.raises(Unsupported) as error:
        adapter.check_workload(RequestsWorkload(ip="IPv6"))
    assert str(error.value) == "mine is told {address}:{port}, which IPv6 has in brackets; write {endpoint}"


def test_clients_are_told_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, CAPABLE)
    monkeypatch.setattr(curl.CURL, "program", lambda _: None)
    monkeypatch.setattr(curl.CURL, "installed", lambda: False)
    monkeypatch.setattr(curl.shutil, "which", lambda _: path)
    asked = job(tmp_path, address="fd77::2")
    curl.Curl().command(asked)
    assert 'connect-to = "::[fd77::2]:8443"' in (tmp_path / "transfers").read_text().splitlines()
    assert "--connect-to=[fd77::2]:8443" in H2load().command(asked).arguments


def config_line(folder: Path, ip: str | None) -> str:
    """The configuration of a browser's driver."""
    return json.dumps(config(folder, ip=ip))


@pytest.mark.parametrize(("ip", "off"), [(None, True), ("IPv4", True), ("IPv6", False)])
def test_firefox_asks_for_addresses_of_ipv6_only_where_it_is_to(tmp_path: Path, ip: str | None, off: bool) -> None:
    asked = preferences(jobs.job_of(jobs.read(config_line(tmp_path, ip))))
    assert asked["network.dns.disableIPv6"] is off


def test_a_browser_is_told_a_version_that_there_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^ip: 'IPv5' is none of IPv4, IPv6$"):
        jobs.read(config_line(tmp_path, "IPv5"))
