"""A page archive with everything that is odd, for servers that replay it."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

from trifecta.pages.archive import Page, Response, digest_of, write_page

WWW, CDN, API = "www.odd.lab", "cdn.odd.lab", "api.other.lab"


def write_odd_page(folder: Path, fillers: int = 0) -> Page:
    """Write it; ``fillers`` more responses of three hosts make it large."""
    bodies: dict[str, bytes] = {}
    responses: list[Response] = []
    chance = random.Random(5)

    def add(method: str, host: str, target: str, status: int, body: bytes | None, *fields: tuple[str, str]) -> None:
        digest = None if body is None else digest_of(body)
        if digest is not None and body is not None:
            bodies[digest] = body
        url = f"https://{host}{target}"
        responses.append(Response(method, url, status, fields, digest, len(body or b""), "other"))

    html = ("content-type", "text/html; charset=utf-8")
    zipped = gzip.compress(b"p { color: red }" * 400, mtime=0)
    any_octets = bytes(range(256)) * 50
    add("GET", WWW, "/", 200, b"<!doctype html><title>Odd</title>", html)
    add("GET", WWW, "/style.css?v=1.2&x=%20y", 200, zipped, ("content-type", "text/css"), ("content-encoding", "gzip"))
    add("GET", WWW, "/style.css?v=1.3", 200, b"other", ("content-type", "text/css"))
    add("GET", WWW, "/style.css", 200, b"plain", ("content-type", "text/css"))
    add("GET", WWW, "/style.css?", 200, b"empty query", ("content-type", "text/css"))
    add("GET", WWW, "/Style.css", 200, b"capital", ("content-type", "text/css"), ("etag", '"C"'))
    add("GET", CDN, "/style.css", 200, b"of another host", ("content-type", "text/css"))
    add("GET", CDN, "/a%20b/%E2%82%AC/%7Etilde/x.bin", 200, any_octets, ("content-type", "application/octet-stream"))
    add("GET", CDN, "/a%20b/%e2%82%ac/~tilde/x.bin", 200, b"other spelling", ("content-type", "text/plain"))
    add("GET", CDN, "/dir", 301, None, ("location", f"https://{CDN}/dir/"), ("content-type", "text/html"))
    add("GET", CDN, "/dir/", 200, b"in it", html)
    add("GET", CDN, "/dir//double///x", 200, b"slashes", html)
    add("GET", CDN, "/path;a=1,2/(x)!$'*+=:@&/z", 200, b"reserved", html)
    add("GET", CDN, "/moved", 302, b"<p>moved", ("location", "/dir/?a=$b&c=d"), html)
    add("GET", CDN, "/gone", 410, b"<p>gone", html)
    add("GET", CDN, "/missing.png", 404, b"<p>no such picture", html)
    add("GET", CDN, "/forbidden", 403, None)
    add("GET", CDN, "/broken", 500, b"oops", ("content-type", "text/plain"))
    add("GET", CDN, "/empty.js", 200, b"", ("content-type", "text/javascript"))
    add("GET", CDN, "/none", 200, None)
    add("GET", CDN, "/font.woff2", 200, chance.randbytes(70_000), ("content-type", "font/woff2"),
        ("access-control-allow-origin", "*"), ("cache-control", "public, max-age=31536000, immutable"),
        ("last-modified", "Wed, 21 Oct 2015 07:28:00 GMT"), ("etag", 'W/"weak"'),
        ("vary", "Accept-Encoding"))  # fmt: skip
    add("GET", CDN, "/clip.mp4", 200, chance.randbytes(300_000), ("content-type", "video/mp4"),
        ("accept-ranges", "bytes"), ("etag", '"strong"'))  # fmt: skip
    add("GET", API, '/json?q={a}|b^c`d"e<f>\\g', 200, b'{"a": 1}', ("content-type", "application/json"))
    add("POST", API, "/graphql", 200, b'{"data": 1}', ("content-type", "application/json"))
    add("POST", API, "/beacon", 204, None, ("access-control-allow-origin", f"https://{WWW}"))
    add("GET", API, "/graphql", 405, b"no", ("allow", "POST"), ("content-type", "text/plain"))
    add("OPTIONS", API, "/graphql", 204, None, ("access-control-allow-methods", "POST"))
    add("PUT", API, "/item", 201, b"made", ("location", "/item/1"), ("content-type", "text/plain"))
    add("DELETE", API, "/item", 200, b"deleted", ("content-type", "text/plain"))
    add("GET", API, "/fields", 200, b"fields", ("content-type", "text/plain"), ("set-cookie", "a=1; Path=/; Secure"),
        ("x-between", "1"), ("set-cookie", "b=2; Path=/; Secure"), ("x-dollar", "$host ${uri} $$ 5$"),
        ("x-quotes", "a \"b\" 'c' \\d \\\" e"),
        ("x-json", '{"group":"x","max_age":1,"e":[{"u":"{http.request.host}"}]}'),
        ("x-utf8", "caf\u00c3\u00a9"), ("x-semicolon", "a; b: c, d # e {{f}}"), ("link", "</a>; rel=preload"),
        ("link", "</b>; rel=preload"), ("x-percent", "%d %{x} %%"),
        ("content-security-policy", ("a 'b' $c; " * 600).strip()),
        ("strict-transport-security", "max-age=1"), ("age", "5"), ("expires", "0"),
        ("via", "1.1 varnish"), ("x-cache", "HIT"))  # fmt: skip
    add("GET", API, "/long" + "x" * 2000 + "?" + "y=z&" * 300, 200, b"long", ("content-type", "text/plain"))
    add("GET", API, "/latin", 200, b"latin", ("content-type", "text/plain"), ("x-latin", "caf\u00e9 \u00fc"))
    for number in range(fillers):
        host = (WWW, CDN, API)[number % 3]
        body = chance.randbytes(chance.randrange(20, 8000)) + str(number).encode()
        kind = ("image/png", "text/javascript", "application/json")[chance.randrange(3)]
        add("GET", host, f"/r/{number:04}.bin?n={number}", 200, body, ("content-type", kind), ("etag", f'"{number}"'))
    page = Page("odd", "Odd", f"https://{WWW}/", {"kind": "generated"}, tuple(responses))
    write_page(folder, page, bodies)
    return page
