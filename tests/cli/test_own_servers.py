"""Servers of the user's own, measured: a command line, an adapter as data, a compose service, builds of a server."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests import queries
from tests.cli.test_run import expected_code, trifecta
from tests.lab import engine_image
from trifecta.contract.codec import encode_pretty
from trifecta.implementations.recipes.debian import NGINX
from trifecta.implementations.registry import SERVERS
from trifecta.implementations.server import ServerOptions, Site
from trifecta.implementations.servers.caddy import Caddy
from trifecta.implementations.servers.origin import Origin
from trifecta.lab.certificates import Certificates
from trifecta.lab.containers import docker_state
from trifecta.lab.engine import find_engine

STATE = docker_state("host")
needs_docker = pytest.mark.skipif(not STATE.usable, reason=f"{STATE.reason}; {STATE.remedy}")
pytestmark = pytest.mark.lab

TINY = ("--set", "path=clean", "--set", "connection=reused", "--set", "requests=60", "--quiet", "--out", "here")
PYTHON_SERVER = """\
import argparse, functools, http.server, ssl, sys

words = argparse.ArgumentParser()
for name in ("address", "port", "cert", "key", "root"):
    words.add_argument(f"--{name}")
said = words.parse_args()


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass


print("the one of the user", flush=True)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(said.cert, said.key)
context.minimum_version = ssl.TLSVersion.TLSv1_3
context.set_alpn_protocols(["http/1.1"])
made = http.server.ThreadingHTTPServer((said.address, int(said.port)), functools.partial(Handler, directory=said.root))
made.socket = context.wrap_socket(made.socket, server_side=True, do_handshake_on_connect=False)
made.serve_forever()
"""


def facts(folder: Path) -> dict:
    return json.loads((folder / "here" / "run.json").read_text())


def rows(folder: Path, query: str) -> list[dict]:
    return queries.rows(folder / "here", query)


def test_a_command_line_is_measured(tmp_path: Path) -> None:
    code = tmp_path / "a server's.py"
    code.write_text(PYTHON_SERVER)
    line = f'cmd:{shlex.quote(sys.executable)} -P "./{code.name}" --address {{address}} --port {{port}}'
    line += " --cert {cert} --key {key} --root {root}"
    alone = ("--set", "protocol=h1", "--set", "baseline=h1", "--blocks", "1")
    done = trifecta("race", "--server", f"mine={line}", *alone, *TINY, cwd=tmp_path)
    assert done.returncode == expected_code("here", tmp_path), done.stderr
    found = facts(tmp_path)["servers"]["mine"]
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (Path(sys.executable), code)]
    assert found["sha256"] == hashlib.sha256("".join(digests).encode()).hexdigest()
    assert found["version"].startswith("Python 3.")
    counted = rows(tmp_path, "SELECT server, count(*) AS n, sum(errors) AS errors FROM trials GROUP BY server")
    assert counted == [{"server": "mine", "n": 2, "errors": 0}]
    assert "the one of the user" in (tmp_path / "here/logs/mine-0.log").read_text()
    asked = "SELECT DISTINCT status, evidence FROM checks WHERE \"check\" = 'parity' AND status <> 'pass'"
    assert rows(tmp_path, asked) == [], "what is known of TCP is the lab's own"
    moved = trifecta("resume", str(tmp_path / "here"), "--blocks", "1", "--quiet", cwd=Path("/"))
    assert moved.returncode in (0, 1), moved.stderr
    code.write_text(PYTHON_SERVER + "\n")
    changed = trifecta("resume", "here", "--blocks", "1", "--quiet", cwd=tmp_path)
    assert changed.returncode == 2
    assert "server mine is another program than this run began with" in changed.stderr


def origin_as_data() -> str:
    """An adapter's file for the engine's origin, which Trifecta knows better than it says here."""
    pki = Certificates(Path("{authority}"), Path("{cert}"), Path("{key}"))
    site = Site(Path("{root}"), pki, "{address}", 1, Path("{state}"))
    config = json.loads(encode_pretty(Origin().config(site, ServerOptions(congestion_control="{congestion_control}"))))
    text = json.dumps({**config, "port": "{port}"}).replace('"{port}"', "{port}")
    told = {
        "command": [str(find_engine()), "origin", "{state}/origin.json"],
        "version": "--version",
        "ready": {"says": '{"ready":', "within": "1 min"},
        "methods": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
        "tls_library": "rustls",
        "tcp_nodelay": "true",
        "files": {"origin.json": text},
    }
    return json.dumps(told, indent=1)  # JSON is YAML


def test_an_adapter_as_data_is_compared_with_another_server(tmp_path: Path) -> None:
    (tmp_path / "server.yaml").write_text(origin_as_data())
    compare = ("--compare", "server=origin,mine", "--server", "mine=./server.yaml", "--set", "protocol=h2,h3")
    done = trifecta("race", *compare, "--blocks", "2", *TINY, cwd=tmp_path)
    assert done.returncode == expected_code("here", tmp_path), done.stderr
    asked = "SELECT arm, count(*) AS n, sum(errors) AS errors, sum(CAST(server_json->>'renewals' AS INT)) > 0 AS anew"
    seen = {row["arm"]: row for row in rows(tmp_path, f"{asked} FROM trials GROUP BY arm")}
    assert seen.keys() == {"origin", "origin#aa", "mine"}
    assert [row["errors"] for row in seen.values()] == [0, 0, 0]
    assert seen["mine"]["n"] == 4
    assert seen["mine"]["anew"], "it says when it is ready, so it is started for every block"
    found = facts(tmp_path)["servers"]["mine"]
    assert found["sha256"] == hashlib.sha256(find_engine().read_bytes()).hexdigest()
    kept = (tmp_path / "here/study.yaml").read_text()
    assert "origin.json" in kept, "the study holds the adapter, and needs its file no more"
    (query,) = rows(tmp_path, "SELECT count(*) AS n FROM checks WHERE \"check\" = 'parity' AND status = 'fail'")
    assert query["n"] == 0
    assert "mine" in (tmp_path / "here/report.html").read_text()


def compose_of_the_origin(folder: Path) -> None:
    """A compose file of the engine's origin, in an image that is built from nothing."""
    engine_image.write(folder / "image", 'USER 65534\nENTRYPOINT ["/trifecta-engine"]\nCMD ["none"]\n')
    (folder / "note").write_text("one")
    told = json.loads(origin_as_data())
    known = {name: told[name] for name in ("ready", "methods", "tls_library", "tcp_nodelay", "files")}
    service = {
        "build": "./image",
        "command": 'origin "{state}/origin.json"',
        "volumes": ["./note:/etc/note:ro"],
        "ports": ["443:443"],
        "restart": "always",
        "x-trifecta": known,
    }
    (folder / "compose.yaml").write_text(json.dumps({"services": {"web": service}}, indent=1))


