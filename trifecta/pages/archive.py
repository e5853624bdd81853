"""A page archive: a folder with ``page.json`` and ``bodies/``, every response of a page as it was sent.

Bodies are the content octets (RFC 9110, section 6.4) with their content coding, in files named by their SHA-256. What
is read is validated whole: whoever has a ``Page`` needs to doubt nothing of it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from trifecta.design.document import did_you_mean
from trifecta.design.errors import UserError
from trifecta.pages import rules
from trifecta.store.files import disk_errors

FORMAT = 1
PAGE_FILE = "page.json"
BODIES = "bodies"
MAX_PAGE_FILE_BYTES = 256 * 2**20
Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Response:
    """One response of a page, and the request it answers."""

    method: str
    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    """Lower case names, in order, as sent, without those of ``rules.NOT_KEPT``."""
    body: str | None
    """SHA-256 of the content, hexadecimal; None: no content."""
    bytes: int
    """Octets of content, with its content coding."""
    kind: str

    @property
    def host(self) -> str:
        """The host it comes from."""
        return rules.host_of(self.url)

    @property
    def target(self) -> str:
        """Path and query, as in a request."""
        return rules.target_of(self.url)

    @property
    def key(self) -> tuple[str, str, str]:
        """What a request is matched by: method, host, path with query."""
        return self.method, self.host, self.target


@dataclass(frozen=True)
class LeftOut:
    """A request of the page that cannot be replayed, and why."""

    method: str
    url: str
    reason: str


@dataclass(frozen=True)
class Page:
    """A page with every response that it needs."""

    name: str
    title: str
    start: str
    source: Mapping[str, Scalar | list[str]]
    """``kind`` (one of ``rules.SOURCES``) and facts: seed, version, url, tool, when."""
    responses: tuple[Response, ...]
    left_out: tuple[LeftOut, ...] = field(default=())
    third_parties: tuple[str, ...] = field(default=())
    """Hosts that are not the site's own: each has a server of its own, which speaks HTTP/2, whatever the page does."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host, the one of the start first, then in the order of the responses."""
        return tuple(dict.fromkeys([rules.host_of(self.start), *(each.host for each in self.responses)]))

    @property
    def bytes(self) -> int:
        """Octets of content of all responses."""
        return sum(each.bytes for each in self.responses)


def body_file(folder: Path, response: Response) -> Path | None:
    """Where the content of a response of the archive ``folder`` is; None when it has none."""
    return None if response.body is None else folder / BODIES / response.body


def digest_of(content: bytes) -> str:
    """The name of a body."""
    return hashlib.sha256(content).hexdigest()


