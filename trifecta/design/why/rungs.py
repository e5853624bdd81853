"""A cell of a run as it is, and with causes removed: the cells of a study of its own."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trifecta.design import metrics, plan, quinn
from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.design.factors import KNOWN_FACTORS, WORKLOAD_FIELDS, Field, parse_level
from trifecta.design.model import (
    CLIENT_FACTOR,
    DEFAULT_CLIENT,
    PROTOCOL_FACTOR,
    PROTOCOL_NAMES,
    Cell,
    RequestsWorkload,
    Study,
)
from trifecta.design.quantity import QuantityError
from trifecta.design.resolve import Surroundings, resolve
from trifecta.design.why.budget import LEAST_ROUNDS
from trifecta.design.why.cause import CellEvidence, Suspect
from trifecta.design.why.change import Change, compatible, is_met
from trifecta.design.why.programs import OWN_SERVER
from trifecta.design.yaml_text import parse_document

NO_SWITCH = "cannot be switched in this version"
COMPARED = "it is what is compared"
ABSENT = "there is nothing of it to remove"


@dataclass(frozen=True)
class Rung:
    """A cell that is measured: the causes that are removed from it, and whether on the nearest stack of the engine."""

    causes: tuple[str, ...] = ()
    change: Change = field(default_factory=Change)
    nearest: bool = False


@dataclass(frozen=True)
class Case:
    """A cell of a study, and the two arms of it whose difference is asked about."""

    study: Study
    cell: Cell
    evidence: CellEvidence

    @property
    def has_nearest(self) -> bool:
        """Whether its programs are other projects', so that the engine's own are the nearest stack."""
        return bool(self._nearest())

    def _nearest(self) -> dict[str, str]:
        own = {"server": OWN_SERVER, CLIENT_FACTOR: DEFAULT_CLIENT}
        if self.study.workload.family != "requests" or self.study.compare in own:
            return {}
        return {name: level for name, level in own.items() if self.evidence.levels.get(name, level) != level}

    def change(self, suspect: Suspect) -> Change | str:
        """What removes a cause here; else why it cannot be removed."""
        levels: dict[str, str] = {}
        for name, spellings in suspect.levels.items():
            if name not in KNOWN_FACTORS:
                return NO_SWITCH
            if name == self.study.compare:
                return COMPARED
            level = _first(name, spellings)
            if level is None:
                return NO_SWITCH
            if level != self.evidence.value(name) and self.arms_of(Change(((name, level),))):
                levels[name] = level
        path = {name: value for name, value in suspect.path.items() if self.evidence.path.get(name) != value}
        if path and self.study.compare == "path":
            return COMPARED
        return Change(tuple(levels.items()), tuple(path.items())) if levels or path else ABSENT

    def arms_of(self, change: Change) -> tuple[str, ...]:
        """The arms that meet something of a change: ``ack_delay`` is nothing to HTTP/2."""
        arms = (self.evidence.arm, self.evidence.to)
        # Browsers may speak another protocol, too, and so may services with each other.
        mixed = self.study.workload.family == "visits" or self.evidence.value("inside") not in ("", "same")
        if change.path or mixed:
            return arms
        return tuple(arm for arm in arms if any(self._meets(arm, name, level) for name, level in change.levels))

    def only(self, change: Change) -> str:
        """The arm that alone meets a change; empty where both do."""
        arms = self.arms_of(change)
        return arms[0] if len(arms) == 1 else ""

    @property
    def library(self) -> str:
        """How the cell has quinn-proto adapted."""
        return self.evidence.value("quinn") or quinn.ADAPTED

    def together(self, changes: Mapping[str, Change], ids: Sequence[str]) -> Change | None:
        """What removes all of these causes from the cell; None where two of them set one field otherwise."""
        return compatible(changes, ids, self.library)

    def can_be(self, rung: Rung) -> bool:
        """Whether a study can have the cell of a rung: what removes two causes may exclude each other."""
        try:
            self.study_of([Rung(), rung], rounds=LEAST_ROUNDS, seed=0, title="why")
        except UserError:
            return False
        return True

    def _meets(self, arm: str, name: str, level: str) -> bool:
        protocol = arm if self.study.compare == PROTOCOL_FACTOR else self.evidence.levels.get(PROTOCOL_FACTOR, "")
        return is_met(name, self.evidence.value(name), level, protocol)

    def exchanged(self, rung: Rung) -> dict[str, list[str]]:
        """What a rung has otherwise than the cell: by field its value there and here."""
        own = {name: [self.evidence.value(name), level] for name, level in rung.change.levels}
        of_path = {
            f"path.{name}": [str(self.evidence.path.get(name, "merged" if name == "frames" else "none")), str(value)]
            for name, value in rung.change.path
        }
        return own | of_path

    def levels(self, rung: Rung) -> dict[str, str]:
        """Every factor of a rung's cell with its level, in the order of the cell."""
        levels_of_rung = (
            dict(self.evidence.levels) | (self._nearest() if rung.nearest else {}) | dict(rung.change.levels)
        )
        if rung.change.path:
            levels_of_rung["path"] = "-".join(
                [levels_of_rung["path"], *(f"{name}-{value}" for name, value in rung.change.path)]
            )
        return levels_of_rung

    def key(self, rung: Rung) -> str:
        """What distinguishes the cells of rungs."""
        return ",".join(f"{name}={level}" for name, level in self.levels(rung).items())

    def distinct(self, rungs: Sequence[Rung]) -> list[Rung]:
        """The rungs without those whose cell another has: without a foreign server is the nearest stack as it is."""
        by_key: dict[str, Rung] = {}
        for rung in rungs:
            by_key.setdefault(self.key(rung), rung)
        return list(by_key.values())

    def study_of(
        self, rungs: Sequence[Rung], *, rounds: int, seed: int, title: str, around: Surroundings | None = None
    ) -> Study:
        """The study whose cells are these rungs, in their order, each once. UserError where one can be none."""
        rungs = self.distinct(rungs)
        document = parse_document(self.study.source, "study.yaml")
        tree = copy.deepcopy(document.tree)
        every = [self.levels(rung) for rung in rungs]
        names = list(dict.fromkeys(factor for levels in every for factor in levels))
        rung_levels = [
            {factor: levels.get(factor) or self.evidence.value(factor) for factor in names} for levels in every
        ]
        factors: dict[str, list[str]] = {self.study.compare: self._arms()}
        factors |= {factor: list(dict.fromkeys(levels[factor] for levels in rung_levels)) for factor in names}
        tree["factors"] = factors
        for factor in names:
            tree.get("workload", {}).pop(factor, None)
        own = str(self.cell.levels.get("path", ""))
        paths = tree.setdefault("paths", {})
        for rung, levels in zip(rungs, every, strict=True):
            if rung.change.path:
                paths[levels["path"]] = {
                    key: value
                    for key, value in (dict(paths.get(own) or {}) | dict(rung.change.path)).items()
                    if value is not None
                }
        tree |= {
            "study": title,
            "title": f"Why: {self.study.title}",
            "cells": [",".join(f"{factor}={level}" for factor, level in levels.items()) for levels in rung_levels],
            "baseline": self._named(self.evidence.to),
            "blocks": {"at_least": str(rounds), "at_most": str(rounds)},
            "seed": str(seed),
            "conformance": "off",
            "give_up": "false",
        }
        for name in ("budget", "capture", "captured_trials_count"):
            tree.pop(name, None)
        return resolve(Document(tree, "study.yaml"), around)

    def _arms(self) -> list[str]:
        pair = (self.evidence.arm, self.evidence.to)
        if self.study.compare == PROTOCOL_FACTOR:
            return [name for arm, name in PROTOCOL_NAMES.items() if arm in pair]
        return [level for level in plan.levels_of(self.study) if level in pair]

    def _named(self, arm: str) -> str:
        return PROTOCOL_NAMES.get(arm, arm) if self.study.compare == PROTOCOL_FACTOR else arm