@needs_docker
def test_a_service_of_a_compose_file_is_compared_with_a_process(tmp_path: Path) -> None:
    compose_of_the_origin(tmp_path)
    compare = ("--compare", "server=origin,web", "--server", "compose:./compose.yaml#web", "--set", "protocol=h2,h3")
    loud = [word for word in TINY if word != "--quiet"]
    done = trifecta("race", *compare, "--blocks", "2", *loud, cwd=tmp_path)
    assert done.returncode == expected_code("here", tmp_path), done.stderr
    said = " ".join(done.stderr.split())
    assert "server web: what its compose file says of ports, restart changes nothing here" in said
    asked = (
        "SELECT arm, count(*) AS n, sum(errors) AS errors, min(CAST(server_json->>'cpu_ns' AS BIGINT)) > 0 AS watched, "
        "sum(CAST(server_json->>'renewals' AS INT)) > 0 AS anew FROM trials GROUP BY arm"
    )
    seen = {row["arm"]: row for row in rows(tmp_path, asked)}
    assert seen.keys() == {"origin", "origin#aa", "web"}
    assert seen["web"] == {"arm": "web", "n": 4, "errors": 0, "watched": True, "anew": True}
    found = facts(tmp_path)["servers"]["web"]
    assert found["version"].startswith("built of sha256 ")
    assert len(found["sha256"]) == 64
    (query,) = rows(tmp_path, "SELECT count(*) AS n FROM checks WHERE \"check\" = 'parity' AND status = 'fail'")
    assert query["n"] == 0
    (log,) = (tmp_path / "here/logs").glob("web-*.log")
    assert '{"ready":' in log.read_text()
    assert (tmp_path / "here/logs/docker.log").is_file()
    (tmp_path / "compose.yaml").unlink()  # the study holds it
    again = trifecta("resume", str(tmp_path / "here"), "--blocks", "1", "--quiet", cwd=Path("/"))
    assert again.returncode in (0, 1), again.stderr
    (tmp_path / "note").write_text("two")
    changed = trifecta("resume", "here", "--blocks", "1", "--quiet", cwd=tmp_path)
    assert changed.returncode == 2
    assert "server web is another program than this run began with" in changed.stderr


