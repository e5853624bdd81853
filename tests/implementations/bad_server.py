"""Servers that are wrong on purpose, each in one way, as adapters; and the program some of them run."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from msgspec import structs

from trifecta.contract.codec import changed, encode
from trifecta.contract.origin import OriginConfig
from trifecta.implementations.server import Command, ServerAdapter, ServerOptions, Site
from trifecta.implementations.servers.caddy import Caddy
from trifecta.implementations.servers.origin import Origin
from trifecta.lab.certificates import make_certificates
from trifecta.lab.engine import find_engine


class _Changed(Origin):
    """The origin with a changed configuration."""

    changes: dict[str, Any] = {}  # noqa: RUF012

    def config(self, site: Site, options: ServerOptions) -> OriginConfig:
        return changed(super().config(site, options), self.changes)


class Liar(_Changed):
    """Says HTTP/3, but nothing listens on UDP: it answers HTTP/2 only."""

    name = "liar"
    ready_within_s = 4.0  # over HTTP/3 it never is, and this is waited for in full
    changes = {"protocols": ["h1", "h2"]}  # noqa: RUF012


class ClosesEarly(_Changed):
    """Announces an octet more than it sends."""

    name = "closes-early"
    changes = {"faults": {"truncate_bytes": 1}}  # noqa: RUF012


class Silent(_Changed):
    """Accepts connections and requests, and never answers."""

    name = "silent"
    changes = {"faults": {"stall": True}}  # noqa: RUF012


class WrongCertificate(Origin):
    """Has a certificate of an authority that nobody here trusts."""

    name = "wrong-certificate"

    def config(self, site: Site, options: ServerOptions) -> OriginConfig:
        other = make_certificates(site.state / "other", [f"{self.name}.lab"], [site.address])
        return structs.replace(
            super().config(site, options), certificate_file=str(other.chain), key_file=str(other.key)
        )


class _OtherFiles(Caddy):
    """Caddy with a site of its own."""

    def content(self, size: int) -> bytes:
        raise NotImplementedError

    def command(self, site: Site, options: ServerOptions) -> Command:
        folder = site.state / "site" / "bytes"
        folder.mkdir(parents=True, exist_ok=True)
        for file in (site.folder / "bytes").iterdir():
            (folder / file.name).write_bytes(self.content(int(file.name)))
        from dataclasses import replace

        return super().command(replace(site, folder=folder.parent), options)


class WrongBytes(_OtherFiles):
    """The last octet of every object is another."""

    name = "wrong-bytes"

    def content(self, size: int) -> bytes:
        right = bytes(0x61 + i % 26 for i in range(size))
        return right[:-1] + b"!" if size else b""


class WrongLength(_OtherFiles):
    """Every object has an octet more, and says so."""

    name = "wrong-length"

    def content(self, size: int) -> bytes:
        return bytes(0x61 + i % 26 for i in range(size + 1))


class CutsLarge(_OtherFiles):
    """Serves small objects well, and of every larger one an octet too little."""

    name = "cuts-large"

    def content(self, size: int) -> bytes:
        return bytes(0x61 + i % 26 for i in range(size - (size > 10_000)))


class _Program(ServerAdapter):
    """Runs this file."""

    source = "tests"

    def find(self) -> str:
        return "0"

    def command(self, site: Site, options: ServerOptions) -> Command:
        config = {
            "mode": self.name,
            "address": site.address,
            "port": site.port,
            "chain": str(site.certificates.chain),
            "key": str(site.certificates.key),
            "origin": [str(find_engine()), "origin", str(self._origin(site, options))],
        }
        return Command((sys.executable, Path(__file__), json.dumps(config)))

    def _origin(self, site: Site, options: ServerOptions) -> Path:
        path = site.state / "origin.json"
        path.write_bytes(encode(Origin().config(site, options)))
        return path


class HangsAtAccept(_Program):
    """Listens and never accepts; its UDP socket is never read."""

    name = "hangs-at-accept"


class CrashesAtStart(_Program):
    """Ends with a traceback."""

    name = "crashes-at-start"


class ExitsAtOnce(_Program):
    """Ends with code 0 and no message, as a server that goes into the background does."""

    name = "exits-at-once"


class CrashesAtRequest(_Program):
    """Dies by the first request."""

    name = "crashes-at-request"


class CrashesLater(_Program):
    """Serves HTTP/1.1 well and dies by a request for 1 MB."""

    name = "crashes-later"
    protocols = frozenset({"h1"})


class DiesForGood(_Program):
    """The origin until it has worked for a trial's requests; it ends in the midst and never comes up again."""

    name = "dies-for-good"


