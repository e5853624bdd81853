"""A search for causes in words: the answer first, then each cause, the largest two, and what was not measured."""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.contract.ladder import RatioInterval
from trifecta.contract.why import CauseDocument, JointRemovalDocument, ShareDocument, WhyDocument
from trifecta.design import metrics, naming, numbers
from trifecta.design.phrases import counted, listed
from trifecta.report.ladder.words import ratio

STATES = {"explains": "explains it", "hides": "hides some of it", "nothing": "explains at most a tenth", "open": "open"}
NEAREST, AS_NEAREST = "On the engine's own programs", "unchanged on the engine's own programs"
_MOST_NAMED = 3
_ALL = 0.005  # a share that is no further from 1 is printed as 100 %


def quantity(document: WhyDocument) -> str:
    """What is compared where: ``median latency, HTTP/3 : HTTP/2, path=far,connection=reused,server=origin``."""
    with naming.arms_of(document["compare"], [document["to"], document["arm"]]):
        pair = " : ".join(naming.name(document[name]) for name in ("arm", "to"))
    return f"{metrics.label(document['metric'])}, {pair}, {document['cell']}"


def answer(document: WhyDocument) -> str:
    """``of 1.37 times, without the restart of the window after idle 1.04 [1.02, 1.06] remain; ...``."""
    effect = document["effect"]
    if effect["ratio"] is None:
        return "No round has a value of the unchanged cell: nothing can be said."
    if not document["told_apart"]:
        return (
            f"Unchanged, it is {ratio(effect)} times: {_no_effect(effect, document['margin'])}, so no cause is named."
        )
    own = [one for one in document["causes"] if not one["nearest"]]
    sentence = (
        f"Of {ratio(effect)} times, {_sentences(document, own)}." if own else f"Unchanged, it is {ratio(effect)} times."
    )
    if document["nearest"] is not None:
        sentence += f" {_nearest(document, document['nearest'])}"
    late = len(document["not_measured"])
    if late and not any(one["state"] == "explains" for one in document["causes"]):
        were = "was" if late == 1 else "were"
        sentence += f" {counted(late, 'possible cause')} {were} not measured; a larger --budget has room for more."
    return sentence


def _no_effect(interval: RatioInterval, margin: float) -> str:
    """What is said of a ratio that does not exclude 1."""
    if interval["low"] is None or interval["high"] is None:
        return "there is no interval yet"
    if _within(interval, margin):
        return f"no difference to explain, for it lies within {numbers.percent(margin)}"
    return "indistinguishable from 1, which more time decides"


def _nearest(document: WhyDocument, effect: RatioInterval) -> str:
    """What was measured on the engine's own programs, whose effect is another."""
    head = f"{NEAREST} it is {ratio(effect)} times"
    if not _excludes_one(effect):
        return f"{head}, indistinguishable from 1, so what was removed there explains none of it."
    return f"{head}; of that, {_sentences(document, [one for one in document['causes'] if one['nearest']])}."


def first_nearest(document: WhyDocument) -> int:
    """The place of the first cause that was removed on the engine's own programs; how many there are without one."""
    return sum(not one["nearest"] for one in document["causes"])


def _sentences(document: WhyDocument, causes: Sequence[CauseDocument]) -> str:
    """What remains without the causes that are named, and what else the removals say."""
    explaining = [one for one in causes if one["state"] == "explains"]
    parts = [f"without {one['title']} {ratio(_remains(document, one))} remain" for one in explaining[:_MOST_NAMED]]
    if not parts:
        parts = ["no cause that was removed is shown to explain it"]
    if more := explaining[_MOST_NAMED:]:
        parts.append(f"{listed([one['title'] for one in more])} explain some of it, too")
    for state, what in (("hides", "of it is hidden by"), ("nothing", "at most a tenth of it is explained by")):
        if named := [one["title"] for one in causes if one["state"] == state]:
            each = "each of " if len(named) > 1 else ""
            parts.append(f"{what} {each}{listed(named)}" if state == "nothing" else f"some {what} {listed(named)}")
    return "; ".join(parts)


def _remains(document: WhyDocument, cause: CauseDocument) -> RatioInterval:
    """What remains without a cause that was chosen for how much it explains: as the rounds have it that did not choose
    it, else with the interval that holds for all causes at once.
    """
    both = document["together"]
    if both is not None:
        fresh = {each["cause"]: each["remains"] for each in both["orders"]} or {both["causes"][0]: both["remains"]}
        if cause["cause"] in fresh and fresh[cause["cause"]]["ratio"] is not None:
            return fresh[cause["cause"]]
    return {
        "ratio": cause["ratio"],
        "low": cause["remains_low"],
        "high": cause["remains_high"],
        "blocks": cause["blocks"],
    }


def _within(interval: RatioInterval, margin: float) -> bool:
    if interval["low"] is None or interval["high"] is None:
        return False
    return 1 / (1 + margin) <= interval["low"] and interval["high"] <= 1 + margin


