"""A search for causes in words: the answer first, then each cause, the largest two, and what was not measured."""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.contract.ladder import Ends
from trifecta.contract.why import CauseFound, ShareFound, TogetherFound, WhyFound
from trifecta.design import metrics, naming, numbers
from trifecta.design.phrases import counted, listed
from trifecta.report.ladder.words import ratio

STATES = {"explains": "explains it", "hides": "hides some of it", "nothing": "explains nothing", "open": "open"}
NEAREST, AS_NEAREST = "On the engine's own programs", "unchanged on the engine's own programs"
_MOST_NAMED = 3
_ALL = 0.005  # a share that is no further from 1 is printed as 100 %


def quantity(found: WhyFound) -> str:
    """What is compared where: ``median latency, HTTP/3 : HTTP/2, path=far,connection=reused,server=origin``."""
    with naming.arms_of(found["compare"], [found["to"], found["arm"]]):
        pair = " : ".join(naming.name(found[name]) for name in ("arm", "to"))
    return f"{metrics.label(found['metric'])}, {pair}, {found['cell']}"


def answer(found: WhyFound) -> str:
    """``of 1.37 times, without the restart of the window after idle 1.04 [1.02, 1.06] remain; ...``."""
    effect = found["effect"]
    if effect["ratio"] is None:
        return "No round has a value of the unchanged cell: nothing can be said."
    if not found["told_apart"]:
        return f"Unchanged, it is {ratio(effect)} times: {_no_effect(effect, found['margin'])}, so no cause is named."
    own = [one for one in found["causes"] if not one["nearest"]]
    said = f"Of {ratio(effect)} times, {_told(found, own)}." if own else f"Unchanged, it is {ratio(effect)} times."
    return f"{said} {_nearest(found, found['nearest'])}" if found["nearest"] is not None else said


def _no_effect(one: Ends, margin: float) -> str:
    """What is said of a ratio that does not exclude 1."""
    if one["low"] is None or one["high"] is None:
        return "there is no interval yet"
    if _within(one, margin):
        return f"no difference to explain, for it lies within {numbers.percent(margin)}"
    return "indistinguishable from 1, which more time decides"


def _nearest(found: WhyFound, effect: Ends) -> str:
    """What was measured on the engine's own programs, whose effect is another."""
    head = f"{NEAREST} it is {ratio(effect)} times"
    if not _excludes_one(effect):
        return f"{head}, indistinguishable from 1, so what was removed there explains none of it."
    return f"{head}; of that, {_told(found, [one for one in found['causes'] if one['nearest']])}."


def first_nearest(found: WhyFound) -> int:
    """The place of the first cause that was removed on the engine's own programs; how many there are without one."""
    return sum(not one["nearest"] for one in found["causes"])


def _told(found: WhyFound, causes: Sequence[CauseFound]) -> str:
    """What remains without the causes that are named, and what else the removals say."""
    said = [one for one in causes if one["state"] == "explains"]
    parts = [f"without {one['title']} {ratio(_remains(found, one))} remain" for one in said[:_MOST_NAMED]]
    if not parts:
        parts = ["no cause that was removed is shown to explain it"]
    if more := said[_MOST_NAMED:]:
        parts.append(f"{listed([one['title'] for one in more])} explain some of it, too")
    for state, what in (("hides", "of it is hidden by"), ("nothing", "none of it is explained by")):
        if named := [one["title"] for one in causes if one["state"] == state]:
            parts.append(f"{what} {listed(named)}" if state == "nothing" else f"some {what} {listed(named)}")
    return "; ".join(parts)


def _remains(found: WhyFound, one: CauseFound) -> Ends:
    """What remains without a cause that was chosen for how much it explains: as the rounds have it that did not choose
    it, else with the interval that holds for all causes at once.
    """
    both = found["together"]
    if both is not None:
        fresh = {each["cause"]: each["remains"] for each in both["orders"]} or {both["causes"][0]: both["remains"]}
        if one["cause"] in fresh and fresh[one["cause"]]["ratio"] is not None:
            return fresh[one["cause"]]
    return {"ratio": one["ratio"], "low": one["remains_low"], "high": one["remains_high"], "blocks": one["blocks"]}


