"""Asks a server for every response of a page archive over one protocol, with curl, and says what differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trifecta.contract.digest import sha256_of
from trifecta.design.errors import CannotError
from trifecta.design.ip import endpoint
from trifecta.design.model import PROTOCOL_NAMES, Protocol
from trifecta.implementations.clients.curl import curl_command
from trifecta.implementations.server import Unsupported
from trifecta.lab.place import OpenPlace
from trifecta.pages.archive import Page, Response, digest_of

_ASKED: dict[Protocol, tuple[str, str]] = {"h1": ("http1.1", "1.1"), "h2": ("http2", "2"), "h3": ("http3-only", "3")}
ADDED = frozenset({"content-length", "date", "server", "connection", "keep-alive", "alt-svc"})
"""Fields a server adds on its own account and which no archive keeps."""
_NO_CONTENT = digest_of(b"")
_TIMEOUT_S = 30
_IN_FLIGHT = 20


@dataclass(frozen=True)
class Difference:
    """What a server answered otherwise than the archive says."""

    method: str
    url: str
    what: str

    def __str__(self) -> str:
        """In words."""
        return f"{self.method} {self.url}: {self.what}"


@dataclass(frozen=True)
class ProtocolReplay:
    """What came of asking for everything over one protocol."""

    protocol: Protocol
    responses: int
    """How many came, of any kind."""
    bytes: int
    """Octets of content that came."""
    differences: tuple[Difference, ...]
    added: tuple[str, ...]
    """Fields that the server adds on its own account."""
    reordered: int
    """Responses whose fields came in another order than they were recorded in (which means the same, RFC 9110 5.3)."""


@dataclass(frozen=True)
class ReplayTarget:
    """Whom to ask, and from where."""

    address: str
    port: int
    authority: Path
    """Whom its certificate is from."""
    place: OpenPlace
    """Where the server can be reached."""


def ask_all(page: Page, protocol: Protocol, asker: ReplayTarget, state: Path) -> ProtocolReplay:
    """Ask for every response of a page, and for one of each host that it lacks; ``state`` is a new folder.

    CannotError when curl with HTTP/3 is missing.
    """
    wanted = [*page.responses, *(_missing(host) for host in page.hosts)]
    try:
        command, environment = curl_command()
    except Unsupported as error:
        raise CannotError(str(error)) from error
    state.mkdir(parents=True)
    there = endpoint(asker.address, asker.port)
    options = (
        f"{_ASKED[protocol][0]}\ntlsv1.3\ncacert = {_quoted(asker.authority)}\n"
        f'connect-to = "::{there}"\nnoproxy = "*"\ngloboff\npath-as-is\nmax-time = {_TIMEOUT_S}\n'
        'write-out = "{\\"number\\":@NUMBER@,\\"exit\\":%{exitcode},\\"version\\":\\"%{http_version}\\"}\\n"\n'
    )
    with (state / "transfers").open("w", encoding="ascii") as file:
        for number, response in enumerate(wanted):
            file.write("next\n" * bool(number) + options.replace("@NUMBER@", str(number)))
            file.write("head\n" if response.method == "HEAD" else f"request = {response.method}\n")
            file.write('data = ""\n' if response.method in ("POST", "PUT", "PATCH") else "")
            # curl would write escapes of the URL anew.
            file.write(f"request-target = {_quoted(response.target)}\n")
            file.write(f"url = {_quoted(response.url)}\noutput = body-{number}\ndump-header = head-{number}\n")
    arguments: list[str | Path] = [
        *command,
        "-q",
        "-sS",
        "-Z",
        "--parallel-max",
        str(_IN_FLIGHT),
        "-K",
        state / "transfers",
    ]
    lines = _run(asker.place, arguments, environment, state, len(wanted))
    return _compare(page, wanted, protocol, lines, state)


def _missing(host: str) -> Response:
    """What is answered to a request that the archive has nothing for."""
    text = b"The page archive has no response to this request.\n"
    fields = (("content-type", "text/plain"), ("x-trifecta-replay", "missing"))
    return Response("GET", f"https://{host}/.trifecta/not/there?", 404, fields, digest_of(text), len(text), "other")


def _run(
    place: OpenPlace, arguments: Sequence[str | Path], environment: Mapping[str, str], state: Path, transfers: int
) -> dict[int, dict[str, str]]:
    words = [part.name if isinstance(part, Path) else part for part in arguments]
    script: list[str | Path] = ["/bin/sh", "-c", 'cd "$0" && exec "$@" > told 2> errors', state, *words]
    asking = place.run(script, state / "log", environment=environment)
    asking.wait_end(_TIMEOUT_S + transfers / 10)
    asking.close()
    output = (state / "told").read_text(encoding="ascii", errors="replace") if (state / "told").exists() else ""
    lines = [json.loads(line) for line in output.splitlines() if line.endswith("}")]
    return {int(line["number"]): line for line in lines}


def _compare(
    page: Page, wanted: Sequence[Response], protocol: Protocol, lines: dict[int, dict[str, str]], state: Path
) -> ProtocolReplay:
    differences: list[Difference] = []
    added: set[str] = set()
    came = octets = reordered = 0
    errors = (state / "errors").read_text(errors="replace").split("\n")[0] if (state / "errors").exists() else ""
    for number, response in enumerate(wanted):
        head, body = state / f"head-{number}", state / f"body-{number}"
        line = lines.get(number)
        if line is None or int(line["exit"]) != 0 or not head.exists():
            code = "never" if line is None else f"curl's exit code {line['exit']}"
            differences.append(Difference(response.method, response.url, f"no answer ({code}; {errors[:200]})"))
            continue
        if number < len(page.responses):
            came += 1
            octets += body.stat().st_size if body.exists() and response.method != "HEAD" else 0
        version = _ASKED[protocol][1]
        if line["version"] != version:
            problem = f"came over HTTP/{line['version']} and not {PROTOCOL_NAMES[protocol]}"
            differences.append(Difference(response.method, response.url, problem))
        status, fields = read_head(head.read_bytes())
        differences += [
            Difference(response.method, response.url, what) for what in differ(response, status, fields, _digest(body))
        ]
        names = [name for name, _ in response.headers]
        added |= {name for name, _ in fields if name not in names and name in ADDED}
        order = [field for field in fields if field[0] in names]
        reordered += order != list(response.headers) and sorted(order) == sorted(response.headers)
    return ProtocolReplay(protocol, came, octets, tuple(differences), tuple(sorted(added)), reordered)


def read_head(octets: bytes) -> tuple[int, list[tuple[str, str]]]:
    """Status and fields of the last response in a file of curl's (``--dump-header``), names in lower case."""
    status = 0
    fields: list[tuple[str, str]] = []
    for line in octets.decode("latin-1").split("\r\n"):
        if line.startswith("HTTP/"):  # an interim response came before (RFC 9110, section 15.2)
            code = line.split(" ")[1:2]
            status, fields = int(code[0]) if code and code[0].isdecimal() else 0, []
        elif line:
            name, _, value = line.partition(":")
            fields.append((name.lower(), value.strip(" \t")))
    return status, fields


