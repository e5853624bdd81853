"""One server with a page archive, a live folder and Alt-Svc, in a sandbox: what it answers, as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.workloads.odd_page import CDN
from trifecta.implementations.clients.curl import curl_command
from trifecta.implementations.registry import SERVERS
from trifecta.implementations.running import RunningServer
from trifecta.implementations.server import ServerOptions, Site
from trifecta.lab import sandbox
from trifecta.lab.certificates import make_certificates
from trifecta.lab.host_graph import host_graph
from trifecta.lab.place import LocalPlace
from trifecta.workloads.replay_diff import read_head
from trifecta.workloads.replaying import ready

FLAGS = {"h1": "--http1.1", "h2": "--http2", "h3": "--http3-only"}


def main() -> None:
    page, work, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    live = work / "live folder"
    (live / "high").mkdir(parents=True)
    adapter = SERVERS[name]
    version = adapter.find()
    sandbox.enter()
    with host_graph(["server"], []) as lab:
        host, address = lab.host("server"), lab.address("server")
        place = LocalPlace(host)
        certificates = make_certificates(work / "pki", [CDN, f"{name}.lab"], [address])
        (work / "state").mkdir()
        site = Site(page, certificates, address, 443, work / "state", replay=page, live=live)
        options = ServerOptions(alt_svc=True)
        running = RunningServer(adapter, version, site, options, place, log=work / "log", cpus=None)
        command, environment = curl_command()

        def ask(path: str, *more: str, protocol: str = "h2") -> dict[str, Any]:
            with tempfile.TemporaryDirectory(dir=work) as folder:
                words = ["-q", "-sS", FLAGS[protocol], "--cacert", str(certificates.authority), "--noproxy", "*"]
                words += ["--connect-to", f"::{address}:443", "-D", f"{folder}/head", "-o", f"{folder}/body", "-m", "9"]
                asking = host.popen([*command, *words, *more, f"https://{CDN}{path}"], environment=environment,
                                    stdin=subprocess.DEVNULL)  # fmt: skip
                code = asking.wait()
                status, fields = read_head(Path(f"{folder}/head").read_bytes()) if code == 0 else (code, [])
                body = Path(f"{folder}/body")
                octets = body.read_bytes() if body.exists() else b""
                return {"status": status, "fields": dict(fields), "body": octets.decode("latin-1")}

        with ready(running, place, CDN, lambda: False):
            told: dict[str, Any] = {}
            (live / "list.m3u8").write_text("one")
            (live / "high" / "1.ts").write_bytes(bytes(range(256)) * 10)
            told["first"] = {protocol: ask("/live/list.m3u8", protocol=protocol) for protocol in FLAGS}
            (live / "list.m3u8").write_text("another")
            told["second"] = ask("/live/list.m3u8")
            told["part"] = ask("/live/high/1.ts", "-r", "97-99")
            told["beyond"] = ask("/live/high/1.ts", "-r", "9999-")
            told["none"] = ask("/live/none.ts")
            told["outside"] = ask("/live/%2e%2e/pki/ca.pem", "--path-as-is")
            told["clip"] = ask("/clip.mp4", "-r", "0-9")
            told["font"] = ask("/font.woff2", "-r", "0-9")
            told["unchanged"] = ask("/clip.mp4", "-H", 'if-none-match: "strong"')
            told["page"] = {protocol: ask("/dir/", protocol=protocol) for protocol in FLAGS}
            told["missing"] = ask("/not/there")
    print(json.dumps(told))


main()
