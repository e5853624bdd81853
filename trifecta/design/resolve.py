"""From a document to a validated study: every field known, every quantity with its unit, every factor possible."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any, Literal, cast

from trifecta.design import metric_availability, plan, quantity
from trifecta.design.any_level import expand_any
from trifecta.design.builds import as_data
from trifecta.design.compared import read_baseline, read_compare, refuse_uncompared, refuse_unlike_work
from trifecta.design.document import Document, Section, did_you_mean, one_of, parse_flag, parse_text
from trifecta.design.emit import to_yaml
from trifecta.design.factors import LENGTH_FIELDS, WORKLOAD_FIELDS
from trifecta.design.hosts import hosts_document, read_direct, read_hosts, refuse_unplaced
from trifecta.design.lengths import read_length
from trifecta.design.levels import CLEAN, Surroundings, named_things, read_cells, read_factors
from trifecta.design.machine import MIDDLE
from trifecta.design.metric import Metric
from trifecta.design.metrics import METRICS, asked_for
from trifecta.design.model import (
    PROTOCOL_FACTOR,
    Baseline,
    Levelled,
    Machine,
    PathSpec,
    RequestsWorkload,
    Study,
    TrialLength,
)
from trifecta.design.paths import read_path
from trifecta.design.phrases import counted
from trifecta.design.protocols import CONTENT_METHODS
from trifecta.design.quantity import QuantityError
from trifecta.design.servers import read_servers
from trifecta.design.workloads.kinds import WORKLOADS

__all__ = ["Surroundings", "resolve"]

DEPTHS = ("off", "quick", "full")  # design.conformance says what each asks
STUDY_FIELDS = (
    "study",
    "title",
    "description",
    "workload",
    "factors",
    "servers",
    "cells",
    "paths",
    "hosts",
    "compare",
    "baseline",
    "metric",
    "margin",
    "confidence",
    "blocks",
    "give_up",
    "budget",
    "seed",
    "conformance",
    "capture",
    "captured_trials_count",
)
DEFAULT_MAX_BLOCKS = 200


def resolve(document: Document, surroundings: Surroundings | None = None) -> Study:
    """The study that a document describes.

    Raises :class:`~trifecta.design.errors.UserError` with one line for the first fault.
    """
    around = surroundings or Surroundings()
    expand_any(document, around.found)
    root = document.root()
    root.allow(*STUDY_FIELDS)
    if "study" not in root:
        raise root.error("study", "is missing; give the study a name, for example 'study: my-race'")
    name = root.parse("study", _parse_name, "")
    canonical: dict[str, Any] = {
        "study": name,
        "title": root.parse("title", parse_text, name),
        "description": root.parse("description", parse_text, "").strip(),
    }
    workload, canonical["workload"] = _read_workload(root, around)
    hosts, paths, path_text = _read_places(root, around, workload)
    compare = read_compare(root, workload)
    servers, around = read_servers(root, around, workload)
    factors = read_factors(root, paths, around, workload, compare)
    refuse_uncompared(root, factors, compare)
    for factor in factors:
        canonical["workload"].pop(factor, None)  # its levels stand under factors
    canonical |= {
        "factors": {factor: list(levels) for factor, levels in factors.items()},
        **({"servers": {level: as_data(server) for level, server in servers.items()}} if servers else {}),
    }
    cells = read_cells(root, factors, around, compare)
    canonical |= {"cells": list(cells)} if cells else {}
    used = [str(level) for level in factors["path"]]
    canonical |= {"paths": {path: path_text[path] for path in used}, **hosts_document(hosts)}
    baseline = read_baseline(root, factors, compare, around)
    if compare != PROTOCOL_FACTOR:  # else left out: the identity of studies from before stays
        canonical["compare"] = compare
    canonical["baseline"] = baseline
    metric = root.parse("metric", _parse_metric, METRICS["latency_p50_ns"])
    canonical["metric"] = metric.asked
    margin = root.parse("margin", _parse_margin, 0.05)
    confidence = root.parse("confidence", _parse_confidence, 0.95)
    canonical |= {"margin": quantity.format_ratio(margin), "confidence": quantity.format_ratio(confidence)}
    min_blocks, max_blocks = _read_blocks(root)
    canonical["blocks"] = {"at_least": min_blocks, "at_most": max_blocks}
    give_up = root.parse("give_up", parse_flag, True)
    if not give_up:  # else left out: the identity of studies from before stays
        canonical["give_up"] = give_up
    budget_ns = root.parse("budget", _parse_budget, None)
    if budget_ns is not None:
        canonical["budget"] = quantity.format_time(budget_ns)
    canonical["seed"] = root.parse("seed", _parse_seed, 1)
    conformance = root.parse("conformance", one_of("a depth of the conformance probe", *DEPTHS), "quick")
    if "conformance" in root:  # else left out: the identity of studies from before there was a probe stays
        canonical["conformance"] = conformance
    capture, count = _read_capture(root, bool(hosts))
    if capture and (blind := next((name for name in used if paths[name].emulator == "netem"), None)) is not None:
        raise root.error("capture", f"netem, which the path {blind!r} asks for, shows no packets; leave it out")
    if capture:
        canonical |= {"capture": capture, "captured_trials_count": count}
    study = Study(
        name=name,
        title=canonical["title"],
        description=canonical["description"],
        workload=workload,
        factors=factors,
        paths={path: paths[path] for path in used},
        baseline=Baseline(plan.level_text(baseline)),
        compare=compare,
        metric=metric.name,
        margin=margin,
        confidence=confidence,
        min_blocks=min_blocks,
        max_blocks=max_blocks,
        budget_ns=budget_ns,
        seed=canonical["seed"],
        conformance=cast(Literal["off", "quick", "full"], conformance),
        give_up=give_up,
        capture=capture,
        captured_trials_count=count,
        cells=cells,
        servers=servers,
        hosts=hosts,
        source=to_yaml(canonical),
    )
    _refuse(root, study)
    return study


def _refuse(root: Section, study: Study) -> None:
    """UserError for what its fields by themselves did not show."""
    refuse_unlike_work(root, study)
    refuse_unplaced(root, study)
    _refuse_impossible_cells(root, study)
    _refuse_small_budget(root, study)
    _refuse_small_samples(root, study)


def _read_workload(root: Section, around: Surroundings) -> tuple[RequestsWorkload, dict[str, Any]]:
    section = root.section("workload")
    named = section.parse("kind", _parse_kind, "requests")
    kind = WORKLOADS[named]
    for name in section.mapping:
        if name in WORKLOAD_FIELDS and name not in kind.fields:
            raise section.error(name, f"is not a field of the workload {named!r}; remove it")
    section.allow("kind", *kind.fields, *(LENGTH_FIELDS if kind.lengths else ()))
    values = dict(kind.defaults)
    for name in kind.fields:
        if name in section:
            parse = named_things(around).get(name, WORKLOAD_FIELDS[name].parse)
            values[WORKLOAD_FIELDS[name].attribute] = section.parse(name, parse, None)
    if "in_flight" not in section and "connections" in section and "streams" in section:
        values["in_flight"] = values["connections"] * values["streams"]
    if named == "requests" and values.get("method") == "DELETE" and "response" not in section:
        values["response_bytes"] = 0  # the origin answers 204 (RFC 9110 section 9.3.5)
    if named == "chain" and values.get("method", "POST") not in CONTENT_METHODS and "request" not in section:
        values["request_bytes"] = 0
    length, length_text = read_length(section) if kind.lengths else (TrialLength(), {})
    workload = kind.model(
        **values,
        kind=named,
        requests=length.requests,
        duration_ns=length.duration_ns,
        warmup_requests=length.warmup_requests,
        warmup_ns=length.warmup_ns,
    )
    canonical: dict[str, Any] = {"kind": workload.kind}
    for name in kind.fields:
        field = WORKLOAD_FIELDS[name]
        value = getattr(workload, field.attribute)
        if value is not None and not (name == "arrivals" and workload.loop == "closed"):
            canonical[name] = field.format(value)
    return workload, canonical | length_text


def _read_places(
    root: Section, around: Surroundings, workload: RequestsWorkload
) -> tuple[dict[str, Machine], dict[str, PathSpec], dict[str, Any]]:
    """The machines of a study, where it has some, and its paths: without one in the middle there is one."""
    hosts = read_hosts(root, workload)
    if hosts and MIDDLE not in hosts:
        return hosts, *read_direct(root, around.read_trace)
    return hosts, *_read_paths(root, around, WORKLOADS[workload.kind].fixed.get("path", CLEAN))


def _read_paths(root: Section, around: Surroundings, usual: str) -> tuple[dict[str, PathSpec], dict[str, Any]]:
    """``usual``: the path without any field is there also where no study names it."""
    section = root.section("paths")
    specs: dict[str, PathSpec] = {}
    canonical: dict[str, Any] = {}
    for name in section.mapping:
        if not _NAME.fullmatch(name):
            raise section.error(name, f"{name!r} is not a name; use letters, digits, '-' and '_'")
        specs[name], canonical[name] = read_path(name, section.section(name), around.read_trace)
    if usual not in specs:
        specs[usual], canonical[usual] = PathSpec(name=usual), {}
    return specs, canonical


def _read_blocks(root: Section) -> tuple[int, int]:
    section = root.section("blocks")
    section.allow("at_least", "at_most")
    at_most = section.parse("at_most", _parse_blocks, DEFAULT_MAX_BLOCKS)
    at_least = section.parse("at_least", _parse_blocks, min(6, at_most))
    if at_least > at_most:
        raise section.error("at_least", f"{at_least} is more than at_most ({at_most}); lower it")
    return at_least, at_most


def _read_capture(root: Section, between_hosts: bool) -> tuple[bool, bool]:
    """Whether every trial is captured, and whether captured trials count."""
    capture = root.parse("capture", parse_flag, False)
    if capture and between_hosts:
        raise root.error("capture", "packets are captured by the link of a lab, and not between hosts; leave it out")
    count = root.parse("captured_trials_count", parse_flag, False)
    if count and not capture and ("captured_trials_count",) in root.document.options:
        raise root.error("captured_trials_count", "no trial is captured; add --capture, or leave it out")
    return capture, capture and count  # of trials that are not captured it says nothing


def _refuse_impossible_cells(root: Section, study: Study) -> None:
    protocols = [str(protocol) for protocol in study.factors[PROTOCOL_FACTOR]]
    checked = set()
    for one in plan.treatments(study):
        workload = plan.workload_as_written(study, one)
        path = study.paths[one.path]
        combination = (workload, path.impaired, path.rtt_ns, one.server, one.connection)
        if combination in checked:
            continue
        checked.add(combination)
        problem = workload.problem(protocols, path) or workload.program_problem(one.server, one.connection)
        if problem is not None:
            field, message = problem
            section = root.section("factors") if field in study.factors else root.section("workload")
            raise section.error(field, message)


def _refuse_small_samples(root: Section, study: Study) -> None:
    """A percentile that the requests of a trial cannot hold is no metric: every trial would be without a value."""
    sentence = metric_availability.short_of(study, METRICS[study.metric]) if study.workload.direct else ""
    if sentence:
        raise root.error("metric", sentence)


def _refuse_small_budget(root: Section, study: Study) -> None:
    needed_ns = _least_ns(study)
    if study.budget_ns is not None and needed_ns > study.budget_ns:
        budget = quantity.format_time(study.budget_ns)
        raise root.error(
            "budget",
            f"{budget} cannot hold {counted(study.min_blocks, 'block')} of every cell: {math.ceil(needed_ns / 1e9)} s "
            f"at the least; raise it, {'lower blocks.at_least, ' if study.min_blocks > 1 else ''}or shorten the trials",
        )


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def _parse_name(value: Any) -> str:
    text = parse_text(value)
    if not _NAME.fullmatch(text):
        raise QuantityError(f"{text!r} is not a name; use letters, digits, '-' and '_', at most 64")
    return text


def _parse_kind(value: Any) -> str:
    text = parse_text(value)
    return text if text in WORKLOADS else one_of("a workload", *WORKLOADS)(text)


def _parse_metric(value: Any) -> Metric:
    text = parse_text(value).removesuffix("_ns")
    metric = asked_for(text)
    if metric is None:
        choices = (one.asked for one in METRICS.values() if one.asked)
        raise QuantityError(f"{text!r} is not a metric; {did_you_mean(text, choices)}")
    return metric


def _parse_margin(value: Any) -> float:
    margin = quantity.parse_ratio(value)
    if not 0 < margin <= 0.5:
        raise QuantityError(f"{value!r} is not a useful margin; give more than 0 % and at most 50 %")
    return margin


def _parse_confidence(value: Any) -> float:
    confidence = quantity.parse_ratio(value)
    if not 0.5 <= confidence <= 0.999:
        raise QuantityError(f"{value!r} is not a useful confidence; give 50 % to 99.9 %")
    return confidence


def _parse_blocks(value: Any) -> int:
    blocks = quantity.parse_count(value)
    if not 1 <= blocks <= 10_000:
        raise QuantityError(f"{value!r} is not a number of blocks; give 1 to 10000")
    return blocks


def _parse_budget(value: Any) -> int | None:
    if parse_text(value) == "none":
        return None
    budget_ns = quantity.parse_time_ns(value)
    if budget_ns == 0:
        raise QuantityError(f"{value!r} leaves no time; give more than 0, or 'none'")
    return budget_ns


def _parse_seed(value: Any) -> int:
    seed = quantity.parse_count(value)
    if seed >= 2**53:  # whole in every JSON reader
        raise QuantityError(f"{value!r} is too large; give less than 2^53")
    return seed


def _least_ns(study: Study) -> int:
    """The shortest time for the fewest blocks of every cell, if every request took the least its path allows."""
    return study.min_blocks * sum(
        least_trial_ns(study, plan.treatment(study, cell, arm))
        for cell, arm in itertools.product(plan.cells(study), plan.arms(study))
    )


def least_trial_ns(study: Study, at: Levelled) -> int:
    """The shortest time a trial can take: its duration, or as many round trips as its requests need."""
    return plan.workload_for(study, at).least_ns(study.paths[at.path].rtt_ns, at.protocol, at.connection)
