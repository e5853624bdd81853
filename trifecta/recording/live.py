"""Records a site over the network: a browser loads it through a proxy that keeps every response as it was sent."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urljoin

from trifecta.design.errors import CannotError, UserError
from trifecta.implementations.installation import ending_by_interrupt
from trifecta.pages import rules
from trifecta.pages.archive import Scalar
from trifecta.pages.builder import Builder
from trifecta.pages.folder import name_from
from trifecta.recording.browsing import Load, browsing, load
from trifecta.recording.job import Recorded, RecordingJob, cookie_notes, origin_of, renames, today
from trifecta.recording.proxy import Flow, Proxy, recording_proxy, scratch

_NOTES = {
    "service-worker": "is a service worker, which was refused; the page is recorded and replayed without it",
    "stream": "is a stream of events without an end",
    "websocket": "is a WebSocket",
}
_WITH_URLS = ("location", "access-control-allow-origin", "link")
"""Fields that name an origin; with --rename they are written again."""


def record_url(wanted: RecordingJob, say: Callable[[str], None]) -> Recorded:
    """Load the site twice, or once, and write its archive."""
    start, origins, resolve = rules.tidy_url(wanted.source), renames(wanted), _resolve(wanted)
    site = _Site(wanted, start, origins)
    if rules.url_problem(site.renamed(start)) is not None and not start.startswith("http://"):
        raise UserError(f"{start} {rules.url_problem(site.renamed(start))}; store its origin as another with --rename")
    with ending_by_interrupt(), scratch() as folder, recording_proxy(folder, wanted.ca, resolve) as proxy:
        loads = _loads(wanted, start, proxy, folder / "tmp", say)
        return site.write(loads, proxy)


def _loads(wanted: RecordingJob, start: str, proxy: Proxy, temporary: Path, say: Callable[[str], None]) -> list[Load]:
    loads = []
    with browsing(proxy.port, temporary) as browser:
        version = browser.version
        for visit in range(1 if wanted.once else 2):
            say(f"load {visit + 1}: {start} in Chromium {version}")
            proxy.visit(visit)
            page_load = load(browser, start, timeout_ns=wanted.timeout_ns, settle_ns=wanted.settle_ns)
            loads.append(page_load)
            say(
                f"load {visit + 1}: {len(page_load.asked)} "
                f"requests{f'; {page_load.problem}' if page_load.problem else ''}"
            )
    proxy.end()
    return loads


def _resolve(wanted: RecordingJob) -> dict[str, tuple[str, int | None]]:
    """``host`` or ``host:port`` -> address, and port where another is meant."""
    answers: dict[str, tuple[str, int | None]] = {}
    for each in wanted.resolve:
        host, equals, rest = each.partition("=")
        address, _, port = rest.partition(":") if rest.count(":") == 1 else (rest, "", "")
        try:
            ipaddress.ip_address(address)
            number = int(port) if port else None
            if not host or not equals or host.count(":") > 1 or not 1 <= (1 if number is None else number) <= 65535:
                raise ValueError
        except ValueError:
            raise UserError(f"option --resolve: {each!r} is not HOST[:PORT]=ADDRESS[:PORT]") from None
        answers[host.lower()] = (address, number)
    return answers


class _Site:
    """Turns flows into a page."""

    def __init__(self, wanted: RecordingJob, start: str, origins: dict[str, str]) -> None:
        self.wanted = wanted
        self.start = start
        self.origins = origins
        self.page = Builder(
            wanted.name or name_from(rules.host_of("https://" + self.renamed(start).partition("//")[2]))
        )
        self.cookies = self.foreign = self.naming = 0

    def renamed(self, url: str) -> str:
        """A URL with the origin that it is stored under."""
        origin = origin_of(url)
        return self.origins[origin] + url[len(origin) :] if origin in self.origins else url

    def write(self, loads: list[Load], proxy: Proxy) -> Recorded:
        """Take in what was recorded; CannotError when the page itself did not come."""
        kinds = {key: kind for load in reversed(loads) for key, kind in _tidy(load).items()}
        sockets = dict.fromkeys(rules.tidy_url(url) for load in loads for url in load.websockets)
        for flow in proxy.flows:
            # What the page asked for, and the questions before it (CORS preflight). The rest is the browser's own.
            key = (flow.method, rules.tidy_url(flow.url))
            if key in kinds or (flow.method == "OPTIONS" and any(url == key[1] for _, url in kinds)):
                self._take(flow, kinds.get(key))
            elif flow.note == "service-worker":
                self.page.leave_out(flow.method, flow.url, _NOTES["service-worker"])
            elif flow.note is None and key[1].replace("https", "wss", 1) not in sockets:
                self.foreign += 1
        for url in sockets:
            self.page.leave_out("GET", url, _NOTES["websocket"])
        notes = self._notes(loads)
        start = self._start(loads[0], proxy.flows)
        facts: dict[str, Scalar | list[str]] = {
            "kind": "recorded", "url": self.start[:1000], "when": today(), "tool": f"mitmproxy {proxy.version}",
            "loads": len(loads),
        }  # fmt: skip
        page = self.page.write(self.wanted.out, start, loads[0].title or start, facts)
        return Recorded(page, notes)

    def _take(self, flow: Flow, kind: str | None) -> None:
        url = self.renamed(rules.tidy_url(flow.url))
        if flow.note is not None or flow.error is not None or flow.status is None:
            reason = _NOTES.get(flow.note or "") or f"had no response: {flow.error}"
            self.page.leave_out(flow.method, url, reason)
            return
        body = flow.body.read_bytes() if flow.body is not None else b""
        headers = []
        for name, value in flow.headers:
            if name.lower() == "set-cookie":
                self.cookies += flow.visit == 0
                if not self.wanted.keep_cookies:
                    continue
            headers.append((name, self._rewritten(value) if name.lower() in _WITH_URLS else value))
        self.naming += flow.visit == 0 and any(origin.encode() in body for origin in self.origins)
        known = ("GET" if flow.method == "HEAD" else flow.method, rules.host_of(url), rules.target_of(url))
        if flow.visit == 0 or known not in self.page.responses:
            self.page.add(url, flow.status, headers, body, method=flow.method, kind=kind)

    def _rewritten(self, value: str) -> str:
        for former, later in self.origins.items():
            value = value.replace(former, later)
        return value

    def _start(self, load: Load, flows: list[Flow]) -> str:
        """The URL that a replay begins with: the one asked for, or where http:// led to."""
        candidates = [self.renamed(url) for url in (*_led_to(self.start, flows), rules.tidy_url(load.url))]
        why: str | None = None
        for url in candidates:
            key = ("GET", rules.host_of(url), rules.target_of(url))
            response = None if rules.url_problem(url) else self.page.responses.get(key)
            if response is not None and response.status < 400:
                return url
            if response is not None:
                why = why or f"it was answered with status {response.status}"
        why = why or next((flow.error for flow in flows if rules.tidy_url(flow.url) == self.start and flow.error), None)
        why = why or next((each.reason for each in self.page.left_out if each.url in candidates), load.problem)
        raise CannotError(
            f"{self.start} cannot be recorded: {why or 'it was not answered'}; see whether a browser here can open it"
        )

    def _notes(self, loads: list[Load]) -> list[str]:
        notes = [f"load {number + 1} ended without the load event: {load.problem}"
                 for number, load in enumerate(loads) if load.problem]  # fmt: skip
        if len(loads) > 1:
            first, second = (set(_tidy(load)) for load in loads)
            changing = sorted(first ^ second)
            if changing:
                urls = ", ".join(url[:100] for _, url in changing[:3])
                notes.append(
                    f"{len(changing)} requests came in one of the two loads only, as of a script that makes up URLs; a "
                    f"replay will ask for others and find them missing: {urls}{', ...' if len(changing) > 3 else ''}"
                )
            for method, url in changing:
                self.page.leave_out(method, self.renamed(url), "was asked for in one of two loads only")
        if self.naming:
            origins = ", ".join(self.origins)
            notes.append(f"{self.naming} contents name {origins} themselves; what they ask for there will be missing")
        if self.foreign:
            notes.append(f"{self.foreign} requests were the browser's own and not the page's; they are not in the page")
        return [*notes, *cookie_notes(self.cookies, self.wanted.keep_cookies)]


def _led_to(start: str, flows: list[Flow]) -> list[str]:
    """A URL and those that redirects led to from there, in order."""
    moved = {
        rules.tidy_url(flow.url): next((value for name, value in flow.headers if name.lower() == "location"), "")
        for flow in flows if flow.status in (301, 302, 303, 307, 308)
    }  # fmt: skip
    urls = [start]
    while moved.get(urls[-1]):
        url = rules.tidy_url(urljoin(urls[-1], moved[urls[-1]]))
        if url in urls:
            break
        urls.append(url)
    return urls


def _tidy(load: Load) -> dict[tuple[str, str], str]:
    return {(method, rules.tidy_url(url)): kind for (method, url), kind in load.asked.items() if "://" in url}
