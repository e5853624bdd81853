"""What a switch does: cells that differ in one factor alone, at its two levels, for every protocol and their ratio.

``off`` is the level without the switch, ``on`` the one with it. Three kinds of numbers: the metric of a protocol at
either level, the ratio on / off of a protocol, and the ratio of ratios: how many times on / off of one protocol is that
of the baseline, which is what the switch does to a comparison. Intervals are Welch's over blocks (`contrasts`), those
of the ratio of ratios over the ratios within blocks; Holm's correction over all of them.

Success rates can be 0, which has no logarithm: they are compared by protocol, by Fisher's exact test of requests, as
many as the larger design effect of both sides leaves of them (`success`); the interval of on / off is that of both
rates' ends.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.contrasts import Contrast, adjusted, contrast, contrast_over
from trifecta.analysis.estimate import Row, by_cell, pair_blocks
from trifecta.analysis.means import Mean, block_logs, geometric_mean
from trifecta.analysis.success import Rate, ratio_interval, success_rate
from trifecta.design import plan
from trifecta.design.metrics import metric_named
from trifecta.design.model import AA_SUFFIX

Floats = NDArray[np.float64]
EVERYWHERE = "all places"
SUCCESS = "success_rate"


Side = tuple[str, Sequence[Row]]
"""A cell and its rows."""


@dataclass(frozen=True)
class FactorContrast:
    """What is compared: a metric at two levels of a factor, ``where`` other factors have these levels."""

    factor: str
    off: str
    on: str
    metric: str
    arms: tuple[str, ...]
    baseline: str
    confidence: float
    where: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Switched:
    """A protocol (``reference`` None) or its ratio to the reference, on against off, in one place.

    ``off`` and ``on`` are the values at the two levels: of the metric in its own unit, or the ratio. ``levels`` are
    those of the other factors that differ between places; empty over all places.
    """

    place: str
    levels: Mapping[str, str]
    arm: str
    reference: str | None
    off: Mean | None
    on: Mean | None
    contrast: Contrast


@dataclass(frozen=True)
class Detected:
    """In how many trials at each level a check said that something is wrong."""

    check: str
    off: int
    off_trials: int
    on: int
    on_trials: int


def countable(rows: Sequence[Row], check: str | None, metric: str = "") -> list[Row]:
    """The rows with trials that count for an effect: valid ones, and those that the threat's own check alone fails.

    What detects a threat may exclude its trials from verdicts; here they are what is looked at. Of successes every
    trial counts that ended, because several checks fail where all requests do.
    """
    if metric == SUCCESS:
        return [{**row, "valid": row.get("error") is None} for row in rows]
    return list(rows) if check is None else tolerated(rows, {check})


def tolerated(rows: Sequence[Row], checks: Set[str]) -> list[Row]:
    """The rows with trials that count although these checks fail, and no other does.

    ``parity: initial congestion window`` is the check where all that it finds begins with these words.
    """
    return [{**row, "valid": True} if _fails_only(row, checks) else row for row in rows]


def _fails_only(row: Row, checks: Set[str]) -> bool:
    if row.get("error") is not None:
        return False
    failed = _failures(row)
    return bool(failed) and all(_is_tolerated(one, checks) for one in failed)


def _is_tolerated(failed: Mapping[str, str], checks: Set[str]) -> bool:
    problems = failed.get("evidence", "").split("; ")  # as `checks.evidence.worst` joins what is wrong
    for one in checks:
        name, _, words = one.partition(": ")
        if name == failed["check"] and all(each.startswith(words) for each in problems):
            return True
    return False


def _failures(row: Row) -> list[Mapping[str, str]]:
    """What the checks that a trial failed say."""
    return [one for one in json.loads(row.get("checks_json") or "[]") if one["status"] == "fail"]


def _failed(row: Row) -> set[str]:
    """The checks that a trial failed."""
    return {one["check"] for one in _failures(row)}


def detected(rows: Sequence[Row], contrast: FactorContrast, check: str, evidence_words: str = "") -> Detected:
    """How often a check failed or warned with these words, off and on."""
    counts = []
    for level in (contrast.off, contrast.on):
        here = _at(rows, contrast, level)
        counts += [sum(spoke_up(row, check, evidence_words) for row in here), len(here)]
    return Detected(check, *counts)


@dataclass(frozen=True)
class LeftOut:
    """How many of the trials at both levels do not count for an effect, and in how many of them which check failed."""

    count: int
    trials: int
    checks: Mapping[str, int]
    """By check, most first; ``trouble`` where a trial went wrong as a whole. A trial can fail several."""


def left_out(rows: Sequence[Row], contrast: FactorContrast) -> LeftOut:
    """What is missing of an effect's trials; ``rows`` are those of `countable`."""
    here = [row for level in (contrast.off, contrast.on) for row in _at(rows, contrast, level)]
    missing = [row for row in here if not row["valid"]]
    why: Counter[str] = Counter()
    for row in missing:
        why.update(["trouble"] if row.get("error") is not None else _failed(row))
    return LeftOut(len(missing), len(here), dict(why.most_common()))


