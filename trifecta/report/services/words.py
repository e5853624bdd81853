"""What the report says of services in words; nothing that a verdict or an interval beside it does not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trifecta.analysis.scaling import Axis, Turn, verdict_changes
from trifecta.analysis.success import Difference
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.services.rows import CombinationRow, ContrastRow, SuccessRow, best_rank
from trifecta.design import numbers
from trifecta.design.metric import Metric
from trifecta.design.phrases import counted, listed, sentence
from trifecta.report import verdict_words
from trifecta.report.claims import is_
from trifecta.report.figures.style import name

FACTORS = {
    "clients": "clients",
    "in_flight": "cycles in flight",
    "connections": "connections",
    "streams": "streams",
    "rate": "cycles per second",
    "depth": "services on the chain",
    "hosts": "hosts",
    "request": "size of a message",
    "response": "size of a response",
}
"""Ordered factors in words."""

_AT = {
    "clients": "{} clients",
    "in_flight": "{} in flight",
    "connections": "{} connections",
    "streams": "{} streams",
    "depth": "{} services",
    "hosts": "{} hosts",
}


def at_level(factor: str, text: str) -> str:
    """``50 clients``, ``10 kB``."""
    return _AT.get(factor, "{}").format(text)


def along(axis: Axis, pair: tuple[str, str], comparisons: Sequence[Comparison]) -> str:
    """Where the verdict of a pair changes along an axis; empty when the pair was not compared there."""
    by_cell = {one.cell: one for one in comparisons if (one.arm, one.reference) == pair}
    steps = [step for step in axis.steps if step.cell in by_cell]
    ones = [by_cell[step.cell] for step in steps]
    if len(ones) < 2:
        return ""
    texts = [at_level(axis.factor, step.text) for step in steps]
    arm, reference = name(pair[0]), name(pair[1])
    changes = verdict_changes([one.kind for one in ones])
    if changes:
        changes_in_words = [_turn_words(change, texts, ones) for change in changes]
        between = {place for turn in changes for place in range(turn.before + 1, turn.after)}
        return sentence(f"{arm} against {reference}: {listed(changes_in_words)}{_open(texts, ones, between)}")
    decided = [place for place, one in enumerate(ones) if one.decided]
    if not decided:
        does = is_(ones[0].metric, "faster")
        return f"Whether {arm} or {reference} {does} is undecided from {texts[0]} to {texts[-1]}."
    kind = ones[decided[0]].kind
    how = f"is the same as {reference}" if kind == "same" else f"{is_(ones[0].metric, kind)} than {reference}"
    if len(decided) == 1:
        only = decided[0]
        return sentence(f"{arm} {how} at {_size(texts[only], ones[only])}{_open(texts, ones, set())}")
    first, last = decided[0], decided[-1]
    ends = f"from {_size(texts[first], ones[first])} to {_size(texts[last], ones[last])}"
    return sentence(f"{arm} {how} {ends}{_open(texts, ones, set())}")


def _turn_words(change: Turn, texts: Sequence[str], ones: Sequence[Comparison]) -> str:
    before, after = ones[change.before], ones[change.after]
    verb = f"goes from {before.metric.word(before.kind)} to {after.metric.word(after.kind)}"
    told_apart = _are_told_apart(before, after)
    if told_apart and after.kind == "faster":
        verb = "starts to win"
    elif told_apart and before.kind == "faster":
        verb = "stops winning"
    between = f"between {_at(texts[change.before], before)} and {_at(texts[change.after], after)}"
    undecided = texts[change.before + 1 : change.after]
    but = "" if told_apart else ", but the two ratios are not told apart"
    return f"{verb} {between}{f', undecided at {listed(undecided)}' if undecided else ''}{but}"


def _are_told_apart(one: Comparison, other: Comparison) -> bool:
    """Whether no single ratio fits both verdicts: 2 % faster is also the same within a margin of 5 %."""
    if {one.kind, other.kind} == {"faster", "slower"}:
        return True
    ends = [(each.row.get("family_low"), each.row.get("family_high")) for each in (one, other)]
    (low, high), (other_low, other_high) = ends
    return (high is not None and other_low is not None and high < other_low) or (
        other_high is not None and low is not None and other_high < low
    )


def _at(text: str, comparison: Comparison) -> str:
    return f"{text} ({verdict_words.headline(comparison)} {verdict_words.interval(comparison)})"


def _size(text: str, comparison: Comparison) -> str:
    """The same where the sentence has said already who is faster."""
    size = "" if comparison.kind == "same" else f"{numbers.ratio(comparison.row['factor'])}× "
    return f"{text} ({size}{verdict_words.interval(comparison)})"


def _open(texts: Sequence[str], ones: Sequence[Comparison], named: set[int]) -> str:
    undecided = [
        text
        for place, (text, one) in enumerate(zip(texts, ones, strict=True))
        if not one.decided and place not in named
    ]
    return f"; undecided at {listed(undecided)}" if undecided else ""


def turning(factor: str, pair: tuple[str, str], kinds: Sequence[Sequence[str]]) -> str:
    """In how many places the verdict changes along a factor, given the verdicts along it in each."""
    changing = sum(bool(verdict_changes(one)) for one in kinds)
    enough = sum(len([kind for kind in one if kind != "undecided"]) > 1 for one in kinds)
    label = FACTORS.get(factor, factor)
    where = f"changes in {changing} of {counted(len(kinds), 'place')}" if changing else "changes nowhere"
    if not enough:
        where = "may change or not: in no place are two levels decided"
    elif enough < len(kinds):
        where += f"; in {counted(len(kinds) - enough, 'place')} fewer than two levels are decided"
    return f"Along the {label} the verdict of {name(pair[0])} against {name(pair[1])} {where}."


def everywhere(pair: tuple[str, str], kinds: Mapping[str, Sequence[str]], metric: Metric) -> str:
    """How a pair is decided on each path, given the verdicts of its cells; empty with one path."""
    if len(kinds) < 2:
        return ""
    groups: dict[str, list[str]] = {}
    for path, verdicts in kinds.items():
        there = [metric.word(kind) for kind in ("faster", "slower", "same", "undecided") if kind in verdicts]
        word = there[0] if len(there) == 1 else listed([f"partly {kind}" for kind in there])
        groups.setdefault(word.replace("same", "the same"), []).append(path)
    sentences = [f"{word} on {listed(paths)}" for word, paths in groups.items()]
    return sentence(f"From path to path, {name(pair[0])} against {name(pair[1])} is {'; '.join(sentences)}")


def along_paths(pair: tuple[str, str], by_path: Mapping[str, Comparison]) -> str:
    """On which paths a pair is decided how, for cells that differ in the path alone; empty with one path."""
    if len(by_path) < 2:
        return ""
    groups: dict[str, list[str]] = {}
    for path, one in by_path.items():
        groups.setdefault(one.kind, []).append(path if not one.decided else _size(path, one))
    metric = next(iter(by_path.values())).metric
    sentences = [
        f"{metric.word(kind)} on {listed(groups[kind])}"
        for kind in ("faster", "slower", "same", "undecided")
        if kind in groups
    ]
    return sentence(f"{name(pair[0])} against {name(pair[1])}: {'; '.join(sentences)}")


def success(
    rows: Sequence[SuccessRow], differences: Mapping[tuple[str, str], Difference | None], alpha: float
) -> list[str]:
    """Whose requests failed, and whether one protocol's failed less often than another's."""
    counted_rows = [row for row in rows if row["requests"]]
    requests, failed = (sum(row["requests"] for row in counted_rows), sum(row["failed"] for row in counted_rows))
    if not requests:
        return ["No request of a valid trial was counted."]
    if not failed:
        return [f"All {numbers.count(requests)} requests of the valid trials succeeded.", *_excluded(rows)]
    sentences = [f"{numbers.count(failed)} of {numbers.count(requests)} requests of the valid trials failed."]
    for arm in dict.fromkeys(row["arm"] for row in counted_rows):
        here = [row for row in counted_rows if row["arm"] == arm]
        below = [row for row in here if row["failed"]]
        if not below:
            sentences.append(
                f"{name(arm)} stayed at 100 % in {'the one' if len(here) == 1 else f'all {len(here)}'} cell"
                f"{'' if len(here) == 1 else 's'}."
            )
            continue
        worst = min(below, key=lambda row: row["rate"])
        ends = numbers.FORMATS["rate_interval"]((worst["low"], worst["high"]))
        sentences.append(
            f"{name(arm)} fell below 100 % in {len(below)} of {counted(len(here), 'cell')}, to "
            f"{numbers.rate(worst['rate'])} {ends} at the lowest."
        )
    return [*sentences, *_differences(differences, alpha), *_excluded(rows)]


def _differences(differences: Mapping[tuple[str, str], Difference | None], alpha: float) -> list[str]:
    sentences, open_pairs = [], []
    for pair, one in differences.items():
        arm, reference = name(pair[0]), name(pair[1])
        ends = () if one is None or one.low is None or one.high is None else (one.low, one.high)
        if one is None or one.p > alpha or (ends and ends[0] <= 0 <= ends[1]):
            open_pairs.append(f"between {arm} and {reference}")
            continue
        word = "less" if one.difference > 0 else "more"
        points = f"{100 * abs(one.difference):.2g} percentage points"
        if ends:
            low, high = sorted(map(abs, ends))
            points += f" [{100 * low:.2g}, {100 * high:.2g}]"
        sentences.append(f"{arm} failed {word} often than {reference}, by {points} on average over the cells.")
    if open_pairs:
        sentences.append(f"Which fails less often is not decided {listed(open_pairs)}.")
    return sentences


def _excluded(rows: Sequence[SuccessRow]) -> list[str]:
    requests, failed = (sum(row["excluded_requests"] for row in rows), sum(row["excluded_failed"] for row in rows))
    if not requests:
        return []
    return [
        f"In trials that were left out, {numbers.count(failed)} of {numbers.count(requests)} requests failed; they are "
        "not in these rates."
    ]


def ratios(rows: Sequence[ContrastRow]) -> str:
    """``HTTP/1.1 0.998 × [0.995, 1.001] (the same) and HTTP/3 1.10 × [1.08, 1.12]``, of rows of ``contrasts``."""
    sentences = []
    for row in rows:
        if row["reference"] is None:
            tail = {"same": " (the same)", "undecided": " (undecided)"}.get(row["outcome"], "")
            known = row["ratio"] is not None
            sentences.append(f"{name(row['arm'])} {_ratio(row)}{tail}" if known else f"{name(row['arm'])} has no value")
    return listed(sentences)


def _ratio(row: ContrastRow) -> str:
    return f"{numbers.ratio(row['ratio'])} × {numbers.interval((row['low'], row['high']))}"


def container(rows: Sequence[ContrastRow], level: str, metrics: Sequence[str], more_is_better: str) -> list[str]:
    """What a place costs each protocol against native, over all places of the study, a sentence a metric."""
    sentences = []
    for metric in metrics:
        here = [row for row in rows if row["metric"] == metric and row["place"] == "all places"]
        if here:
            sentences.append(
                f"{metric[:1].upper()}{metric[1:]}, {level} to native: {ratios(here)}{beyond(here, more_is_better)}."
            )
    return sentences


def beyond(rows: Sequence[ContrastRow], more_is_better: str) -> str:
    """Whether a change costs one protocol more than another: the ratio of their ratios within blocks.

    Of the metric ``more_is_better`` a ratio below 1 is the cost.
    """
    sentences = []
    for row in rows:
        if row["reference"] is None or row["outcome"] not in ("more", "less"):
            continue
        costs = (row["outcome"] == "more") != (row["metric"] == more_is_better)
        word = "more" if costs else "less"
        sentences.append(f"it costs {name(row['arm'])} {word} than {name(row['reference'])}, {_ratio(row)}")
    return f"; {listed(sentences)}" if sentences else ""


def reordering(path: str, other: str | None, rows: Sequence[ContrastRow], more_is_better: str) -> list[str]:
    """What jitter that reorders does, and why; with the same path in order, how much of it is the order."""
    sentences = [
        f"On {path} the jitter lets packets overtake each other. A stack with the fixed threshold of three packets of "
        "RFC 9002 (6.1.1) declares a packet that three later ones overtook lost, retransmits it and slows down. Linux "
        "TCP measures reordering and waits longer (RACK, RFC 8985). So what HTTP/3 loses here may be its library's "
        "loss detection, not the protocol."
    ]
    if other is None:
        sentences.append(f"The study has no variant of {path} in order: what overtaking costs there is not known.")
        return sentences
    here = [row for row in rows if row["place"] == "all places"]
    if not any(row["ratio"] for row in here):
        sentences.append(f"Against {other}, the same in order, there is no block to compare yet.")
        return sentences
    more = beyond(here, more_is_better) or "; that it costs one protocol more than another is not shown"
    sentences.append(f"{sentence(here[0]['metric'])[:-1]} to that on {other}, the same in order: {ratios(here)}{more}.")
    return sentences


def pair_words(edge: str, inside: str) -> str:
    """``HTTP/3 at the edge, HTTP/2 inside``."""
    within = " then ".join(name(part) for part in inside.split("+"))
    return f"{name(edge)} everywhere" if edge == inside else f"{name(edge)} at the edge, {within} inside"


def mixed(rows: Sequence[CombinationRow], baseline: str, alpha: float, metric: str) -> list[str]:
    """Which combination is best in a place, and what changing the first hop, the others, or all is worth."""
    if not rows:
        return []
    best = [row for row in rows if best_rank(row) == 1]
    sentences = []
    if len(best) == len(rows):
        sentences.append(f"No combination could be distinguished from another ({len(rows)} measured).")
    elif len(best) == 1:
        sentences.append(f"Best: {pair_words(best[0]['edge'], best[0]['inside'])}.")
    else:
        several = listed([pair_words(row["edge"], row["inside"]) for row in best])
        sentences.append(f"In the lead, indistinguishable: {several}.")
    by_protocols = {(row["edge"], row["inside"]): row for row in rows}
    for other in dict.fromkeys(row["edge"] for row in rows if row["edge"] != baseline):
        worth = {
            "the first hop alone": by_protocols.get((other, baseline)),
            "the hops inside alone": by_protocols.get((baseline, other)),
            "all hops": by_protocols.get((other, other)),
        }
        parts = [
            f"{what} {_ratio_effect(row, alpha)}" for what, row in worth.items() if row is not None and row["ratio"]
        ]
        if parts:
            sentences.append(f"From {name(baseline)} to {name(other)}, {metric}: {listed(parts)}.")
    return sentences


def _ratio_effect(row: CombinationRow, alpha: float) -> str:
    value = f"{numbers.ratio(row['ratio'])} × {numbers.interval((row['ratio_low'], row['ratio_high']))}"
    if row["p_holm"] is not None and row["p_holm"] <= alpha:
        return value
    low, high = row["ratio_low"], row["ratio_high"]
    alone = low is not None and high is not None and not low <= 1 <= high  # the interval is of this one comparison
    return f"{value} (not shown to differ{', all comparisons of the place considered' if alone else ''})"
