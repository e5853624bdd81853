"""An Internet of namespaces: origins, Caddy and nginx behind links of their own; one blocks UDP, one throttles it.

``anycast.lab`` has two addresses of IPv4, of ``fast`` and of ``distant``. Below ``/edge`` Caddy has a cache behind it
(``cold_cache``).

``python -m tests.workloads.internet FOLDER JSON`` raises it and runs ``trifecta`` in the client's host. JSON:
``{"commands": [[word, ...], ...], "nginx": whether it is there, "busy": {"2": RUN}}``, each word with ``{ca}`` filled
in. While the command of that number makes its RUN, Caddy asks for patience once, after three trials. Prints a line of
JSON for each command: exit code, and what was said.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from tests.workloads import cold_cache

PORT = 8443
ORIGINS = ("fast", "slow", "mute", "throttled", "distant")
HOSTS = ("client", *ORIGINS, "busy", "nginx")
DELAYS_NS = dict.fromkeys(HOSTS[1:], 5_000_000) | {"slow": 20_000_000, "distant": 40_000_000}
"""Each way, of the wire between the client and a host."""
CADDY = """{{
  admin off
  auto_https off
  persist_config off
  storage file_system {state}
}}
https://busy.lab:8443 {{
  tls {chain} {key}
  root * {site}
  log {{
    output file {log}
  }}
  @h3 {{
    path /cached
    protocol http/3
  }}
  @tcp {{
    path /cached
    not protocol http/3
  }}
  header /cached Age 7
  header @h3 X-Cache HIT
  header @tcp X-Cache MISS
  respond /cached "hello" 200
  @files path /pages/* /robots.txt
  file_server @files
  reverse_proxy /edge/* 127.0.0.1:{cache}
  header /patience Retry-After 1
  respond /patience 429
  @late file /busy
  route /later {{
    header @late Retry-After 1
    respond @late 429
    respond "hello" 200
  }}
}}
"""
AWAY = '"status":429'
"""In Caddy's log of requests."""


def main() -> int:
    folder, asked = Path(sys.argv[1]), json.loads(sys.argv[2])
    from trifecta.lab import sandbox

    sandbox.enter()

    from trifecta.contract.link import LinkReady
    from trifecta.contract.origin import OriginReady
    from trifecta.design.study import path
    from trifecta.lab.certificates import make_certificates
    from trifecta.lab.host_graph import host_graph
    from trifecta.lab.names import Names
    from trifecta.lab.paths import link_config
    from trifecta.lab.place import LocalPlace
    from trifecta.lab.topology import Wire

    (folder / "site").mkdir(parents=True)
    (folder / "site" / "page").write_text("x" * 3000)
    _pages(folder / "site")
    wires = [Wire("client", host, impaired=True) for host in HOSTS[1:]]
    with ExitStack() as stack:
        internet = stack.enter_context(host_graph(HOSTS, wires))
        names = {f"{host}.lab": (internet.address(host), internet.address_6(host)) for host in HOSTS[1:]}
        names["two.lab"] = (internet.address("fast"), internet.address_6("slow"))
        names["anycast.lab"] = (internet.address("fast"), internet.address("distant"))
        stack.enter_context(Names(internet.hosts.values(), names))
        certificates = make_certificates(folder / "pki", list(names), [one for pair in names.values() for one in pair])
        for wire in wires:
            link = stack.enter_context(LocalPlace(internet.middle(wire)).start("link", folder / f"link-{wire.b}.log"))
            way = path(wire.b, rtt=f"{2 * DELAYS_NS[wire.b] // 1_000_000} ms").spec()
            link.configure(link_config(way, 1))
            link.wait_ready(LinkReady, 10)
        for host in ORIGINS:
            origin = stack.enter_context(LocalPlace(internet.host(host)).start("origin", folder / f"{host}.log"))
            own = internet.address_6(host) if host == "slow" else internet.address(host)
            origin.configure(_origin(certificates, own, folder / "site"))
            origin.wait_ready(OriginReady, 10)
        add_filter(internet.host("mute"), f"add rule inet t in udp dport {PORT} drop")
        over = f"udp sport {PORT} limit rate over 200 kbytes/second drop"
        add_filter(internet.host("throttled"), f"add rule inet t out {over}")
        _caddy(stack, internet.host("busy"), folder, certificates)
        if asked["nginx"]:
            _nginx(stack, internet.host("nginx"), internet.address("nginx"), folder, certificates)
        for number, words in enumerate(asked["commands"]):
            command = [word.format(ca=certificates.authority) for word in words]
            process = internet.host("client").popen(
                [sys.executable, "-m", "trifecta.cli.main", *command],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            if (run := asked["busy"].get(str(number))) is not None:
                threading.Thread(target=_be_busy, args=(process, Path(run), folder), daemon=True).start()
            out, err = process.communicate(timeout=240)
            print(json.dumps({"code": process.returncode, "out": out.decode(), "err": err.decode()}), flush=True)
    return 0


def _pages(site: Path) -> None:
    """A page of two resources, one of three, the third of another host, and one that is forbidden to everybody."""
    (site / "pages").mkdir()
    (site / "robots.txt").write_text("User-agent: *\nAllow: /\nDisallow: /pages/secret\n")
    head = "<!doctype html><link rel=icon href=data:,><link rel=stylesheet href=a.css><p>A page."
    (site / "pages" / "two.html").write_text(head)
    (site / "pages" / "secret.html").write_text(head)
    (site / "pages" / "beside.html").write_text(f"{head}<img src=https://fast.lab:{PORT}/pages/b.svg>")
    (site / "pages" / "a.css").write_text("p { color: navy }" + "/* . */" * 500)
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0h9v9z"/></svg>'
    (site / "pages" / "b.svg").write_text(drawing)


