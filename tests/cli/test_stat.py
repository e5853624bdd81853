"""`trifecta stat`: what is shown, what a program reads, and the exit codes."""

import dataclasses
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tests.workloads.test_stat import certificates, origin
from trifecta.cli.main import run
from trifecta.design.stat import Attempt, RequestOptions, Target
from trifecta.lab.engine import find_engine
from trifecta.report import stat as view

__all__ = ["certificates"]  # a fixture

TARGET = Target("https://a.example/", "a.example", 443, "/")
PHASES = {"dns": 1_000_000, "tcp": 20_000_000, "tls": 21_000_000, "send": 50_000, "wait": 22_000_000}


def attempt(protocol="h1", error=None, status=200, bytes_in=5, scale=1):
    phases = {name: scale * length for name, length in PHASES.items()}
    total = None if error else sum(phases.values())
    spoken = None if error else protocol
    return Attempt(
        protocol,
        spoken,
        "192.0.2.1",
        phases,
        total,
        status,
        bytes_in,
        90,
        "1.3",
        "TLS_AES_128_GCM_SHA256",
        False,
        error,
    )


def shown(attempts, width=80):
    out = Console(width=width, record=True, highlight=False, file=io.StringIO())
    view.show(out, TARGET, RequestOptions(), attempts)
    return out.export_text()


def test_all_protocols_side_by_side(certificates, capsys):
    with origin(certificates) as port:
        code = run(["stat", f"https://localhost:{port}/bytes/1000", "--ca", str(certificates.authority)])
    said = capsys.readouterr().out
    assert code == 0
    for part in ("HTTP/1.1", "HTTP/2", "HTTP/3", "TCP connect", "QUIC handshake", "1.00 kB", "This is no verdict"):
        assert part in said


def test_json_and_a_protocol_that_is_not_there(certificates, capsys):
    with origin(certificates, ["h2"]) as port:
        url = f"https://localhost:{port}/bytes/1000"
        code = run(["stat", url, "--ca", str(certificates.authority), "--json", "--count", "2"])
    said = json.loads(capsys.readouterr().out)
    assert code == 0
    assert {name: one["answered"] for name, one in said["protocols"].items()} == {"h1": 0, "h2": 2, "h3": 0}
    assert said["protocols"]["h2"]["median_ns"]["total"] > 0
    assert said["protocols"]["h1"]["attempts"][0]["error"] == "tls:alpn"


def test_nobody_answers(certificates, capsys):
    with origin(certificates) as port:
        pass
    assert run(["stat", f"https://localhost:{port}/", "--ca", str(certificates.authority)]) == 1
    assert "HTTP/3: connect_refused: nothing listens there (UDP port" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["http://localhost/"], "http is not measured"),
        (["localhost", "--protocol", "h4"], "option --protocol: 'h4' is none of h1, h2, h3"),
        (["localhost", "--protocol", ","], "option --protocol: is empty; give some of h1, h2, h3"),
        (["localhost", "--address", "here"], "is not an IP address"),
        (["localhost", "--timeout", "10"], "option --timeout"),
        (["localhost", "--ca", "/nonexistent"], "does not exist"),
    ],
)
def test_bad_input_is_one_line(arguments, why, capsys):
    assert run(["stat", *arguments]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ({"h1": "socket:EPERM", "h2": "socket:EPERM", "h3": "ports_exhausted"}, 3),
        ({"h1": "socket:EPERM", "h2": "socket:EPERM", "h3": None}, 3),
        ({"h1": "tls:alpn", "h2": None}, 0),
        ({"h1": "tls:alpn", "h3": "quic:timeout"}, 1),
    ],
)
def test_what_this_machine_refuses_is_no_fault_of_the_server(certificates, errors, code, monkeypatch, capsys):
    made = {name: [attempt(name, error, None if error else 200)] for name, error in errors.items()}
    monkeypatch.setattr("trifecta.workloads.stat.ask", lambda *_, **__: made)
    assert run(["stat", "https://localhost/", "--ca", str(certificates.authority)]) == code
    said = " ".join(capsys.readouterr().out.split())
    assert ("this machine" in said.split("This is no verdict")[0].split("its own network")[1]) == (code == 3)


def only_what_all_may_set():
    """Skip where cubic is allowed to everybody, or this process cannot be made an ordinary user's."""
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    if "cubic" in allowed or shutil.which("setpriv") is None or os.geteuid() != 0:
        pytest.skip("needs root, setpriv, and a kernel that does not allow cubic to everybody")


