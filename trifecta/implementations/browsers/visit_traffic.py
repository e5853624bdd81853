"""What visits took of servers elsewhere: how many requests, about how many octets, and what the pages' answers said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from trifecta.contract.load import SeenField
from trifecta.design.far import RECORDED
from trifecta.design.manners import PATIENCE
from trifecta.implementations.browsers.records import VisitRecord
from trifecta.implementations.visit import Fetch

REQUEST_BYTES = 1_000
"""The heads of a request and its answer, and a handshake's part beside, where nobody tells: what manners count."""
CONNECTION_BYTES = 6_000
"""A handshake with a chain of certificates."""
NEVER_SENT = ("browser:name", "browser:blocked")
"""How requests fail that nobody was asked."""
_MOST_VALUES, _LONGEST_VALUE = 64, 512  # as the engine keeps of a field


def sent_fetches(fetches: Iterable[Fetch]) -> list[Fetch]:
    """Those that went over the network."""
    return [fetch for fetch in fetches if not fetch.from_cache and fetch.error not in NEVER_SENT]


def octets(fetches: Sequence[Fetch]) -> int:
    """What these requests took, both ways, with an estimate of what a browser does not tell."""
    content = sum(_content(fetch) + REQUEST_BYTES for fetch in sent_fetches(fetches))
    return content + CONNECTION_BYTES * len({fetch.connection for fetch in fetches if fetch.connection is not None})


def _content(fetch: Fetch) -> int:
    sizes = (fetch.wire_bytes, fetch.body_bytes, fetch.decoded_bytes)
    return next((size for size in sizes if size is not None), 0)


def refused(fetches: Iterable[Fetch]) -> bool:
    """Whether anybody asked for patience."""
    return any(fetch.status in PATIENCE for fetch in sent_fetches(fetches))


def fields(records: Iterable[VisitRecord]) -> dict[str, SeenField]:
    """The fields that are looked for: of every page's document, and when to come back of who asked for patience."""
    counts_by_name: dict[str, Counter[str]] = {}
    for record in records:
        for name, value in _header_fields(record):
            counts_by_name.setdefault(name, Counter())[value[:_LONGEST_VALUE]] += 1
    return {
        name: SeenField(values=dict(counts.most_common(_MOST_VALUES)), others=_other_values(counts))
        for name, counts in sorted(counts_by_name.items())
    }


def _other_values(counts: Counter[str]) -> int:
    return counts.total() - sum(count for _, count in counts.most_common(_MOST_VALUES))


def _header_fields(record: VisitRecord) -> Iterator[tuple[str, str]]:
    went = sent_fetches(record.fetches)
    page = next((fetch for fetch in went if fetch.kind == "document"), None)
    for fetch in went:
        wanted = RECORDED if fetch is page else ("retry-after",) if fetch.status in PATIENCE else ()
        for name, value in fetch.response_headers:
            if name.lower() in wanted:
                yield name.lower(), value