def differ(response: Response, status: int, fields: Sequence[tuple[str, str]], digest: str) -> Iterator[str]:
    """In words, what is not as recorded: status, fields (by name, in order), content."""
    if status != response.status:
        yield f"status {status} and not {response.status}"
    for name in dict.fromkeys(name for name, _ in (*response.headers, *fields)):
        was = [value for one, value in response.headers if one == name]
        now = [value for one, value in fields if one == name]
        if now == was or (not was and name in ADDED):
            continue
        if not was:
            yield f"has a field that was not recorded, {name}: {_short(now)}"
        elif not now:
            yield f"lacks the field {name}: {_short(was)}"
        else:
            yield f"has {name}: {_short(now)} and not {_short(was)}"
    expected = response.body if response.method != "HEAD" else None
    if digest != (expected or _NO_CONTENT):
        yield "other content than recorded"
    announced = [value for name, value in fields if name == "content-length"]
    if response.method != "HEAD" and announced and announced != [str(response.bytes)]:
        yield f"announces {', '.join(announced)} octets and not {response.bytes}"


def _digest(body: Path) -> str:
    return sha256_of(body) if body.exists() else _NO_CONTENT


def _short(values: Sequence[str]) -> str:
    return " | ".join(values)[:120]


def _quoted(text: str | Path) -> str:
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
