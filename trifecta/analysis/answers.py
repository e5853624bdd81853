"""What becomes of a published statement: from its state under the published conditions and from that under today's."""

from __future__ import annotations

from typing import Literal

from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, NOT_COMPARED, OPEN, OTHER_SIZE, THAT_WAY, State

Answer = Literal[
    "confirmed", "held then", "same direction, other size", "not today", "contradicted", "open", "not compared"
]
HELD_THEN: Answer = "held then"
NOT_TODAY: Answer = "not today"
ANSWERS: tuple[Answer, ...] = (CONFIRMED, OTHER_SIZE, HELD_THEN, NOT_TODAY, CONTRADICTED, OPEN, NOT_COMPARED)


def combine(then: State, now: State, *, changed: bool = True) -> tuple[Answer, str]:
    """The answer where both are decided, and why; ``changed``: whether the two differ by more than chance."""
    if then == CONFIRMED and now == CONFIRMED:
        return "confirmed", "it holds under the published conditions and under today's"
    if (then in THAT_WAY and now == CONTRADICTED) or (then == CONFIRMED and now == OTHER_SIZE):
        if not changed:
            return "open", "the two ends are judged differently, and the difference between them may be none"
        size = "" if then == CONFIRMED else ", though in another size than published"
        what = "in its direction, not in its size" if now == OTHER_SIZE else "no longer"
        return HELD_THEN, f"it holds under the published conditions{size}; today {what}"
    if then in THAT_WAY and now in THAT_WAY:
        return "same direction, other size", "it goes that way at both ends, in another size than published at one"
    if then == CONTRADICTED and now == CONTRADICTED:
        return "contradicted", "it holds neither under the published conditions, as far as they are made, nor today"
    return "open", "it holds today and not under the published conditions as far as they are made"


def answered(now: State, then: State | None, *, tried: str = "") -> tuple[Answer, str]:
    """The answer of a reproduction of today, and why where that is more than its state.

    ``then``: the state as published, None where that was not tried; ``tried``: what was found there. Nothing is
    contradicted that was not: it does not hold today, and that is all there is to say.
    """
    if now in (OPEN, NOT_COMPARED):
        return now, ""
    if then in (None, OPEN, NOT_COMPARED):
        if now == CONTRADICTED:
            as_published = f"as published it is {then}{': ' if tried else ''}{tried}"
            return NOT_TODAY, "not tried as published" if then is None else as_published
        return now, ""
    return combine(then, now)
