"""What is in a page archive, in numbers: by origin and kind, and what a replay will lack."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trifecta.contract.values import JsonObject
from trifecta.pages.archive import LeftOut, Page, Response


@dataclass(frozen=True)
class Share:
    """Responses that have something in common."""

    name: str
    responses: int
    bytes: int


def shares(page: Page, by: str) -> list[Share]:
    """The responses by ``host`` or ``kind``: hosts in the page's order, kinds by weight."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for each in page.responses:
        counts[getattr(each, by)] += 1
        sizes[getattr(each, by)] += each.bytes
    names = page.hosts if by == "host" else [name for name, _ in sizes.most_common()]
    return [Share(name, counts[name], sizes[name]) for name in names]


def reasons(left_out: Sequence[LeftOut]) -> list[tuple[str, list[LeftOut]]]:
    """What was left out, by reason without what it quotes, the most frequent first."""
    groups: dict[str, list[LeftOut]] = {}
    for each in left_out:
        groups.setdefault(re.sub(r"'[^']*'", "…", each.reason), []).append(each)
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def describe(page: Page, responses: bool = False) -> JsonObject:
    """For a program to read."""
    document: dict[str, Any] = {
        "name": page.name, "title": page.title, "start": page.start, "source": dict(page.source), "bytes": page.bytes,
        "requests": len(page.responses),
        "hosts": [vars(each) for each in shares(page, "host")], "kinds": [vars(each) for each in shares(page, "kind")],
        "third_parties": list(page.third_parties), "left_out": [vars(each) for each in page.left_out],
    }  # fmt: skip
    if responses:
        document["responses"] = [_response(each) for each in page.responses]
    return document


def _response(each: Response) -> dict[str, Any]:
    return {**vars(each), "headers": [list(pair) for pair in each.headers]}
