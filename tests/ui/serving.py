"""A server of `trifecta ui` in a thread of the tests, asked as a program asks, header by header."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from trifecta.ui import server
from trifecta.ui.access_control import CHANGE_HEADER, Secrets
from trifecta.ui.app import Site
from trifecta.ui.jobs import Jobs

COMMAND = ("python3", "-c", "import sys; print(sys.argv[1:])")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(frozen=True)
class Served:
    port: int
    known: Secrets
    site: Site
    jobs: Jobs

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/?token={self.known.entry}"

    @property
    def cookie(self) -> str:
        return f"trifecta-{self.port}={self.known.entry}"

    def raw(self, method: str, path: str, headers: dict[str, str], body: bytes | None = None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path: str, _fields: dict[str, str] | None = None, **headers: str) -> Answer:
        query = f"?{urlencode(_fields)}" if _fields else ""
        known = {"host": f"127.0.0.1:{self.port}", "cookie": self.cookie}
        return self.raw("GET", path + query, known | {name.replace("_", "-"): value for name, value in headers.items()})

    def post(self, path: str, document: object, **headers: str) -> Answer:
        known = {
            "host": f"127.0.0.1:{self.port}", "cookie": self.cookie, "origin": f"http://127.0.0.1:{self.port}",
            CHANGE_HEADER: self.known.change,
        } | {name.replace("_", "-"): value for name, value in headers.items()}  # fmt: skip
        return self.raw("POST", path, {name: one for name, one in known.items() if one}, json.dumps(document).encode())


@contextmanager
def serving(folder: Path, cwd: Path, command: tuple[str, ...] = COMMAND, metrics: str = "") -> Iterator[Served]:
    known = Secrets(metrics=metrics)
    with server.listen(0) as listening, Jobs(cwd, command) as jobs:
        port = listening.getsockname()[1]
        site = Site(folder, jobs, known)
        running = server.server_of(site, port)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        while not running.started:
            time.sleep(0.01)
        try:
            yield Served(port, known, site, jobs)
        finally:
            running.should_exit = True
            thread.join()
