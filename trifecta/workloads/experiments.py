"""The experiments of threats: run them, and say from their trials what a threat does here.

`studies_of` is asked before the sandbox is entered, so what starts threads (numpy, Arrow) is imported after that.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from trifecta import studies
from trifecta.contract.threats import (
    DecompositionDocument,
    DetectedBy,
    EffectDocument,
    EffectRow,
    KneeDocument,
    MeanDocument,
    RoundTripsDocument,
    ThreatDocument,
    TrialsLeftOut,
)
from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.design.metrics import OF_SERVICES
from trifecta.design.model import Study
from trifecta.design.study_file import parse_study
from trifecta.threats import Effect, Threat

if TYPE_CHECKING:
    from trifecta.analysis.estimate import Row
    from trifecta.analysis.means import Mean
    from trifecta.analysis.switched import Detected, FactorContrast, Switched

RunOne = Callable[[Study, Path, bool], Any]
RESULT_FILE = "threats.json"


def study_of(threat: Threat, *, quick: bool, overrides: Sequence[str] = (), name: str | None = None) -> Study:
    """The experiment of a threat (of several the first, or that of this name), quick or whole."""
    chosen = name or next(iter(threat.experiments), None)
    if chosen is None:
        raise ValueError(f"{threat.id} has no experiment")
    return studies.experiment(chosen, [*(threat.quickly(chosen) if quick else ()), *overrides])


def studies_of(
    threat: Threat, *, quick: bool, overrides: Sequence[str] = (), without: Sequence[str] = ()
) -> list[Study]:
    """All of its experiments but for ``without``."""
    names = [name for name in threat.experiments if name not in without]
    return [study_of(threat, quick=quick, overrides=overrides, name=name) for name in names]


def run_experiment(
    threat: Threat,
    folder: Path,
    run_one: RunOne,
    *,
    quick: bool,
    overrides: Sequence[str] = (),
    without: Sequence[str] = (),
    stop: Callable[[], bool] = lambda: False,
) -> ThreatDocument:
    """Run the experiments but for ``without`` into ``folder / NAME``, or go on with them, and say what they show.

    Once ``stop`` says so none of them is begun.

    ``run_one`` gets the study, its folder, and whether it is resumed, as those of a campaign do. A machine that cannot
    run one is the result then, with the reason; it ends nothing else.
    """
    if not threat.experiments:
        return not_measured(threat, threat.elsewhere)
    from trifecta.store.run import clear_unmade
    from trifecta.workloads.campaign import study_state

    problems: dict[str, str] = {}
    for name in threat.experiments:
        if stop():
            break
        state = study_state(folder, name)
        if name in without or state == "over":
            continue
        try:
            clear_unmade(folder / name)
            study = study_of(threat, quick=quick, overrides=overrides, name=name)
            run_one(study, folder / name, state == "begun")
        except CannotError as error:
            problems[name] = f"{name}: {error}" if len(threat.experiments) > 1 else str(error)
    if not any((folder / name / "run.json").is_file() for name in threat.experiments):
        left_out = [name for name in threat.experiments if name in without]
        more = _measured_by(threat, left_out) if left_out else ""
        return not_measured(threat, "; ".join(filter(None, (*problems.values(), more))))
    document = threat_document(threat, folder, problems)
    document["reason"] = "; ".join(filter(None, (*problems.values(), document["reason"])))
    return document


def _measured_by(threat: Threat, names: Sequence[str]) -> str:
    """What measures experiments that were not run."""
    command = f"`trifecta threats measure {threat.id}` measures {'it' if len(names) == 1 else 'them'}"
    return command if len(threat.experiments) == 1 else f"{', '.join(names)}: {command}"


def not_measured(threat: Threat, reason: str) -> ThreatDocument:
    """A threat whose experiment could not run, or that has none."""
    return {**_head(threat), "outcome": "not measured", "reason": reason, "runs": [], "effects": [], "model": []}


def threat_document(threat: Threat, folder: Path, problems: Container[str] = ()) -> ThreatDocument:
    """What the runs of its experiments say of a threat, as plain data (docs/threats.md).

    Of an experiment in ``problems`` is said elsewhere why it has no run.
    """
    runs = {name: _Run(folder / name) for name in threat.experiments if (folder / name / "run.json").is_file()}
    if threat.procedure:
        effects = [document for run in runs.values() for document in _carried_out(run)]
    else:
        effects = _effects(threat, runs)
    outcome = _outcome(effects)
    left_out = [reason for run in runs.values() for reason in run.left_out]
    missing = [name for name in threat.experiments if name not in runs and name not in problems]
    if missing and runs:
        left_out.append(_measured_by(threat, missing))
    reason = "; ".join(dict.fromkeys(left_out))
    if outcome == "not measured" and not reason:
        reason = "no trial at one of the two levels counts; look at its checks"
        if threat.procedure:
            reason = "no request of a valid trial failed, so there is nothing to retry"
    model = [item for run in runs.values() for item in _model(threat, run)]
    run_paths = [str(run.path) for run in runs.values()]
    document: ThreatDocument = {
        "outcome": outcome,
        "reason": reason,
        "runs": run_paths,
        "effects": effects,
        "model": model,
    }
    return {**_head(threat), **cast(ThreatDocument, _finite(document))}


def _finite(value: Any) -> Any:
    """The same for JSON, which has no infinity: a bound that is none is null."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _Run:
    """A run of an experiment: its study, its trials, what was left out."""

    def __init__(self, path: Path) -> None:
        from trifecta.store.run import RunDirectory

        run = RunDirectory.open(path)
        self.path = path
        self.study = parse_study(run.study_text, str(path / "study.yaml"))
        self.rows = _with_totals(path, run.rows()) if self.study.workload.family == "services" else run.rows()
        self.checks = run.checks()
        facts = run.facts
        self.left_out = [str(item["reason"]) for item in (*facts.get("unsupported", ()), *facts.get("failed", ()))]


