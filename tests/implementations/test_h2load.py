"""h2load: what it is asked, what its log and its report mean, and which builds are taken."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.implementations.live import requests_of
from tests.implementations.test_curl import job
from tests.lab.inside import run_inside
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.client import Output
from trifecta.implementations.clients import h2load as adapter
from trifecta.implementations.clients import quic_probe, records
from trifecta.implementations.clients.h2load import H2load
from trifecta.implementations.server import Unsupported

# A report of h2load 1.70, shortened.
REPORT = """\
starting benchmark...
spawning thread #0: 1 total client(s). 3 total requests
TLS Protocol: TLSv1.3
Cipher: TLS_AES_128_GCM_SHA256
Negotiated Group: x25519
Resumption: no
Application protocol: h3

finished in 23.75ms, 252.64 req/s, 257.49KB/s
requests: 3 total, 3 started, 3 done, 3 succeeded, 0 failed, 0 errored, 0 timeout
traffic: 6.12KB (6262) total, 216B (216) headers (space savings 53.85%), 78B (78) data
UDP datagram: 14 sent, 8 received
"""
LOG = "1795313729798564\t200\t682\n1795313729797682\t200\t1788\n1795313729799301\t200\t1569\n"


def output(folder: Path, report: str = REPORT, log: str | None = LOG, code: int = 0) -> Output:
    (folder / "stdout").write_text(report)
    if log is not None:
        (folder / "log").write_text(log)
    wall_ns = 1_795_313_729 * 10**9
    return Output(code, folder / "stdout", folder / "stderr", began_ns=0, began_wall_ns=wall_ns, ended_ns=10**10)


def complete(folder: Path, given: Output, *, killed: bool = False) -> list[dict[str, Any]]:
    asked = job(folder, protocol="h3")
    return records.complete("t00001", asked, given, H2load().rows(asked, given), killed=killed)


def test_a_line_is_a_request(tmp_path: Path) -> None:
    found = complete(tmp_path, output(tmp_path))
    assert [row["started_ns"] for row in found] == [797_682_000, 798_564_000, 799_301_000]
    assert [row["done_ns"] - row["started_ns"] for row in found] == [1_788_000, 682_000, 1_569_000]
    assert {(row["protocol"], row["tls_version"], row["cipher"], row["bytes_in"], row["error"]) for row in found} == {
        ("h3", "TLSv1.3", "TLS_AES_128_GCM_SHA256", 26, None)
    }
    assert "first_byte_ns" not in found[0]  # what it cannot tell is not made up


def test_the_protocol_that_was_spoken_is_told(tmp_path: Path) -> None:
    found = complete(tmp_path, output(tmp_path, REPORT.replace("protocol: h3", "protocol: http/1.1")))
    assert {row["protocol"] for row in found} == {"h1"}


@pytest.mark.parametrize(
    ("report", "log", "errors"),
    [
        (REPORT.replace("(78) data", "(79) data"), LOG, ["length"] * 3),
        (REPORT.replace("(78) data", "(75) data"), LOG, ["length"] * 3),
        (REPORT.replace("(78) data", "(52) data"), LOG.replace("\t200\t682", "\t-1\t682"), [None, "reset", None]),
        (REPORT, LOG.replace("\t200\t", "\t404\t"), ["status"] * 3),
        (REPORT.replace("(78) data", "(26) data"), LOG.splitlines(keepends=True)[0], [None] + ["client:missing"] * 2),
        (REPORT.replace("(78) data", "(0) data"), None, ["client:missing"] * 3),
    ],
)
def test_what_went_wrong_is_a_failed_request(
    tmp_path: Path, report: str, log: str | None, errors: list[str | None]
) -> None:
    assert [row["error"] for row in complete(tmp_path, output(tmp_path, report, log))] == errors


def test_a_kill_loses_no_request(tmp_path: Path) -> None:
    """Without its report neither length nor protocol is known, so nothing that it logged counts as right."""
    found = complete(tmp_path, output(tmp_path, "starting\n", LOG[:-5], code=-9), killed=True)
    assert [row["error"] for row in found] == ["length", "length", "timeout"]


def test_a_log_of_another_form_is_not_understood(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        complete(tmp_path, output(tmp_path, REPORT, "yesterday\t200\t5\n"))


def test_the_command(tmp_path: Path) -> None:
    asked = job(tmp_path, protocol="h3", method="POST", request_body_bytes=3, keylog_file=tmp_path / "keys")
    command = H2load().command(asked)
    assert command.arguments == (
        "h2load", "--requests=3", "--clients=1", "--max-concurrent-streams=3", "--threads=1", "--alpn-list=h3",
        "--connect-to=10.77.0.2:8443", "--groups=X25519", "--tls13-ciphers=TLS_AES_128_GCM_SHA256", "--log-file=log",
        "--data=body", "https://origin.lab:8443/bytes/26",
    )  # fmt: skip
    assert command.environment == {"SSLKEYLOGFILE": str(tmp_path / "keys")}
    assert (tmp_path / "body").read_bytes() == b"aaa"


def program(folder: Path, body: str) -> str:
    path = folder / "h2load"
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


SENDS = """case "$1" in
--version) echo h2load nghttp2/1.70.0 ;;
--alpn-list=h3) exec {python} -c 'import socket, sys
port = int(sys.argv[1].rpartition(":")[2])
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto({datagram}, ("127.0.0.1", port))
{then}' "$3" ;;
esac
"""


def sending(folder: Path, datagram: str, then: str = "") -> str:
    return program(folder, SENDS.format(python=sys.executable, datagram=datagram, then=then))


@pytest.mark.parametrize("then", ["", "import time; time.sleep(60)"], ids=["ends", "waits for an answer"])
def test_a_build_that_sends_quic_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, then: str) -> None:
    path = sending(tmp_path, 'b"\\xc3" + bytes(1199)', then)
    monkeypatch.setattr(adapter.shutil, "which", lambda name: path)
    assert H2load().find() == "nghttp2/1.70.0"


@pytest.mark.parametrize(
    "body",
    ["exit 1", 'b"\\xc3" + bytes(100)', 'b"\\x43" + bytes(1199)'],
    ids=["ends", "is too short for QUIC", "sends something else"],
)
def test_a_build_without_http3_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str) -> None:
    path = program(tmp_path, body) if body == "exit 1" else sending(tmp_path, body)
    monkeypatch.setattr(adapter.shutil, "which", lambda name: path)
    with pytest.raises(Unsupported, match=r"built without; build nghttp2 with --enable-http3 \(docs/clients.md\)"):
        H2load().find()


def test_one_that_never_ends_and_sends_nothing_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = program(tmp_path, "exec sleep 60")
    monkeypatch.setattr(quic_probe, "_LIMIT_S", 0.2)
    monkeypatch.setattr(adapter.shutil, "which", lambda name: path)
    with pytest.raises(Unsupported, match="sends no QUIC"):
        H2load().find()


def test_without_one_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter.shutil, "which", lambda name: None)
    with pytest.raises(Unsupported, match="h2load is not on PATH; build nghttp2 with --enable-http3"):
        H2load().find()


def test_it_is_found_out_inside_the_sandbox_as_well(tmp_path: Path) -> None:
    path = sending(tmp_path, 'b"\\xc3" + bytes(1199)', "import time; time.sleep(60)")
    done = run_inside(f"""
        from trifecta.implementations.clients.quic_probe import begins_quic
        print(begins_quic(lambda port: [{path!r}, "--alpn-list=h3", "-n1", f"https://127.0.0.1:{{port}}"]))
    """)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize(
    ("changes", "connection"),
    [({}, "new"), ({"method": "HEAD"}, "reused"), ({"tls_version": "1.2"}, "reused")],
)
def test_what_it_cannot_do_is_refused(changes: dict[str, Any], connection: str) -> None:
    with pytest.raises(Unsupported, match="h2load"):
        H2load().check_workload(RequestsWorkload(requests=5, **changes), "h2", connection)
    H2load().check_workload(RequestsWorkload(requests=5), "h2", "reused")


def test_it_does_not_hide_what_it_leaves_out(tmp_path: Path) -> None:
    assert H2load().declared()["certificate_verified"] is False
    assert not H2load().compares_content(job(tmp_path))


@pytest.mark.parametrize("protocol", ["h1", "h2", "h3"])
def test_the_real_one(tmp_path: Path, protocol: str) -> None:
    try:
        H2load().find()
    except Unsupported as error:
        pytest.skip(str(error))
    summary, found = requests_of("h2load", tmp_path, protocol=protocol, connection_mode="reused")
    assert summary["errors"] == 0
    assert {(row["protocol"], row["error"]) for row in found} == {(protocol, None)}
