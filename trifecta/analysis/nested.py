"""Blocks nested in nodes: what a comparison says where its blocks were run on two nodes of a cluster or more.

Blocks of one node share what that node is like, so many blocks on few nodes are not many observations of machines. A
claim about such nodes then needs two things, and the interval is the hull of both:

* the confidence sequence over all blocks (`confidence`): valid at any look where nodes are alike;
* an interval of the mean of the nodes' medians, Student's t with one degree of freedom less than there are nodes.
  With few groups this is valid, and conservative, for groups whose variances differ as they may, so for unequal numbers
  of blocks, too (Ibragimov & Müller 2010, for levels of 5 % or lower). It is taken at half of the level, because one
  may look at any time, and its standard error is never below what the blocks themselves leave unknown of the nodes'
  medians, so that nodes which agree by chance decide nothing.

What nodes differ by beyond their blocks' noise is a standard deviation, with the interval of Thomas and Hultquist
(1978). With one node nothing here is asked. See docs/methodology.md, 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.confidence import (
    LARGEST_LOG_RATIO,
    Interval,
    Judgement,
    confidence_sequence,
    differences_of,
    judge,
    log_e_above,
    log_e_above_without,
    log_e_below,
    log_e_below_without,
    median_log_ratio,
)
from trifecta.analysis.student import chi2_quantile, share_above, t_quantile

Floats = NDArray[np.float64]

FEW = 6  # nodes, below which no test of their signs could decide at 5 %: what is claimed rests on normal differences
_OF_A_MEDIAN = math.pi / 2  # variance of a median to that of a mean
_LEAST_P = 1e-300


@dataclass(frozen=True)
class Spread:
    """The standard deviation of the log ratio between nodes, and its interval.

    ``value`` is None where every node has one block: then it cannot be told from the noise of blocks. ``high`` is None
    where there is no bound, as of two nodes that differ.
    """

    value: float | None
    low: float
    high: float | None


@dataclass(frozen=True, eq=False)
class Nested:
    """The usable blocks of a comparison (``logs`` as in `PairBlocks`) and the node of each: two nodes or more."""

    logs: Floats
    nodes: tuple[str, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The nodes, in the order of their names."""
        return tuple(sorted(set(self.nodes)))

    @cached_property
    def middles(self) -> Floats | None:
        """The median log ratio of each node; None where one of them is censored."""
        order, ends = np.argsort(self._at, kind="stable"), np.cumsum(self._blocks.astype(int))
        medians = [median_log_ratio(own) for own in np.split(self.logs[order], ends[:-1])]
        known = [one for one in medians if one is not None]
        return np.array(known) if len(known) == len(medians) else None

    @cached_property
    def middle(self) -> float | None:
        """The estimate: every node weighs the same, however many blocks it had."""
        return None if self.middles is None else float(self.middles.mean())

    @cached_property
    def _blocks(self) -> Floats:
        """Blocks by node."""
        values: Floats = np.bincount(self._at).astype(np.float64)
        return values

    @cached_property
    def _at(self) -> NDArray[np.intp]:
        """The node of each block, by its place among the names."""
        return np.searchsorted(np.array(self.names), np.array(self.nodes))

    @cached_property
    def _unknown(self) -> float | None:
        """The variance of a node's median that the noise of its blocks makes, on average; None with a block a node."""
        spare = len(self.nodes) - len(self.names)
        if self.middles is None or spare < 1:
            return None
        at = self.middles[self._at]
        of_block = float(np.nanmean((differences_of(self.logs) - at) ** 2, axis=0).sum()) / spare
        return _OF_A_MEDIAN * of_block * float((1 / self._blocks).mean())

    @cached_property
    def _variance_of_medians(self) -> float:
        """The variance of the nodes' medians, as they are."""
        return 0.0 if self.middles is None else float(self.middles.var(ddof=1))

    @cached_property
    def error(self) -> float:
        """The standard error of the estimate."""
        return math.sqrt(max(self._variance_of_medians, self._unknown or 0.0) / len(self.names))

    def between(self, level: float) -> Interval:
        """The interval over nodes at half of ``level``; without bounds where a node has no finite median."""
        if self.middle is None:
            return Interval(None, None)
        reach = t_quantile(1 - level / 4, len(self.names) - 1) * self.error
        low, high = self.middle - reach, self.middle + reach
        return Interval(low if low > -LARGEST_LOG_RATIO else None, high if high < LARGEST_LOG_RATIO else None)

    def interval(self, over_blocks: Interval, level: float) -> Interval:
        """What neither the blocks' sequence at ``level`` nor the nodes' interval excludes: the hull of both."""
        over_nodes = self.between(level)
        lows, highs = (over_blocks.low, over_nodes.low), (over_blocks.high, over_nodes.high)
        return Interval(
            None if lows[0] is None or lows[1] is None else min(lows[0], lows[1]),
            None if highs[0] is None or highs[1] is None else max(highs[0], highs[1]),
        )

    def judged(self, alpha: float) -> Judgement:
        """The interval at level ``alpha``, and the evidence on both sides of a ratio of 1."""
        interval = self.interval(confidence_sequence(self.logs, alpha), alpha)
        return Judgement(interval, self.log_e(low=0.0), self.log_e(high=0.0))

    def log_e(self, low: float | None = None, high: float | None = None) -> float:
        """Log evidence that the median lies above ``low`` and below ``high``, where they are given.

        The smaller of the blocks' e-value and the nodes': 1 / 2p of Student's t, so that `between` at a level and this
        at 2 / level decide alike.
        """
        return _evidence(self.logs, self.middle, self.error, len(self.names) - 1, low=low, high=high)

    def weakest(self, low: float | None = None, high: float | None = None) -> tuple[float, str]:
        """The least of `log_e` with any one node left out, and that node: a node by itself must not decide.

        How much nodes differ is still taken from all of them: what is left out is what the node says, not that it
        differs. Else a claim of three nodes would rest on what two of them say of their own spread.
        """
        count = len(self.names)
        if self.middles is None:
            return -math.inf, self.names[0]
        error = self.error * math.sqrt(count / (count - 1))
        middles = ((self.middles.sum() - self.middles) / (count - 1)).tolist()
        sides = []
        if low is not None:
            sides.append(log_e_above_without(self.logs, low, self._at))
            sides.append(np.array([_log_e_of(middle - low, error, count - 1) for middle in middles]))
        if high is not None:
            sides.append(log_e_below_without(self.logs, high, self._at))
            sides.append(np.array([_log_e_of(high - middle, error, count - 1) for middle in middles]))
        weakest_sides = np.min(sides, axis=0)
        place = int(weakest_sides.argmin())
        return float(weakest_sides[place]), self.names[place]

    def spread(self, confidence: float) -> Spread | None:
        """How much nodes differ; None where one of them has no finite median."""
        if self.middles is None:
            return None
        freedom, noise = len(self.names) - 1, self._unknown
        low, high = (
            math.sqrt(max(0.0, self._variance_of_medians * freedom / chi2_quantile(share, freedom) - (noise or 0.0)))
            for share in ((1 + confidence) / 2, (1 - confidence) / 2)
        )
        bound = high if high < LARGEST_LOG_RATIO else None
        if noise is None:  # how much of what is seen is the noise of the blocks is not known
            return Spread(None, 0.0, bound)
        return Spread(math.sqrt(max(0.0, self._variance_of_medians - noise)), low, bound)

    def words(self, confidence: float) -> str:
        """How much nodes differ, as a part of a sentence."""
        known, count = self.spread(confidence), len(self.names)
        if known is None:
            return f"over {count} nodes, of which one has no finite ratio"
        if known.value is None:
            return f"over {count} nodes with a block each, which do not tell how much nodes differ"
        most = "no bound" if known.high is None else _percent(known.high)
        return (
            f"between {count} nodes the ratio differs by {_percent(known.value)} [{_percent(known.low)}, {most}] "
            "(standard deviation)"
        )

    @property
    def missing(self) -> str:
        """What would tell where nodes differ too much for a claim."""
        return "more nodes would tell" if len(self.names) < FEW else "it depends on the node"

    def hindrance(self, alpha: float) -> str:
        """Why the nodes' interval holds what the blocks alone would exclude; empty where it does not."""
        count = len(self.names)
        if not confidence_sequence(self.logs, alpha).excludes_zero() or self.between(alpha).excludes_zero():
            return ""
        if self.middles is None:
            return "a node without a finite ratio leaves open what such nodes do"
        sentence = f"the blocks alone would decide, but {count} nodes differ too much among themselves for that"
        return f"{sentence}: {self.missing}"


