"""A ladder in words: what each of its numbers is, and what follows."""

from __future__ import annotations

import math
from collections import Counter

from trifecta.contract.ladder import Ends, LadderFound, RungFound, StepFound, TurnedFound
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
        return "no number"
    both = [numbers.ratio(end) for end in dict.fromkeys(ends)]
    return " to ".join(both)


def exchanged(step: StepFound) -> str:
    """``tcp_nodelay false -> true``."""
    return ", ".join(f"{name} {before} → {after}" for name, (before, after) in step["exchange"].items())


def left_out(found: LadderFound) -> str:
    """How many trials do not count, and which checks spoke up; empty where all do."""
    trials, valid = (sum(rung[name] for rung in _cells(found)) for name in ("trials", "valid"))
    if trials == valid:
        return ""
    checks: Counter[str] = Counter()
    for rung in _cells(found):
        checks.update(rung["checks"])
    told = ", ".join(f"{name} in {number}" for name, number in checks.most_common(3))
    return f"{trials - valid} of {trials} trials do not count; checks that warned or failed: {told or 'none'}."


def _cells(found: LadderFound) -> list[RungFound]:
    """A rung for each cell: what reads the same trials by another metric is left out."""
    return list({rung["cell"]: rung for rung in reversed(found["rungs"])}.values())


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
        return f"From end to end × {whole}, the steps together × {summed}; too few rounds to say whether they agree."
    meet = "they agree" if found["meets"] else "they do not agree, so session drift or chance is involved"
    return f"From end to end, in its own blocks, × {whole}; the steps together × {summed}; left × {left}: {meet}."


def order(one: TurnedFound) -> str:
    """A step in both orders."""
    return (
        f"{one['step']}: × {ratio(one['before'])} before the other, × {ratio(one['after'])} after it; "
        f"interaction × {ratio(one['interaction'])}"
    )


def _size(one: StepFound) -> float:
    return abs(math.log(one["ratio"])) if one["ratio"] else 0.0
