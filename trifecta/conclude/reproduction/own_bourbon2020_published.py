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


def elapsed(one: Cell, about: Published) -> PublishedRange | None:
    """Of figure 14: with lag above 1.2 s, with loss 200 ms to 1.2 s. In ns."""
    return _said(about, *_ELAPSED[one.scenario.path]) if one.suite == "A" and one.scenario.path in _ELAPSED else None


def success(one: Cell, about: Published) -> PublishedRange | None:
    """Of figure 15 (share): 100 % but in some tests of HTTP/1.1 and HTTP/2 with loss; of these no number is given."""
    if one.suite != "A":
        return None
    if one.scenario.path == "lossy" and one.arm != "h3":
        return _said(about, "lossy-success", None, None)
    return _said(about, "lossy-success-h3", 1.0, 1.0)


def to_normal(one: Cell, about: Published) -> PublishedRange | None:
    """Of figure 19: how many times the normal network's time a request takes with lag."""
    if one.suite != "B" or one.scenario.path != "lag":
        return None
    name, times = _TO_NORMAL[one.clients]
    return _said(about, name, times, times)


def memory(one: Cell, about: Published) -> PublishedRange | None:
    """Of figures 17 and 21, in octets: HTTP/3 in the chain, the fan-in of 4 clients; of which service is not said."""
    if one.suite == "A":
        return _said(about, "memory-size", 15e6, 20e6) if one.arm == "h3" else None
    if one.clients == 4 and not one.scenario.containers:
        return _said(about, "fan-in-memory", None, 200e6)
    if one.clients == 4 and one.scenario.name == "single_01":
        return _said(about, "fan-in-memory-containers", 250e6, 250e6)
    return None


def _said(about: Published, name: str, low: float | None, high: float | None) -> PublishedRange:
    statement = next(one for one in about.statements if one.id == f"{about.id}.{name}")
    return PublishedRange(low, high, statement.said, statement.source)
