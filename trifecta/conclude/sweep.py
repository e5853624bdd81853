"""A sweep of request rates: from which rate on a program sets the pace (analysis/knee.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from trifecta.analysis.knee import RATE, Knee, knees
from trifecta.conclude import queries
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import Views
from trifecta.contract.trial import TrialRow
from trifecta.design.study_file import parse_study
from trifecta.store.run import RunDirectory

CHECK = "headroom"
EVERYWHERE = "all cells"
_COLUMNS = (
    "cell", "arm", "block", "valid", "error", "checks_json", "load_json", "server_json", "factors_json",
    "latency_p50_ns", "requests_per_s", "success_rate", "samples", "errors",
)  # fmt: skip


@dataclass(frozen=True)
class Sweep:
    """Each program's sweep, and the rows of the view ``rate_sweep``."""

    knees: list[Knee]
    rows: Views


def derive(connection: duckdb.DuckDBPyConnection, about: RunFacts) -> Sweep | None:
    """Work it out from the trials; None for a study without several rates."""
    if len((about.study.get("factors") or {}).get(RATE) or ()) < 2:
        return None
    study = parse_study(RunDirectory.open(about.folder).study_text, "study.yaml")
    sql = f"SELECT {', '.join(_COLUMNS)} FROM trials ORDER BY block, trial"  # noqa: S608 - known columns
    found_knees = knees(study, queries.select(connection, TrialRow, sql), CHECK)
    return Sweep(found_knees, {"rate_sweep": _rows(found_knees)})


def _rows(knees: Sequence[Knee]) -> list[dict[str, object]]:
    return [
        {
            "place": one.place or EVERYWHERE, "arm": one.arm, "rate_per_s": step.rate_per_s,
            "latency_ns": step.latency_ns, "latency_ns_low": step.latency_low_ns,
            "latency_ns_high": step.latency_high_ns, "against": one.against, "against_ns": step.against_ns,
            "ratio": step.ratio, "ratio_low": step.low, "ratio_high": step.high, "done_per_s": step.done_per_s,
            "used": step.used, "loud": step.loud, "trials": step.trials, "state": step.state, "knee_low": one.low,
            "knee_high": one.high, "most_per_s": one.most_per_s, "most_per_s_low": one.most_low,
            "most_per_s_high": one.most_high,
        }
        for one in knees for step in one.steps
    ]  # fmt: skip
