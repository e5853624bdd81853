"""What a study compares: the factor whose levels are the arms, and the level that the others are compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from trifecta.design import naming, plan, quantity
from trifecta.design.document import Section, did_you_mean, parse_text
from trifecta.design.factors import parse_level
from trifecta.design.levels import Surroundings, factors_of, named_things
from trifecta.design.model import AA_SUFFIX, PROTOCOL_FACTOR, RequestsWorkload, Study, Treatment
from trifecta.design.quantity import QuantityError


def read_compare(root: Section, workload: RequestsWorkload) -> str:
    """The compared factor; UserError for one that studies of this workload do not have."""
    known = factors_of(workload)

    def parse(value: Any) -> str:
        name = parse_text(value)
        if name not in known:
            raise QuantityError(f"{name!r} is no factor of the workload {workload.kind!r}; {did_you_mean(name, known)}")
        return name

    return root.parse("compare", parse, PROTOCOL_FACTOR)


def refuse_uncompared(root: Section, factors: Mapping[str, tuple[Any, ...]], compare: str) -> None:
    """UserError for a compared factor with nothing to compare, and for levels that no arm can be called.

    A study that does not say what it compares may have one protocol: then it measures, and gives no verdict. So may one
    whose only level is named as the baseline, too: it is run against itself, as `trifecta gate` does to try a machine.
    """
    levels = [plan.level_text(level) for level in factors.get(compare, ())]
    if "compare" in root and len(levels) < 2 and not _against_itself(root, factors.get(compare, ()), compare):
        has = f"has the level {levels[0]} only" if levels else "is no factor of this study"
        raise root.error("compare", f"{compare} {has}; give two levels or more, as in --compare {compare}=A,B")
    for level in levels:
        if level.endswith(AA_SUFFIX):
            text = f"no level of {compare} may end in {AA_SUFFIX!r}, which marks the baseline's second run; rename it"
            raise root.error("compare", text)
    columns: dict[str, str] = {}
    for level in levels:
        first = columns.setdefault(naming.column(level), level)
        if first != level:
            text = f"{first!r} and {level!r} would have one column in tables; write one of them otherwise"
            raise root.error("compare", text)


def _against_itself(root: Section, levels: tuple[Any, ...], compare: str) -> bool:
    """Whether the only level of the compared factor is named as the baseline as well."""
    named = root.raw("baseline")
    try:
        return named is not None and levels == (parse_level(compare, named),)
    except QuantityError:
        return False


def read_baseline(root: Section, factors: Mapping[str, tuple[Any, ...]], compare: str, around: Surroundings) -> Any:
    """A level of the compared factor: HTTP/2 among protocols unless the study says otherwise, else the first."""
    levels = factors[compare]
    usual = "h2" if compare == PROTOCOL_FACTOR and "h2" in levels else levels[0]
    finder = named_things(around).get(compare)
    baseline = root.parse("baseline", finder or (lambda value: parse_level(compare, value)), usual)
    if baseline not in levels:
        listed = ", ".join(plan.level_text(level) for level in levels)
        level_text, remedy = plan.level_text(baseline), plan.level_text(levels[0])
        raise root.error(
            "baseline", f"{level_text!r} is not a level of {compare} ({listed}); add --set baseline={remedy}"
        )
    return baseline


def refuse_unlike_work(root: Section, study: Study) -> None:
    """UserError where arms of a block would do different amounts of work, or where sizes differ by protocol and arms
    do not.
    """
    _refuse_unlike_lengths(root, study)
    if study.compare != PROTOCOL_FACTOR:
        _refuse_sizes_apart(root, study)


def _refuse_unlike_lengths(root: Section, study: Study) -> None:
    """Paths and connection modes can have trials of a length of their own."""
    for cell in plan.cells(study):
        first, *rest = plan.treatments_of(study, cell)
        for other in rest:
            one, two = _length(study, first), _length(study, other)
            field = next((name for name in one if one[name] != two[name]), None)
            if field is not None:
                shorter = min(one[field], two[field], key=lambda length: length[0] or math.inf)[1]
                raise root.error(
                    "compare",
                    f"trials of {first.arm} and of {other.arm} would not do the same in {cell.key}: {field} "
                    f"{one[field][1]} and {two[field][1]}; give both one length, as in --set '{field}={shorter}'",
                )


def _refuse_sizes_apart(root: Section, study: Study) -> None:
    workloads = (plan.workload_for(study, one) for one in plan.treatments(study))
    field = next((field for workload in workloads for field in workload.sized_apart), None)
    if field is not None:
        section = root.section("factors" if field in study.factors else "workload")
        text = f"differs by protocol, and the arms here are levels of {study.compare}, which all have the same protocol"
        raise section.error(field, f"{text}; give one size, or compare: {PROTOCOL_FACTOR}")


def _length(study: Study, at: Treatment) -> dict[str, tuple[int, str]]:
    """What the length of a trial is, by the field that sets it, as a number and as it is written."""
    workload = plan.workload_for(study, at)
    own = {
        "requests": (workload.requests, f"{workload.requests}"),
        "duration": (workload.duration_ns, quantity.format_time(workload.duration_ns)),
        "warmup": (workload.warmup_ns, quantity.format_time(workload.warmup_ns)),
    }
    if workload.warmup_requests:
        own["warmup"] = (workload.warmup_requests, f"{workload.warmup_requests} requests")
    return own
