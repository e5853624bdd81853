"""What a published procedure would have concluded on our data: carried out again and again, against our verdict.

The studies compared one load, or one mean, of each protocol and called the smaller one the faster. Here that is done
some hundred times on the samples of a run, drawn anew each time. What counts depends on what all blocks together say
(``truth``): where they name the faster one, another name is wrong; where they say that there is no difference beyond
the margin, every name is; where they leave it open there is no truth, and nothing is right or wrong. What needs no
truth is how often two such studies would contradict each other (``contradict``).

The protocols of a draw come from one block, which is kind to the procedure: the studies measured them one after the
other. The interval of the share is that of the draws (Clopper & Pearson 1934). It says nothing of the error of the data
themselves: with few blocks these are few different mornings on which the study could have been made.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.intervals import linear
from trifecta.analysis.student import reach_of_mean
from trifecta.analysis.success import clopper_pearson

Floats = NDArray[np.float64]
TIMES = 200  # conclusions that are drawn
SAME = "same"  # the truth where there is no difference beyond the margin


@dataclass(frozen=True)
class Times:
    """One trial: how long each request took that succeeded, and how long each that failed took to fail, in ns."""

    done_ns: Floats
    failed_ns: Floats = field(default_factory=lambda: np.empty(0))


Block = Mapping[str, Sequence[Times]]
"""By protocol the trials of a block; of the baseline there are two."""


class TimedTrial(Protocol):
    """A trial as ``store.request_times`` reads it."""

    @property
    def block(self) -> int:
        """Its block."""

    @property
    def arm(self) -> str:
        """Its arm; the baseline's second run ends with ``#aa``."""

    @property
    def done_ns(self) -> Floats:
        """Times of requests that succeeded."""

    @property
    def failed_ns(self) -> Floats:
        """Times of requests that failed."""


def by_block(trials: Iterable[TimedTrial]) -> list[Block]:
    """The trials of each block by protocol, blocks in order."""
    times: dict[int, dict[str, list[Times]]] = {}
    for trial in trials:
        here = times.setdefault(trial.block, {})
        here.setdefault(trial.arm.removesuffix("#aa"), []).append(Times(trial.done_ns, trial.failed_ns))
    return [times[block] for block in sorted(times)]


@dataclass(frozen=True)
class BackOff:
    """How failed requests are retried: after ``first_ns``, then ``factor`` times as long, each drawn within
    ``spread`` of itself, never longer than ``longest_ns``; given up after ``tries``.

    The defaults are bourbon2020's: ``services/tcp.go`` of its repository calls avast/retry-go, whose options it sets to
    no effect (``retry.Attempts(5)`` and ``retry.Delay`` stand alone). Those of 2019 had no jitter and no longest pause;
    a request is lost after ten tries, about 51 s.
    """

    first_ns: float = 100e6
    factor: float = 2.0
    spread: float = 0.0
    longest_ns: float = math.inf
    tries: int = 10


@dataclass(frozen=True)
class Procedure:
    """A way to conclude. ``value`` is what it takes for a protocol's time, from one of its trials; NaN: nothing."""

    name: str
    words: str
    value: Callable[[np.random.Generator, Times], float]


@dataclass(frozen=True)
class Concluded:
    """What a procedure concluded of one pair in one cell.

    ``winner`` is the truth it is held against: the faster protocol, ``same``, or None where our verdict is open; then
    ``wrong`` is 0 and there is no ``rate``. Of ``draws`` conclusions ``wrong`` did not name the winner, or named
    one where there is none; ``opposite`` named the slower one. ``named`` is the share that named ``arm``,
    ``contradict`` that of pairs of conclusions that name different ones. ``ratio_low`` to ``ratio_high`` holds 95 % of
    the ratios that would have been published.
    """

    procedure: str
    cell: str
    arm: str
    reference: str
    winner: str | None
    draws: int
    wrong: int
    opposite: int
    rate: float | None
    low: float | None
    high: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    named: float | None = None
    contradict: float | None = None


@dataclass(frozen=True)
class Change:
    """What a procedure does to a value, as a ratio with / without it, over blocks; bounds None with one block."""

    ratio: float
    low: float | None
    high: float | None
    blocks: int


def _single(generator: np.random.Generator, trial: Times) -> float:
    return float(generator.choice(trial.done_ns)) if len(trial.done_ns) else math.nan


