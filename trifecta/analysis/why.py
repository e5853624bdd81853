"""What a difference is without each of its causes: what remains, the share of the log effect, and what is named.

Everything is paired within rounds: a round has the cell as it is twice, and once without each cause. A cause's change
is the log ratio as it is less that without it. A cause is named only where the interval of its change excludes 0 among
all causes measured (Bonferroni) and is not too small to matter, and only of an effect that is one: so on a run without
a difference, and of causes that do nothing, at most one search in twenty names any. A share is Fieller's interval of
change : effect. For numbers of rounds set in advance.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trifecta.analysis.causes import share_interval
from trifecta.analysis.intervals import Estimate
from trifecta.analysis.ladder import Logs, OrderComparison, compare_orders, in_block_order, mean_of_blocks
from trifecta.analysis.ladder_planner import block_of
from trifecta.analysis.student import t_quantile

State = Literal["explains", "hides", "nothing", "open"]
SMALL_SHARE = 0.1
"""At most this is *nothing*: of a small effect half can be within the margin, of a precise one a hundredth be told from
0."""
_ORDER: tuple[State, ...] = ("explains", "hides", "open", "nothing")


@dataclass(frozen=True)
class Share:
    """Which part of the log effect; the ends are None where it is not bounded."""

    value: float | None
    low: float | None
    high: float | None

    def rest(self) -> Share:
        """What is left of the whole."""
        value, high, low = (None if one is None else 1 - one for one in (self.value, self.low, self.high))
        return Share(value, low, high)


@dataclass(frozen=True)
class Removed:
    """One cause removed: the effect before (``base``) and that which remains, what it had of it, and its share.
    ``remains_among`` and ``among`` are what remains and what it had with intervals that hold for all causes at once.

    *nothing*: its change lies within the margin, and its share within `SMALL_SHARE` of the effect, both among all
    causes, told from 0 or not; *explains*: else, without it less remains; *hides*: more does; else open.
    """

    base: Estimate
    remains: Estimate
    remains_among: Estimate
    change: Estimate
    among: Estimate
    share: Share
    state: State


@dataclass(frozen=True)
class Search:
    """The effect as it is, and each cause removed, in the order asked."""

    effect: Estimate
    removed: tuple[Removed, ...]

    @property
    def told_apart(self) -> bool:
        """Whether there is an effect: its interval excludes a ratio of 1."""
        return excludes_nothing(self.effect)


@dataclass(frozen=True)
class JointRemoval:
    """Two causes removed, alone and together, and all that are named; from rounds that did not choose them.

    ``orders`` has each before the other and after it; their difference is the interaction. Where one cause alone is
    removed there are neither ``orders`` nor ``both``.
    """

    effect: Estimate
    alone: tuple[Estimate, ...]
    both: Estimate | None
    orders: tuple[OrderComparison, ...]
    remains: Estimate
    share: Share


def excludes_nothing(estimate: Estimate) -> bool:
    """Whether an interval excludes 0, no change."""
    return estimate.low is not None and estimate.high is not None and not estimate.low <= 0 <= estimate.high


def of_rounds(values: Logs, rounds: int) -> dict[int, float]:
    """The value of each round, of a rung with two blocks their mean."""
    means = {}
    for number in range(rounds):
        here = [values[one] for one in (block_of(number), block_of(number, end=True)) if one in values]
        if here:
            means[number] = sum(here) / len(here)
    return means


def search(
    as_is: Logs,
    removed: Sequence[tuple[Logs, Logs]],
    rounds: int,
    *,
    confidence: float,
    margin: float,
    censored: Collection[int] = (),
) -> Search:
    """``removed`` has for each cause the rung that it is removed from, and that without it.

    Of causes whose places are ``censored`` some blocks have no value because too much failed: what is left of them is
    a choice of the better ones, so they stay open.
    """
    all_rounds = of_rounds(as_is, rounds)
    effect = mean_of_blocks(all_rounds, confidence)
    family = 1 - (1 - confidence) / max(1, len(removed))
    removals = []
    for place, (base, without) in enumerate(removed):
        above, below = of_rounds(base, rounds), of_rounds(without, rounds)
        change = {number: above[number] - value for number, value in below.items() if number in above}
        among = mean_of_blocks(change, family)
        whole_here = mean_of_blocks(above, confidence)
        paired = {number: above[number] for number in change}
        state = _state(whole_here, effect, among, _share(change, paired, family), math.log1p(margin))
        state = "open" if place in censored else state
        share = _share(change, paired, confidence)
        remains = mean_of_blocks(below, confidence), mean_of_blocks(below, family)
        removals.append(Removed(whole_here, *remains, mean_of_blocks(change, confidence), among, share, state))
    return Search(effect, tuple(removals))


def ranked(search: Search, nearest: Sequence[bool] = ()) -> list[int]:
    """The places of the causes: those that explain most first, then what hides, is open, and does nothing.

    Those that were removed on the ``nearest`` stack come after the others: they are of another effect.
    """

    def order(place: int) -> tuple[bool, int, float]:
        one = search.removed[place]
        sign = math.copysign(1.0, one.base.value or 0.0)
        return bool(nearest) and nearest[place], _ORDER.index(one.state), -sign * (one.change.value or 0.0)

    return sorted(range(len(search.removed)), key=order)


def joint_removal(rungs: Sequence[Logs], confidence: float) -> JointRemoval:
    """From the rungs of a run: as it is, without the first, without the second, without both, without all named; or
    as it is and without the only one.
    """
    as_is, every = rungs[0], rungs[-1]
    change = {block: as_is[block] - value for block, value in every.items() if block in as_is}
    effect, remains = mean_of_blocks(as_is, confidence), mean_of_blocks(every, confidence)
    share = _share(change, {block: as_is[block] for block in change}, confidence)
    if len(rungs) == 2:
        return JointRemoval(effect, (remains,), None, (), remains, share)
    first, second, without_two = rungs[1:4]
    orders = (
        compare_orders(as_is, first, second, without_two, confidence),
        compare_orders(as_is, second, first, without_two, confidence),
    )
    alone = (mean_of_blocks(first, confidence), mean_of_blocks(second, confidence))
    return JointRemoval(effect, alone, mean_of_blocks(without_two, confidence), orders, remains, share)


def _state(base: Estimate, effect: Estimate, among: Estimate, share: Share, margin: float) -> State:
    """What a cause does; nothing is named of what is no effect, on the rung it is removed from and as it is."""
    if _lies_within(among.low, among.high, margin) and _lies_within(share.low, share.high, SMALL_SHARE):
        return "nothing"
    named = excludes_nothing(among) and excludes_nothing(effect) and excludes_nothing(base)
    if named and among.value is not None and base.value is not None:
        return "explains" if among.value * base.value > 0 else "hides"
    return "open"


def _lies_within(low: float | None, high: float | None, most: float) -> bool:
    return low is not None and high is not None and -most <= low and high <= most


def _share(change: Mapping[int, float], total: Mapping[int, float], confidence: float) -> Share:
    part, all_ = in_block_order(change), in_block_order(total)
    if len(part) < 2 or not np.isfinite(part).all() or not np.isfinite(all_).all() or all_.mean() == 0:
        return Share(None, None, None)
    half = t_quantile((1 + confidence) / 2, len(part) - 1) / math.sqrt(len(part))
    low, high = share_interval(part, all_, confidence, half=half)
    return Share(float(part.mean() / all_.mean()), low, high)
