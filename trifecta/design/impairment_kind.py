"""What `design.impairments` says of each kind of impairment: how it is read, told, and what it does to packets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from trifecta.contract.impairments import ImpairmentDocument
from trifecta.contract.values import JsonValue
from trifecta.design.document import Section

Reading = tuple[list[ImpairmentDocument], JsonValue]  # the documents for the link, and the field in its canonical form
Phrases = Callable[[ImpairmentDocument | None, ImpairmentDocument | None], list[str]]
"""What is said of a path whose directions, forward and backward, have these documents of one kind or none."""
Subject = Literal["distance", "capacity", "fate", "timing"]
"""What of a path an impairment is about, in the order in which it is told."""


@dataclass
class DirectionFacts:
    """What one direction of a path is asked to do, gathered field by field."""

    delay_ns: int = 0
    rate_bits_per_s: int | None = None
    queue_bytes: int | None = None
    loss: float = 0.0


@dataclass(frozen=True)
class Kind:
    """What others ask of an impairment: how it is read and told, and what it does to packets.

    ``phrases``: it in words. ``read``: its field of a path; None where it is read together with others. ``share``: the
    share of packets that it hits in the long run, and by how much bursts widen the count beyond chance; None where its
    hits do not follow from a chance. ``about``: what of a path it is about. ``deed``: what becomes of a packet that it
    hits. ``removes``: that goes no further. ``copies``: it is followed by a copy. ``damages``: it arrives damaged.
    ``queues``: packets wait in it, and are dropped where it is full. ``wavers``: it delays packets differently.
    ``hidden``: what a probe counts as lost does not follow from it. ``netem``: why the kernel's netem cannot do what a
    document asks, or "" where it can; None where it does not do it at all, or does not count it.
    """

    phrases: Phrases
    read: Callable[[Section, str, DirectionFacts], Reading] | None = None
    share: Callable[[ImpairmentDocument], tuple[float, float]] | None = None
    about: Subject = "fate"
    deed: str = "lost"
    removes: bool = False
    copies: bool = False
    damages: bool = False
    queues: bool = False
    wavers: bool = False
    hidden: bool = False
    netem: Callable[[ImpairmentDocument], str] | None = None

    @property
    def loses(self) -> bool:
        """Whether packets end in it by chance."""
        return self.removes and self.share is not None

    @property
    def uncounted(self) -> bool:
        """Whether how many packets are lost or come does not follow from their number and a chance."""
        return self.copies or (self.removes and self.share is None)


def each_direction(words: Callable[[ImpairmentDocument], str]) -> Phrases:
    """One phrase; of what is the same in both directions ``... each way``."""
    return _by_direction(lambda document: [words(document)], " each way")


def both_directions(words: Callable[[ImpairmentDocument], list[str]]) -> Phrases:
    """Phrases, an empty one for what is not asked for; of what is the same in both directions it is not said."""
    return _by_direction(words, "")


def _by_direction(words: Callable[[ImpairmentDocument], list[str]], each: str) -> Phrases:
    def phrases(forward: ImpairmentDocument | None, backward: ImpairmentDocument | None) -> list[str]:
        there, back = (words(document) if document else [] for document in (forward, backward))
        return [_joined(*pair, each) for pair in zip_longest(there, back, fillvalue="")]

    return phrases


def _joined(there: str, back: str, each: str) -> str:
    if there == back:
        return f"{there}{each}"
    return " and ".join(f"{text} {way}" for text, way in ((there, "there"), (back, "back")) if text)