def nested(logs: Floats, nodes: Sequence[str]) -> Nested | None:
    """The blocks of a comparison by node; None where they are of one node, or it is not known of which."""
    return Nested(logs, tuple(nodes)) if len(set(nodes)) > 1 else None


def interval_of(logs: Floats, nodes: Sequence[str], alpha: float) -> Interval:
    """The interval of blocks at level ``alpha``, whether they are of one node or of several."""
    among = nested(logs, nodes)
    return judge(logs, alpha).interval if among is None else among.judged(alpha).interval


def middle_of(logs: Floats, nodes: Sequence[str]) -> float | None:
    """The estimate of blocks, as a log: their median, of several nodes the mean of the nodes' medians."""
    among = nested(logs, nodes)
    return median_log_ratio(logs) if among is None else among.middle


def _evidence(
    logs: Floats, middle: float | None, error: float, freedom: int, *, low: float | None, high: float | None
) -> float:
    if middle is None:
        return -math.inf
    e_values = []
    if low is not None:
        e_values += [float(log_e_above(logs, np.array([low]))[0]), _log_e_of(middle - low, error, freedom)]
    if high is not None:
        e_values += [float(log_e_below(logs, np.array([high]))[0]), _log_e_of(high - middle, error, freedom)]
    return min(e_values)


def _log_e_of(distance: float, error: float, freedom: int) -> float:
    """Log of 1 / 2p, p being how often Student's t is that far beyond an edge by chance."""
    # Without an error they are equal to the last bit, as ticks of a coarse clock may be.
    certain = 0.5 if distance == 0 else float(distance < 0)
    p = share_above(distance / error, freedom) if error > 0 else certain
    return -math.log(2 * max(p, _LEAST_P))


def _percent(log: float) -> str:
    return f"{100 * math.expm1(log):.1f} %"
