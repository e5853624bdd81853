"""A video archive served to a browser on the same host, without a network: what is dropped then, the machine drops.

``python -P -m trifecta.video.local FOLDER FILE`` writes ``http://127.0.0.1:PORT/`` into the file and serves until it
gets SIGTERM. Browsers take a loopback address for a secure context without TLS (W3C Secure Contexts), so that nothing
of TLS or HTTP/2 and 3 is in the floor either.
"""

from __future__ import annotations

import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from trifecta.design.errors import UserError
from trifecta.pages.archive import Page, Response, body_file, read_page

ADDRESS = "127.0.0.1"
_READ_BYTES = 1 << 20


class LocalServer:
    """The hosts of an archive as one origin: a path that two hosts share is that of the first."""

    def __init__(self, folder: Path) -> None:
        """Read the archive, open a port of the loopback."""
        page = read_page(folder)
        answers = answers_of(page)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                response = answers.get(self.path)
                if response is None:
                    self.send_error(404)
                    return
                self.send_response(response.status)
                for name, value in response.headers:
                    self.send_header(name, value)
                self.send_header("content-length", str(response.bytes))
                self.end_headers()
                path = body_file(folder, response)
                if path is not None:
                    with path.open("rb") as file:
                        while piece := file.read(_READ_BYTES):
                            self.wfile.write(piece)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: the driver knows what it asked for."""

        self._server = ThreadingHTTPServer((ADDRESS, 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://{ADDRESS}:{self._server.server_address[1]}/"

    def __enter__(self) -> LocalServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def answers_of(page: Page) -> dict[str, Response]:
    """What is answered to a GET of each path."""
    answers: dict[str, Response] = {}
    for response in page.responses:
        if response.method == "GET":
            target = urlsplit(response.url)
            answers.setdefault(target.path + (f"?{target.query}" if target.query else ""), response)
    return answers


def main(arguments: list[str]) -> int:
    """Serve a folder until SIGTERM or SIGINT; exit code 2 for a folder that is no archive."""
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # before there is a thread, so that every one of them inherits it
    try:
        folder, url_file = arguments
        server = LocalServer(Path(folder))
    except ValueError:
        print("error: arguments: give the folder of one page archive, and a file for the URL", file=sys.stderr)
        return 2
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    with server:
        draft = Path(f"{url_file}.part")
        draft.write_text(server.url, encoding="utf-8")
        draft.replace(url_file)
        signal.sigwait(ends)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
