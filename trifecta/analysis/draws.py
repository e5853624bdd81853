"""What a link must have done to the packets of a trial: its draws are looked up, so its counts can be counted again.

A draw of the engine's link depends on the seed, the direction, the impairment and the ordinal of the packet alone
(docs/architecture.md, 1.3; engine/crates/link/src/random.rs). So how many of the first n packets an impairment hits is
no matter of chance: it is computed here, and one packet more or less is a link that did something else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trifecta.contract.impairments import ImpairmentDocument
from trifecta.contract.stored import Tally
from trifecta.design.impairments import KINDS

Words = NDArray[np.uint64]

MOST_PACKETS = 2_000_000  # of one direction of a trial: half a second of computing
MOST_IN_BURSTS = 200_000  # a channel with a state is followed packet by packet
_GAMMA, _ALL = 0x9E37_79B9_7F4A_7C15, (1 << 64) - 1
_DRAWS_PER_PACKET = 8
_DIRECTIONS = {"a_to_b": 0, "b_to_a": 1}


def _mix(word: int) -> int:
    word = ((word ^ (word >> 30)) * 0xBF58_476D_1CE4_E5B9) & _ALL
    word = ((word ^ (word >> 27)) * 0x94D0_49BB_1331_11EB) & _ALL
    return word ^ (word >> 31)


def key(seed: int, direction: int, kind: str, occurrence: int) -> int:
    """Where the draws of one impairment of one direction begin."""
    name = 0
    for octet in kind.encode():
        name = _mix(((name + _GAMMA) & _ALL) ^ octet)
    state = 0
    for part in (seed, direction, name, occurrence):
        state = _mix(((state + _GAMMA) & _ALL) ^ _mix((part + _GAMMA) & _ALL))
    return state


def units(start: int, ordinals: Words, copies: Words, k: int = 0) -> NDArray[np.float64]:
    """Draw ``k`` of each packet, in [0, 1)."""
    with np.errstate(over="ignore"):
        word = (ordinals * np.uint64(_DRAWS_PER_PACKET) + np.uint64(k)) ^ (copies << np.uint64(56))
        word = np.uint64(start) + (word + np.uint64(1)) * np.uint64(_GAMMA)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
        word = word ^ (word >> np.uint64(31))
        uniform: NDArray[np.float64] = (word >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return uniform


def expected_hits(
    seed: int,
    direction: str,
    impairments: Sequence[ImpairmentDocument],
    packets: int,
    tallies: Sequence[Tally],
) -> list[int | None]:
    """How many packets each impairment asked for must have hit; None where it cannot be known.

    ``packets`` is how many came, ``tallies`` what the link says that each impairment met and hit. Behind a queue that
    dropped packets, which one depends on times, nothing is known.
    """
    hits: list[int | None] = [None] * len(impairments)
    if not 0 < packets <= MOST_PACKETS:
        return hits
    ordinals, copies = np.arange(packets, dtype=np.uint64), np.zeros(packets, dtype=np.uint64)
    occurrences: dict[str, int] = {}
    for index, (impairment, tally) in enumerate(zip(impairments, tallies, strict=False)):
        name = str(impairment["kind"])
        kind = KINDS[name]
        start = key(seed, _DIRECTIONS[direction], name, occurrences.get(name, 0))
        occurrences[name] = occurrences.get(name, 0) + 1
        if int(tally["met"]) != len(ordinals):
            break  # some were under way when the link ended, or more was lost before than should have been
        if kind.queues:
            if int(tally["hit"]):
                break
            continue
        if kind.share is None and not kind.removes:
            continue  # every packet goes on
        hit = _hit(start, impairment, ordinals, copies)
        if hit is None:
            break  # nor is it known who comes through
        hits[index] = int(hit.sum())
        if kind.removes:
            ordinals, copies = ordinals[~hit], copies[~hit]
        elif kind.copies:
            ordinals = np.concatenate([ordinals, ordinals[hit]])
            copies = np.concatenate([copies, copies[hit] + np.uint64(1)])
    return hits


def _hit(start: int, impairment: ImpairmentDocument, ordinals: Words, copies: Words) -> NDArray[np.bool_] | None:
    """Which packets it hits; None where how its kind draws is not known here, or would take too long."""
    if "drop" in impairment:
        return np.isin(ordinals, np.array(impairment["drop"], dtype=np.uint64))
    if "good_to_bad" in impairment:
        return _bursts(start, impairment, ordinals, copies) if len(ordinals) <= MOST_IN_BURSTS else None
    if "probability" in impairment:
        return units(start, ordinals, copies) < float(impairment["probability"])
    return None


def _bursts(start: int, channel: ImpairmentDocument, ordinals: Words, copies: Words) -> NDArray[np.bool_]:
    to_bad, to_good = float(channel["good_to_bad"]), float(channel["bad_to_good"])
    share = to_bad / (to_bad + to_good) if to_bad + to_good else 0.0
    first = np.array([_ALL], dtype=np.uint64)
    bad = bool(units(start, first, np.zeros(1, dtype=np.uint64))[0] < share)
    losses, changes = units(start, ordinals, copies, 0), units(start, ordinals, copies, 1)
    in_bad, in_good = float(channel.get("loss_bad", 1.0)), float(channel.get("loss_good", 0.0))
    hit = np.zeros(len(ordinals), dtype=np.bool_)
    for index, (loss, change) in enumerate(zip(losses.tolist(), changes.tolist(), strict=True)):
        hit[index] = loss < (in_bad if bad else in_good)
        if change < (to_good if bad else to_bad):
            bad = not bad
    return hit


# How many times what was asked a link may lose, as alternatives of the test over a run, beside nothing at all.
_TIMES = (0.25, 0.5, 0.67, 0.77, 0.87, 0.93, 1.07, 1.15, 1.3, 1.5, 2.0, 3.0, 5.0, 10.0)


def log_e_binomial(hits: int, packets: int, probability: float) -> float:
    """Log e-value against ``probability``: the mean of likelihood ratios of fixed alternatives, on both sides.

    The mean is a martingale in the packets when the probability is as asked, so it may be looked at at any time
    (Ville 1939).
    """
    if probability <= 0:
        return math.inf if hits else 0.0
    if probability >= 1:
        return math.inf if hits < packets else 0.0
    misses = packets - hits
    never = -math.inf if hits else -packets * math.log1p(-probability)
    logs = [never, *[hits * of_hit + misses * of_miss for of_hit, of_miss in _alternatives(probability)]]
    top = max(logs)
    return top + math.log(sum([math.exp(one - top) for one in logs]) / len(logs))


@lru_cache(maxsize=1000)
def _alternatives(probability: float) -> tuple[tuple[float, float], ...]:
    """What a hit and a miss add to the logarithm of the likelihood ratio of each alternative."""
    others = [min(times * probability, (1 + probability) / 2) for times in _TIMES]
    return tuple((math.log(other / probability), math.log1p(-other) - math.log1p(-probability)) for other in others)


def log_e_bursts(hits: int, packets: int, probability: float, inflation: float) -> float:
    """The same for losses in bursts, whose sum is taken as normal with ``inflation`` times the binomial variance."""
    variance = packets * probability * (1 - probability) * inflation
    if variance <= 0:
        return log_e_binomial(hits, packets, probability)
    off = hits - packets * probability
    logs = []
    for share in (0.1, 0.3, 0.5, 1.0):  # of the probability, too many or too few
        slope = share / ((1 - probability) * inflation)
        logs += [side * slope * off - slope * slope * variance / 2 for side in (1, -1)]
    top = max(logs)
    return top + math.log(sum(math.exp(one - top) for one in logs) / len(logs))


def smallest_error(packets: int, probability: float, inflation: float, log_e: float) -> float | None:
    """The smallest error above ``probability`` that 9 of 10 such runs would have seen; None where there is none."""
    if not 0 < probability < 1:
        return 0.0
    low, high = 0.0, 1 - probability
    for _ in range(40):
        error = (low + high) / 2
        given = probability + error
        spread = 1.2816 * math.sqrt(packets * given * (1 - given) * inflation)
        hits = math.floor(packets * given - spread)
        if hits / max(1, packets) > probability and _log_e(hits, packets, probability, inflation) >= log_e:
            high = error
        else:
            low = error
    return high if high < (1 - probability) * 0.999 else None


def _log_e(hits: int, packets: int, probability: float, inflation: float) -> float:
    if inflation > 1:
        return log_e_bursts(hits, packets, probability, inflation)
    return log_e_binomial(hits, packets, probability)
