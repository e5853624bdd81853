"""Stand-ins for tests of the runner: a browser without a program, and the origin with a page laid out as files."""

from __future__ import annotations

from typing import Any

from trifecta.implementations import registry
from trifecta.implementations.browsers.browser import BrowserAdapter, RunningBrowser
from trifecta.implementations.server import ServerOptions, Site
from trifecta.implementations.servers.origin import Origin
from trifecta.pages.archive import body_file, read_page


class FakeBrowser(BrowserAdapter):
    """Found everywhere; `fake_browser` does its work."""

    name = "chromium"
    source = "tests/workloads/fake_browser.py"

    def find(self) -> str:
        return "1"

    async def launch(self, errand: Any) -> RunningBrowser:
        raise NotImplementedError


class Folded(Origin):
    """An origin that has the page's bodies in a folder, by path."""

    def config(self, site: Site, options: ServerOptions) -> dict[str, Any]:
        assert site.replay is not None
        for each in read_page(site.replay).responses:
            path, body = site.state / "site" / each.target.lstrip("/"), body_file(site.replay, each)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body.read_bytes() if body else b"")
        return super().config(site, options) | {"folder": str(site.state / "site")}


SERVERS = dict(registry.SERVERS) | {"origin": Folded()}