def _with_totals(path: Path, rows: Sequence[Row]) -> list[Row]:
    """The trials with what all their services took together (`design.metrics.OF_SERVICES`)."""
    from trifecta.conclude import facts
    from trifecta.conclude.services import measured as services
    from trifecta.store import views

    with views.connect(path) as connection:
        trials_of_cells = services.read(connection, facts.read(path)).trials.values()
    totals = {row["trial"]: row for trials in trials_of_cells for row in trials}
    extended = ({name: dict(totals.get(row["trial"], {})).get(name) for name in OF_SERVICES} for row in rows)
    return [cast("Row", {**row, **one}) for row, one in zip(rows, extended, strict=True)]


def _head(threat: Threat) -> ThreatDocument:
    return {
        "threat": threat.id,
        "title": threat.title,
        "fact": threat.fact,
        "studies": list(threat.studies),
        "check": threat.check,
        "undetected": threat.undetected,
    }


def _carried_out(run: _Run) -> list[EffectDocument]:
    """What a procedure makes of the requests of a run."""
    from trifecta.store import views
    from trifecta.workloads import retry_experiment

    with views.connect(run.path) as connection:
        return retry_experiment.effects(connection, run.study)


@dataclass(frozen=True)
class _Asked:
    """An effect, the run that shows it, what is compared there, and its trials with those that count."""

    effect: Effect
    run: _Run
    contrast: FactorContrast
    rows: Sequence[Row]


def _effects(threat: Threat, runs: Mapping[str, _Run]) -> list[EffectDocument]:
    """What its experiments show; one family, because a threat has an effect where any row of theirs differs."""
    from trifecta.analysis.switched import one_family, switched

    named = [(effect, runs.get(effect.experiment or threat.experiment or "")) for effect in threat.effects]
    asked = [_asked(threat, effect, run) for effect, run in named if run is not None]
    family = one_family([switched(one.rows, one.contrast) for one in asked])
    return [_effect(threat, one, found) for one, found in zip(asked, family, strict=True)]


def _asked(threat: Threat, effect: Effect, run: _Run) -> _Asked:
    from trifecta.analysis.switched import FactorContrast, countable

    study = run.study
    arms = tuple(plan.levels_of(study))
    baseline = study.baseline.level
    contrast = FactorContrast(
        effect.factor, effect.off, effect.on, effect.metric, arms, baseline, study.confidence, effect.where
    )
    return _Asked(effect, run, contrast, countable(run.rows, threat.check, effect.metric))


