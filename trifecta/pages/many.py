"""A page of any number of small resources on several origins: what a recorder and a server must carry without loss."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

from trifecta.pages.archive import Page
from trifecta.pages.builder import Builder
from trifecta.pages.generate import SEED, source

_Made = tuple[str, list[tuple[str, str]], bytes]  # path with query, fields, content
_LEAST = 10


def many(count: int, folder: Path, *, origins: int = 3, seed: int = SEED) -> Page:
    """Write a page of ``count`` responses into ``folder``, which is not there yet.

    Among them are queries, escapes, redirects, empty content, duplicated fields and content codings; the page asks for
    all of them itself, for one by a POST.
    """
    if count < _LEAST:
        raise ValueError(f"a page of {count} responses; at least {_LEAST} are needed")
    hosts = [f"https://{name}.many.lab" for name in ("www", *(f"s{number}" for number in range(1, origins)))]
    redirects = count // 50
    responses: list[tuple[str, int, list[tuple[str, str]], bytes]] = []
    tags = []
    kinds = (
        (_png, '<img src="{}" alt="">'), (_svg, '<img src="{}" alt="">'), (_png, '<img src="{}" alt="">'),
        (_css, '<link rel="stylesheet" href="{}">'), (_script, '<script src="{}"></script>'),
    )  # fmt: skip
    for number in range(count - 2 - 2 * redirects):
        kind, tag = kinds[number % len(kinds)]
        path, head, body = kind(number, seed)
        url = hosts[number % len(hosts)] + path
        responses.append((url, 200, [*head, ("access-control-allow-origin", "*")], body))
        tags.append(tag.format(url.replace("&", "&amp;")))
    for number in range(redirects):
        host = hosts[number % len(hosts)]
        status = (301, 302, 307, 308)[number % 4]
        responses.append((f"{host}/old/{number}", status, [("location", f"/new/{number}.png")], b""))
        _, head, body = _png(number, seed)
        responses.append((f"{host}/new/{number}.png", 200, head, body))
        tags.append(f'<img src="{host}/old/{number}" alt="">')
    tags.append('<script>fetch("/say", {method: "POST", body: "x"});</script>')
    html = "<!doctype html>\n<meta charset=utf-8>\n<title>Many</title>\n<link rel=icon href=data:,>\n" + "\n".join(tags)

    page = Builder("many")
    page.add(f"{hosts[0]}/", 200, [("content-type", "text/html; charset=utf-8")], html.encode())
    for url, status, head, body in responses:
        page.add(url, status, head, body)
    page.add(f"{hosts[0]}/say", 200, [("content-type", "text/plain")], b"", method="POST", kind="fetch")
    return page.write(folder, f"{hosts[0]}/", f"A page of {count} responses", source(seed))


def _png(number: int, seed: int) -> _Made:
    from PIL import Image

    out = io.BytesIO()
    colour = ((number * 37 + seed) % 256, number % 256, number // 256 % 256)
    Image.new("RGB", (8 + number % 9, 8), colour).save(out, "PNG")
    return f"/i/{number}.png", [("content-type", "image/png")], out.getvalue()


def _css(number: int, _seed: int) -> _Made:
    head = [("content-type", "text/css; charset=utf-8"), ("content-encoding", "gzip"), ("x-part", "1"), ("x-part", "2")]
    return (
        f"/c/{number}.css?v={number}&q=%2Fa%20b",
        head,
        gzip.compress(f".s{number}{{top:{number}px}}".encode(), mtime=0),
    )


def _script(number: int, _seed: int) -> _Made:
    head = [("content-type", "text/javascript"), ("cache-control", "max-age=60")]
    return f"/j/{number}/%C3%A9t%C3%A9.js?", head, f"window.n = (window.n || 0) + {number};\n".encode()


def _svg(number: int, _seed: int) -> _Made:
    text = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0h{number % 9 + 1}v9z"/></svg>'
    return f"/v/{number}.svg?a=1&a=2", [("content-type", "image/svg+xml")], text.encode()
