"""A site that does what a recording cannot replay, one of each."""

import gzip

from trifecta.pages.builder import Builder

START = "https://www.odd.lab/"
SCRIPT = b"""
const pixel = new Image(); pixel.src = "/random?x=" + Math.random(); document.body.append(pixel);
new WebSocket("wss://www.odd.lab/socket");
new EventSource("/events");
navigator.serviceWorker.register("/worker.js").catch(() => {});
fetch("https://api.odd.lab/say", {method: "POST", headers: {"content-type": "application/json"}, body: "{}"});
fetch("https://down.odd.lab/never").catch(() => {});
"""
CROSS = [("access-control-allow-origin", "*"), ("access-control-allow-headers", "content-type")]


def write(folder):
    page = Builder("odd")
    html = b"<!doctype html><title>Odd</title><link rel=icon href=data:,><body>"
    html += b'<img src="/p.png?a=1&amp;b=%20"><script src=/s.js></script>'
    page.add(
        START,
        200,
        [("content-type", "text/html"), ("set-cookie", "session=secret"), ("x-dup", "1"), ("x-dup", "2")],
        html,
    )
    page.add(START + "p.png?a=1&b=%20", 200, [("content-type", "image/png"), ("etag", '"x"')], b"\x89PNG not really")
    coded = gzip.compress(SCRIPT, 1, mtime=77)  # as no recorder would code it again
    page.add(START + "s.js", 200, [("content-type", "text/javascript"), ("content-encoding", "gzip")], coded)
    page.add(START + "events", 200, [("content-type", "text/event-stream")], b"data: 1\n\n")
    page.add(START + "worker.js", 200, [("content-type", "text/javascript")], b"1")
    page.add("https://api.odd.lab/say", 200, [("content-type", "application/json"), *CROSS], b'{"a":1}', method="POST")
    page.add("https://api.odd.lab/say", 204, CROSS, b"", method="OPTIONS")
    page.add("https://down.odd.lab/", 200, [], b"")
    return page.write(folder, START, "Odd", {"kind": "generated"})
