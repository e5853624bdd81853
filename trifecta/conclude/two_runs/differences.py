"""What is not the same of two runs besides their numbers: study, seed, programs, machine, paths as measured, checks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from trifecta.conclude.reproduction.programs import programs_of
from trifecta.conclude.two_runs import side as sides
from trifecta.conclude.two_runs.side import NONE, Side
from trifecta.contract.trial import TrialRow
from trifecta.design import numbers, plan, quantity
from trifecta.design.builds import as_data

Of = Literal["study", "workload", "path", "program", "version", "machine", "settings", "session", "measured", "checks"]


@dataclass(frozen=True)
class Difference:
    """Something that two runs do not have alike, in words; ``of`` is what it belongs to."""

    of: Of
    name: str
    first: str
    second: str


def differences(first: Side, second: Side) -> list[Difference]:
    """All that is not the same, in the order of `Of`; what one does not say is ``none`` there."""
    here, there = _declared(first), _declared(second)
    programs, others = _programs_in_full(first), _programs_in_full(second)
    shared = [one for one in programs if one in others]  # that the other lacks one is told by its name
    here, there = here | {one: programs[one] for one in shared}, there | {one: others[one] for one in shared}
    names = dict.fromkeys([*here, *there])
    found_differences = [Difference(*name, here.get(name, NONE), there.get(name, NONE)) for name in names]
    order = list(dict.fromkeys(of for of, _ in names))
    return sorted((one for one in found_differences if one.first != one.second), key=lambda one: order.index(one.of))


def _declared(side: Side) -> dict[tuple[Of, str], str]:
    facts = side.facts
    parity, pins, network = (
        _mapping(mapping) for mapping in (facts.get("parity"), facts.get("pins"), facts.get("network"))
    )
    parts: list[tuple[Of, Mapping[str, Any]]] = [
        ("study", _study(side)),
        ("workload", sides.workload(side.study)),
        ("path", {name: sides.path(spec) for name, spec in side.study.paths.items()}),
        ("version", {"trifecta": facts.get("trifecta"), "python": facts.get("python"), **_programs(side)}),
        ("machine", _mapping(facts.get("machine"))),
        ("settings", {**parity, **pins, **_mapping(network.get("settings"))}),
        ("session", _session(side)),
        ("measured", _probed_paths(side.trials)),
        ("checks", _checks(side.trials)),
    ]
    return {(of, str(name)): _text(value) for of, mapping in parts for name, value in mapping.items()}


def _mapping(value: object) -> Mapping[str, Any]:
    """What a run says of itself is taken as it is, or for nothing."""
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    if value is None:
        return NONE
    return json.dumps(value, sort_keys=True) if isinstance(value, list | dict) else plan.level_text(value)


def _study(side: Side) -> dict[str, str]:
    study = side.study
    budget = NONE if study.budget_ns is None else quantity.format_time(study.budget_ns)
    return {
        "name": study.name,
        "title": study.title,
        "baseline": study.baseline.level,
        "metric": study.metric,
        "margin": numbers.percent(study.margin),
        "confidence": numbers.percent(study.confidence),
        "blocks": " to ".join(map(str, dict.fromkeys((study.min_blocks, study.max_blocks)))),
        "budget": budget,
        "seed": str(study.seed),
        "capture": plan.level_text(study.capture),
        "conformance": study.conformance,
        **{name: ", ".join(map(plan.level_text, levels)) for name, levels in study.factors.items()},
    }


def _programs(side: Side) -> dict[str, str]:
    """Servers, clients, browsers, the engine with its libraries, and digests of the code."""
    return programs_of(side.folder, ["."])


def _programs_in_full(side: Side) -> dict[tuple[Of, str], str]:
    """What a version number does not tell of servers: how the study defines its own, and which program was run."""
    programs: dict[tuple[Of, str], str] = {
        ("study", f"server {level}"): _text(as_data(one)) for level, one in side.study.servers.items()
    }
    for level, program in (side.facts.get("servers") or {}).items():
        if digest := program.get("sha256"):
            programs["version", f"program of {level}"] = f"sha256 {str(digest)[:12]}"
    return programs


def _session(side: Side) -> dict[str, object]:
    facts = side.facts
    extended = [str(one.get("asked", "")) for one in facts.get("extended") or ()]
    return {
        "state": facts.get("state"),
        "extended": "; ".join(extended) or NONE,
        "faults": facts.get("faults") or NONE,
        "removed trials": len(facts.get("removed") or ()),
        "left out": ", ".join(_left_out(side)) or NONE,
    }


def _left_out(side: Side) -> Iterable[str]:
    """Levels that this machine could not do."""
    facts = side.facts
    for items in (facts.get("unsupported"), facts.get("not_found"), facts.get("failed")):
        yield from (f"{item['factor']} {item['level']}" for item in items or ())


def _probed_paths(trials: Sequence[TrialRow]) -> dict[str, str]:
    """By path and wire what the probes found: the median round trip, and the share lost each way."""
    probes_by_path: dict[str, list[Mapping[str, Any]]] = {}
    for path, text in dict.fromkeys((str(row.get("path") or ""), row.get("probe_json") or "null") for row in trials):
        probe = json.loads(text)
        links = probe.get("links") if isinstance(probe, dict) else None
        for wire, one in (links if isinstance(links, dict) else {"": probe}).items():
            if isinstance(one, dict) and isinstance(one.get("rtt_ns"), dict):
                probes_by_path.setdefault(f"{path}{wire and f' ({wire})'}", []).append(one)
    return {name: _probe(probes) for name, probes in probes_by_path.items()}


def _probe(probes: Sequence[Mapping[str, Any]]) -> str:
    round_trips = [one["rtt_ns"]["p50"] for one in probes if one["rtt_ns"].get("p50") is not None]
    parts = [f"round trip {numbers.duration(median(round_trips))}"] if round_trips else []
    for way, name in (("there", "loss_forward"), ("back", "loss_backward")):
        lost = [one[name] for one in probes if one.get(name) is not None]
        parts += [f"{numbers.percent(sum(lost) / len(lost))} lost {way}"] if lost else []
    return ", ".join(parts) or NONE


def _checks(trials: Sequence[TrialRow]) -> dict[str, str]:
    """How many trials are left out, and of each check in how many it failed or warned; those that never did are not
    told.
    """
    spoke: dict[str, dict[str, int]] = {}
    for row in trials:
        statuses = {(one.get("check"), one.get("status")) for one in json.loads(row.get("checks_json") or "[]")}
        for check, status in statuses:
            if status in ("fail", "warn"):
                counts = spoke.setdefault(str(check), {"fail": 0, "warn": 0})
                counts[status] += 1
    out = sum(not row.get("valid") for row in trials)
    check_counts = {"trials left out": f"{out} of {len(trials)}"}
    for check, counts in sorted(spoke.items()):
        words = [f"{word} in {counts[of]}" for word, of in (("failed", "fail"), ("warned", "warn")) if counts[of]]
        check_counts[check.replace("_", " ")] = f"{' and '.join(words)} of {len(trials)} trials"
    return check_counts
