"""What is to be recorded, what came of it, and what both need: whichever of folder, HAR file or URL it is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from trifecta.design.errors import UserError
from trifecta.pages import rules
from trifecta.pages.archive import Page

_COOKIES_DROPPED = "dropped: {} cookies that responses set; they may be secrets (--keep-cookies keeps them)"
_COOKIES_KEPT = (
    "kept: {} cookies that responses set; anyone who has the folder has them: recorded values may be secrets"
)


@dataclass(frozen=True)
class RecordingJob:
    """What is to be recorded."""

    source: str
    """An http(s) URL, a HAR file, or a folder with ``index.html``."""
    out: Path
    name: str | None = None
    start: str | None = None
    origin: str | None = None
    rename: Sequence[str] = ()
    """``FROM=TO``, origins."""
    resolve: Sequence[str] = ()
    """``HOST[:PORT]=ADDRESS[:PORT]``."""
    ca: Path | None = None
    keep_cookies: bool = False
    once: bool = False
    settle_ns: int = 2_000_000_000
    timeout_ns: int = 60_000_000_000


@dataclass(frozen=True)
class Recorded:
    """A page that was written, and what its user should know."""

    page: Page
    notes: list[str] = field(default_factory=list)


def cookie_notes(count: int, are_kept: bool) -> list[str]:
    """What to say of ``set-cookie``."""
    return [(_COOKIES_KEPT if are_kept else _COOKIES_DROPPED).format(count)] if count else []


def today() -> str:
    """The day, UTC."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")


def origin_of(url: str) -> str:
    """Scheme, host and port of a tidy URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def renames(wanted: RecordingJob) -> dict[str, str]:
    """Origin recorded -> origin stored."""
    pairs = {}
    for each in wanted.rename:
        former, equals, later = each.partition("=")
        former, later = rules.tidy_url(former).rstrip("/"), rules.tidy_url(later).rstrip("/")
        problem = rules.url_problem(later + "/")
        if not equals or former.count("/") != 2 or not former.startswith(("http://", "https://")):
            raise UserError(
                f"option --rename: {each!r} is not FROM=TO of origins, as https://localhost:8443=https://www.mine.lab"
            )
        if problem is not None:
            raise UserError(f"option --rename: {later!r} {problem}")
        pairs[former] = later
    return pairs
