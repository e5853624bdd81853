"""A recording proxy on loopback: writes every response as it was sent. Run in mitmproxy's own environment.

Standard input: a line with the configuration ``{"work", "ca", "resolve"}``, then ``{"visit": n}`` when a visit begins;
when it is closed the proxy ends. Standard output, a JSON line each: ``{"ready": {"port", "version"}}``, then a flow
each. Contents go to ``work/bodies``, named by their SHA-256. Nothing of a request but method and URL is told.
"""

import asyncio
import ctypes
import hashlib
import json
import os
import signal
import sys
from importlib.metadata import version
from pathlib import Path

from mitmproxy import http, options
from mitmproxy.tools.dump import DumpMaster

PR_SET_PDEATHSIG = 1
# What a replay cannot honour: parts of content, dictionaries of earlier visits, conditions of a cache.
DROPPED = ("range", "if-range", "available-dictionary", "dictionary-id", "if-none-match", "if-modified-since")


def tell(value: dict) -> None:
    """One line for the parent."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


class Recorder:
    """Looks at every flow; an addon (docs.mitmproxy.org, addons)."""

    def __init__(self, work: Path, resolve: dict) -> None:
        self.bodies = work / "bodies"
        self.bodies.mkdir(parents=True, exist_ok=True)
        self.resolve = resolve
        self.visit = 0
        self.open = {}

    def server_connect(self, data) -> None:
        """Somewhere else, where that was asked for; the name in TLS stays."""
        host, port = data.server.address
        for name in (f"{host}:{port}", host):
            if name in self.resolve:
                address, other = self.resolve[name]
                data.server.address = (address, other or port)
                return

    def request(self, flow: http.HTTPFlow) -> None:
        """Begins."""
        for name in DROPPED:
            flow.request.headers.pop(name, None)
        self.open[flow.id] = flow, self.visit
        if flow.request.headers.get("service-worker") == "script":
            flow.metadata["note"] = "service-worker"
            flow.response = http.Response.make(404)

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """An endless response is passed on while it comes, or the page would wait for it for ever."""
        if flow.response.headers.get("content-type", "").startswith("text/event-stream"):
            flow.response.stream = True
            flow.metadata["note"] = "stream"

    def websocket_start(self, flow: http.HTTPFlow) -> None:
        """Another protocol from here on."""
        self.end(flow, note="websocket")

    def response(self, flow: http.HTTPFlow) -> None:
        """Whole."""
        self.end(flow)

    def error(self, flow: http.HTTPFlow) -> None:
        """Broken."""
        self.end(flow, error=str(flow.error))

    def end(self, flow: http.HTTPFlow, note: str | None = None, error: str | None = None) -> None:
        """Tell of a flow, once."""
        _, visit = self.open.pop(flow.id, (None, None))
        if visit is None:
            return
        entry = {"visit": visit, "method": flow.request.method, "url": flow.request.pretty_url}
        entry |= {
            "note": note or flow.metadata.get("note"),
            "error": error,
            "status": None,
            "headers": [],
            "body": None,
        }
        if flow.response is not None and error is None and entry["note"] is None:
            content = flow.response.raw_content or b""
            digest = hashlib.sha256(content).hexdigest() if content else None
            if digest is not None and not (self.bodies / digest).exists():
                (self.bodies / digest).write_bytes(content)
            fields = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in flow.response.headers.fields]
            entry |= {"status": flow.response.status_code, "headers": fields, "body": digest}
        tell({"flow": entry})

    def end_all(self) -> None:
        """What is still open when the recording ends."""
        for flow, _ in list(self.open.values()):
            self.end(flow, error="had not ended when the recording ended")


async def main() -> None:
    """Serve until standard input is closed."""
    lines = asyncio.StreamReader(limit=2**20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    config = json.loads(await lines.readline())
    work = Path(config["work"])
    chosen = options.Options(listen_host="127.0.0.1", listen_port=0, confdir=str(work / "authority"))
    master = DumpMaster(chosen, with_termlog=False, with_dumper=False)
    recorder = Recorder(work, config["resolve"])
    master.addons.add(recorder)
    # Lazily, and without a look at the server's certificate: a server that fails then fails one request, with a reason.
    chosen.update(connection_strategy="lazy", upstream_cert=False, http3=False, anticomp=False)
    if config["ca"]:
        chosen.update(ssl_verify_upstream_trusted_ca=config["ca"])
    running = asyncio.create_task(master.run())
    server = master.addons.get("proxyserver")
    while not server.listen_addrs() and not running.done():
        await asyncio.sleep(0.02)
    if not running.done():
        tell({"ready": {"port": server.listen_addrs()[0][1], "version": version("mitmproxy")}})
        while line := await lines.readline():
            recorder.visit = json.loads(line)["visit"]
            tell({"visit": recorder.visit})
        recorder.end_all()
        master.shutdown()
    await running


if __name__ == "__main__":
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:
        sys.exit(3)  # the parent died before
    asyncio.run(main())
