"""What a browser is shown in a cell: a page archive, the host that serves it, and what changes while it is served."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trifecta import pages
from trifecta.design.browsers import serving_host
from trifecta.design.errors import CannotError
from trifecta.design.model import BrowserWorkload, PageWorkload
from trifecta.lab.host import Host
from trifecta.pages.archive import Page, Response, read_page


class Live(Protocol):
    """A source of what changes while it is served: segments of a live video."""

    @property
    def folder(self) -> Path:
        """What is served below ``/live/``."""

    def start(self, host: Host, log: Path) -> AbstractContextManager[object]:
        """Fill the folder from a program in ``host`` while it is entered; CannotError when it does not come up."""

    def problem(self) -> str | None:
        """How its program ended; None while it runs, and before it is started."""


@dataclass(frozen=True)
class Material:
    """What is served in a cell."""

    folder: Path
    """The page archive."""
    page: Page
    host: str
    """``web`` or ``video``."""
    live: Live | None = None

    @property
    def first(self) -> Response:
        """The response to the first request of a visit."""
        return next(each for each in self.page.responses if each.method == "GET" and each.url == self.page.start)


def material_of(workload: BrowserWorkload) -> Material:
    """What a cell's workload shows; UserError or CannotError where it is not there and cannot be made."""
    if isinstance(workload, PageWorkload):
        folder = pages.find(workload.page)
        return Material(folder, read_page(folder), serving_host(workload))
    raise CannotError("the workload video is not there yet")  # pragma: no cover


def same_material(workload: BrowserWorkload) -> tuple[object, ...]:
    """What tells the material of two workloads apart."""
    if isinstance(workload, PageWorkload):
        return "page", workload.page
    names = ("clip", "mode", "codec", "ladder", "segment_ns", "watch_ns")
    return "video", *(getattr(workload, name) for name in names)
