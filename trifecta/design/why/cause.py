"""What a cause of a difference is: how it is removed, and what of a run makes it a candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from trifecta.contract.values import JsonValue
from trifecta.design.documented import Documentation, read
from trifecta.design.model import PROTOCOL_FACTOR

HEADINGS = ("Removed by", "Suspected when", "Cannot")

CERTAIN, LIKELY, POSSIBLE, UNLIKELY, UNSUSPECTED = 9.0, 6.0, 3.0, 1.0, 0.0
"""How much points to a cause; what nothing points to is measured only where the budget has room for it."""


@dataclass(frozen=True)
class CellEvidence:
    """What is known of a cell before anything is removed from it: what it asks for, and what its run has shown.

    ``levels`` are the cell's, ``fields`` those of its workload, both as a study file has them; ``path`` is its path as
    written there. ``struck`` says in how many trials of both arms each check warned or failed, ``shares`` which share
    of the difference each part of a request's time has (`analysis.causes`), ``lost`` how many packets the queue dropped
    and the path lost, ``overtaken`` how many arrived behind a later one.
    """

    arm: str
    to: str
    compare: str = PROTOCOL_FACTOR
    levels: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    path: Mapping[str, JsonValue] = field(default_factory=dict)
    struck: Mapping[str, int] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    queue_dropped: int = 0
    lost: int = 0
    overtaken: int = 0

    def value(self, name: str) -> str:
        """The level of a factor or the value of a workload's field; empty where this version has no such field."""
        return self.levels.get(name) or self.fields.get(name, "")

    def share(self, *words: str) -> float:
        """The share of the difference that parts with one of these words have; 0 where that is not known."""
        return sum(share for part, share in self.shares.items() if any(word in part for word in words))

    def apart(self, name: str) -> bool:
        """Whether the two transports have their own value each, as ``10/32``, and the arms are over both."""
        tcp, slash, quic = self.value(name).partition("/")
        return self.crosses and bool(slash) and tcp != quic

    @property
    def protocols(self) -> frozenset[str]:
        """The protocols of both arms."""
        of_cell = self.levels.get(PROTOCOL_FACTOR)
        return frozenset({self.arm, self.to} if self.compare == PROTOCOL_FACTOR else {of_cell or ""})

    @property
    def quic(self) -> bool:
        """Whether an arm is over QUIC."""
        return "h3" in self.protocols

    @property
    def tcp(self) -> bool:
        """Whether an arm is over TCP."""
        return bool(self.protocols - {"h3"})

    @property
    def crosses(self) -> bool:
        """Whether the arms are over different transports."""
        return self.quic and self.tcp

    @property
    def far(self) -> bool:
        """Whether the path has a delay."""
        return bool(self.path.get("rtt") or self.path.get("delay") or self.path.get("jitter"))

    @property
    def new(self) -> bool:
        """Whether every request has a connection of its own."""
        return self.value("connection") == "new"


@dataclass(frozen=True)
class Suspect:
    """A cause that a cell may have: what removes it, and what points to it.

    ``levels``: by factor the level that removes it, in the spellings in which it may be written; ``path``: the same of
    fields of the path (None: left out). ``why`` is half a sentence.
    """

    suspicion: float
    why: str
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    path: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """What points to it, as it is told."""
        return self.why if self.suspicion > 0 else "nothing points to it"


Find = Callable[[CellEvidence], "Suspect | None"]


@dataclass(frozen=True)
class Cause:
    """One cause. ``find`` says what removes it from a cell, None where the cell has nothing of it; its docstring is the
    documentation: the title in a line, then `HEADINGS`.

    ``check``: the check that sees it at work, which excludes no trial as long as the cause is there.
    """

    id: str
    find: Find
    check: str = ""

    @cached_property
    def documentation(self) -> Documentation:
        """Title and sections; ValueError where the docstring has other headings."""
        text = (self.find.__doc__ or "").splitlines()
        return read("\n".join(line.strip() for line in text), HEADINGS)

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return self.documentation.title


def cause(name: str, check: str = "") -> Callable[[Find], Cause]:
    """Make a cause of the function that finds it."""
    return lambda find: Cause(name, find, check)