class PrintsMuch(_Program):
    """Prints 20 MB in one line before it serves as it should."""

    name = "prints-much"


class PrintsWithoutEnd(_Program):
    """Serves as it should and prints without end."""

    name = "prints-without-end"


class NotExecutable(_Program):
    """A file without the permission to execute it."""

    name = "not-executable"

    def command(self, site: Site, options: ServerOptions) -> Command:
        program = site.state / "program"
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o644)
        return Command((program,))


class RaisesInCommand(_Program):
    """An adapter with a fault of its own."""

    name = "raises-in-command"

    def command(self, site: Site, options: ServerOptions) -> Command:
        raise KeyError("no such\nthing")


class RaisesInFind(_Program):
    """An adapter whose search for the program has a fault."""

    name = "raises-in-find"

    def find(self) -> str:
        raise ValueError("what it prints is no version")


BAD: dict[str, type[ServerAdapter]] = {
    made.name: made
    for made in (
        Liar, ClosesEarly, Silent, WrongCertificate, WrongBytes, WrongLength, CutsLarge, HangsAtAccept, CrashesAtStart,
        ExitsAtOnce, CrashesAtRequest, CrashesLater, DiesForGood, PrintsMuch, PrintsWithoutEnd, NotExecutable,
        RaisesInCommand, RaisesInFind,
    )
}  # fmt: skip


def _cpu_ns(pid: int) -> int:
    """CPU time of all threads: proc(5) counts in ticks, of which a short trial may see none."""
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def _die_for_good(config: dict[str, Any]) -> None:
    """The origin until it has received enough for a trial; then never again."""
    mark = Path(config["origin"][2]).with_name("died")
    if mark.exists():
        raise SystemExit("it does not come up again")
    with subprocess.Popen(config["origin"]) as origin:
        while _cpu_ns(origin.pid) < 12_000_000:
            time.sleep(0.005)
        mark.touch()
        origin.kill()
    raise SystemExit("dies")


def _serve(config: dict[str, Any]) -> None:
    """HTTP/1.1 over TLS, one connection at a time, until it dies."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(config["chain"], config["key"])
    context.set_alpn_protocols(["http/1.1"])
    listener = socket.create_server((config["address"], config["port"]))
    while True:
        raw, _ = listener.accept()
        try:
            with context.wrap_socket(raw, server_side=True) as connection:
                _answer(connection, config["mode"])
        except OSError:
            continue


def _answer(connection: ssl.SSLSocket, mode: str) -> None:
    while True:
        head = b""
        while b"\r\n\r\n" not in head:
            chunk = connection.recv(65536)
            if not chunk:
                return
            head += chunk
        size = int(head.split()[1].rsplit(b"/", 1)[1])
        length = next(
            (int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length:")), 0
        )
        left = length - len(head.partition(b"\r\n\r\n")[2])
        while left > 0:
            left -= len(connection.recv(65536))
        if mode == "crashes-at-request" or (mode == "crashes-later" and size == 1_000_000):
            print("fatal: out of luck", file=sys.stderr, flush=True)
            os._exit(7)
        content = bytes(0x61 + i % 26 for i in range(size))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + content)


def main() -> None:
    """Be wrong."""
    config = json.loads(sys.argv[1])
    mode = config["mode"]
    if mode == "exits-at-once":
        return
    if mode == "crashes-at-start":
        raise RuntimeError("cannot find the meaning of line 1 of its configuration")
    if mode == "hangs-at-accept":
        with socket.create_server((config["address"], config["port"])), socket.socket(type=socket.SOCK_DGRAM) as udp:
            udp.bind((config["address"], config["port"]))
            time.sleep(3600)
    if mode == "prints-much":
        sys.stderr.write("blah " * 4_000_000)
        sys.stderr.flush()
        os.execv(config["origin"][0], config["origin"])
    if mode == "dies-for-good":
        _die_for_good(config)
    if mode == "prints-without-end":
        if os.fork() == 0:
            os.execv(config["origin"][0], config["origin"])
        while True:
            sys.stderr.write("blah " * 1000 + "\n")
    _serve(config)


if __name__ == "__main__":
    main()
