"""What a gate found, as one document."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from trifecta.analysis.gate import FAILS, OPEN, PASSES, Judged, Outcome, judge_gate
from trifecta.contract.gate import SCHEMA, GateDocument, OutcomeDocument
from trifecta.contract.run import ProgramFound, RunDocument
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
