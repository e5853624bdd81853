"""What the text of bourbon2020 says of the places in its figures, where it gives a number."""

from __future__ import annotations

from dataclasses import dataclass

from trifecta.analysis.statements import Published
from trifecta.conclude.reproduction.own_bourbon2020 import Cell


@dataclass(frozen=True)
class PublishedRange:
    """What the study's text says of a place: between which values, in which words, and where."""

    low: float | None
    high: float | None
    words: str
    source: str


# By the statement of ``studies/published`` that has the words and the section. All from the text of chapter 6, none
# from a picture.
_ELAPSED = {"lag": ("lag-times", 1.2e9, None), "lossy": ("lossy-times", 0.2e9, 1.2e9)}
_TO_NORMAL = {4: ("fan-in-lag-4", 20.0), 50: ("fan-in-lag-50", 1.5)}


def elapsed(cell: Cell, about: Published) -> PublishedRange | None:
    """Of figure 14: with lag above 1.2 s, with loss 200 ms to 1.2 s. In ns."""
    return (
        _published_range(about, *_ELAPSED[cell.scenario.path])
        if cell.suite == "A" and cell.scenario.path in _ELAPSED
        else None
    )


def success(cell: Cell, about: Published) -> PublishedRange | None:
    """Of figure 15 (share): 100 % but in some tests of HTTP/1.1 and HTTP/2 with loss; of these no number is given."""
    if cell.suite != "A":
        return None
    if cell.scenario.path == "lossy" and cell.arm != "h3":
        return _published_range(about, "lossy-success", None, None)
    return _published_range(about, "lossy-success-h3", 1.0, 1.0)


def to_normal(cell: Cell, about: Published) -> PublishedRange | None:
    """Of figure 19: how many times the normal network's time a request takes with lag."""
    if cell.suite != "B" or cell.scenario.path != "lag":
        return None
    name, times = _TO_NORMAL[cell.clients]
    return _published_range(about, name, times, times)


def memory(cell: Cell, about: Published) -> PublishedRange | None:
    """Of figures 17 and 21, in octets: HTTP/3 in the chain, the fan-in of 4 clients; of which service is not said."""
    if cell.suite == "A":
        return _published_range(about, "memory-size", 15e6, 20e6) if cell.arm == "h3" else None
    if cell.clients == 4 and not cell.scenario.containers:
        return _published_range(about, "fan-in-memory", None, 200e6)
    if cell.clients == 4 and cell.scenario.name == "single_01":
        return _published_range(about, "fan-in-memory-containers", 250e6, 250e6)
    return None


def _published_range(about: Published, name: str, low: float | None, high: float | None) -> PublishedRange:
    statement = next(one for one in about.statements if one.id == f"{about.id}.{name}")
    return PublishedRange(low, high, statement.said, statement.source)
