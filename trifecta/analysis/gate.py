"""The verdict of a gate: is the candidate worse than the baseline by more than a limit, in any cell?

A *test* is a condition (``slower:3 %``) in a cell. Of the median log ratio of candidate to baseline, in the direction
that is worse, there is a confidence sequence (`confidence`), so it may be looked at after every block:

* the test **fails** when its lower end lies above the limit, at level alpha / tests (`family.level_of`): a gate none of
  whose candidates is beyond a limit fails with a probability of at most alpha, however many tests it has;
* it **passes** when its upper end lies below the limit, at level alpha. All tests must pass, so a gate with a candidate
  that is at a limit or beyond it passes with a probability of at most alpha (Berger 1982, intersection-union);
* else it is **open**.

Where the baseline differs from itself, beyond chance among all tests, the limit widens both ways by its noise floor.
Blocks on several nodes of a cluster have the interval of `nested`, and a test stays open that one node alone decides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.confidence import Interval, confidence_sequence, differences_of, judge
from trifecta.analysis.estimate import PairBlocks, Row, by_cell, log_value, node_of, pair_blocks, usable
from trifecta.analysis.family import adjusted_log_e, level_of
from trifecta.analysis.forecast import blocks_to_difference, within_horizon
from trifecta.analysis.means import median_of
from trifecta.analysis.nested import Nested, middle_of, nested
from trifecta.analysis.noise import robust_floor
from trifecta.contract.stored import Load
from trifecta.design.arms import node_words
from trifecta.design.gate import WIRE_BYTES, Condition, GatePlan
from trifecta.design.metric import Metric
from trifecta.design.model import AA_SUFFIX, Cell
from trifecta.design.phrases import numbered

Floats = NDArray[np.float64]
State = Literal["pass", "fail", "open"]
GateState = Literal["pass", "fail", "undecided"]
PASSES: Literal["pass"] = "pass"
FAILS: Literal["fail"] = "fail"
OPEN: Literal["open"] = "open"
UNDECIDED: Literal["undecided"] = "undecided"


@dataclass(frozen=True)
class Outcome:
    """A condition in a cell. ``baseline`` and ``candidate`` are medians over trials in the metric's unit.

    ``ratio`` is candidate / baseline, the median over blocks, between ``low`` and ``high``, on which the verdict rests;
    None where there is no end (yet). ``values``: of the candidate by block, infinite where censored. ``needed``: blocks
    that would decide, by estimate.
    """

    cell: Cell
    condition: Condition
    state: State
    reason: str
    baseline: float | None
    candidate: float | None
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    invalid_trials: int
    needed: int | None
    values: tuple[float, ...]


@dataclass(frozen=True)
class Judged:
    """All tests of a gate, the cells in their order."""

    tests: tuple[Outcome, ...]

    @property
    def state(self) -> GateState:
        """Fail where any test fails, pass where all pass."""
        states = {one.state for one in self.tests}
        return FAILS if FAILS in states else PASSES if states == {PASSES} else UNDECIDED

    def count(self, state: State) -> int:
        """How many tests are so."""
        return sum(one.state == state for one in self.tests)


def judge_gate(gate: GatePlan, rows: Sequence[Row], cells: Sequence[Cell]) -> Judged:
    """Judge every condition in every cell from the rows of the trials finished so far.

    ``cells`` are those that this machine can run; they are the family of the tests, and must not change during a run.
    """
    counted = WIRE_BYTES in (one.metric for one in gate.conditions)
    grouped = by_cell([_with_wire_bytes(row) for row in rows] if counted else rows)
    tests = [(cell, condition) for cell in cells for condition in gate.conditions]
    here = [grouped.get(cell.key, []) for cell, _ in tests]
    slacks = _slacks(gate, tests, here)
    cluster = len({node_of(row) for row in rows}) > 1
    judged = [
        _test(gate, one, own, slack, len(tests), cluster=cluster)
        for one, own, slack in zip(tests, here, slacks, strict=True)
    ]
    return Judged(tuple(judged))


def _test(
    gate: GatePlan, tested: tuple[Cell, Condition], rows: Sequence[Row], slack: float, tests: int, *, cluster: bool
) -> Outcome:
    (cell, condition), alpha = tested, 1 - gate.study.confidence
    metric = condition.metric
    pair = _pair(gate, cell, rows, metric, gate.candidate)
    sign = 1.0 if metric.lower_is_better else -1.0
    worse, limit = sign * pair.logs, math.log1p(condition.limit)
    among = nested(worse, pair.nodes)
    # A confidence sequence has half of its level at each end: twice as much gives an end all of it.
    to_fail, to_pass = 2 * level_of(tests, 1, alpha), 2 * alpha
    low, high = _interval(worse, among, to_fail).low, _interval(worse, among, to_pass).high
    state: State = OPEN
    hindrance = ""
    if low is not None and low > limit + slack:
        hindrance = _deciding(pair, among, to_fail, cluster, low=limit + slack)
        state = OPEN if hindrance else FAILS
    elif high is not None and high < limit - slack:
        hindrance = _deciding(pair, among, to_pass, cluster, high=limit - slack)
        state = OPEN if hindrance else PASSES
    ends = (low, high) if sign > 0 else (_minus(high), _minus(low))
    if state == OPEN and not hindrance and not slack and among is not None:
        hindrance = _too_few(among, to_fail, to_pass, limit)
    needed = None if state != OPEN or slack or hindrance else _needed(worse, limit, alpha)
    middle = middle_of(pair.logs, pair.nodes)
    values = [log_value(row, metric) for row in rows if row["arm"] == gate.candidate and usable(row)]
    return Outcome(
        cell=cell,
        condition=condition,
        state=state,
        reason=hindrance or _reason(state, condition, pair, slack, bounded=low is not None or high is not None),
        baseline=_median(rows, metric, gate.baseline, gate.candidate),
        candidate=_median(rows, metric, gate.candidate),
        ratio=None if middle is None else math.exp(middle),
        low=None if ends[0] is None else math.exp(ends[0]),
        high=None if ends[1] is None else math.exp(ends[1]),
        blocks=pair.blocks,
        invalid_trials=pair.invalid_trials,
        needed=needed,
        values=tuple(math.exp(value) for value in values if not math.isnan(value)),
    )


def _interval(worse: Floats, among: Nested | None, level: float) -> Interval:
    """The confidence sequence, of blocks on several nodes with the nodes' interval (`nested`)."""
    interval = confidence_sequence(worse, level)
    return interval if among is None else among.interval(interval, level)


