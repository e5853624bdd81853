"""What a threat to validity is: how it is switched on and off, what detects it, and what shows its effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from trifecta.design.document import Document
from trifecta.design.documented import Documentation, read

HEADINGS = ("Why", "Switch", "Experiment")
FURTHER = ("Notes",)

Change = tuple[str, ...] | Callable[[Document], None]
"""What is done to a study before it is validated: ``KEY=VALUE`` of ``--set``, or a function that changes the document.

A function raises UserError (`cannot_apply`) where the study has nothing that it could change.
"""


@dataclass(frozen=True)
class Effect:
    """Two levels of one factor of the experiment, and the metric that is compared between them.

    ``factor`` is any factor but protocol; ``off`` and ``on`` are its levels as they stand in a cell's key. ``where``
    narrows it to cells with these levels of other factors.
    """

    factor: str
    off: str
    on: str
    metric: str = "latency_p50_ns"
    title: str = ""
    """What is compared, in a few words; empty where the threat's title says it."""
    where: tuple[tuple[str, str], ...] = ()
    experiment: str = ""
    """Another experiment than the threat's own."""


@dataclass(frozen=True)
class Threat:
    """Something about a study that can make its conclusion wrong.

    ``docstring`` is that of its file: the title, in a line, then `HEADINGS`: why it matters, with figures and their
    source; how it is switched; what its experiment does. A switch that does not exist is None, with the reason in
    ``no_switch``. Without a check that detects it, ``undetected`` says why; without an experiment, ``elsewhere`` says
    where its effect is found.
    """

    id: str
    docstring: str | None
    studies: tuple[str, ...]
    on: Change | None = None
    off: Change | None = None
    no_switch: str = ""
    check: str | None = None
    evidence_words: str = ""
    """Words by which that check's evidence tells this threat from others that it sees; empty where it sees no other."""
    tells_apart: bool = True
    """Whether the check, by those words, tells this threat from all else that it speaks up about; if not, only what the
    study asks for says whether the threat is on.
    """
    undetected: str = ""
    experiment: str | None = None
    """The bundled study ``studies/threats/NAME.yaml`` that has it off and on side by side."""
    effects: tuple[Effect, ...] = ()
    """What the experiment shows of it, the main one first."""
    quick: tuple[str, ...] = ()
    """``KEY=VALUE`` that make the experiment quick: under a minute where that shows anything."""
    quick_of: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The same of further experiments, by name, where it is another."""
    by_itself: tuple[str, ...] = ()
    """Experiments that a quick reproduction leaves out, for the time that it may take."""
    model: Literal["", "round-trips", "decomposition", "knee"] = ""
    """What else is worked out of its trials: measured against the round trips needed, the parts of the effect, or the
    rate from which on a program sets the pace.
    """
    elsewhere: str = ""
    procedure: bool = False
    """Its effect is that of a way to conclude, carried out on the requests of its experiment; there are no levels."""

    @cached_property
    def documentation(self) -> Documentation:
        """Title and sections; ValueError where the docstring has other headings."""
        return read(self.docstring, HEADINGS, FURTHER)

    @property
    def title(self) -> str:
        """What it is, one line."""
        return self.documentation.title

    @property
    def fact(self) -> str:
        """Why it matters, as one paragraph."""
        return " ".join(self.documentation["Why"].split())

    @property
    def experiments(self) -> tuple[str, ...]:
        """The bundled experiments, its own first; none where there is no traffic to make."""
        named = (self.experiment, *(effect.experiment for effect in self.effects))
        return tuple(dict.fromkeys(name for name in named if name))

    def quickly(self, experiment: str) -> tuple[str, ...]:
        """``KEY=VALUE`` that make this experiment short."""
        return dict(self.quick_of).get(experiment, self.quick)