@needs_docker
def test_a_service_whose_image_cannot_be_built_is_a_failure_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "Dockerfile").write_text("FROM scratch\nCOPY absent /\n")
    (tmp_path / "compose.yaml").write_text('services: {web: {build: ./image, command: "/web {port} {cert} {key}"}}\n')
    done = trifecta("race", "--server", "compose:./compose.yaml#web", "--blocks", "1", *TINY, cwd=tmp_path)
    assert done.returncode == 3
    assert "Docker Engine of server: the image of " in done.stderr
    assert "cannot be obtained (COPY failed" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def programs(kind: str, folder: Path) -> tuple[Path, Path]:
    """Two folders of builds with the same program."""
    made = tuple(folder / name / "objs" for name in ("build-a", "build-b"))
    for place in made:
        place.mkdir(parents=True)
        if kind == "caddy":
            shutil.copy(Caddy().program(), place / "caddy")
            continue
        program = NGINX.locate("usr/sbin/nginx")
        exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in program.variables)
        (place / "nginx").write_text(f'#!/bin/sh\n{exports} exec {shlex.join(program.arguments)} "$@"\n')
        (place / "nginx").chmod(0o755)
    return made


@pytest.mark.parametrize(
    "kind",
    [
        "caddy",
        pytest.param("nginx", marks=pytest.mark.skipif(not NGINX.installed(), reason="trifecta get nginx")),
    ],
)
def test_two_builds_are_levels_and_one_program_twice_is_told(tmp_path: Path, kind: str) -> None:
    programs(kind, tmp_path)
    (tmp_path / "s.yaml").write_text(
        "study: builds\nworkload: {response: 10 kB, requests: 60}\ncompare: server\nblocks: {at_least: 1, at_most: 1}\n"
        f"factors: {{protocol: [HTTP/3], server: [{kind}@./build-a, {kind}@./build-b/objs/{kind}]}}\n"
    )
    done = trifecta("run", "s.yaml", "--out", "here", cwd=tmp_path)
    assert done.returncode == expected_code("here", tmp_path), done.stderr
    levels = [f"{kind}@./build-a", f"{kind}@./build-b/objs/{kind}"]
    found = facts(tmp_path)["servers"]
    assert [*found] == levels
    assert {one["version"] for one in found.values()} == {SERVERS[kind].find()}
    assert len({one["sha256"] for one in found.values()}) == 1
    told = f"erver {levels[0]} and server {levels[1]} are one program (sha256 {found[levels[0]]['sha256'][:12]})"
    for said in (done.stdout, done.stderr, (tmp_path / "here/report.html").read_text()):
        assert told in " ".join(said.replace("\N{NO-BREAK SPACE}", " ").split())
    counted = rows(tmp_path, "SELECT server, sum(errors) AS errors FROM trials GROUP BY server ORDER BY server")
    assert counted == [{"server": level, "errors": 0} for level in levels]
    assert sorted(path.name.split("-")[0] for path in (tmp_path / "here/logs").glob(f"{kind}-*.log")) == [kind] * 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo no config; exit 7", "mine ended before it was ready: no config"),
        ("echo still loading; exec sleep 60", "mine does not answer within 1 s (h1: connect_refused 1): still loading"),
    ],
)
def test_one_that_does_not_come_up_is_a_failure_with_its_last_line(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "srv").write_text(f"#!/bin/sh\n{line}\n")
    (tmp_path / "srv").chmod(0o755)
    text = "command: ./srv {port} {cert} {key}\nversion: none\nready: {within: 1 s}\n"
    (tmp_path / "server.yaml").write_text(text)
    done = trifecta("race", "--server", "mine=./server.yaml", "--blocks", "1", *TINY, cwd=tmp_path)
    assert done.returncode == 3
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
