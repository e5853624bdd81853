"""The adapter of HAProxy: what it writes and refuses; and, where HAProxy 3 is installed, it and its backend."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.implementations.fake_program import make_site, put_on_path
from tests.workloads import drive
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.server import ServerOptions, Unsupported
from trifecta.implementations.servers.haproxy import HAProxy
from trifecta.implementations.servers.origin_backend import BACKEND_ADDRESS, BACKEND_LINK
from trifecta.store.views import connect

_SAYS = """HAProxy version {version} 2026/10/14 - https://haproxy.org/
  OPTIONS = USE_OPENSSL=1 USE_QUIC=1
Feature list : -51DEGREES +ACCEPT4 {features} +RT
Running on SSL library version : OpenSSL 3.6.5 29 Sep 2026"""
_ONE_BLOCK = ["path=clean", "server=haproxy", "budget=2 min", "blocks.at_least=1", "blocks.at_most=1"]


def _why_not() -> str | None:
    try:
        HAProxy().find()
    except Unsupported as error:
        return str(error)
    return None


real = pytest.mark.skipif(_why_not() is not None, reason=str(_why_not()))


def _fake(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str = "3.2.26-1", features: str = "+QUIC ") -> None:
    folder.mkdir(exist_ok=True)
    put_on_path("haproxy", _SAYS.format(version=version, features=features), folder, monkeypatch)


def _configuration(tmp_path: Path, options: ServerOptions) -> list[str]:
    site = make_site(tmp_path, "haproxy", 9444)
    HAProxy().command(site, options)
    return [line.strip() for line in (site.state / "haproxy.cfg").read_text().splitlines()]


def test_it_tells_version_library_and_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, monkeypatch)
    assert HAProxy().find() == "3.2.26-1"
    assert HAProxy().declared(ServerOptions(congestion_control="reno", tcp_nodelay=False)) == {
        "congestion_control": {"tcp": "reno", "quic": "reno"},
        "tcp_nodelay": True,
        "tls_library": "OpenSSL 3.6.5 29 Sep 2026",
        "build": "on PATH; USE_OPENSSL=1 USE_QUIC=1",
    }


@pytest.mark.parametrize(("version", "features"), [("2.6.12-1", "+QUIC "), ("3.2.0", "-QUIC "), ("", "")])
def test_one_too_old_or_without_quic_is_not_found(
    version: str, features: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(tmp_path, monkeypatch, version, features)
    with pytest.raises(Unsupported, match=r"older than 3\.0 or built without QUIC; run: trifecta get haproxy"):
        HAProxy().find()


def test_a_missing_one_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path))
    monkeypatch.setattr("trifecta.implementations.recipes.debian.shutil.which", lambda *_, **__: None)
    with pytest.raises(Unsupported, match="run: trifecta get haproxy"):
        HAProxy().find()


def test_options_are_in_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, monkeypatch)
    lines = _configuration(tmp_path, ServerOptions(congestion_control="reno", zero_rtt=True, max_streams=300))
    tls = "ssl crt @lab/site"
    assert f"bind 127.0.0.1:9444 {tls} alpn h2,http/1.1 ssl-min-ver TLSv1.3 ssl-max-ver TLSv1.3 allow-0rtt" in lines
    assert f"bind quic4@127.0.0.1:9444 {tls} alpn h3 quic-cc-algo newreno allow-0rtt" in lines
    assert {"tune.h2.fe.max-concurrent-streams 300", "tune.quic.frontend.max-streams-bidi 300"} <= set(lines)
    assert {"retries 0", "tune.rcvbuf.frontend 4194304"} <= set(lines)
    assert "limited-quic" not in lines


def test_the_backend_is_verified_and_kept_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, monkeypatch)
    (line,) = (line for line in _configuration(tmp_path, ServerOptions()) if line.startswith("server origin"))
    assert f"{BACKEND_ADDRESS}:9444 ssl verify required ca-file '{tmp_path / 'pki' / 'ca.pem'}'" in line
    assert "sni str(haproxy.lab) alpn http/1.1 pool-max-conn -1" in line


def test_tls_1_2_has_no_quic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, monkeypatch)
    lines = _configuration(tmp_path, ServerOptions(tls_version="1.2"))
    assert not [line for line in lines if line.startswith("bind quic")]
    assert [line for line in lines if "ssl-max-ver TLSv1.2" in line]


def test_quic_without_openssl_s_own_interface_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, monkeypatch, "3.0.11-1", "+QUIC +QUIC_OPENSSL_COMPAT ")
    assert "limited-quic" in _configuration(tmp_path, ServerOptions())
    with pytest.raises(Unsupported, match="0-RTT over TCP only"):
        HAProxy().check_workload(RequestsWorkload(zero_rtt=True))
    with pytest.raises(Unsupported, match=r"HAProxy 3\.0\.11-1 has no BBR"):
        HAProxy().check_workload(RequestsWorkload(congestion_control="bbr"))
    HAProxy().check_workload(RequestsWorkload(method="POST"))


def test_a_path_with_an_apostrophe_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, monkeypatch)
    odd = tmp_path / "it's"
    odd.mkdir()
    with pytest.raises(Unsupported, match="without an apostrophe"):
        _configuration(odd, ServerOptions())


def test_the_origin_behind_it_speaks_http1_where_no_site_listens(tmp_path: Path) -> None:
    site = make_site(tmp_path, "haproxy", 9444)
    (backend,) = HAProxy().backends(site, ServerOptions(tls_version="1.2", zero_rtt=True))
    config = json.loads(Path(backend.command.arguments[-1]).read_text())
    assert (config["address"], config["port"], config["protocols"]) == (BACKEND_ADDRESS, 9444, ["h1"])
    assert config["tls_versions"] == ["1.3"]
    assert config["idle_timeout_ns"] > 3600 * 10**9
    assert (backend.name, backend.link) == ("origin", BACKEND_LINK)


@real
@pytest.mark.parametrize(
    ("algorithm", "early", "tls"), list(itertools.product(("cubic", "reno", "bbr"), (True, False), ("1.2", "1.3")))
)
def test_haproxy_takes_its_configuration_without_a_warning(
    algorithm: str, early: bool, tls: str, tmp_path: Path
) -> None:
    odd = tmp_path / 'a "quoted" $folder'
    odd.mkdir()
    site = make_site(odd, "haproxy", 9444)
    command = HAProxy().command(
        site, ServerOptions(congestion_control=algorithm, zero_rtt=early, tls_version=tls, tcp_nodelay=True)
    )
    done = subprocess.run(
        [*map(str, command.arguments), "-c"], capture_output=True, text=True, check=False,
        env={**os.environ, **command.environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "[WARNING]" not in done.stderr


def _trials(run: Path) -> list[dict[str, Any]]:
    found = connect(run).sql("select protocol, samples, errors, error_classes_json, error, server_json from trials")
    names = ("protocol", "samples", "errors", "classes", "error", "server")
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@real
@pytest.mark.lab
@pytest.mark.parametrize(
    "settings", [["connection=new,reused"], ["connection=reused", "method=POST", "request=100 kB"]]
)
def test_a_study_through_haproxy_has_no_failed_request(settings: list[str], tmp_path: Path) -> None:
    code, _, _, errors = drive.finish(tmp_path / "run", set=[*_ONE_BLOCK, *settings])
    assert code == 0, errors
    trials = _trials(tmp_path / "run")
    assert {trial["protocol"] for trial in trials} == {"h1", "h2", "h3"}
    assert all(trial["samples"] > 0 and trial["classes"] == "{}" for trial in trials)
    for trial in trials:
        server = json.loads(trial["server"])
        assert server["proxy"] is True
        assert server["backend"].startswith("origin ")
        assert server["backend_link"] == BACKEND_LINK
        assert server["cpu_ns"] > 0
        assert server["backend_cpu_ns"] > 0
        assert server["backend_congestion_control"] == "cubic"


@real
@pytest.mark.lab
def test_handshakes_that_stall_are_failed_samples(tmp_path: Path) -> None:
    """As HAProxy 3.0 does now and then over HTTP/3: it takes the datagrams and never answers."""
    settings = [
        "connection=new", "protocol=h3", "baseline=h3", "requests=30", "warmup=0", "in_flight=10",
        "connect_timeout=500 ms",
    ]  # fmt: skip
    process = drive.start(tmp_path / "run", set=[*_ONE_BLOCK, *settings])
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith('["trial_started"'):
            os.kill(_find("haproxy.cfg", tmp_path), signal.SIGSTOP)
            break
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    trials = _trials(tmp_path / "run")
    assert len(trials) == 2
    assert trials[-1]["samples"] > 0
    assert trials[-1]["samples"] == trials[-1]["errors"]
    # The load gives up after 20 failures in a row; what was in flight then is there too.
    classes = json.loads(trials[-1]["classes"])
    assert classes["connect_timeout"] >= 20
    assert set(classes) <= {"connect_timeout", "interrupted"}


@real
@pytest.mark.lab
def test_a_backend_that_dies_is_named_and_started_again(tmp_path: Path) -> None:
    process = drive.start(tmp_path / "run", set=[*_ONE_BLOCK, "connection=reused", "requests=3000"])
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith('["trial_started"'):
            os.kill(_find("backend/origin.json", tmp_path), signal.SIGKILL)
            break
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    first, *others = _trials(tmp_path / "run")
    assert "backend origin of haproxy was killed by signal 9" in str(first["error"])
    assert [(trial["error"], trial["classes"]) for trial in others] == [(None, "{}")] * 3
    assert json.loads(others[0]["server"])["restarts"] == 1


def _find(word: str, folder: Path) -> int:
    """The process whose command line names a file below ``folder``."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode()
            except OSError:
                continue
            if word in line and str(folder) in line:
                return int(entry.name)
    raise AssertionError(f"no process uses {word}")
