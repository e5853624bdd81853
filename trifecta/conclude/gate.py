"""What a gate found, as one document."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from trifecta.analysis.gate import FAILS, OPEN, PASSES, Judged, Outcome, judge_gate
from trifecta.contract.gate import SCHEMA, GateDocument, OutcomeDocument
from trifecta.contract.run import InstalledProgram, RunDocument
from trifecta.contract.trial import TrialRow
from trifecta.design.gate import GatePlan
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
    judged = judge_gate(gate, rows, cells)
    ended = str(facts.get("ended_because") or "")
    study = gate.study
    return {
        "schema": SCHEMA,
        "state": judged.state,
        "interrupted": interrupted,
        "said": _sentence(gate, judged, ended),
        "ended_because": ended,
        "study": study.name,
        "title": study.title,
        "factor": study.compare,
        "baseline": gate.name(gate.baseline),
        "candidate": gate.name(gate.candidate),
        "confidence": study.confidence,
        "tests": [_test(gate, one) for one in judged.tests],
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
            "asked_sha256": gate.asked_sha256,
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
    counts = Counter(
        str(check["check"])
        for row in rows
        for check in json.loads(row.get("checks_json") or "[]")
        if check["status"] == "fail"
    )
    return dict(counts.most_common())


def _sentence(gate: GatePlan, judged: Judged, ended: str) -> str:
    """The verdict in a sentence."""
    tests = len(judged.tests)
    pair = f"{gate.name(gate.candidate)} against {gate.name(gate.baseline)}"
    conditions = ", ".join(one.text for one in gate.conditions)
    if judged.state == PASSES:
        return f"{pair}: {conditions} passes in {_all(tests)}"
    if judged.state == FAILS:
        where = "; ".join(
            f"{one.condition.text} in {gate.place(one.cell)}" for one in judged.tests if one.state == FAILS
        )
        return f"{pair}: worse than allowed by {where}"
    return (
        f"{pair}: {ended}" if " open" in ended else f"{pair}: {judged.count(OPEN)} of {tests} tests are open; {ended}"
    )


def _all(tests: int) -> str:
    return "its test" if tests == 1 else f"all {tests} tests"


def _test(gate: GatePlan, outcome: Outcome) -> OutcomeDocument:
    metric = outcome.condition.metric
    return {
        "cell": outcome.cell.key,
        "place": gate.place(outcome.cell),
        "condition": outcome.condition.text,
        "metric": metric.name,
        "label": metric.label,
        "unit": metric.unit,
        "limit": outcome.condition.limit,
        "state": outcome.state,
        "reason": outcome.reason,
        "baseline": outcome.baseline,
        "candidate": outcome.candidate,
        "ratio": outcome.ratio,
        "low": outcome.low,
        "high": outcome.high,
        "blocks": outcome.blocks,
        "blocks_needed": outcome.needed,
        "candidate_values": [value if math.isfinite(value) else None for value in outcome.values],
    }


def _versions(programs: Mapping[str, InstalledProgram]) -> dict[str, str]:
    return {name: str(one.get("version", "")) for name, one in programs.items()}
