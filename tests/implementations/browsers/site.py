"""A small site on loopback for real browsers: the engine's origin with a folder, and places that fail."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.implementations.browsers.driving import config
from trifecta.implementations.registry import BROWSERS
from trifecta.implementations.server import Unsupported
from trifecta.lab.certificates import make_certificates
from trifecta.lab.engine import find_engine

HOSTS = ("www.light.lab", "cdn.light.lab", "www.other.test")
IMAGES = 8


def need(browser: str) -> None:
    """Skip the test where the browser is missing."""
    try:
        BROWSERS[browser].find()
    except Unsupported as error:
        pytest.skip(str(error))


@dataclass
class Site:
    """Where it is, and its files."""

    folder: Path
    authority: Path
    port: int
    refusing: int
    """A port on which nobody listens."""
    silence: socket.socket
    """Listens, takes connections and says nothing."""

    @property
    def silent(self) -> int:
        """Its port."""
        return self.silence.getsockname()[1]

    def forget_asked(self) -> None:
        """Take the connections that others left at the silent port."""
        self.silence.settimeout(0)
        with suppress(BlockingIOError):
            while True:
                self.silence.accept()[0].close()

    def wait_asked(self) -> None:
        """Wait until a page asks the silent port: it is on its way then."""
        self.silence.settimeout(30)
        self.silence.accept()[0].close()

    def config(self, out: Path, page: str = "index.html", **changes: Any) -> dict[str, Any]:
        """The configuration of a trial that visits a page of it."""
        return config(
            out,
            url=f"https://{HOSTS[0]}:{self.port}/{page}",
            hosts=list(HOSTS),
            addresses=dict.fromkeys(HOSTS, "127.0.0.1"),
            port=self.port,
            ca_file=str(self.authority),
            settle_ns=300_000_000,
            visits=1,
            **changes,
        )


@contextmanager
def serving(folder: Path, protocols: tuple[str, ...] = ("h1", "h2", "h3"), **more: Any) -> Iterator[Site]:
    """The site for as long as it is needed."""
    files = folder / "site"
    certificates = make_certificates(folder / "pki", HOSTS, ["127.0.0.1"])
    with socket.socket() as refusing, socket.create_server(("127.0.0.1", 0)) as silent:
        refusing.bind(("127.0.0.1", 0))
        document = {
            "address": "127.0.0.1", "port": 0, "certificate_file": str(certificates.chain),
            "key_file": str(certificates.key), "protocols": list(protocols), "folder": str(files),
        } | more  # fmt: skip
        files.mkdir(exist_ok=True)
        process = subprocess.Popen([find_engine(), "origin", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            process.stdin.write(json.dumps(document).encode() + b"\n")
            process.stdin.flush()
            port = json.loads(process.stdout.readline())["ready"]["port"]
            site = Site(files, certificates.authority, port, refusing.getsockname()[1], silent)
            _write(site)
            yield site
        finally:
            process.stdin.close()
            process.wait(10)
            process.stdout.close()
            shutil.rmtree(files)


def _write(site: Site) -> None:
    """Pages of different fates; pictures are drawings, so that they decode."""
    pictures = "".join(f'<img src="i{number}.svg" width=200 height=150>' for number in range(IMAGES))
    head = '<!doctype html><link rel=icon href="data:,"><link rel=stylesheet href="a.css"><script src="a.js"></script>'
    frame = f'<iframe src="https://{HOSTS[2]}:{site.port}/frame.html"></iframe>'
    (site.folder / "index.html").write_text(f"{head}<h1>A page</h1>{pictures}{frame}")
    (site.folder / "frame.html").write_text('<!doctype html>Of another site <img src="i0.svg">')
    (site.folder / "a.css").write_text("body { font-family: sans-serif; background: #def }" + "/* . */" * 1000)
    (site.folder / "a.js").write_text("document.title = 'a';" + "// .\n" * 1000)
    for number in range(IMAGES):
        shape = f'<rect width="200" height="150" fill="#{number}{number}8"/>' + f"<!-- {'x' * 20_000} -->"
        picture = f'<svg xmlns="http://www.w3.org/2000/svg" width="200" height="150">{shape}</svg>'
        (site.folder / f"i{number}.svg").write_text(picture)
    refused = f"https://{HOSTS[0]}:{site.refusing}/x.svg"
    stray = "https://www.elsewhere.example/x.svg"
    silent = f"https://{HOSTS[0]}:{site.silent}/x.svg"
    pictures = "".join(f'<img src="{url}">' for url in (refused, "none.svg", stray, silent))
    (site.folder / "broken.html").write_text(f"{head}<h1>Waits</h1>{pictures}")