def case_of(study: Study, cell: Cell, arm: str, to: str) -> Case:
    """What a study says of a cell; what its run has shown is added to ``seen`` (`Case.seen`)."""
    tree = parse_document(study.source, "study.yaml").tree
    workload = plan.workload_as_written(study, plan.treatment(study, cell, to))
    every = {name: _field_text(one, workload) for name, one in WORKLOAD_FIELDS.items()}
    fields = {name: text for name, text in every.items() if text is not None}
    levels = {name: plan.level_text(level) for name, level in cell.levels.items()}
    path = (tree.get("paths") or {}).get(levels.get("path", "")) or {}
    return Case(study, cell, CellEvidence(arm, to, study.compare, levels, fields, path))


def cell_named(study: Study, wanted: str) -> Cell:
    """The cell of this key, or the only one that has the levels given (``path=far,connection=new``); else UserError."""
    cells = plan.cells(study)
    conditions = set(wanted.split(","))
    fits = [one for one in cells if one.key == wanted] or [
        one for one in cells if conditions <= set(one.key.split(","))
    ]
    if len(fits) == 1:
        return fits[0]
    keys = "; ".join(one.key for one in fits or cells)
    if fits:
        raise UserError(f"option --cell: {wanted!r} fits {len(fits)} cells: {keys}; say which")
    raise UserError(f"option --cell: no cell {wanted!r}; choose from {keys}")


def refuse_unasked(study: Study, cell: str | None, arm: str | None) -> None:
    """UserError for a study whose differences have no causes to remove, or without such a cell or arm."""
    if len(plan.levels_of(study)) < 2:
        raise UserError(f"{study.name} has one arm, so there is no difference; give a run that compares two")
    if study.metric in metrics.BY_DIFFERENCE:
        label = metrics.label(study.metric)
        raise UserError(f"{study.name} is judged by the {label}, which has no ratio; give a run with another metric")
    if cell is not None:
        cell_named(study, cell)
    if arm is not None and arm not in plan.other_levels(study):
        known = ", ".join(plan.other_levels(study))
        raise UserError(f"option --arm: {arm!r} is not compared with {study.baseline.level}; choose from {known}")


def _field_text(field: Field, workload: RequestsWorkload) -> str | None:
    """A field of a workload as a study file has it; None for what this workload lacks, or has no word for."""
    value = getattr(workload, field.attribute, None)
    if value is not None:
        return plan.level_text(field.format(value))
    if field.without is not None:
        return field.without
    try:
        return "none" if field.parse("none") is None else None
    except QuantityError:
        return None


def with_evidence(case: Case, evidence: CellEvidence) -> Case:
    """The same case with what its run has shown."""
    return replace(case, evidence=evidence)


def _first(name: str, spellings: Sequence[str]) -> str | None:
    """The first of these levels that this version takes, as a cell's key has it."""
    for text in spellings:
        try:
            return plan.level_text(parse_level(name, text))
        except QuantityError:
            continue
    return None
