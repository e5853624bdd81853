"""A small page of two origins for tests: what can be odd about a response, without anything random."""

import gzip
from pathlib import Path

from trifecta.pages.archive import Page
from trifecta.pages.builder import Builder

START = "https://www.small.lab/"
HTML = (
    b"<!doctype html><meta charset=utf-8><title>Small</title><link rel=stylesheet href=/a.css?v=1>"
    b"<img src=https://cdn.small.lab/%C3%A4%20b.svg><p>Small."
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0h9v9z"/></svg>'


def builder() -> Builder:
    page = Builder("small")
    page.add(START, 200, [("Content-Type", "text/html; charset=utf-8"), ("Date", "now")], HTML)
    page.add(
        "https://www.small.lab/a.css?v=1",
        200,
        [("content-type", "text/css"), ("content-encoding", "gzip"), ("vary", "accept-encoding")],
        gzip.compress(b"p{color:#123}" * 20, mtime=0),
    )
    page.add(
        "https://cdn.small.lab/%C3%A4%20b.svg",
        200,
        [("content-type", "image/svg+xml"), ("x-a", "1"), ("x-a", "2")],
        SVG,
    )
    page.add("https://www.small.lab/old", 301, [("location", "/")], b"")
    page.add("https://www.small.lab/gone?x=%2F&y=", 404, [("content-type", "text/plain")], b"gone")
    page.add("https://www.small.lab/beacon", 204, [], b"", method="POST")
    page.add("https://www.small.lab/empty", 200, [("content-type", "text/plain")], b"")
    page.leave_out("GET", "wss://www.small.lab/live", "is not https ('wss')")
    return page


def write(folder: Path) -> Page:
    """Write it into a folder that is not there yet."""
    return builder().write(folder, START, "Small", {"kind": "generated", "version": 1})
