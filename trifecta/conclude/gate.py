"""What a gate found, as one document; and how it stands to the last good state."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.gate import FAILS, OPEN, PASSES, Judged, Outcome, judge_gate
from trifecta.analysis.intervals import linear
from trifecta.analysis.judging import CONFIRMED, judge
from trifecta.analysis.sessions import between_starts
from trifecta.analysis.statements import Says
from trifecta.contract.gate import SCHEMA, GateDocument, MadeBy, OutcomeDocument
from trifecta.contract.run import ProgramFound, RunDocument
from trifecta.contract.trial import TrialRow
from trifecta.design import numbers
from trifecta.design.gate import GatePlan
from trifecta.design.metric import Metric
from trifecta.design.model import Cell


def document(
    gate: GatePlan,
    rows: Sequence[TrialRow],
    cells: Sequence[Cell],
    facts: RunDocument,
    *,
    run: Path,
    interrupted: bool = False,
) -> GateDocument:
    """Judge the trials of a gate's run. ``cells`` are those that it began with, ``facts`` its ``run.json``."""
    found = judge_gate(gate, rows, cells)
    ended = str(facts.get("ended_because") or "")
    study = gate.study
    return {
        "schema": SCHEMA,
        "state": found.state,
        "interrupted": interrupted,
        "said": _said(gate, found, ended),
        "ended_because": ended,
        "study": study.name,
        "title": study.title,
        "factor": study.compare,
        "baseline": gate.name(gate.baseline),
        "candidate": gate.name(gate.candidate),
        "confidence": study.confidence,
        "tests": [_test(gate, one) for one in found.tests],
        "left_out": [*facts.get("unsupported", []), *facts.get("failed", [])],
        "warnings": [],
        "notes": [],
        "trials": len(rows),
        "excluded_trials": sum(not row.get("valid") for row in rows),
        "failed_checks": _failed_checks(rows),
        "elapsed_ns": int(facts.get("elapsed_ns", 0)),
        "budget_ns": study.budget_ns,
        "started_utc": str(facts.get("started_utc", "")),
        "seed": study.seed,
        "run": str(run),
        "made_by": {
            "asked_sha256": _asked_sha256(gate, cells),
            "machine": facts["machine"],
            "trifecta": facts["trifecta"],
            "engine": facts["engine"],
            "clients": _versions(facts.get("clients", {})),
        },
        "servers": _versions(facts.get("servers", {})),
        "code": facts.get("code", {}),
    }


def _failed_checks(rows: Sequence[TrialRow]) -> dict[str, int]:
    """How many trials each check speaks against, the most first."""
    found = Counter(
        str(check["check"])
        for row in rows
        for check in json.loads(row.get("checks_json") or "[]")
        if check["status"] == "fail"
    )
    return dict(found.most_common())


def _said(gate: GatePlan, found: Judged, ended: str) -> str:
    """The verdict in a sentence."""
    tests = len(found.tests)
    pair = f"{gate.name(gate.candidate)} against {gate.name(gate.baseline)}"
    asked = ", ".join(one.text for one in gate.conditions)
    if found.state == PASSES:
        return f"{pair}: {asked} passes in {_all(tests)}"
    if found.state == FAILS:
        where = "; ".join(
            f"{one.condition.text} in {gate.place(one.cell)}" for one in found.tests if one.state == FAILS
        )
        return f"{pair}: worse than allowed by {where}"
    return f"{pair}: {ended}" if " open" in ended else f"{pair}: {found.count(OPEN)} of {tests} tests are open; {ended}"


def _all(tests: int) -> str:
    return "its test" if tests == 1 else f"all {tests} tests"


def _test(gate: GatePlan, one: Outcome) -> OutcomeDocument:
    metric = one.condition.metric
    return {
        "cell": one.cell.key,
        "place": gate.place(one.cell),
        "condition": one.condition.text,
        "metric": metric.name,
        "label": metric.label,
        "unit": metric.unit,
        "limit": one.condition.limit,
        "state": one.state,
        "reason": one.reason,
        "baseline": one.baseline,
        "candidate": one.candidate,
        "ratio": one.ratio,
        "low": one.low,
        "high": one.high,
        "blocks": one.blocks,
        "blocks_needed": one.needed,
        "candidate_values": [value if math.isfinite(value) else None for value in one.values],
    }


def _versions(programs: Mapping[str, ProgramFound]) -> dict[str, str]:
    return {name: str(one.get("version", "")) for name, one in programs.items()}


def _asked_sha256(gate: GatePlan, cells: Sequence[Cell]) -> str:
    """The identity of what is asked of a candidate: work, paths, cells and metrics; not its name, nor how long."""
    study = gate.study
    paths = {name: asdict(path) for name, path in study.paths.items()}
    told = [asdict(study.workload), paths, [cell.key for cell in cells], [one.metric.name for one in gate.conditions]]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


def against_reference(gate: GatePlan, made: GateDocument, kept: GateDocument) -> GateDocument:
    """The document with warnings where the candidate is worse than the last good one, by more than a limit and than
    sessions differ. Two sessions are no experiment: the verdict stays as it is.
    """
    since = f"the last good state ({kept['candidate']}, {kept['started_utc']})"
    other = _unlike(made["made_by"], kept["made_by"])
    if other:
        return {**made, "notes": [f"not compared with {since}: {', '.join(other)} differ"]}
    metrics = {one.text: one.metric for one in gate.conditions}
    before = {(one["cell"], one["metric"]): one for one in kept["tests"]}
    said = []
    for one in made["tests"]:
        then = before.get((one["cell"], one["metric"]))
        if then is not None and _worse(one, then, metrics[one["condition"]], made["confidence"]):
            now, was = (numbers.in_unit(each["candidate"], each["unit"]) for each in (one, then))
            beyond = f"by more than {one['condition']} and than sessions differ"
            said.append(f"{one['place']}: {one['label']} is {now}, and was {was} in {since}: worse {beyond}")
    return {**made, "warnings": said}


def _unlike(here: MadeBy, then: MadeBy) -> list[str]:
    """What keeps the values of two sessions from being compared, in words."""
    asked = here["asked_sha256"] != then["asked_sha256"]
    programs = [(one["trifecta"], one["engine"], one["clients"]) for one in (here, then)]
    machine = here["machine"] != then["machine"]
    told = ((asked, "what is asked"), (machine, "machines"), (programs[0] != programs[1], "versions of what measures"))
    return [words for differs, words in told if differs]


def _worse(one: OutcomeDocument, then: OutcomeDocument, metric: Metric, confidence: float) -> bool:
    """Whether it is, with the spread of both sessions and what lies between them (`analysis.judging`)."""
    parts = [_logs(one["candidate_values"]), _logs(then["candidate_values"])]
    says = Says(metric.name, ("candidate",), ("reference",), "above" if metric.lower_is_better else "below")
    estimate = linear(list(zip((1.0, -1.0), parts, strict=True)), confidence)
    state, _ = judge(says, estimate, one["limit"], math.sqrt(2) * between_starts(metric))  # each session has its own
    return state == CONFIRMED


def _logs(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Logs of the finite values: no mean holds a censored one."""
    return np.log([value for value in values if value])
