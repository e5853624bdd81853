"""A small HTTP/1.1 server on loopback that answers as an archive says, with TLS: the site that a test records."""

import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from trifecta.lab.certificates import make_certificates
from trifecta.pages.archive import body_file, read_page


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):  # a browser goes away when it likes
        pass


@contextmanager
def serving(folder: Path, pki: Path, silent: str = "", endless: str = ""):
    """Yield (port, file of the authority, list of requests as (method, host, target, fields)).

    The host ``silent`` closes the connection instead of an answer; ``endless`` is the path of a stream without an end.
    """
    page = read_page(folder)
    answers = {each.key: each for each in page.responses}
    asked, ending = [], threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 20

        def answer(self):
            self.rfile.read(int(self.headers.get("content-length") or 0))
            host = (self.headers.get("host") or "").partition(":")[0]
            asked.append((self.command, host, self.path, dict(self.headers)))
            if host == silent:
                self.close_connection = True
                return
            if self.path == endless:
                self.send_response_only(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.wfile.write(b"data: 1\n\n")
                ending.wait(60)
                self.close_connection = True
                return
            found = answers.get((self.command, host, self.path))
            self.send_response_only(found.status if found else 404)
            for name, value in found.headers if found else []:
                self.send_header(name, value)
            file = body_file(folder, found) if found else None
            content = file.read_bytes() if file else b""
            if not found or found.status != 204:
                self.send_header("content-length", str(len(content)))
            self.send_header("server", "test")
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_OPTIONS = answer

        def log_message(self, *_):
            pass

    certificates = make_certificates(pki, page.hosts, ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.chain, certificates.key)
    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], certificates.authority, asked
    finally:
        ending.set()
        server.shutdown()
        server.server_close()
        thread.join()
