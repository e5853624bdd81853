"""What stands behind an edge of a delivery network: a cache that is cold at first, and one that keeps too little.

``python -m tests.workloads.cold_cache`` serves on 127.0.0.1 until it is ended. Every path is an entry of its own:
``/edge/kept...`` is a MISS once and a HIT from then on, whatever the protocol at the edge; ``/edge/small...`` is thrown
out after it answered five times, and a MISS again. ``/edge/aged...`` is kept, too, and says so by Age alone.
"""

from __future__ import annotations

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 9080
KEPT_FOR = 5
"""Answers out of a small cache, before the next is a MISS: no multiple of the requests of a trial."""
CONTENT = b"x" * 2000
_AGE = "3600"  # a clock in the answers would make two of one arm differ
_asked: Counter[str] = Counter()
_lock = threading.Lock()


class Cache(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        with _lock:
            before = _asked[self.path]
            _asked[self.path] += 1
        small = self.path.startswith("/edge/small")
        hit = bool(before % (KEPT_FOR + 1) if small else before)
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.send_header("Cache-Control", "public, max-age=86400")
        if not self.path.startswith("/edge/aged"):
            self.send_header("X-Cache", "HIT" if hit else "MISS")
        self.send_header("Age", _AGE if hit else "0")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(CONTENT)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", PORT), Cache).serve_forever()
