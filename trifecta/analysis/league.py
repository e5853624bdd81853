"""League tables: programs ranked by the study's metric, one table a protocol and place.

Programs are measured in different cells, so unlike protocols they are not compared within blocks. A program's value is
the geometric mean over blocks with a t interval; two programs are compared by Welch's t-test of the logs, and
the tests of a table are one family (Holm 1979). A program's rank is a range: from one more than the number of
programs that are shown to be better, to the number of those that are not shown to be worse. Ranges that overlap are
ties. All blocks under one start of a server share what that start drew by chance, some 1 % of a time: it is in the
standard errors, over as many starts as there were. Where a block has no finite value, the value is the median and the
test that of Mann and Whitney (1947).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.contrasts import holm, p_value
from trifecta.analysis.estimate import Row, by_cell
from trifecta.analysis.means import block_logs, geometric_mean
from trifecta.analysis.programs import Program, place_of, program_of, programs_are_arms, proxies
from trifecta.analysis.sessions import between_starts, starts_of
from trifecta.analysis.student import t_quantile
from trifecta.design import plan
from trifecta.design.metrics import METRICS
from trifecta.design.model import AA_SUFFIX, Study

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Standing:
    """A program in the league of a protocol in one place.

    ``value``, ``low`` and ``high`` are in the metric's unit; ``low`` and ``high`` are None with fewer than two blocks
    or with ``censored`` ones, ``value`` is None when it is not finite. ``best`` and ``worst`` bound the rank.
    ``starts`` are those of the server that its blocks met.
    """

    place: str
    arm: str
    server: str
    client: str
    proxy: bool
    best: int
    worst: int
    value: float | None
    low: float | None
    high: float | None
    blocks: int
    censored: int
    starts: int

    @property
    def program(self) -> Program:
        """Server and client."""
        return Program(self.server, self.client)


def league(study: Study, rows: Sequence[Row], metric: str | None = None) -> list[Standing]:
    """All tables, each from the best program to the worst; empty when there is one program only, and where programs
    are what is compared: their verdicts are the table then.

    A program without a usable trial of a protocol has no standing there.
    """
    chosen = METRICS[metric or study.metric]
    cells = by_cell(rows)
    programs = {cell: program_of(here[0]) for cell, here in cells.items()}
    if programs_are_arms(study) or len(set(programs.values())) < 2:
        return []
    adding_hops = proxies(rows)
    places: dict[str, list[str]] = {}
    for cell in cells:
        places.setdefault(place_of(cell), []).append(cell)
    deviation = between_starts(chosen)
    standings = []
    for place, here in places.items():
        for arm in plan.levels_of(study):
            logs = {programs[cell]: block_logs(cells[cell], chosen, str(arm)) for cell in here}
            known = {program: values for program, values in logs.items() if len(values)}
            starts = {
                programs[cell]: starts_of([row for row in cells[cell] if str(row["arm"]) in (arm, arm + AA_SUFFIX)])
                for cell in here
            }
            shared = [deviation**2 / starts[program] for program in known]
            ranks = rank(list(known.values()), 1 - study.confidence, chosen.lower_is_better, shared)
            table = [
                _standing(
                    program,
                    values,
                    study.confidence,
                    starts=starts[program],
                    deviation=deviation,
                    place=place,
                    arm=str(arm),
                    ranks=between,
                    proxy=program.server in adding_hops,
                )
                for (program, values), between in zip(known.items(), ranks, strict=True)
            ]
            sign = 1 if chosen.lower_is_better else -1
            worst_value = math.inf * sign
            table.sort(key=lambda one: (sign * (worst_value if one.value is None else one.value), one.program))
            standings += sorted(table, key=lambda one: (one.best, one.worst))
    return standings


def rank(
    programs: Sequence[Floats], alpha: float, lower_is_better: bool, shared: Sequence[float] | None = None
) -> list[tuple[int, int]]:
    """(Best, worst) rank of each of the programs, given the log values of their blocks.

    ``shared`` is the variance of what all blocks of a program share; None where they share nothing.
    """
    count = len(programs)
    pairs = list(combinations(range(count), 2))
    extra = shared if shared is not None else [0.0] * count
    p_values = holm([p_value(programs[one], programs[two], extra[one] + extra[two]) for one, two in pairs])
    better = [0] * count
    worse = [0] * count
    for (first, second), p in zip(pairs, p_values, strict=True):
        if p is None or p > alpha:
            continue
        ahead = _middle(programs[first]) < _middle(programs[second])
        winner, loser = (first, second) if ahead == lower_is_better else (second, first)
        better[loser] += 1
        worse[winner] += 1
    return [(1 + better[i], count - worse[i]) for i in range(count)]


def _middle(values: Floats) -> float:
    return float(values.mean()) if np.isfinite(values).all() else float(np.median(values))


def _standing(
    program: Program,
    values: Floats,
    confidence: float,
    *,
    starts: int,
    deviation: float,
    place: str,
    arm: str,
    ranks: tuple[int, int],
    proxy: bool,
) -> Standing:
    mean = geometric_mean(values, confidence)
    guard = t_quantile((1 + confidence) / 2, math.inf) * deviation / math.sqrt(starts)
    return Standing(
        place=place,
        arm=arm,
        server=program.server,
        client=program.client,
        proxy=proxy,
        best=ranks[0],
        worst=ranks[1],
        value=mean.value,
        low=_wider(mean.low, mean.value, guard),
        high=_wider(mean.high, mean.value, guard),
        blocks=mean.blocks,
        censored=mean.censored,
        starts=starts,
    )


def _wider(end: float | None, value: float | None, guard: float) -> float | None:
    """An end of an interval with what starts differ by: the squares of both reaches, as logs, add up."""
    if end is None or value is None:
        return end
    reach = math.log(end / value)
    return value * math.exp(math.copysign(math.hypot(reach, guard), reach))