def _effect(threat: Threat, asked: _Asked, found: Sequence[Switched]) -> EffectDocument:
    from trifecta.analysis.switched import left_out
    from trifecta.design.metrics import metric_named

    effect, contrast, study = asked.effect, asked.contrast, asked.run.study
    metric = metric_named(effect.metric)
    detected = None if not threat.check else dataclasses.asdict(_detected(contrast, threat, asked.run))
    return {
        "title": effect.title,
        "factor": effect.factor,
        "off": effect.off,
        "on": effect.on,
        "metric": effect.metric,
        "metric_label": metric.label,
        "unit": metric.unit,
        "lower_is_better": metric.lower_is_better,
        "baseline": contrast.baseline,
        "margin": study.margin,
        "confidence": study.confidence,
        "detected": cast("DetectedBy | None", detected),
        "left_out": cast(TrialsLeftOut, dataclasses.asdict(left_out(asked.rows, contrast))),
        "rows": [_row(one, study) for one in found],
    }


def _detected(contrast: FactorContrast, threat: Threat, run: _Run) -> Detected:
    from trifecta.analysis.checks import RUN_CHECKS
    from trifecta.analysis.switched import detected

    check = threat.check or ""
    if check not in RUN_CHECKS:
        return detected(run.rows, contrast, check, threat.evidence_words)
    # A check of cells: every trial of a cell stands for what was said of it.
    loud = {one.scope for one in run.checks if one.check == check and one.status in ("fail", "warn")}
    checks_json = json.dumps([{"check": check, "status": "warn"}])
    return detected(
        [{**row, "checks_json": checks_json if row["cell"] in loud else "[]"} for row in run.rows], contrast, check
    )


def _row(one: Switched, study: Study) -> EffectRow:
    contrast = one.contrast
    return {
        "place": one.place,
        "levels": dict(one.levels),
        "arm": one.arm,
        "reference": one.reference,
        "off": _mean(one.off),
        "on": _mean(one.on),
        "ratio": contrast.ratio,
        "low": contrast.low,
        "high": contrast.high,
        "p_holm": contrast.p_holm,
        "outcome": contrast.outcome(study.margin, 1 - study.confidence),
        "blocks": min(contrast.blocks, contrast.against_blocks),
    }


def _mean(mean: Mean | None) -> MeanDocument | None:
    return None if mean is None else {"value": mean.value, "low": mean.low, "high": mean.high, "blocks": mean.blocks}


def _outcome(effects: Sequence[EffectDocument]) -> str:
    """``effect`` when anything it compares differs, ``no effect`` when all of it is the same, else ``not decided``."""
    rows = [row for effect in effects for row in effect["rows"] if row["blocks"]]
    if not rows:
        return "not measured"
    outcomes = {row["outcome"] for row in rows}
    if outcomes & {"more", "less"}:
        return "effect"
    return "no effect" if outcomes == {"same"} else "not decided"


def _model(threat: Threat, run: _Run) -> list[RoundTripsDocument | KneeDocument | DecompositionDocument]:
    """What a model makes of the same trials: round trips alone, the parts of the effect, the rate a program reaches."""
    from trifecta.analysis.decomposition import decompose
    from trifecta.analysis.knee import knees
    from trifecta.analysis.round_trips import explained

    if threat.model == "round-trips":
        return [cast(RoundTripsDocument, dataclasses.asdict(one)) for one in explained(run.study, run.rows)]
    if threat.model == "knee":
        return [cast(KneeDocument, dataclasses.asdict(one)) for one in knees(run.study, run.rows, threat.check or "")]
    if threat.model == "decomposition":
        return [cast(DecompositionDocument, dataclasses.asdict(one)) for one in decompose(run.study, run.rows)]
    return []


def write(folder: Path, threats: Sequence[ThreatDocument]) -> Path:
    """Leave what was measured in ``threats.json`` of the folder."""
    from trifecta.store import files, results_manifest

    path = folder / RESULT_FILE
    with files.disk_errors(folder):
        files.write_text(path, files.to_json(list(threats)) + "\n")
        results_manifest.note(folder, [RESULT_FILE])
    return path
