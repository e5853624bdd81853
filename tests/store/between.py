"""A server in front of another of DynamoDB's protocol: it notes what is asked, and a test may answer in its place."""

from __future__ import annotations

import http.client
import json
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.store.servers import serving

Asked = dict[str, Any]
Answer = Callable[[str, Asked], tuple[int, Asked] | None]
"""Given an operation and what is asked: status and content, or None, which passes it on."""
_SIGNED = ("authorization", "content-type", "x-amz-date", "x-amz-target")


class Between(ThreadingHTTPServer):
    """Passes on to a port of the loopback."""

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Passed)
        self.beyond = port
        self.asked: list[tuple[str, Asked]] = []
        self.head: dict[str, str] = {}
        self.answer: Answer = lambda *_: None

    def operations(self) -> Counter[str]:
        return Counter(operation for operation, _ in self.asked)

    def written(self) -> list[tuple[str, str, str]]:
        """Table, part and row of what was asked to be put, but for what is noted of it."""
        found = []
        for operation, asked in self.asked:
            for table, requests in asked["RequestItems"].items() if operation == "BatchWriteItem" else ():
                items = [each["PutRequest"]["Item"] for each in requests if "PutRequest" in each]
                found += [(table, item["part"]["S"], item["row"]["N"]) for item in items]
        return [each for each in found if not each[0].endswith("-runs")]

    def forward(self, asked: Asked) -> tuple[int, bytes]:
        """As the last request was signed."""
        beyond = http.client.HTTPConnection("127.0.0.1", self.beyond, timeout=30)
        beyond.request("POST", "/", json.dumps(asked).encode(), self.head)
        answer = beyond.getresponse()
        content = answer.read()
        beyond.close()
        return answer.status, content


class _Passed(BaseHTTPRequestHandler):
    server: Between
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        if len(content) < int(self.headers["content-length"]):  # who asks was killed
            self.close_connection = True
            return
        asked = json.loads(content)
        operation = self.headers["x-amz-target"].rpartition(".")[2]
        self.server.asked.append((operation, asked))
        self.server.head = {name: self.headers[name] for name in _SIGNED}
        said = self.server.answer(operation, asked)
        status, given = (said[0], json.dumps(said[1]).encode()) if said else self.server.forward(asked)
        self.send_response(status)
        self.send_header("content-type", "application/x-amz-json-1.0")
        self.send_header("content-length", str(len(given)))
        self.end_headers()
        self.wfile.write(given)

    def log_message(self, *_: object) -> None:
        pass


def between(port: int) -> AbstractContextManager[Between]:
    """One before a server at this port, until the end of the block."""
    return serving(Between(port))
