"""Round trips that a request needs at least, and how much of a measured difference they explain.

TCP 1 (RFC 9293, 3.5), TLS 1.3 1 (RFC 8446, 2), none with early data, TLS 1.2 2 (RFC 5246, 7.3) or 1 resumed; QUIC 1
for transport and TLS together (RFC 9000, 7), none with 0-RTT; and 1 for the request itself. On an open connection
there is only that one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trifecta.analysis.estimate import Row, by_cell, pair_blocks
from trifecta.analysis.means import block_logs, geometric_mean
from trifecta.design import plan
from trifecta.design.metrics import METRICS
from trifecta.design.model import Study, Treatment


def setup_round_trips(*, quic: bool, tls_version: str = "1.3", resumed: bool = False, early: bool = False) -> int:
    """Those of a new connection, before the request's own."""
    if quic:
        return 0 if early else 1
    if tls_version == "1.3":
        return 1 + (0 if early else 1)
    return 1 + (1 if resumed else 2)


def request_round_trips(study: Study, at: Treatment) -> int:
    """Those of a request of a treatment, its connection's included."""
    if at.connection != "new":
        return 1
    own = plan.workload_for(study, at).for_protocol(at.protocol)
    setup = setup_round_trips(
        quic=at.protocol == "h3", tls_version=own.tls_version, resumed=own.resumption, early=own.zero_rtt
    )
    return 1 + setup


@dataclass(frozen=True)
class Explained:
    """One cell: what its round trips alone would make of the ratio of an arm to the baseline, and what was measured.

    ``trips`` and ``measured_ns`` are those of the arm, then of the baseline. ``share`` is log(expected) / log(ratio): 1
    where round trips explain all of it; None where nothing differs.
    """

    cell: str
    levels: Mapping[str, str]
    rtt_ns: int
    arm: str
    reference: str
    trips: tuple[int, int]
    measured_ns: tuple[float | None, float | None]
    expected: float
    ratio: float | None
    low: float | None
    high: float | None
    share: float | None


def explained(study: Study, rows: Sequence[Row]) -> list[Explained]:
    """Every cell over a path with a delay, every arm against the baseline, for the study's metric.

    Where paths are compared a round trip is not the same in both arms: their number explains nothing then.
    """
    metric, baseline = METRICS[study.metric], study.baseline.level
    grouped = by_cell(rows)
    explanations: list[Explained] = []
    if study.compare == "path":
        return explanations
    for cell in plan.cells(study):
        path = study.paths[str(cell.levels["path"])]
        here = grouped.get(cell.key, [])
        if not path.rtt_ns or not here:
            continue
        for arm in plan.other_levels(study):
            logs = pair_blocks(cell.key, here, metric, arm=arm, reference=baseline, baseline=baseline).log_ratios()
            mean = geometric_mean(logs, study.confidence)
            values = tuple(geometric_mean(block_logs(here, metric, name), study.confidence) for name in (arm, baseline))
            counted = tuple(request_round_trips(study, plan.treatment(study, cell, name)) for name in (arm, baseline))
            expected = counted[0] / counted[1]
            share = None
            if mean.value and expected != 1 and mean.value != 1:
                share = math.log(expected) / math.log(mean.value)
            explanations.append(
                Explained(
                    cell=cell.key,
                    levels={name: plan.level_text(level) for name, level in cell.levels.items()},
                    rtt_ns=path.rtt_ns,
                    arm=arm,
                    reference=baseline,
                    trips=(counted[0], counted[1]),
                    measured_ns=(values[0].value, values[1].value),
                    expected=expected,
                    ratio=mean.value,
                    low=mean.low,
                    high=mean.high,
                    share=share,
                )
            )
    return explanations
