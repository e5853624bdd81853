"""What adapters that answer from a page archive have in common (docs/architecture.md, section 1.2)."""

from __future__ import annotations

from trifecta.design.model import RequestsWorkload
from trifecta.implementations.server import Unsupported
from trifecta.pages.archive import Page

MISSING_TEXT = b"The page archive has no response to this request.\n"
WELL_KNOWN = "/.well-known/trifecta"
"""A path that every host answers with a small document: for readiness, and to open connections."""
WELL_KNOWN_TEXT = b"<!doctype html><title>Trifecta</title>\n"


def keys(page: Page) -> dict[str, int]:
    """What a request is matched by, as ``METHOD host target``, with the place of its response.

    HEAD is answered as GET (RFC 9110, section 9.3.2) where it was not recorded.
    """
    table = {" ".join(response.key): number for number, response in enumerate(page.responses)}
    for number, response in enumerate(page.responses):
        if response.method == "GET":
            table.setdefault(" ".join(("HEAD", *response.key[1:])), number)
    return table


def refuse_pages(workload: RequestsWorkload, name: str) -> None:
    """Unsupported for the workloads of browsers."""
    if workload.visiting:
        raise Unsupported(f"{name} cannot answer from a page archive; use server: origin, nginx or caddy")
