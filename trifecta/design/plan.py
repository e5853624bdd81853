"""From a study to its cells, blocks and trials: which runs are made, in which order, under which seeds.

Everything here is a pure function of the study, so that a run can be repeated and resumed: orders and seeds come from
SHA-256 of what they depend on, never from Python's salted ``hash``.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from trifecta.contract.values import Level
from trifecta.design.builds import in_containers
from trifecta.design.factors import WORKLOAD_FIELDS
from trifecta.design.model import AA_SUFFIX, Cell, Levelled, RequestsWorkload, Study, Treatment, Trial

Work = TypeVar("Work", bound=RequestsWorkload)
_SEED_BITS = 63  # the column is a signed 64-bit integer


def stable_seed(*parts: object) -> int:
    """A seed of 63 bits that depends on ``parts`` only: the same in every process and on every machine."""
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> (64 - _SEED_BITS)


def arms(study: Study) -> list[str]:
    """The arms of every block: each level of the compared factor once, and the baseline again (``h2#aa``)."""
    return [*levels_of(study), study.baseline.level + AA_SUFFIX]


def levels_of(study: Study) -> list[str]:
    """What is compared: the levels of the compared factor, in the order of the study, as arms are called."""
    return [level_text(level) for level in study.factors[study.compare]]


def other_levels(study: Study) -> list[str]:
    """The levels that are compared with the baseline."""
    return [level for level in levels_of(study) if level != study.baseline.level]


def cells(study: Study) -> list[Cell]:
    """Every combination of the factors but the compared one, the last factor varying fastest; or those it names."""
    names = [name for name in study.factors if name != study.compare]
    if study.cells:
        return [_cell_named(study, key) for key in study.cells]
    combinations = itertools.product(*(study.factors[name] for name in names))
    return [cell_of(dict(zip(names, levels, strict=True))) for levels in combinations]


def _cell_named(study: Study, key: str) -> Cell:
    """The cell of this key, whose levels are those of the study's factors."""
    texts = dict(part.split("=", 1) for part in key.split(","))
    levels = {name: {level_text(one): one for one in study.factors[name]}[text] for name, text in texts.items()}
    return Cell(key=key, levels=levels)


def cell_of(levels: dict[str, Level]) -> Cell:
    """The cell with these levels; its key lists them in the order given."""
    return Cell(key=",".join(f"{name}={level_text(level)}" for name, level in levels.items()), levels=levels)


def treatments_of(study: Study, cell: Cell) -> list[Treatment]:
    """The cell with each of the arms; the baseline's second run is the same treatment as its first."""
    return [Treatment(cell, level_text(level), level, study.compare) for level in study.factors[study.compare]]


def treatments(study: Study, among: Iterable[Cell] | None = None) -> list[Treatment]:
    """Those of all cells, or of some."""
    return [one for cell in (cells(study) if among is None else among) for one in treatments_of(study, cell)]


def treatment(study: Study, cell: Cell, arm: str) -> Treatment:
    """The cell with this arm, which may be the baseline's second run. KeyError for an arm that the study lacks."""
    return {one.arm: one for one in treatments_of(study, cell)}[arm.removesuffix(AA_SUFFIX)]


def level_text(level: object) -> str:
    """A level as it is written in a study file and in a cell's key."""
    if isinstance(level, bool):
        return "true" if level else "false"
    return str(level)


def block_seed(study: Study, cell: Cell, block: int) -> int:
    """The seed of a block's impairments and arrivals: the same for every arm, and for every cell on the path.

    Where paths are compared it is the same on all of them: random numbers are shared, though what they decide is not.
    """
    return stable_seed("weather", study.seed, cell.levels.get("path", ""), block)


def block_order(study: Study, cell: Cell, block: int) -> list[str]:
    """The arms of a block in their random order; every order is equally likely."""
    order = arms(study)
    random.Random(stable_seed("order", study.seed, cell.key, block)).shuffle(order)
    return order


def block_trials(study: Study, cell: Cell, block: int, first_trial_number: int) -> list[Trial]:
    """The trials of a block, in the order in which they are to run, numbered from ``first_trial_number``."""
    seed = block_seed(study, cell, block)
    by_arm = {one.arm: one for one in treatments_of(study, cell)}
    return [
        Trial(
            trial=trial_name(first_trial_number + place),
            block=block,
            cell=cell,
            arm=arm,
            position=place,
            seed=seed,
            compare=study.compare,
            level=by_arm[arm.removesuffix(AA_SUFFIX)].level,
        )
        for place, arm in enumerate(block_order(study, cell, block))
    ]


def trial_name(number: int) -> str:
    """The name of the trial with this number: ``t00012``."""
    return f"t{number:05d}"


def places(study: Study) -> set[str]:
    """How services run in the study's cells: ``native``, ``docker-host``, ``docker-bridge``; empty without services."""
    workloads = (workload_for(study, one) for one in treatments(study))
    return {workload.place for workload in workloads if workload.place is not None}


def limits_cpu(study: Study) -> bool:
    """Whether a cell of the study gives its client or its server a share of a core only."""
    workloads = (workload_for(study, one) for one in treatments(study))
    return any(workload.client_cpu is not None or workload.server_cpu is not None for workload in workloads)


def leaves_groups(study: Study) -> bool:
    """Whether programs of the study are in control groups of their own, which outlive it unless they are removed."""
    return any(places(study) - {"native"}) or limits_cpu(study) or in_containers(study.servers)


def over_ipv6_alone(study: Study) -> bool:
    """Whether all that a study measures goes over IPv6: then what is tried beforehand does, too."""
    return all(workload_for(study, one).ip is not None for one in treatments(study))


def workload_for(study: Study, at: Levelled) -> RequestsWorkload:
    """The workload of a treatment or trial: with the lengths its path asks for and the factors that set its fields.

    Of ``connections`` and ``streams`` both are given or neither.
    """
    return workload_as_written(study, at).completed()


def workload_of(kind: type[Work], study: Study, at: Levelled) -> Work:
    """`workload_for`, for those who run one kind of workload only; TypeError for a study of another."""
    workload = workload_for(study, at)
    if not isinstance(workload, kind):
        raise TypeError(f"{study.workload.kind} is not run this way")
    return workload


def workload_as_written(study: Study, at: Levelled) -> RequestsWorkload:
    """The workload of a treatment before connections and streams are derived from each other."""
    workload = study.workload
    path = study.paths.get(str(at.levels.get("path", "")))
    length = None if path is None else path.length(at.connection)
    if length is not None:
        workload = replace(
            workload,
            requests=length.requests,
            duration_ns=length.duration_ns,
            warmup_requests=length.warmup_requests,
            warmup_ns=length.warmup_ns,
        )
    fields = ((WORKLOAD_FIELDS[name], level) for name, level in at.levels.items() if name in WORKLOAD_FIELDS)
    return replace(workload, **{field.attribute: field.parse(level) for field, level in fields})
