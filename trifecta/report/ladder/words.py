"""A ladder in words: what each of its numbers is, and what follows."""

from __future__ import annotations

import math

from trifecta.contract.ladder import Ends, LadderFound, StepFound, TurnedFound
from trifecta.design import metrics, numbers


def quantity(found: LadderFound) -> str:
    """What every rung has a value of: ``requests per second, HTTP/3 : HTTP/2``."""
    arms = " : ".join(numbers.protocol(found[name]) for name in ("arm", "to"))
    return f"{metrics.label(found['metric'])}, {arms}"


def ratio(one: Ends) -> str:
    """``5.9 [5.1, 6.8]``; a dash where there is no value."""
    if one["ratio"] is None:
        return "–"
    return f"{numbers.ratio(one['ratio'])} {numbers.interval((one['low'], one['high']))}"


def published(found: LadderFound) -> str:
    """The published ratio, or the two that it lies between."""
    ends = found["published_range"]
    if not ends:
        return found["published"] or "no number"
    both = [numbers.ratio(end) for end in dict.fromkeys(ends)]
    return " to ".join(both)


def exchanged(step: StepFound) -> str:
    """``tcp_nodelay false -> true``."""
    return ", ".join(f"{name} {before} → {after}" for name, (before, after) in step["exchange"].items())


def answer(found: LadderFound) -> str:
    """The answer in a sentence, with the steps that made it."""
    text = f"{found['answer'].capitalize()}: {found['reason']}."
    made = sorted((one for one in found["steps"] if one["counts"]), key=lambda one: -_size(one))
    if found["answer"] == "held then" and made:
        told = ", ".join(f"{one['title']} (× {ratio(one)})" for one in made)
        text += f" What changed it: {told}."
    return text


def closing(found: LadderFound) -> str:
    """Whether the steps add up to the difference from end to end."""
    whole, summed, left = (ratio(found[name]) for name in ("whole", "sum", "left"))
    if found["meets"] is None:
        return f"From end to end × {whole}, the steps together × {summed}; too few rounds to say whether they meet."
    meet = "they meet" if found["meets"] else "they do not meet, so a session's drift or chance is in it"
    return f"From end to end, in blocks of its own, × {whole}; the steps together × {summed}; left × {left}: {meet}."


def order(one: TurnedFound) -> str:
    """A step in both orders."""
    return (
        f"{one['step']}: × {ratio(one['before'])} before the other, × {ratio(one['after'])} after it; "
        f"interaction × {ratio(one['interaction'])}"
    )


def _size(one: StepFound) -> float:
    return abs(math.log(one["ratio"])) if one["ratio"] else 0.0
