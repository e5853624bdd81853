"""Caddy's routes for a page archive: a table from request to response, two looks into it, a file for the content.

Go writes fields in the order of their names, each repeated one in the order in which it was recorded.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from trifecta.contract.values import JsonValue
from trifecta.implementations.server import ServerOptions, Site
from trifecta.implementations.servers.replaying import MISSING_TEXT, WELL_KNOWN, WELL_KNOWN_TEXT, keys
from trifecta.pages.archive import BODIES, Page, Response

_GROUP = 64  # routes are tried one after the other: 64 groups of 64 are 128 looks for 4096 responses
_OF_FILES = ["Etag", "Last-Modified", "Accept-Ranges", "Vary"]
_CONDITIONS = ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since"]
_TYPES = {
    "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8",
    "json": "application/json", "vtt": "text/vtt; charset=utf-8", "m3u8": "application/vnd.apple.mpegurl",
    "mpd": "application/dash+xml", "ts": "video/mp2t", "mp4": "video/mp4", "m4s": "video/mp4", "aac": "audio/aac",
    "m4a": "audio/mp4", "jpg": "image/jpeg", "png": "image/png",
}  # fmt: skip

Route = dict[str, JsonValue]


def routes(site: Site, options: ServerOptions, page: Page | None) -> list[Route]:
    """The routes of the site, for its archive, its live folder, or both, or else its folder of files."""
    # Caddy offers HTTP/3 by Alt-Svc unless that is taken away, which for a field of its own has to be done late.
    own = [] if options.alt_svc else ["Alt-Svc"]
    late: Route = {"handle": [{"handler": "headers", "response": {"deferred": True, "delete": [*own, "Server"]}}]}
    answers = [late, *(_live(site.live) if site.live else [])]
    if page is None:
        return [*answers, {"handle": [{"handler": "file_server", "root": str(site.folder)}]}]
    assert site.replay is not None
    return [*answers, *_replay(site.replay, page)]


def _live(folder: Path) -> list[Route]:
    types: list[Route] = [
        {"match": [{"path": [f"*.{ending}"]}], "handle": [_fields({"Content-Type": [kind]})]}
        for ending, kind in _TYPES.items()
    ]
    fields = {"Cache-Control": ["no-cache"], "Access-Control-Allow-Origin": ["*"]}
    serve: list[Route] = [
        {"handler": "rewrite", "strip_path_prefix": "/live"},
        _fields(fields, remove=["Etag", "Last-Modified", "Vary"], unasked=[*_CONDITIONS, "If-Range"]),
        {"handler": "file_server", "root": str(folder)},
    ]
    handle: Route = {"handler": "subroute", "routes": [*types, {"handle": serve}]}
    return [{"match": [{"path": ["/live/*"]}], "handle": [handle], "terminal": True}]


def _replay(folder: Path, page: Page) -> list[Route]:
    table = [{"input": key, "outputs": [str(n // _GROUP), str(n % _GROUP)]} for key, n in keys(page).items()]
    find: Route = {
        "handle": [
            {
                "handler": "map",
                # The target as it came: Caddy's own idea of the path is decoded and cleaned.
                "source": "{http.request.method} {http.request.host} {http.request.orig_uri}",
                "destinations": ["{group}", "{member}"],
                "mappings": table,
                "defaults": ["none", "none"],
            },
            # A placeholder would be looked up in the table again by every route.
            {"handler": "vars", "group": "{group}", "member": "{member}"},
        ]
    }
    groups: list[Route] = []
    for start in range(0, len(page.responses), _GROUP):
        members: list[Route] = [
            {"match": [{"vars": {"member": [str(n)]}}], "handle": _answer(folder, response), "terminal": True}
            for n, response in enumerate(page.responses[start : start + _GROUP])
        ]
        inside: Route = {"handler": "subroute", "routes": members}
        chosen = [{"vars": {"group": [str(start // _GROUP)]}}]
        groups.append({"match": chosen, "handle": [inside], "terminal": True})
    known: Route = {
        "match": [{"path": [WELL_KNOWN]}],
        "handle": [_text(200, {"Content-Type": ["text/html"]}, WELL_KNOWN_TEXT)],
        "terminal": True,
    }
    fields = {"Content-Type": ["text/plain"], "X-Trifecta-Replay": ["missing"]}
    return [find, *groups, known, {"handle": [_text(404, fields, MISSING_TEXT)]}]


def _answer(folder: Path, response: Response) -> list[Route]:
    fields: dict[str, list[str]] = {}
    for name, value in response.headers:
        fields.setdefault(name, []).append(_literally(value))
    if response.body is None:
        return [_text(response.status, fields, b"")]
    ranges = response.status == 200 and fields.get("accept-ranges") == ["bytes"]
    unasked = _CONDITIONS if ranges else [*_CONDITIONS, "Range", "If-Range"]
    as_get: list[Route] = [{"handler": "rewrite", "method": "GET"}]
    return [
        {"handler": "rewrite", "uri": f"/{response.body}"},
        *(as_get if response.method not in ("GET", "HEAD") else []),
        _fields(fields, remove=[name for name in _OF_FILES if name.lower() not in fields], unasked=unasked),
        {
            "handler": "file_server",
            "root": str(folder / BODIES),
            **({"status_code": str(response.status)} if response.status != 200 else {}),
        },
    ]


def _fields(fields: dict[str, list[str]], remove: list[str] | None = None, unasked: list[str] | None = None) -> Route:
    """Set fields of the response at its end; ``unasked`` are fields of the request that go before."""
    once = {name: values for name, values in fields.items() if len(values) == 1}
    # `set` would make one field of several values.
    several = {name: values for name, values in fields.items() if len(values) > 1}
    response: Route = {"deferred": True, "set": once, "add": several, "delete": remove or []}
    handler: Route = {"handler": "headers", "response": response}
    return handler | ({"request": {"delete": unasked}} if unasked else {})


def _text(status: int, fields: dict[str, list[str]], text: bytes) -> Route:
    return {"handler": "static_response", "status_code": status, "headers": fields, "body": text.decode()}


def _literally(value: str) -> str:
    """A value in which nothing is a placeholder of Caddy's, whose configuration is UTF-8; other octets become UTF-8."""
    with suppress(UnicodeDecodeError):
        value = value.encode("latin-1").decode("utf-8")
    return value.replace("{", "\\{")