def write_page(folder: Path, page: Page, bodies: Mapping[str, bytes]) -> None:
    """Write an archive whole or not at all; ``bodies`` has the content of each digest that ``page`` names.

    UserError when ``folder`` holds something already, or when the page would not read back.
    """
    with disk_errors(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder} already exists; choose another folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            draft.chmod(0o755)
            (draft / BODIES).mkdir()
            for digest in dict.fromkeys(each.body for each in page.responses if each.body is not None):
                (draft / BODIES / digest).write_bytes(bodies[digest])
            (draft / PAGE_FILE).write_text(_text(page), encoding="utf-8")
            read_page(draft)
            draft.replace(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _text(page: Page) -> str:
    """The document, one response a line: it is there to be read and compared."""

    def compact(value: object) -> str:
        return json.dumps(value, ensure_ascii=True, allow_nan=False)

    def lines(values: list[dict[str, Any]]) -> str:
        return "[" + ",".join("\n  " + compact(value) for value in values) + "\n ]" if values else "[]"

    responses = [{**vars(each), "headers": [list(pair) for pair in each.headers]} for each in page.responses]
    others = f' "third_parties": {compact(list(page.third_parties))},\n' if page.third_parties else ""
    return (
        f'{{"format": {FORMAT},\n "name": {compact(page.name)},\n "title": {compact(page.title)},\n'
        f' "start": {compact(page.start)},\n "source": {compact(dict(page.source))},\n{others}'
        f' "responses": {lines(responses)},\n "left_out": {lines([vars(each) for each in page.left_out])}}}\n'
    )


def read_page(folder: Path) -> Page:
    """Read and validate an archive with all its bodies; UserError naming file and field."""
    file = folder / PAGE_FILE
    document = _Reader(str(file))
    names = ("format", "name", "title", "start", "source", "responses", "left_out")
    tree = document.record(_load(file), "", names, ("third_parties",))
    if tree["format"] != FORMAT or isinstance(tree["format"], bool):
        document.fail(
            "format", f"is {tree['format']!r:.40}; this version reads {FORMAT}; record or make the page again"
        )
    responses = tuple(
        document.response(each, f"responses[{index}]")
        for index, each in enumerate(document.listed(tree["responses"], "responses", rules.MAX_RESPONSES))
    )
    left_out = tuple(
        document.left_out(each, f"left_out[{index}]")
        for index, each in enumerate(document.listed(tree["left_out"], "left_out", 10 * rules.MAX_RESPONSES))
    )
    page = Page(
        name=document.name(tree["name"]),
        title=document.words(tree["title"], "title", 500),
        start=document.url(tree["start"], "start"),
        source=document.source(tree["source"]),
        responses=responses,
        left_out=left_out,
        third_parties=tuple(document.listed(tree.get("third_parties", []), "third_parties", rules.MAX_RESPONSES)),
    )
    _check_whole(page, document)
    _check_bodies(folder, page, document)
    return page


def _load(file: Path) -> Any:
    """The JSON value of a file that is not too long, without duplicated names (RFC 8259, section 4)."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        tree = dict(pairs)
        if len(tree) != len(pairs):
            raise ValueError("a name appears twice in one object")
        return tree

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    try:
        if not file.is_file():
            raise UserError(f"{file.parent} is not a page archive: it has no {file.name}; see `trifecta page --help`")
        if file.stat().st_size > MAX_PAGE_FILE_BYTES:
            raise UserError(f"{file}: is larger than {MAX_PAGE_FILE_BYTES} octets; leave out responses")
        return json.loads(file.read_bytes(), object_pairs_hook=unique, parse_constant=refuse)
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}); name the folder of a page archive") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: is not a JSON document ({error}); record or make the page again") from error


class _Reader:
    """Takes values out of a JSON tree, each with its place for the message."""

    def __init__(self, file: str) -> None:
        self.file = file

    def fail(self, place: str, problem: str) -> NoReturn:
        raise UserError(f"{self.file}: {place + ': ' if place else ''}{problem}")

    def record(self, value: Any, place: str, names: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
        known = (*names, *optional)
        if not isinstance(value, dict):
            self.fail(place, f"must be an object with {', '.join(names)}")
        for name in value:
            if name not in known:
                self.fail(place, f"has an unknown field {name[:60]!r}; {did_you_mean(name[:60], known)}")
        for name in names:
            if name not in value:
                self.fail(place, f"lacks the field {name!r}; add it")
        return value

    def listed(self, value: Any, place: str, most: int) -> list[Any]:
        if not isinstance(value, list):
            self.fail(place, "must be a list")
        if len(value) > most:
            self.fail(place, f"has {len(value)} entries; at most {most} are read")
        return value

    def words(self, value: Any, place: str, most: int) -> str:
        if not isinstance(value, str) or len(value) > most or not value.isprintable():
            self.fail(place, f"must be a text of at most {most} printable characters")
        return value

    def whole(self, value: Any, place: str, low: int, high: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self.fail(place, f"must be a whole number from {low} to {high}")
        return value

    def name(self, value: Any) -> str:
        if not isinstance(value, str) or not rules.NAME.fullmatch(value):
            self.fail("name", "must be of lower case letters, digits and . _ -, at most 64")
        return value

    def url(self, value: Any, place: str) -> str:
        if not isinstance(value, str):
            self.fail(place, "must be a URL, as https://www.example.lab/")
        problem = rules.url_problem(value)
        if problem is not None:
            self.fail(place, f"{value[:120]!r} {problem}")
        return value

    def source(self, value: Any) -> dict[str, Scalar | list[str]]:
        if not isinstance(value, dict):
            self.fail("source", "must be an object with kind")
        if value.get("kind") not in rules.SOURCES:
            self.fail("source.kind", f"must be one of {', '.join(rules.SOURCES)}")
        for name, fact in value.items():
            place = f"source.{self.words(name, 'source', 60)}"
            if isinstance(fact, list):
                for each in fact:
                    self.words(each, place, 10_000)
            elif isinstance(fact, str):
                self.words(fact, place, 10_000)
            elif isinstance(fact, float) and not math.isfinite(fact):
                self.fail(place, "must be finite")
            elif isinstance(fact, dict):
                self.fail(place, "must be a text, a number, true, false, null or a list of texts")
        return value

    def response(self, value: Any, place: str) -> Response:
        tree = self.record(value, place, ("method", "url", "status", "headers", "body", "bytes", "kind"))
        method = tree["method"]
        if not isinstance(method, str) or not rules.METHOD.fullmatch(method) or method == "CONNECT":
            self.fail(f"{place}.method", "must be a method in capitals, as GET, but not CONNECT")
        if tree["kind"] not in rules.KINDS:
            self.fail(f"{place}.kind", f"must be one of {', '.join(rules.KINDS)}")
        response = Response(
            method=method,
            url=self.url(tree["url"], f"{place}.url"),
            status=self.whole(tree["status"], f"{place}.status", 200, 599),
            headers=self._headers(tree["headers"], f"{place}.headers"),
            body=tree["body"],
            bytes=self.whole(tree["bytes"], f"{place}.bytes", 0, rules.MAX_BODY_BYTES),
            kind=tree["kind"],
        )
        if response.body is None:
            if response.bytes:
                self.fail(f"{place}.bytes", "must be 0 without a body")
        elif not isinstance(response.body, str) or not rules.DIGEST.fullmatch(response.body):
            self.fail(f"{place}.body", "must be a SHA-256 of 64 hexadecimal digits, or null")
        elif response.status in rules.WITHOUT_CONTENT:
            self.fail(f"{place}.body", f"must be null: a {response.status} has no content (RFC 9110, section 6.4.1)")
        return response

    def _headers(self, value: Any, place: str) -> tuple[tuple[str, str], ...]:
        headers = []
        for index, pair in enumerate(self.listed(value, place, 1000)):
            at = f"{place}[{index}]"
            if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(each, str) for each in pair):
                self.fail(at, "must be a list of two texts, name and value")
            problem = rules.field_problem(pair[0], pair[1])
            if problem is not None:
                self.fail(at, problem)
            headers.append((pair[0], pair[1]))
        if rules.head_bytes(headers) > rules.MAX_HEAD_BYTES:
            self.fail(place, f"is larger than {rules.MAX_HEAD_BYTES} octets; leave out fields")
        return tuple(headers)

    def left_out(self, value: Any, place: str) -> LeftOut:
        tree = self.record(value, place, ("method", "url", "reason"))
        return LeftOut(
            method=self.words(tree["method"], f"{place}.method", 200),
            url=self.words(tree["url"], f"{place}.url", rules.MAX_URL_CHARACTERS),
            reason=self.words(tree["reason"], f"{place}.reason", 1000),
        )


def _check_whole(page: Page, document: _Reader) -> None:
    """What no single field can say."""
    first_index: dict[tuple[str, str, str], int] = {}
    sizes: dict[str, int] = {}
    for index, each in enumerate(page.responses):
        first = first_index.setdefault(each.key, index)
        if first != index:
            document.fail(f"responses[{index}]", f"answers the same request as responses[{first}]; leave one out")
        if each.body is not None and sizes.setdefault(each.body, each.bytes) != each.bytes:
            document.fail(f"responses[{index}].bytes", "another response has the same body with another length")
    if ("GET", rules.host_of(page.start), rules.target_of(page.start)) not in first_index:
        document.fail("start", f"no response answers GET {page.start[:200]}; record the page anew")
    others = [host for host in page.hosts if host != rules.host_of(page.start)]
    for index, host in enumerate(page.third_parties):
        if host not in others:
            named = f"; name one of: {', '.join(others)}" if others else "; leave third_parties out"
            what = f"{host!r:.100} is no host of the page beside that of its start"
            document.fail(f"third_parties[{index}]", f"{what}{named}")
    if page.bytes > rules.MAX_PAGE_BYTES:
        document.fail("responses", f"{page.bytes} octets of content; at most {rules.MAX_PAGE_BYTES} are served")


def _check_bodies(folder: Path, page: Page, document: _Reader) -> None:
    """Every body is a plain file of the right length and digest, in a plain folder: nothing leads out of it."""
    if (folder / BODIES).is_symlink():
        raise UserError(f"{folder / BODIES}: is a link; the bodies must be in the page's own folder")
    checked = set()
    for index, each in enumerate(page.responses):
        if each.body is None or each.body in checked:
            continue
        checked.add(each.body)
        place, file = f"responses[{index}].body", folder / BODIES / each.body
        try:
            with open(file, "rb", opener=_no_links) as content:
                there = os.fstat(content.fileno())
                if not stat.S_ISREG(there.st_mode):
                    document.fail(place, f"{file} is not a regular file; record or make the page again")
                if there.st_size != each.bytes:
                    what = f"{file} has {there.st_size} octets and not {each.bytes}"
                    document.fail(place, f"{what}; record or make the page again")
                digest = hashlib.file_digest(content, "sha256").hexdigest()
        except OSError as error:
            document.fail(place, f"{file} cannot be read ({error.strerror}); record or make the page again")
        if digest != each.body:
            document.fail(place, f"{file} has another content than its name says; record or make the page again")


def _no_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
