"""robots.txt (RFC 9309): what a host lets be asked for by us, and the rule that says so.

Python's own reader takes the first rule that fits and knows no wildcards, where the longest counts (section 2.2.2); it
would ask for what is forbidden. And nobody's tells which rule it was.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, urljoin

from trifecta.contract.far import RobotsObservation
from trifecta.design.errors import CannotError, UserError
from trifecta.design.manners import PATIENCE, ROBOTS_REQUESTS
from trifecta.design.stat import Target
from trifecta.workloads.far import names
from trifecta.workloads.far.configs import USER_AGENT
from trifecta.workloads.far.rate_limiter import RateLimiter
from trifecta.workloads.stat import read_url

AGENT = "trifecta"
"""How a robots.txt calls us."""
ROBOTS = "/robots.txt"
_MOST_BYTES = 512_000  # what has to be read at least is 500 KiB (section 2.5)
_TIMEOUT_S = 10.0
_TOKEN = re.compile(r"\*|[A-Za-z_-]+")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_KEPT = "/%:@!$&'()*+,;=~-._?#[]"


@dataclass(frozen=True)
class Rule:
    """A line of robots.txt: whether what begins so may be asked for."""

    allows: bool
    pattern: str

    @property
    def line(self) -> str:
        """The line."""
        return f"{'Allow' if self.allows else 'Disallow'}: {self.pattern}"

    def fits(self, path: str) -> bool:
        """Whether it is about this path (with its query), ``*`` standing for anything, ``$`` at its end for the end.

        Section 2.2.3. In time linear in both: a pattern is a stranger's.
        """
        pattern, anchored = _normalised(self.pattern), False
        if pattern.endswith("$"):
            pattern, anchored = pattern[:-1], True
        first, *others = pattern.split("*")
        if not path.startswith(first):
            return False
        at = len(first)
        if not others:
            return not anchored or at == len(path)
        for part in others[:-1]:
            matched = path.find(part, at)
            if matched < 0:
                return False
            at = matched + len(part)
        if anchored:
            return path.endswith(others[-1]) and len(path) - len(others[-1]) >= at
        return path.find(others[-1], at) >= 0


def rule_for(text: str, path: str) -> Rule | None:
    """The rule of a robots.txt that decides on a path with its query: the longest one, of two that allowing one.

    Those for us count, and where there are none those for everybody; None where none is about it (sections 2.2.1 and
    2.2.2).
    """
    groups = list(_groups(text))
    ours = [rules for agents, rules in groups if AGENT in agents] or [
        rules for agents, rules in groups if "*" in agents
    ]
    plain_path = _normalised(path)
    fitting = [rule for rules in ours for rule in rules if rule.pattern and rule.fits(plain_path)]
    if plain_path == ROBOTS:
        return None  # which may always be read (section 2.2.2)
    return max(fitting, key=lambda rule: (len(_normalised(rule.pattern)), rule.allows), default=None)


def _groups(text: str) -> Iterator[tuple[set[str], list[Rule]]]:
    """Who is meant, in lower case, and the rules for them."""
    agents: set[str] = set()
    rules: list[Rule] = []
    begun = False
    for line in text.removeprefix("\ufeff").splitlines():
        name, colon, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        key = name.lower()
        if not colon or key not in ("user-agent", "allow", "disallow"):
            continue
        if key == "user-agent":
            if begun:
                yield agents, rules
                agents, rules, begun = set(), [], False
            match = _TOKEN.match(value)
            agents.add(match[0].lower() if match else "")
        elif agents:
            begun = True
            rules.append(Rule(key == "allow", value))
    yield agents, rules


def _normalised(path: str) -> str:
    """With octets written as they are compared (section 2.2.2): escaped, in capitals, but not where none is needed."""

    def one(match: re.Match[str]) -> str:
        letter = chr(int(match[1], 16))
        return letter if _UNRESERVED.fullmatch(letter) else match[0].upper()

    return _ESCAPED.sub(one, quote(path, safe=_KEPT))


@dataclass(frozen=True)
class Read:
    """A robots.txt: where it was read, how it was answered, and what it says; nothing where there is none."""

    url: str
    status: int
    text: str

    def about(self, target: Target) -> RobotsObservation:
        """What it says of a URL of its host."""
        rule = rule_for(self.text, target.path)
        rule_text = None if rule is None else rule.line
        return {"url": target.url, "robots": self.url, "status": self.status, "rule": rule_text}


OF_THIS_PROCESS: dict[tuple[str, int], Read] = {}
"""By host and port: a look before a run and the run read it once."""


class _Unreachable(CannotError):
    """No answer came from this address; one may from another."""


def read(target: Target, addresses: Sequence[str], authorities: Path, keeper: RateLimiter) -> Read:
    """The robots.txt of a URL's host, asked for once by this process, at the first of these addresses that answers.

    CannotError where it cannot be read for reasons that are the server's or the path's: then everything is forbidden
    (section 2.3.1.4); and where it asks for patience.
    """
    key = target.host, target.port
    if key not in OF_THIS_PROCESS:
        OF_THIS_PROCESS[key] = _first(target, addresses, authorities, keeper)
    return OF_THIS_PROCESS[key]


def _first(target: Target, addresses: Sequence[str], authorities: Path, keeper: RateLimiter) -> Read:
    *others, last = addresses
    for address in others:
        with suppress(_Unreachable):
            return _ask(target, address, authorities, keeper)
    return _ask(target, last, authorities, keeper)


def _ask(target: Target, address: str, authorities: Path, keeper: RateLimiter) -> Read:
    where, at = replace(target, url=_robots_url(target), path=ROBOTS), address
    for _ in range(ROBOTS_REQUESTS):
        status, location, content = _get(where, at, authorities, keeper)
        if status in PATIENCE:
            raise CannotError(f"{where.url} was answered {status}, which asks to slow down; try another day")
        if 300 <= status < 400 and location:
            where = _redirected(where, location)
            at = address if where.host == target.host else names.resolve(where.host, where.port).addresses[0]
            continue
        if 200 <= status < 300:
            return Read(where.url, status, content.decode("utf-8", "replace"))
        if 400 <= status < 500:  # there is none: section 2.3.1.3
            return Read(where.url, status, "")
        raise CannotError(f"{where.url} was answered {status}, which forbids everything (RFC 9309, 2.3.1.4); {_LATER}")
    raise CannotError(f"{_robots_url(target)} redirects without end; {_LATER}")


_LATER = "ask for the page when it can be read"


def refuse_forbidden(robots: RobotsObservation) -> None:
    """CannotError, with the rule, where robots.txt forbids the page to us."""
    rule = robots["rule"]
    if rule is not None and rule.startswith("Disallow"):
        what = f"{robots['robots']} forbids it to {AGENT} ({rule})"
        remedy = f"add 'User-agent: {AGENT}' with 'Allow: /' there if the server is yours"
        raise CannotError(f"{robots['url']}: {what}; {remedy}, or choose another page")


def _robots_url(target: Target) -> str:
    port = "" if target.port == 443 else f":{target.port}"
    return f"https://{target.host}{port}{ROBOTS}"


def _redirected(where: Target, location: str) -> Target:
    there = urljoin(where.url, location)
    try:
        return read_url(there)
    except UserError as error:
        raise CannotError(f"{where.url} leads to {there[:200]!r}, which is not asked for ({error}); {_LATER}") from None


def _get(where: Target, address: str, authorities: Path, keeper: RateLimiter) -> tuple[int, str, bytes]:
    """Status, where it leads, and content."""
    try:
        context = ssl.create_default_context(cafile=str(authorities))
    except OSError as error:
        raise UserError(f"certificate authorities {authorities}: {error}; give --ca FILE") from None
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as browsers and the engine verify
    keeper.wait()
    connection = http.client.HTTPSConnection(where.host, where.port, timeout=_TIMEOUT_S, context=context)
    try:
        with (
            socket.create_connection((address, where.port), timeout=_TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname=where.host) as secure,
        ):
            connection.sock = secure
            connection.request("GET", where.path, headers={"User-Agent": USER_AGENT, "Connection": "close"})
            answer = connection.getresponse()
            content = answer.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        keeper.record_requests(0)
        words = " ".join(str(error).split()) or type(error).__name__
        raise _Unreachable(
            f"{where.url} at {address} cannot be read ({words}), which forbids everything (RFC 9309, 2.3.1.4); {_LATER}"
        ) from error
    finally:
        connection.close()
    keeper.record_requests(len(content))
    return answer.status, answer.getheader("location") or "", content
