"""What the engine's load and origin do otherwise than programs that take their QUIC library, quinn-proto, as it comes.

A study says in ``quinn`` which of these adaptations are on: ``adapted`` (all), ``stock`` (none), or names joined by
``+``. Why each is there, and whether an instrument may have it: docs/implementations.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from trifecta.design.document import did_you_mean, parse_text
from trifecta.design.quantity import QuantityError

LIBRARY = "quinn-proto"
ADAPTED, STOCK = "adapted", "stock"
ADAPTATIONS: Mapping[str, str] = {
    "window-validation": "Cubic and NewReno grow their window by the rule that Linux has for TCP",
    "padding-cut": "padding behind the frames of a received packet is cut off before it is read",
    "parameters-in-order": "transport parameters are sent in order, without a reserved one (no greasing)",
    "no-ecn": "packets carry no ECN codepoint, as Linux's TCP requests none by default",
    "settings": (
        "full-size packets without a search for the MTU, an initial window of ten of them, receive windows that do not "
        "limit, empty connection identifiers of clients, version 1 alone, no address tokens, no datagrams, responses "
        "one after the other, what was lost first"
    ),
}
"""By the engine's names (``trifecta-engine --version``): what each is."""


def parse(value: Any) -> str:
    """``adapted``, ``stock``, or some adaptations in the order of the table, joined by ``+``."""
    text = parse_text(value)
    if text in (ADAPTED, STOCK):
        return text
    given = [part.strip() for part in text.split("+")]
    for name in given:
        if name not in ADAPTATIONS:
            known = (ADAPTED, STOCK, *ADAPTATIONS)
            raise QuantityError(f"{name!r} is nothing that quinn-proto is adapted in; {did_you_mean(name, known)}")
    if len(set(given)) == len(ADAPTATIONS):
        return ADAPTED
    return "+".join(name for name in ADAPTATIONS if name in given)


def names(value: str) -> list[str]:
    """The adaptations that are on."""
    if value == ADAPTED:
        return list(ADAPTATIONS)
    return [] if value == STOCK else value.split("+")


def switched(value: str, name: str) -> str:
    """The same without an adaptation that is on, with one that is off."""
    return of_names({*names(value)} ^ {name})


def combine(value: str, first: str, second: str) -> str:
    """``value`` with all that either of two others has otherwise than it."""
    own, one, other = ({*names(each)} for each in (value, first, second))
    return of_names(own ^ ((own ^ one) | (own ^ other)))


def of_names(on: Collection[str]) -> str:
    """The text of a study file for these adaptations."""
    return parse("+".join(on)) if on else STOCK