def _deciding(
    pair: PairBlocks,
    among: Nested | None,
    level: float,
    cluster: bool,
    *,
    low: float | None = None,
    high: float | None = None,
) -> str:
    """Why a test stays open though its interval is clear of the limit: one node of a cluster decides it alone."""
    if among is None:
        return f"all of its blocks are of {node_words(pair.nodes[0])}: a node alone does not decide" if cluster else ""
    least, node = among.weakest(low, high)
    if least >= math.log(2 / level) - 1e-9:
        return ""
    return f"without {node_words(node)} it is undecided: a node alone does not decide"


def _too_few(among: Nested, to_fail: float, to_pass: float, limit: float) -> str:
    """Why a forecast of blocks is not given: the interval over nodes reaches across the limit by itself."""
    above, below = among.between(to_fail).low, among.between(to_pass).high
    if (above is not None and above > limit) or (below is not None and below < limit):
        return ""
    sentence = (
        f"{len(among.names)} nodes are too few, or differ too much, to say which side of the limit such nodes lie on"
    )
    return f"{sentence}: {among.missing}"


def _pair(gate: GatePlan, cell: Cell, rows: Sequence[Row], metric: Metric, arm: str) -> PairBlocks:
    return pair_blocks(cell.key, rows, metric, arm=arm, reference=gate.baseline, baseline=gate.baseline)


def _slacks(gate: GatePlan, tests: Sequence[tuple[Cell, Condition]], here: Sequence[Sequence[Row]]) -> list[float]:
    """For each test by how much (a log) the limit widens: the noise floor of a baseline that differs from itself."""
    retest, alpha = gate.baseline + AA_SUFFIX, 1 - gate.study.confidence
    if gate.candidate == retest or not tests:
        return [0.0] * len(tests)
    pairs = [
        _pair(gate, cell, rows, condition.metric, retest) for (cell, condition), rows in zip(tests, here, strict=True)
    ]
    adjusted = adjusted_log_e(np.array([judge(pair.logs, alpha).log_e for pair in pairs]))
    return [
        _floor(pair, gate.study.confidence) if log_e >= math.log(1 / alpha) else 0.0
        for pair, log_e in zip(pairs, adjusted, strict=True)
    ]


def _floor(pair: PairBlocks, confidence: float) -> float:
    floor = robust_floor(differences_of(pair.logs)[0], pair.blocks, confidence)
    return math.inf if floor is None else math.log1p(floor)


def _reason(state: State, condition: Condition, pair: PairBlocks, slack: float, *, bounded: bool) -> str:
    if state != OPEN:
        return f"the whole interval lies {'beyond' if state == FAILS else 'within'} the limit of {condition.text}"
    if slack:
        size = "an unknown size" if math.isinf(slack) else f"{100 * math.expm1(slack):.1f} %"
        return f"the baseline differs from itself here: an interval must be clear of the limit by {size}"
    if bounded:
        return f"the interval reaches across the limit of {condition.text}"
    if pair.blocks:
        return f"{pair.blocks} usable block{' is' if pair.blocks == 1 else 's are'} too few for an interval"
    if pair.invalid_trials:
        return f"no usable block: {numbered(pair.invalid_trials, 'trial')} failed a check"
    return "no block holds a value of both" if pair.incomplete_blocks else "no block has been run"


def _needed(worse: Floats, limit: float, alpha: float) -> int | None:
    """Blocks that would decide, if further ones were like these: the stake on either side of the limit reaches its
    level.
    """
    if len(worse) < 2:
        return None
    shifted = worse.copy()
    shifted[:, 0] -= limit
    return within_horizon(blocks_to_difference(shifted, math.log(1 / alpha)).middle, len(worse))


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


def _median(rows: Sequence[Row], metric: Metric, arm: str, without: str = "") -> float | None:
    """The median over the valid trials of an arm, both runs of the baseline; None without one, or where it is censored.

    ``without``: an arm that does not count, though it is the baseline's second run.
    """
    arms = {arm, arm + AA_SUFFIX} - {without}
    logs = [log_value(row, metric) for row in rows if row["arm"] in arms and usable(row)]
    logs = [value for value in logs if not math.isnan(value)]
    if not logs or not math.isfinite(median_of(np.array(logs))):
        return None
    return float(np.median(np.exp(logs)))


def _with_wire_bytes(row: Row) -> Row:
    """The row with the octets on the wire per request, where its client counted them."""
    text = row.get("load_json")
    load = cast(Load, json.loads(text)) if text else Load()
    back, sent, samples = load.get("wire_bytes_in"), load.get("wire_bytes_out"), load.get("samples")
    if back is None or sent is None or not samples:
        return row
    return cast(Row, {**row, WIRE_BYTES.name: (back + sent) / samples})