def _origin(certificates: Any, address: str, folder: Path) -> Any:
    from trifecta.contract.origin import OriginConfig

    return OriginConfig(
        address=address,
        port=PORT,
        certificate_file=str(certificates.chain),
        key_file=str(certificates.key),
        folder=str(folder),
        alt_svc=True,
    )


def add_filter(host: Any, rule: str) -> None:
    """A filter of what a host takes or sends."""
    from trifecta.lab.conntrack import find_nft

    hooks = ("in { type filter hook input priority 0; }", "out { type filter hook output priority 0; }")
    lines = ["add table inet t", *(f"add chain inet t {hook}" for hook in hooks), rule]
    process = host.popen([find_nft(), "-f", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    _, said = process.communicate(("\n".join(lines) + "\n").encode())
    assert process.returncode == 0, said


def _caddy(stack: ExitStack, host: Any, folder: Path, certificates: Any) -> None:
    """Caddy, which answers as a delivery network with a cache does, and asks for patience."""
    from trifecta.implementations.servers.caddy import Caddy
    from trifecta.lab.place import LocalPlace

    config, state = folder / "Caddyfile", folder / "caddy"
    state.mkdir()
    places = {"state": state, "site": folder / "site", "log": folder / "access.log"}
    config.write_text(CADDY.format(**places, chain=certificates.chain, key=certificates.key, cache=cold_cache.PORT))
    cache = LocalPlace(host).run([sys.executable, "-m", "tests.workloads.cold_cache"], folder / "cache.log")
    stack.callback(cache.close)
    _await_port(cache, host, "127.0.0.1", folder / "cache.log", cold_cache.PORT)
    command = [Caddy().program(), "run", "--config", config, "--adapter", "caddyfile"]
    environment = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(state))
    running = LocalPlace(host).run(command, folder / "caddy.log", environment=environment)
    stack.callback(running.close)
    _await_port(running, host, "127.0.0.1", folder / "caddy.log")


def _nginx(stack: ExitStack, host: Any, address: str, folder: Path, certificates: Any) -> None:
    """nginx as the lab has it, with HTTP/3 announced."""
    from trifecta.implementations.server import ServerOptions, Site
    from trifecta.implementations.servers.nginx import Nginx
    from trifecta.lab.place import LocalPlace

    state = folder / "nginx"
    state.mkdir()
    site = Site(folder=folder / "site", certificates=certificates, address=address, port=PORT, state=state)
    command = Nginx().command(site, ServerOptions(alt_svc=True))
    log = folder / "nginx.log"
    running = LocalPlace(host).run(command.arguments, log, environment=command.environment)
    stack.callback(running.close)
    _await_port(running, host, address, log)


def _await_port(running: Any, host: Any, address: str, log: Path, port: int = PORT) -> None:
    """Wait until a program takes connections."""
    until = time.monotonic() + 20
    while True:
        with suppress(OSError), host.inside(), socket.create_connection((address, port), timeout=1):
            return
        assert running.running(), log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.05)


def _be_busy(process: subprocess.Popen[bytes], run: Path, folder: Path) -> None:
    """Ask for patience from the third trial on, until one was answered so."""
    flag, log = folder / "site" / "busy", folder / "access.log"
    before = log.read_text().count(AWAY) if log.exists() else 0
    while process.poll() is None and (not log.exists() or log.read_text().count(AWAY) == before):
        if len([*(run / "trials").glob("t*.parquet")]) >= 3:
            flag.touch()
        time.sleep(0.01)
    flag.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
