"""One of two runs that are put side by side: what it asked, its trials, and its verdicts by a metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import cast

from trifecta.analysis.estimate import by_cell
from trifecta.analysis.verdict import verdicts
from trifecta.conclude import results
from trifecta.contract.run import RunDocument
from trifecta.contract.trial import TrialRow
from trifecta.design import metrics, path_words, plan, quantity
from trifecta.design.by_protocol import format_octets
from trifecta.design.errors import UserError
from trifecta.design.metric import Metric
from trifecta.design.metrics import METRICS
from trifecta.design.model import PROTOCOL_FACTOR, Cell, PathSpec, Study, Verdict
from trifecta.store.run import RunDirectory

NONE = "none"
_RECORDED = ("keylog", "qlog")
"""Fields of a workload that say what is kept of it, and not what is done."""


@dataclass(frozen=True)
class Side:
    """A run: its folder as it was given, its study, what it says of itself, its trials by cell."""

    folder: Path
    study: Study
    facts: RunDocument
    cells: tuple[Cell, ...]
    trials: tuple[TrialRow, ...]

    @property
    def by_cell(self) -> Mapping[str, list[TrialRow]]:
        """Its trials, those that count for nothing too."""
        return by_cell(self.trials)

    def verdicts(self, metric: Metric) -> Mapping[tuple[str, str, str], Verdict]:
        """The verdicts that its trials give, by cell, arm and reference."""
        decided = verdicts(self.study, self.trials, self.cells, metric.name, fixed=False)
        return {(one.cell, one.arm, one.reference): one for one in decided}


def read(folder: Path) -> Side:
    """Read a run; UserError for a folder that is none, has no trial, or is a map."""
    run = RunDirectory.open(folder)
    study, cells, rows = results.evidence(run)
    facts = run.facts
    if "map" in facts:
        raise UserError(
            f"{folder}: is a map, whose places have a block or two each and are judged together; give runs of "
            f"`trifecta run`, or read it with `trifecta map {folder}`"
        )
    if not rows:
        raise UserError(f"{folder}: has no finished trial to compare; go on with `trifecta resume {folder}`")
    return Side(folder, study, facts, tuple(cells), tuple(rows))


def metric_of(side: Side, name: str | None) -> Metric:
    """The metric of this ``name`` (as in a study or as a column), else the study's.

    UserError for one that nobody knows, or of which the run has no value.
    """
    if name is None:
        return METRICS[side.study.metric]
    metric = metrics.asked_for(name) or METRICS.get(name)
    if metric is None:
        from trifecta.design.document import did_you_mean

        raise UserError(f"option --metric: no metric {name!r}; {did_you_mean(name, list(METRICS))}")
    if not any(has_value(row, metric) for row in side.trials):
        known = [one.name for one in METRICS.values() if any(has_value(row, one) for row in side.trials)]
        raise UserError(f"option --metric: {side.folder} has no value of {metric.name}; choose from {', '.join(known)}")
    return metric


def has_value(row: TrialRow, metric: Metric) -> bool:
    """Whether a trial has a value of the metric."""
    return cast(Mapping[str, object], row).get(metric.name) is not None


def asked_of(study: Study, cell: Cell, arm: str) -> dict[str, str]:
    """What an arm was asked to do in a cell, in words by name: its workload, its path and its programs."""
    at = plan.treatment(study, cell, arm)
    work, protocol = plan.workload_for(study, at), at.levels.get(PROTOCOL_FACTOR)
    if protocol is not None and work.family != "services":  # whose hops may speak others
        work = work.for_protocol(str(protocol))
    request = {_field(one.name): _value(one.name, getattr(work, one.name)) for one in fields(work)}
    request |= {name: str(getattr(at, name)) for name in ("client", "connection")}
    request["server"] = str(at.levels.get("server", NONE))
    spec = study.paths.get(str(at.levels.get("path", "")))
    return {name: text for name, text in request.items() if name not in _RECORDED} | {"path": path(spec)}


def path(spec: PathSpec | None) -> str:
    """What a path was asked to do to packets."""
    if spec is None:
        return NONE
    return path_words.in_words(
        {
            "forward": spec.forward,
            "backward": spec.backward,
            "frames": spec.frames,
            "as_is": spec.as_is,
            "emulator": spec.emulator,
        }
    )


def workload(study: Study) -> dict[str, str]:
    """The fields of a study's workload in words, by name."""
    return {_field(one.name): _value(one.name, getattr(study.workload, one.name)) for one in fields(study.workload)}


def _field(name: str) -> str:
    return name.removesuffix("_ns").removesuffix("_bytes").replace("_", " ")


def _value(name: str, value: object) -> str:
    if value is None:
        return NONE
    if name.endswith("_ns") and isinstance(value, int):
        return quantity.format_time(value)
    if name.endswith("_bytes") and isinstance(value, int | tuple):
        return format_octets(value)
    return plan.level_text(value)
