"""A cause that a cell may have, and whether it can be removed here."""

from __future__ import annotations

from dataclasses import dataclass

from trifecta.design.why.cause import Cause, Suspect
from trifecta.design.why.change import Change


@dataclass(frozen=True)
class Candidate:
    """A cause, what points to it, and what removes it; None where nothing can.

    ``problem``: why it cannot be removed; ``nearest``: it is on the nearest stack alone; ``only``: the arm that alone
    meets it.
    """

    cause: Cause
    suspect: Suspect
    change: Change | None
    problem: str = ""
    nearest: bool = False
    only: str = ""