def _mean(generator: np.random.Generator, trial: Times) -> float:
    done_ns = trial.done_ns
    return float(done_ns[generator.integers(len(done_ns), size=len(done_ns))].mean()) if len(done_ns) else math.nan


SINGLE_LOAD = Procedure("single-load", "one request or page load of each protocol, the shorter one wins", _single)
NO_NOISE_FLOOR = Procedure(
    "no-noise-floor", "the mean of one trial of each protocol, the smaller one wins, without an interval", _mean
)


def retries_hidden(back_off: BackOff | None = None) -> Procedure:
    """The mean of one trial with failed requests retried inside the timed span, as if one slow one each."""
    rule = back_off or BackOff()

    def value(generator: np.random.Generator, trial: Times) -> float:
        values = retried(generator, trial, rule)
        return float(values.mean()) if len(values) else math.nan

    words = (
        "the mean of one trial of each protocol, failed requests retried with back-off "
        f"({rule.first_ns / 1e6:g} ms, {rule.factor:g} times as long each time) inside the timed span"
    )
    return Procedure("retries-hidden", words, value)


def different_work(counts: Sequence[int], share: float = 1.0) -> Procedure:
    """One load of each protocol, each of a page with another number of requests, drawn from ``counts``.

    ``share`` of a load's time grows with the number of requests: 1 is the most that it can be.
    """
    known = np.array(counts, dtype=np.float64)
    factors = 1 - share + share * known / known.mean()

    def value(generator: np.random.Generator, trial: Times) -> float:
        return _single(generator, trial) * float(generator.choice(factors))

    listed = ", ".join(str(count) for count in counts)
    return Procedure("different-work", f"one load of each protocol, of {listed} requests by chance", value)


def retried(generator: np.random.Generator, trial: Times, rule: BackOff) -> Floats:
    """The times of a trial's requests as drawn with replacement, those that fail retried until one succeeds.

    Every try succeeds as often as the trial's requests did, and takes what one of them took. A request that is lost in
    the end has no time: it is missing, as it is missing in what was published.
    """
    done, failed = trial.done_ns, trial.failed_ns
    total = len(done) + len(failed)
    if not len(done):
        return np.empty(0)
    times, waiting = np.zeros(total), np.arange(total)
    pause, lost = rule.first_ns, np.zeros(total, dtype=bool)
    for _ in range(rule.tries):
        fails = generator.random(len(waiting)) < len(failed) / total
        times[waiting[~fails]] += generator.choice(done, size=int((~fails).sum()))
        waiting = waiting[fails]
        if not len(waiting):
            break
        times[waiting] += generator.choice(failed, size=len(waiting))
        times[waiting] += pause * generator.uniform(1 - rule.spread, 1 + rule.spread, size=len(waiting))
        pause = min(pause * rule.factor, rule.longest_ns)
    else:
        lost[waiting] = True
    return times[~lost]


def conclude(
    blocks: Sequence[Block],
    pairs: Sequence[tuple[str, str, str | None]],
    procedure: Procedure,
    *,
    cell: str = "",
    seed: int = 1,
    draws: int = TIMES,
    confidence: float = 0.95,
) -> list[Concluded]:
    """Carry a procedure out ``draws`` times on the blocks of a cell, for each (arm, reference, truth).

    The truth is one of the two, `SAME`, or None where it is open.

    A conclusion draws a block, of each protocol one of its trials there, and what the procedure takes from it. A block
    that lacks a protocol of the pair concludes nothing; with none that has both there is no share.
    """
    conclusions = []
    for arm, reference, winner in pairs:
        generator = np.random.default_rng([seed, *(zlib.crc32(text.encode()) for text in (cell, arm, reference))])
        complete = [block for block in blocks if block.get(arm) and block.get(reference)]
        values = np.array(
            [_resampled(generator, complete, (arm, reference), procedure) for _ in range(draws if complete else 0)]
        )
        conclusions.append(_concluded(procedure.name, cell, (arm, reference, winner), values, confidence))
    return conclusions


def _resampled(
    generator: np.random.Generator, blocks: Sequence[Block], arms: tuple[str, str], procedure: Procedure
) -> list[float]:
    block = blocks[int(generator.integers(len(blocks)))]
    return [procedure.value(generator, block[arm][int(generator.integers(len(block[arm])))]) for arm in arms]


