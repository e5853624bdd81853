"""The adapter of nginx: what it writes and refuses; and, where nginx with HTTP/3 is installed, the program itself."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.implementations.fake_program import IN_A_USER_NAMESPACE, make_site, put_on_path
from tests.workloads import drive
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.server import ServerOptions, Unsupported
from trifecta.implementations.servers.nginx import Nginx
from trifecta.store.views import connect

_SAYS = """nginx version: nginx/{version}
built with OpenSSL 3.6.5 29 Sep 2026
TLS SNI support enabled
configure arguments: --with-debug {module} --with-threads"""
_HTTP3 = "--with-http_v3_module"


def _why_not() -> str | None:
    try:
        Nginx().find()
    except Unsupported as error:
        return str(error)
    return None


real = pytest.mark.skipif(_why_not() is not None, reason=str(_why_not()))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return put_on_path("nginx", _SAYS.format(version="1.30.6", module=_HTTP3), tmp_path, monkeypatch)


def _configuration(tmp_path: Path, options: ServerOptions) -> list[str]:
    site = make_site(tmp_path, "nginx", 9443)
    Nginx().command(site, options)
    lines = (site.state / "nginx.conf").read_text().splitlines()
    return [line.strip() for line in lines if not line.strip().startswith("#")]


def test_it_tells_version_library_and_build(fake: Path) -> None:
    assert Nginx().find() == "1.30.6"
    assert Nginx().declared(ServerOptions(congestion_control="bbr", tcp_nodelay=False)) == {
        "congestion_control": {"tcp": "bbr", "quic": "cubic"},
        "tcp_nodelay": False,
        "tls_library": "OpenSSL 3.6.5 29 Sep 2026",
        "build": "on PATH; --with-debug --with-http_v3_module --with-threads",
    }


def test_the_library_it_runs_with_is_the_one_that_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says = _SAYS.format(version="1.26.3", module=_HTTP3).replace(
        "29 Sep 2026", "29 Sep 2026 (running with OpenSSL 3.6.9 1 Nov 2026)"
    )
    put_on_path("nginx", says, tmp_path, monkeypatch)
    declared = Nginx().declared(ServerOptions())
    assert declared["tls_library"] == "OpenSSL 3.6.9 1 Nov 2026"
    assert declared["congestion_control"]["quic"] == "reno"


def test_one_without_http3_or_with_an_unknown_version_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, says in enumerate((_SAYS.format(version="1.22.1", module="--with-http_v2_module"), "something else")):
        folder = tmp_path / str(number)
        folder.mkdir()
        put_on_path("nginx", says, folder, monkeypatch)
        with pytest.raises(Unsupported, match=r"programs/nginx is built without HTTP/3; run: trifecta get nginx"):
            Nginx().find()


def test_a_missing_one_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path))
    monkeypatch.setattr("trifecta.implementations.recipes.debian.shutil.which", lambda *_, **__: None)
    with pytest.raises(Unsupported, match="run: trifecta get nginx"):
        Nginx().find()


def test_options_are_in_the_configuration(fake: Path, tmp_path: Path) -> None:
    lines = _configuration(tmp_path, ServerOptions(tcp_nodelay=False, zero_rtt=True, max_streams=300))
    for line in (
        "master_process off;", "access_log off;", "listen 127.0.0.1:9443 ssl;", "listen 127.0.0.1:9443 quic rcvbuf=4m;",
        "tcp_nodelay off;", "ssl_early_data on;", "ssl_protocols TLSv1.3;", "http2_max_concurrent_streams 300;",
        "http3_max_concurrent_streams 900;", "http2 on;", f'root "{tmp_path / "site"}";',
    ):  # fmt: skip
        assert line in lines


def test_tls_1_2_has_no_quic(fake: Path, tmp_path: Path) -> None:
    lines = _configuration(tmp_path, ServerOptions(tls_version="1.2"))
    assert "ssl_protocols TLSv1.2;" in lines
    assert not [line for line in lines if " quic" in line]


def test_http_1_1_can_be_all_that_is_offered(fake: Path, tmp_path: Path) -> None:
    lines = _configuration(tmp_path, ServerOptions(offered=("h1",)))
    assert "http2 off;" in lines
    assert not [line for line in lines if " quic" in line]


def test_a_path_that_nginx_would_take_for_a_variable_is_refused(fake: Path, tmp_path: Path) -> None:
    odd = tmp_path / "a $folder"
    odd.mkdir()
    with pytest.raises(Unsupported, match=r"choose a folder without '\$'"):
        _configuration(odd, ServerOptions())


def test_what_static_files_cannot_answer_is_refused(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nginx = Nginx()
    for method in ("GET", "HEAD"):
        nginx.check_workload(RequestsWorkload(method=method))
    with pytest.raises(Unsupported, match="refuse POST"):
        nginx.check_workload(RequestsWorkload(method="POST"))
    nginx.check_workload(RequestsWorkload(zero_rtt=True))
    older = tmp_path / "older"
    older.mkdir()
    put_on_path("nginx", _SAYS.format(version="1.28.0", module=_HTTP3), older, monkeypatch)
    with pytest.raises(Unsupported, match=r"this is 1\.28\.0"):
        nginx.check_workload(RequestsWorkload(zero_rtt=True))


@real
@pytest.mark.parametrize(
    ("nodelay", "early", "tls"), list(itertools.product((True, False), (True, False), ("1.2", "1.3")))
)
def test_nginx_takes_its_configuration_without_a_warning(nodelay: bool, early: bool, tls: str, tmp_path: Path) -> None:
    odd = tmp_path / 'a "quoted" folder'
    odd.mkdir()
    site = make_site(odd, "nginx", 9443)
    command = Nginx().command(site, ServerOptions(tcp_nodelay=nodelay, zero_rtt=early, tls_version=tls))
    done = subprocess.run(
        [*map(str, command.arguments), "-t"], capture_output=True, text=True, check=False,
        env={**os.environ, **command.environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "[warn]" not in done.stderr
    assert "test is successful" in done.stderr


@real
def test_nothing_of_nginx_outlives_a_kill(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    site = make_site(tmp_path, "nginx", port)
    command = Nginx().command(site, ServerOptions())
    process = subprocess.Popen(
        [*map(str, command.arguments)], env={**os.environ, **command.environment}, start_new_session=True
    )
    try:
        for _ in range(500):
            if (site.state / "nginx.pid").exists():
                break
            time.sleep(0.01)
        assert _session(process.pid) == [process.pid]  # what is timed and measured is this one process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        left = _session(process.pid)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    assert left == []


def _session(leader: int) -> list[int]:
    """Processes of a session (proc_pid_stat(5), field 6)."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(folder.name))
    return found


