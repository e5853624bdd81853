"""Which entry of a HAR is the page, and where none can be replayed, why: the first reason is the one that is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urljoin

from trifecta.pages import rules

MOVED = (301, 302, 303, 307, 308)
_NO_CONTENT = "the HAR has no content of it"
SAVE_WITH_CONTENT = f"{_NO_CONTENT}; save the HAR with content"
_MOST_MOVES = 20  # as browsers


@dataclass(frozen=True, slots=True)
class Entry:
    """What an entry came to: ``reason`` says why it was left out, None: it is in the archive."""

    index: int
    method: str
    url: str  # as it would be stored
    status: int
    location: str | None
    document: bool
    reason: str | None


def choose(entries: Sequence[Entry]) -> tuple[str | None, str]:
    """The URL that the page starts with; or None, and why: of the first document, and of what it leads to."""
    by_url = {one.url: one for one in reversed(entries) if one.method == "GET"}
    for first in filter(_may_be_page, entries):
        chain = [first]
        while len(chain) < _MOST_MOVES and (following := _following(chain[-1], by_url)) not in (None, *chain):
            assert following is not None
            chain.append(following)
        last = chain[-1]
        if last.reason is None and last.status in MOVED:
            where = f"log.entries[{last.index}]: {last.url[:200]} leads to {(last.location or '')[:200]!r}"
            if _following(last, by_url) is None:
                return None, f"{where}, which the HAR has no answer to; save it with all requests"
            return None, f"{where}, in a circle: a replay gives the first answer alone; name the page with --start"
        if last.reason is not None:
            return None, _why_not(entries, last)
        if last.document:
            # As far up the chain as there are answers: often only http:// leads to https://.
            lost = max((place for place, one in enumerate(chain) if one.reason is not None), default=-1)
            return chain[lost + 1].url, ""
    return None, f"log.entries: none of {len(entries)} is a document that was answered; name the page with --start"


def _may_be_page(entry: Entry) -> bool:
    return entry.method == "GET" and entry.status >= 200 and (entry.document or entry.status in MOVED)


def _following(entry: Entry, by_url: dict[str, Entry]) -> Entry | None:
    if entry.status not in MOVED or entry.location is None:
        return None
    try:
        return by_url.get(rules.tidy_url(urljoin(entry.url, entry.location)))
    except ValueError:
        return None


def _why_not(entries: Sequence[Entry], entry: Entry) -> str:
    """Why this document cannot be replayed; of a HAR without any content, that."""
    empty = [each for each in entries if each.reason is not None and each.reason.startswith(_NO_CONTENT)]
    if empty and not any(each.reason is None and each.status not in MOVED for each in entries):
        return "the HAR has no content; save it with content (Chrome: Export HAR, Firefox: Save All As HAR)"
    other = next((each.url for each in entries if each.document and each.reason is None and each.status < 300), None)
    remedy = "" if other is None else f"; or name another document with --start, as {other[:200]}"
    return f"log.entries[{entry.index}]: {entry.url[:200]}: {entry.reason or 'is no document'}{remedy}"
