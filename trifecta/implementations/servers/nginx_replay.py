"""nginx's configuration for a page archive: a map from request to response, and a location for each response.

nginx compares strings of a ``map`` without case, so each location looks at the request's target once more. A status
other than 200, and a method that static files refuse, go through ``error_page``, whose redirect inside nginx is a GET.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from trifecta.implementations.server import ServerOptions, Site, Unsupported
from trifecta.implementations.servers.replaying import MISSING_TEXT, WELL_KNOWN, WELL_KNOWN_TEXT, keys
from trifecta.pages.archive import Page, Response, body_file

_MOST_TOKEN = 4000  # NGX_CONF_BUFFER is 4096 octets
_PIECE = 1000
_ASIDE = 418  # a status that nothing else gives


def quoted_path(path: Path) -> str:
    """A path as nginx reads it: in quotes; a dollar would begin a variable and cannot be escaped."""
    if "$" in str(path):
        raise Unsupported(f"nginx cannot read the path {path}; choose a folder without '$'")
    return json.dumps(str(path), ensure_ascii=False)


class ReplayConfig:
    """The lines of the blocks ``http`` and ``server`` that answer from an archive, a live folder, or both."""

    def __init__(self, site: Site, options: ServerOptions, page: Page | None) -> None:
        """Work the lines out."""
        self._site = site
        self._variables: list[str] = []
        self._alt = "add_header alt-svc $alt_svc always;" if options.alt_svc else ""
        self.server: list[str] = list(self._live()) if site.live else []
        self.http: list[str] = []
        if page is not None:
            self.server += self._replay(page)
            self.http += self._map(page)
        else:
            self.server.append(f"root {quoted_path(site.folder)}; {self._alt}")
        self.http += self._alt_svc() if options.alt_svc else ()  # after the sizes of maps, which go before any
        self.http += self._variables

    def _alt_svc(self) -> Iterator[str]:
        """RFC 7838: over HTTP/3 itself it would say nothing; an empty field is left out."""
        field = f'h3=":{self._site.port}"; ma=86400'
        yield f"map $server_protocol $alt_svc {{ HTTP/3.0 ''; default '{field}'; }}"

    def _live(self) -> Iterator[str]:
        assert self._site.live is not None
        yield f'location ^~ /live/ {{ alias {quoted_path(self._site.live)[:-1]}/";'
        yield "types { text/html html; text/javascript js mjs; text/css css; application/json json; text/vtt vtt;"
        yield "application/vnd.apple.mpegurl m3u8; application/dash+xml mpd; video/mp2t ts; video/mp4 mp4 m4s;"
        yield "audio/aac aac; audio/mp4 m4a; image/jpeg jpg jpeg; image/png png; }"
        yield "open_file_cache off; etag off; if_modified_since off; add_header last-modified '';"
        yield "add_header cache-control no-cache always; add_header access-control-allow-origin * always;"
        yield f"{self._alt} }}"

    def _map(self, page: Page) -> Iterator[str]:
        table = keys(page)
        same = Counter(key.lower() for key in table)
        longest = max(map(len, table))
        if longest > _MOST_TOKEN - 100:
            raise Unsupported(f"nginx cannot read a URL of {longest} characters; leave it out, or use server: origin")
        yield f"map_hash_max_size 65536; map_hash_bucket_size {1 << (longest + 64).bit_length()};"
        yield 'map "$request_method $host $request_uri" $replayed {'
        yield "default missing;"
        for key, number in table.items():
            if same[key.lower()] == 1:
                yield f"{_quoted(key)} {number};"
            else:  # a regular expression minds the case
                yield f"{_quoted('~^' + re.escape(key) + '$')} {number};"
        yield "}"

    def _replay(self, page: Page) -> Iterator[str]:
        # The files never change. A name in nginx's own URL space begins with /=, `internal` keeps requests out of it.
        yield "etag off; if_modified_since off; client_max_body_size 0; large_client_header_buffers 8 32k;"
        yield "open_file_cache max=20000 inactive=1d; open_file_cache_valid 1d; server_tokens off;"
        yield 'location / { rewrite ^ "/=$replayed" last; }'
        yield f"location = /=missing {{ internal; default_type text/plain; {self._alt}"
        yield f'add_header x-trifecta-replay missing always; return 404 "{MISSING_TEXT.decode().rstrip()}\\n"; }}'
        yield f"location = {WELL_KNOWN} {{ default_type text/html; {self._alt}"
        yield f'return 200 "{WELL_KNOWN_TEXT.decode().rstrip()}\\n"; }}'
        for number, response in enumerate(page.responses):
            yield from self._location(number, response)

    def _location(self, number: int, response: Response) -> Iterator[str]:
        only_this_target = f"if ($request_uri != {self._value(response.target)}) {{ rewrite ^ /=missing last; }}"
        fields = " ".join(self._fields(response))
        assert self._site.replay is not None
        file = body_file(self._site.replay, response) or self._site.state / "empty"
        serve = f"alias {quoted_path(file)}; {fields}"
        if response.status == 200 and response.method == "GET":
            yield f"location = /={number} {{ internal; {only_this_target} {serve} }}"
            return
        aside = f"error_page {_ASIDE} ={response.status} /={number}.; return {_ASIDE};"
        yield f"location = /={number} {{ internal; {only_this_target} {aside} }}"
        yield f"location = /={number}. {{ internal; {serve} }}"

    def _fields(self, response: Response) -> Iterator[str]:
        """The recorded fields in order; Content-Type is nginx's own to write."""
        ranges = response.status == 200 and ("accept-ranges", "bytes") in response.headers
        kinds = [value for name, value in response.headers if name == "content-type"]
        yield f"types {{ }} default_type {self._value(kinds[0]) if kinds else chr(34) * 2};"
        yield "" if ranges else "max_ranges 0;"
        names = {name for name, _ in response.headers}
        if "last-modified" not in names:
            yield "add_header last-modified '';"  # of the file
        for name, value in response.headers:
            if name == "content-type" or (ranges and name == "accept-ranges"):
                continue
            yield f"add_header {_quoted(name)} {self._value(value)} always;"
        yield self._alt

    def _value(self, text: str) -> str:
        """A value in quotes; what nginx would take for a variable, or is too long, is put into variables of ours."""
        octets = _octets(text)
        if "$" not in octets and len(octets) <= _PIECE:
            return _quoted(octets)
        names = []
        for start in range(0, len(octets), _PIECE):
            names.append(f"replay_{len(self._variables)}")
            # `geo` alone gives a variable a value in which a dollar is a dollar.
            self._variables.append(f"geo ${names[-1]} {{ default {_quoted(octets[start : start + _PIECE])}; }}")
        return '"' + "".join(f"${{{name}}}" for name in names) + '"'


def _octets(text: str) -> str:
    """Text of an archive, whose characters are octets, as what the configuration file is written from."""
    return text.encode("latin-1").decode("utf-8", "surrogateescape")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