@real
@pytest.mark.lab
@pytest.mark.parametrize("wrapper", [(), IN_A_USER_NAMESPACE], ids=["root", "user"])
def test_a_study_of_nginx_has_no_failed_request(wrapper: tuple[str, ...], tmp_path: Path) -> None:
    settings = ["path=clean", "server=nginx", "budget=2 min", "blocks.at_least=1", "blocks.at_most=1"]
    code, _, outcome, errors = drive.finish(tmp_path / "run", set=settings, wrapper=wrapper)
    assert code == 0, errors
    rows = connect(tmp_path / "run").sql("select protocol, connection, samples, errors from trials").fetchall()
    assert len(rows) == outcome["trials"] == 8
    assert {(protocol, connection) for protocol, connection, _, _ in rows} == set(
        itertools.product(("h1", "h2", "h3"), ("new", "reused"))
    )
    assert all(samples > 0 and failed == 0 for _, _, samples, failed in rows)


@real
@pytest.mark.lab
def test_full_buffers_on_every_stream_are_no_flood(tmp_path: Path) -> None:
    settings = [
        "path=clean", "server=nginx", "connection=reused", "protocol=h3", "baseline=h3", "requests=400",
        "response=1 MB", "in_flight=300", "budget=2 min", "blocks.at_least=1", "blocks.at_most=1",
    ]  # fmt: skip
    code, _, _, errors = drive.finish(tmp_path / "run", set=settings)
    assert code == 0, errors
    rows = connect(tmp_path / "run").sql("select samples, error_classes_json from trials").fetchall()
    assert rows
    assert all(samples > 0 and classes == "{}" for samples, classes in rows)