def test_an_origin_that_may_not_set_its_congestion_control_says_so_with_the_errno(certificates):
    only_what_all_may_set()
    config = {"address": "127.0.0.1", "port": 0, "congestion_control": "cubic"}
    config |= {"certificate_file": str(certificates.chain), "key_file": str(certificates.key)}
    command = ["setpriv", "--bounding-set=-net_admin", find_engine(), "origin", "-"]
    done = subprocess.run(command, input=json.dumps(config) + "\n", capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "congestion_control: this user may not set cubic (EPERM)" in done.stderr


def test_an_ordinary_user_may_ask_where_cubic_is_not_allowed(certificates):
    """Root without CAP_NET_ADMIN is as an ordinary user here: the kernel refuses to set what is not allowed to all."""
    only_what_all_may_set()
    with origin(certificates) as port:
        url = f"https://localhost:{port}/bytes/1000"
        command = ["setpriv", "--bounding-set=-net_admin", sys.executable, "-m", "trifecta", "stat", url, "--json"]
        done = subprocess.run([*command, "--ca", certificates.authority], capture_output=True, check=False)
    assert done.returncode == 0
    assert [one["answered"] for one in json.loads(done.stdout)["protocols"].values()] == [1, 1, 1]


def test_content_that_came_with_the_first_octet_took_no_time_in_every_request():
    one = attempt()
    alike = dataclasses.replace(one, phases_ns={**one.phases_ns, "transfer": 0})
    (line,) = [line for line in shown({"h1": [alike, alike]}).splitlines() if line.startswith("content  ")][:1]
    assert line.split() == ["content", "0", "ns"]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_it_fits_the_terminal(width):
    text = shown({name: [attempt(name), attempt(name, scale=3)] for name in ("h1", "h2", "h3")}, width)
    assert max(map(len, text.splitlines())) <= width
    assert "64.0" in text  # the median of 64 and 192 ms is 128; the bar is of the first
    assert "128 ms" in text


@pytest.mark.parametrize(
    ("attempts", "note"),
    [
        ({"h1": [attempt(status=301)]}, "was not followed"),
        ({"h1": [attempt(status=404)]}, "what was timed is its refusal"),
        ({"h1": [attempt()], "h2": [attempt("h2", status=304)]}, "different status codes"),
        ({"h1": [attempt(), attempt(status=301)]}, "Some responses are redirects"),
        ({"h3": [attempt("h3"), attempt("h3", status=404)]}, "refused some of the requests"),
        ({"h3": [attempt("h3", status=503)]}, "answered with an error of its own; what was timed is that answer"),
        ({"h3": [attempt("h3"), attempt("h3", status=503)]}, "answered some of the requests with an error"),
        ({"h3": [attempt("h3"), attempt("h3", status=503)]}, "The requests got different status codes"),
        ({"h1": [attempt()], "h2": [attempt("h2"), attempt("h2", status=500)]}, "The protocols got different status"),
        ({"h1": [attempt()], "h2": [attempt("h2", bytes_in=6)]}, "differ in length"),
        ({"h1": [attempt()]}, "A single request says little"),
        ({"h1": [attempt(), attempt(error="closed", status=None)]}, "closed (1 of 2 requests)"),
        ({"h2": [attempt("h2", error="malformed:http2", status=None)]}, "what arrived is not HTTP/2"),
        (
            {"h3": [attempt("h3", error="connect_timeout", status=None)]},
            "no connection was established in time (UDP port 443); HTTP/3 is not offered there",
        ),
        ({"h3": [attempt("h3", error="something", status=None)]}, "it failed (something)"),
        ({"h2": [attempt("h2", error="tls:certificate", status=None)]}, "--ca FILE, or serve a certificate"),
        (
            {"h2": [attempt("h2", error="malformed:http1_over_http2", status=None)]},
            "HTTP/1.1 was answered although HTTP/2",
        ),
        (
            {"h2": [attempt("h2", error="socket:EPERM", status=None)]},
            "(Operation not permitted), the server",
        ),
        ({"h2": [attempt("h2", error="socket", status=None)]}, "refused the socket, the server was not contacted"),
        ({"h1": [attempt(error="ports_exhausted", status=None)]}, "no free port left"),
    ],
)
def test_what_is_said_of_it(attempts, note):
    assert note in " ".join(shown(attempts, 200).split())