def _at(rows: Sequence[Row], contrast: FactorContrast, level: str) -> list[Row]:
    """The trials at one of the two levels."""
    wanted = {contrast.factor: level, **dict(contrast.where)}.items()
    return [row for row in rows if wanted <= _levels(row).items()]


def spoke_up(row: Row, check: str, evidence_words: str = "") -> bool:
    """Whether a check failed or warned in a trial, with these words in its evidence."""
    checks: Sequence[Mapping[str, str]] = json.loads(row.get("checks_json") or "[]")
    loud = (one for one in checks if one["check"] == check and one["status"] in ("fail", "warn"))
    return any(evidence_words in one.get("evidence", "") for one in loud)


def switched(rows: Sequence[Row], question: FactorContrast) -> list[Switched]:
    """Every protocol and every ratio to the baseline, in every place and over all of them (first)."""
    pairs = _pairs(rows, question)
    baseline = question.baseline
    varying = {
        name for pair in pairs for name, level in pair.levels.items() if any(p.levels.get(name) != level for p in pairs)
    }
    heads: list[tuple[str, dict[str, str], str, str | None, Mean | None, Mean | None]] = []
    values: list[Contrast] = []
    counted = question.metric == SUCCESS
    ratios = [] if counted else [(arm, baseline) for arm in question.arms if arm != baseline]
    for arm, reference in [*((arm, None) for arm in question.arms), *ratios]:
        sides = [tuple(_logs(side, question, arm, reference) for side in pair.sides) for pair in pairs]
        if len(pairs) > 1 and not counted:
            heads.append((EVERYWHERE, {}, arm, reference, None, None))
            values.append(contrast_over([(on, off) for off, on in sides], question.confidence))
        for pair, (off, on) in zip(pairs, sides, strict=True):
            shown = {name: level for name, level in pair.levels.items() if name in varying}
            place = ", ".join(f"{name} {level}" for name, level in shown.items())
            means = [
                _mean(side[1], question, (arm, reference), logs)
                for side, logs in zip(pair.sides, (off, on), strict=True)
            ]
            heads.append((place, shown, arm, reference, means[0], means[1]))
            values.append(
                _of_rates(pair.sides, arm, question.confidence) if counted else contrast(on, off, question.confidence)
            )
    order = sorted(range(len(heads)), key=lambda i: (heads[i][0] != EVERYWHERE, _place(heads[i], pairs), i))
    contrasts = adjusted(values)
    return [Switched(*heads[i], contrasts[i]) for i in order]


def one_family(tables: Sequence[Sequence[Switched]]) -> list[list[Switched]]:
    """The tables with Holm's correction over all of their rows: whoever claims any of them claims from one family."""
    corrected = iter(adjusted([row.contrast for table in tables for row in table]))
    return [[replace(row, contrast=next(corrected)) for row in table] for table in tables]


