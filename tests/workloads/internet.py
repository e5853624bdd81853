"""An Internet of namespaces: origins and Caddy behind links of their own, one that blocks UDP, one that throttles it.

``python -m tests.workloads.internet FOLDER JSON`` raises it and runs ``trifecta`` in the client's host; JSON:
``{"commands": [[word, ...], ...]}``, each word with ``{ca}`` filled in. Prints a line of JSON for each: exit code, and
what was said.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

PORT = 8443
HOSTS = ("client", "fast", "slow", "mute", "throttled", "busy")
DELAYS_NS = {"fast": 5_000_000, "slow": 20_000_000, "mute": 5_000_000, "throttled": 5_000_000, "busy": 5_000_000}
"""Each way, of the wire between the client and a host."""
CADDY = """{{
  admin off
  auto_https off
  storage file_system {state}
}}
https://busy.lab:8443 {{
  tls {chain} {key}
  respond /cached "hello" 200
  header /cached X-Cache MISS
  header /cached Age 7
  @h3 protocol http/3
  header @h3 X-Cache HIT
  header /patience Retry-After 1
  respond /patience 429
}}
"""


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

    folder.mkdir(parents=True, exist_ok=True)
    wires = [Wire("client", host, impaired=True) for host in HOSTS[1:]]
    with ExitStack() as stack:
        internet = stack.enter_context(host_graph(HOSTS, wires))
        names = {f"{host}.lab": (internet.address(host), internet.address_6(host)) for host in HOSTS[1:]}
        names["two.lab"] = (internet.address("fast"), internet.address_6("slow"))
        stack.enter_context(Names(internet.hosts.values(), names))
        certificates = make_certificates(folder / "pki", list(names), [one for pair in names.values() for one in pair])
        for wire in wires:
            link = stack.enter_context(LocalPlace(internet.middle(wire)).start("link", folder / f"link-{wire.b}.log"))
            way = path(wire.b, rtt=f"{2 * DELAYS_NS[wire.b] // 1_000_000} ms").spec()
            link.configure(link_config(way, 1))
            link.wait_ready(LinkReady, 10)
        for host in HOSTS[1:-1]:
            origin = stack.enter_context(LocalPlace(internet.host(host)).start("origin", folder / f"{host}.log"))
            own = internet.address_6(host) if host == "slow" else internet.address(host)
            origin.configure(_origin(certificates, own))
            origin.wait_ready(OriginReady, 10)
        _filter(internet.host("mute"), f"add rule inet t in udp dport {PORT} drop")
        _filter(
            internet.host("throttled"), f"add rule inet t out udp sport {PORT} limit rate over 60 kbytes/second drop"
        )
        _caddy(stack, internet.host("busy"), folder, certificates)
        for words in asked["commands"]:
            command = [word.format(ca=certificates.authority) for word in words]
            process = internet.host("client").popen(
                [sys.executable, "-m", "trifecta.cli.main", *command],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            out, err = process.communicate(timeout=240)
            print(json.dumps({"code": process.returncode, "out": out.decode(), "err": err.decode()}), flush=True)
    return 0


def _origin(certificates: Any, address: str) -> Any:
    from trifecta.contract.origin import OriginConfig

    return OriginConfig(
        address=address,
        port=PORT,
        certificate_file=str(certificates.chain),
        key_file=str(certificates.key),
        alt_svc=True,
    )


def _filter(host: Any, rule: str) -> None:
    """A filter of what a host takes or sends."""
    hooks = ("in { type filter hook input priority 0; }", "out { type filter hook output priority 0; }")
    lines = ["add table inet t", *(f"add chain inet t {hook}" for hook in hooks), rule]
    process = host.popen(["nft", "-f", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    _, said = process.communicate("\n".join(lines).encode())
    assert process.returncode == 0, said


def _caddy(stack: ExitStack, host: Any, folder: Path, certificates: Any) -> None:
    """Caddy, which answers as a delivery network with a cache does, and asks for patience."""
    from trifecta.implementations.servers.caddy import Caddy
    from trifecta.lab.place import LocalPlace

    config = folder / "Caddyfile"
    config.write_text(CADDY.format(state=folder / "caddy", chain=certificates.chain, key=certificates.key))
    command = [Caddy().program(), "run", "--config", config, "--adapter", "caddyfile"]
    running = LocalPlace(host).run(command, folder / "caddy.log")
    stack.callback(running.close)
    until = time.monotonic() + 20
    while "serving initial configuration" not in (folder / "caddy.log").read_text():
        assert running.running(), (folder / "caddy.log").read_text()
        assert time.monotonic() < until, "Caddy did not come up"
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