def _concluded(name: str, cell: str, pair: tuple[str, str, str | None], values: Floats, confidence: float) -> Concluded:
    arm, reference, winner = pair
    known = values[np.isfinite(values).all(axis=1)] if len(values) else np.empty((0, 2))
    if not len(known):
        return Concluded(name, cell, arm, reference, winner, 0, 0, 0, None, None, None, None, None, None)
    first, second = known[:, 0] < known[:, 1], known[:, 1] < known[:, 0]  # equal values name no one
    total = len(known)
    opposite = int((second if winner == arm else first).sum()) if winner in (arm, reference) else 0
    wrong = opposite
    if winner == SAME:
        wrong = int((first | second).sum())
    elif winner is not None:
        wrong += int((~first & ~second).sum())  # no name where there is one
    rate, low, high = None, None, None
    if winner is not None:
        rate, (low, high) = wrong / total, clopper_pearson(wrong, total, confidence)
    ratios = known[:, 0] / known[:, 1]
    ends = np.quantile(ratios, [(1 - confidence) / 2, 0.5, (1 + confidence) / 2])
    ours, theirs = int(first.sum()), int(second.sum())
    contradict = 2 * ours * theirs / (total * (total - 1)) if total > 1 else None
    return Concluded(
        name, cell, arm, reference, winner, total, wrong, opposite,
        rate, low, high, float(ends[1]), float(ends[0]), float(ends[2]), ours / total, contradict,
    )  # fmt: skip


def failures(blocks: Sequence[Block]) -> int:
    """How many requests failed."""
    return sum(len(trial.failed_ns) for block in blocks for trials in block.values() for trial in trials)


def truth(blocks: Sequence[Block], arm: str, reference: str, margin: float, confidence: float = 0.95) -> str | None:
    """Who is the faster one by all blocks, in the median time with failures as infinitely long.

    The protocol that Student's interval of the mean log ratio names (it does not hold 1), `SAME` where it lies within
    the margin and holds 1, else None: open.
    """
    logs = [
        _median_log(block[arm]) - _median_log(block[reference])
        for block in blocks
        if block.get(arm) and block.get(reference)
    ]
    if not logs or not np.isfinite(logs).all():
        return None  # a median among failures: how much slower that is no one knows
    estimate = linear([(1.0, np.array(logs))], confidence)
    if estimate.low is None or estimate.high is None:
        return None
    if estimate.high < 0 or estimate.low > 0:
        return arm if estimate.high < 0 else reference
    edge = math.log1p(margin)
    return SAME if -edge <= estimate.low and estimate.high <= edge else None


def _median_log(trials: Sequence[Times]) -> float:
    """The mean of the trials' median logs; infinite where one lies among failures."""
    medians = [np.median(np.concatenate([one.done_ns, np.full(len(one.failed_ns), np.inf)])) for one in trials]
    return float(np.mean(np.log(medians)))


def change(
    blocks: Sequence[Block],
    arm: str,
    against: str | None,
    with_it: Procedure,
    without: Procedure,
    *,
    seed: int = 1,
    draws: int = 20,
    confidence: float = 0.95,
) -> Change | None:
    """How many times as large a procedure makes an arm's value, or, with ``against``, its ratio to that protocol.

    A block is one value: the mean of the logarithms over ``draws`` draws of each of its trials. None where no block has
    what it needs.
    """
    generator = np.random.default_rng([seed, zlib.crc32(f"{with_it.name},{arm},{against}".encode())])
    logs = []
    for block in blocks:
        shifts = [
            _shift(generator, block[name], with_it, without, draws) if block.get(name) else math.nan
            for name in (arm, against)
            if name is not None
        ]
        logs.append(shifts[0] - (shifts[1] if against is not None else 0.0))
    known = np.array([value for value in logs if math.isfinite(value)])
    if not len(known):
        return None
    middle = float(known.mean())
    if len(known) < 2:
        return Change(math.exp(middle), None, None, 1)
    reach = reach_of_mean(known, confidence)
    return Change(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach), len(known))


def _shift(
    generator: np.random.Generator, trials: Sequence[Times], with_it: Procedure, without: Procedure, draws: int
) -> float:
    pairs = [(with_it.value(generator, one), without.value(generator, one)) for one in trials for _ in range(draws)]
    logs = [math.log(new / old) for new, old in pairs if new > 0 and old > 0]
    return float(np.mean(logs)) if logs else math.nan