@dataclass(frozen=True)
class _Pair:
    """Two cells that differ in the factor alone, each with its rows: off, on."""

    levels: Mapping[str, str]
    sides: tuple[Side, Side]


def _pairs(rows: Sequence[Row], contrast: FactorContrast) -> list[_Pair]:
    off, on = contrast.off, contrast.on
    cells = {cell: (_levels(here[0]), here) for cell, here in by_cell(rows).items()}
    by_place: dict[tuple[tuple[str, str], ...], dict[str, Side]] = {}
    for cell, (own, here) in sorted(cells.items()):
        level = own.pop(contrast.factor, None)
        if level in (off, on) and all(own.get(name) == wanted for name, wanted in contrast.where):
            by_place.setdefault(tuple(own.items()), {})[level] = (cell, here)
    return [_Pair(dict(place), (side[off], side[on])) for place, side in by_place.items() if {off, on} <= set(side)]


def _levels(row: Row) -> dict[str, str]:
    """The levels of a trial's factors, but for protocol, as text."""
    levels = json.loads(row["factors_json"])
    levels.pop("protocol", None)
    return {name: plan.level_text(level) for name, level in levels.items()}


def _logs(side: Side, contrast: FactorContrast, arm: str, reference: str | None) -> Floats:
    cell, rows = side
    metric = metric_named(contrast.metric)
    if reference is None:
        return block_logs(rows, metric, arm)
    return pair_blocks(cell, rows, metric, arm=arm, reference=reference, baseline=contrast.baseline).log_ratios()


def _mean(rows: Sequence[Row], contrast: FactorContrast, pair: tuple[str, str | None], logs: Floats) -> Mean | None:
    if contrast.metric != SUCCESS:
        return geometric_mean(logs, contrast.confidence)
    rate = _rate(rows, pair[0], contrast.confidence)
    return Mean(rate.rate, rate.low, rate.high, rate.trials, 0)


def _rate(rows: Sequence[Row], arm: str, confidence: float) -> Rate:
    own = [row for row in rows if row["arm"] in (arm, arm + AA_SUFFIX) and row.get("valid")]
    return success_rate([(int(row["samples"]), int(row["samples"]) - int(row["errors"])) for row in own], confidence)


def _of_rates(sides: tuple[Side, Side], arm: str, confidence: float) -> Contrast:
    """Success rates of one protocol, on against off."""
    from scipy import stats

    off, on = (_rate(rows, arm, confidence) for _, rows in sides)
    if off.rate is None or on.rate is None or not off.rate:
        return Contrast(None, None, None, None, on.trials, off.trials)
    effects = _effect(on, off), _effect(off, on)
    table = [
        [rate.succeeded / effect, (rate.requests - rate.succeeded) / effect]
        for rate, effect in zip((on, off), effects, strict=True)
    ]
    p = float(stats.fisher_exact(np.rint(np.array(table)).astype(np.int64)).pvalue)
    low, high = ratio_interval(on, off)
    if p <= 1 - confidence:
        # Where one side never failed, its interval is that of whole trials, and the test knows more: what it rejects,
        # "no difference" and all beyond it, is no part of the interval.
        low, high = (low, min(high or 1.0, 1.0)) if on.rate < off.rate else (max(low, 1.0), high)
    return Contrast(on.rate / off.rate, low, high, p, on.trials, off.trials)


def _effect(one: Rate, other: Rate) -> float:
    """How many requests count as one, if the two do not differ: the larger design effect of both.

    Never less than one, nor more than a trial has. A trial counts as one where neither side tells, as in
    `success.success_rate`.
    """
    of_trial = max(1.0, one.requests / one.trials)
    known = [rate.design_effect for rate in (one, other) if rate.design_effect is not None]
    return min(max(1.0, *known), of_trial) if known else of_trial


def _place(head: tuple[str, dict[str, str], str, str | None, Mean | None, Mean | None], pairs: Sequence[_Pair]) -> int:
    for number, pair in enumerate(pairs):
        if all(pair.levels.get(name) == level for name, level in head[1].items()):
            return number
    return 0
