"""A ladder in words: what each of its numbers is, and what follows."""

from __future__ import annotations

import math
from collections import Counter

from trifecta.contract.ladder import LadderDocument, RatioInterval, RungDocument, StepDocument, StepOrderDocument
from trifecta.design import metrics, numbers
from trifecta.design.phrases import counted


def quantity(document: LadderDocument) -> str:
    """What every rung has a value of: ``requests per second, HTTP/3 : HTTP/2``."""
    arms = " : ".join(numbers.protocol(document[name]) for name in ("arm", "to"))
    return f"{metrics.label(document['metric'])}, {arms}"


def ratio(interval: RatioInterval) -> str:
    """``5.9 [5.1, 6.8]``; a dash where there is no value."""
    if interval["ratio"] is None:
        return "–"
    return f"{numbers.ratio(interval['ratio'])} {numbers.interval((interval['low'], interval['high']))}"


def published(document: LadderDocument) -> str:
    """The published ratio, or the two that it lies between."""
    ends = document["published_range"]
    if not ends:
        return "no number"
    both = [numbers.ratio(end) for end in dict.fromkeys(ends)]
    return " to ".join(both)


def exchanged(step: StepDocument) -> str:
    """``tcp_nodelay false -> true``."""
    return ", ".join(f"{name} {before} → {after}" for name, (before, after) in step["exchange"].items())


def left_out(document: LadderDocument) -> str:
    """How many trials do not count, and which checks spoke up; empty where all do."""
    trials, valid = (sum(rung[name] for rung in _cells(document)) for name in ("trials", "valid"))
    if trials == valid:
        return ""
    checks: Counter[str] = Counter()
    for rung in _cells(document):
        checks.update(rung["checks"])
    sentence = ", ".join(f"{name} in {number}" for name, number in checks.most_common(3))
    return f"{trials - valid} of {trials} trials do not count; checks that warned or failed: {sentence or 'none'}."


def _cells(document: LadderDocument) -> list[RungDocument]:
    """A rung for each cell: what reads the same trials by another metric is left out."""
    return list({rung["cell"]: rung for rung in reversed(document["rungs"])}.values())


def answer(document: LadderDocument) -> str:
    """The answer in a sentence, with the steps that made it."""
    text = f"{document['answer'].capitalize()}: {document['reason']}."
    if document["answer"] != "held then":
        return text
    steps = sorted((one for one in document["steps"] if one["counts"]), key=lambda one: -abs(_log(one)))
    along = [one for one in steps if (_log(one) > 0) == (_log(document["whole"]) > 0)]
    against = [one for one in steps if one not in along]
    for opening, some in (("What changed it", along), ("What acted against that", against)):
        named = ", ".join(f"{one['title']} (× {ratio(one)})" for one in some)
        text += f" {opening}: {named}." if named else ""
    return text


def closing(document: LadderDocument) -> str:
    """Whether the steps add up to the difference from end to end."""
    end_to_end, summed, left = (ratio(document[name]) for name in ("whole", "sum", "left"))
    if document["meets"] is None:
        return (
            f"From end to end × {end_to_end}, the steps together × {summed}; too few rounds to say whether they agree."
        )
    meet = "they agree" if document["meets"] else "they do not agree, so session drift or chance is involved"
    counts = [document[name]["blocks"] for name in ("whole", "sum", "left")]
    rounds = ["" if len(set(counts)) == 1 else f" ({counted(count, 'round')})" for count in counts]
    return (
        f"From end to end, in its own blocks, × {end_to_end}{rounds[0]}; the steps together × {summed}{rounds[1]}; "
        f"left × {left}{rounds[2]}: {meet}."
    )


def order(one: StepOrderDocument) -> str:
    """A step in both orders."""
    return (
        f"{one['step']}: × {ratio(one['before'])} before the other, × {ratio(one['after'])} after it; "
        f"interaction × {ratio(one['interaction'])}"
    )


def _log(change: RatioInterval) -> float:
    return math.log(change["ratio"]) if change["ratio"] else 0.0