def _within(one: Ends, margin: float) -> bool:
    if one["low"] is None or one["high"] is None:
        return False
    return 1 / (1 + margin) <= one["low"] and one["high"] <= 1 + margin


def _excludes_one(one: Ends) -> bool:
    return one["low"] is not None and one["high"] is not None and not one["low"] <= 1 <= one["high"]


def share(one: ShareFound) -> str:
    """``87 % [79 %, 96 %]``; a dash where there is none."""
    if one["share"] is None:
        return "–"
    if one["share_low"] is None or one["share_high"] is None:
        return f"{numbers.whole_percent(one['share'])} [not bounded]"
    return numbers.whole_percent(one["share"], (one["share_low"], one["share_high"]))


def exchanged(one: CauseFound) -> str:
    """``tcp_nodelay false → true, HTTP/2 only``."""
    fields = [f"{name} {before} → {after}" for name, (before, after) in one["exchange"].items()]
    return ", ".join([*fields, *([f"{naming.name(one['only'])} only"] if one["only"] else [])])


def removed(one: CauseFound) -> str:
    """The same, and on what it was done."""
    return exchanged(one) + (", on the nearest stack" if one["nearest"] else "")


def title(found: WhyFound, cause: str) -> str:
    """What a cause is called."""
    return next((one["title"] for one in found["causes"] if one["cause"] == cause), cause)


def closing(found: WhyFound) -> list[str]:
    """What the largest two do together, what all that are named leave, and what of it is unexplained."""
    both = found["together"]
    if both is None:
        return [f"Not measured together: {found['no_together']}."]
    where = f" {NEAREST.lower()}" if _is_nearest(found, both) else ""
    lines = [f"In separate rounds{where}, {ratio(both['effect'])} unchanged{_pair(found, both)}."]
    named = listed([title(found, one) for one in both["causes"]])
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
    if found["no_together"]:
        lines.append(f"No more was measured together: {found['no_together']}.")
    return lines


def _is_nearest(found: WhyFound, both: TogetherFound) -> bool:
    return any(one["nearest"] for one in found["causes"] if one["cause"] in both["causes"])


def _pair(found: WhyFound, both: TogetherFound) -> str:
    """What the largest two do alone and together; empty where only one was removed."""
    if both["both"] is None or both["interaction"] is None:
        return ""
    alone = [f"without {title(found, one['cause'])} {ratio(one['remains'])}" for one in both["orders"]]
    return (
        f": {', '.join(alone)}, without both {ratio(both['both'])}; their interaction × {ratio(both['interaction'])}"
        f"{_acts(both['interaction'], found['margin'])}"
    )


def _acts(one: Ends, margin: float) -> str:
    if _within(one, margin):
        return ", so they act on their own"
    if _excludes_one(one):
        return ", so one changes what the other does"
    return ", so whether they act on their own is open"


def left_out(found: WhyFound) -> str:
    """How many trials do not count, and which checks spoke up; how many blocks failed; empty where all do."""
    cells = [found, *found["causes"]]
    trials, valid = (sum(one[name] for one in cells) for name in ("trials", "valid"))
    checks: dict[str, int] = {}
    for one in cells:
        for name, number in one["checks"].items():
            checks[name] = checks.get(name, 0) + number
    said = []
    if trials > valid:
        most = sorted(checks.items(), key=lambda pair: -pair[1])[:3]
        told = ", ".join(f"{name} in {number}" for name, number in most) or "none"
        said.append(f"{trials - valid} of {trials} trials do not count; checks that warned or failed: {told}.")
    if censored := sum(one["censored"] for one in cells):
        blocks = counted(censored, "block")
        said.append(f"Too much failed in {blocks} for a value: the causes of their cells stay open.")
    return " ".join(said)


def method(found: WhyFound) -> str:
    """How it was measured, in a line."""
    fewer = f", of {found['planned']} that were planned," if found["rounds"] < found["planned"] else ""
    return (
        f"{counted(found['rounds'], 'round')}{fewer} of the unchanged cell, twice, and without each of "
        f"{counted(len(found['causes']), 'cause')}, in random order; a cause is named where its interval among all "
        "excludes 1."
    )