def _excludes_one(interval: RatioInterval) -> bool:
    return interval["low"] is not None and interval["high"] is not None and not interval["low"] <= 1 <= interval["high"]


def share(one: ShareDocument) -> str:
    """``87 % [79 %, 96 %]``; a dash where there is none."""
    if one["share"] is None:
        return "–"
    if one["share_low"] is None or one["share_high"] is None:
        return f"{numbers.whole_percent(one['share'])} [not bounded]"
    return numbers.whole_percent(one["share"], (one["share_low"], one["share_high"]))


def exchanged(cause: CauseDocument) -> str:
    """``tcp_nodelay false → true, HTTP/2 only``."""
    fields = [f"{name} {before} → {after}" for name, (before, after) in cause["exchange"].items()]
    return ", ".join([*fields, *([f"{naming.name(cause['only'])} only"] if cause["only"] else [])])


def removed_words(cause: CauseDocument) -> str:
    """The same, and on what it was done."""
    return exchanged(cause) + (", on the nearest stack" if cause["nearest"] else "")


def title(document: WhyDocument, cause: str) -> str:
    """What a cause is called."""
    return next((one["title"] for one in document["causes"] if one["cause"] == cause), cause)


def closing(document: WhyDocument) -> list[str]:
    """What the largest two do together, what all that are named leave, and what of it is unexplained."""
    both = document["together"]
    if both is None:
        return [f"Not measured together: {document['no_together']}."]
    where = f" {NEAREST.lower()}" if _is_nearest(document, both) else ""
    lines = [f"In separate rounds{where}, {ratio(both['effect'])} unchanged{_pair(document, both)}."]
    named = listed([title(document, one) for one in both["causes"]])
    left = ""
    if both["share"] is not None:
        who = "they explain" if len(both["causes"]) > 1 else "it explains"
        low, high = (both["share_low"], both["share_high"])
        if low is not None and low > 1 + _ALL:
            left = f"; {who} more than all of it ({share(both)})"
        elif low is not None and high is not None and abs(low - 1) < _ALL and abs(high - 1) < _ALL:
            left = f"; {who} all of it ({share(both)})"
        else:
            left = f"; {who} {share(both)} of it, {share(both['left'])} is left unexplained"
    lines.append(f"Without {named} {ratio(both['remains'])} remain{left}.")
    if both["censored"]:
        blocks = counted(both["censored"], "block")
        lines.append(f"Of these rounds too much failed in {blocks} for a value; the others are left.")
    if document["no_together"]:
        lines.append(f"No more was measured together: {document['no_together']}.")
    return lines


def _is_nearest(document: WhyDocument, joint: JointRemovalDocument) -> bool:
    return any(one["nearest"] for one in document["causes"] if one["cause"] in joint["causes"])


def _pair(document: WhyDocument, joint: JointRemovalDocument) -> str:
    """What the largest two do alone and together; empty where only one was removed."""
    if joint["both"] is None or joint["interaction"] is None:
        return ""
    alone = [f"without {title(document, one['cause'])} {ratio(one['remains'])}" for one in joint["orders"]]
    return (
        f": {', '.join(alone)}, without both {ratio(joint['both'])}; their interaction × {ratio(joint['interaction'])}"
        f"{_acts(joint['interaction'], document['margin'])}"
    )


def _acts(interval: RatioInterval, margin: float) -> str:
    if _within(interval, margin):
        return ", so they act on their own"
    if _excludes_one(interval):
        return ", so one changes what the other does"
    return ", so whether they act on their own is open"


def left_out(document: WhyDocument) -> str:
    """How many trials do not count, and which checks spoke up; how many blocks failed; empty where all do."""
    cells = [document, *document["causes"]]
    trials, valid = (sum(one[name] for one in cells) for name in ("trials", "valid"))
    checks: dict[str, int] = {}
    for one in cells:
        for name, number in one["checks"].items():
            checks[name] = checks.get(name, 0) + number
    sentences = []
    if trials > valid:
        most = sorted(checks.items(), key=lambda pair: -pair[1])[:3]
        failed_checks = ", ".join(f"{name} in {number}" for name, number in most) or "none"
        sentences.append(
            f"{trials - valid} of {trials} trials do not count; checks that warned or failed: {failed_checks}."
        )
    if censored := sum(one["censored"] for one in cells):
        blocks = counted(censored, "block")
        sentences.append(f"Too much failed in {blocks} for a value: the causes of their cells stay open.")
    return " ".join(sentences)


def method(document: WhyDocument) -> str:
    """How it was measured, in a line."""
    fewer = f", of {document['planned']} that were planned," if document["rounds"] < document["planned"] else ""
    return (
        f"{counted(document['rounds'], 'round')}{fewer} of the unchanged cell, twice, and without each of "
        f"{counted(len(document['causes']), 'cause')}, in random order; a cause is named where its interval among all "
        f"excludes 1, unless its effect is within {numbers.percent(document['margin'])} and at most a tenth of the "
        "difference."
    )
