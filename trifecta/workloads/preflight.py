"""What a study comes to, before anything of it runs: trials, time, octets, what is left out, and what it can decide.

Estimates from the plan (`design.duration`), good within a factor of two on a quiet machine. Without numpy, whose
threads must not start before the lab's private namespaces are entered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from trifecta.analysis.betting import fewest_blocks
from trifecta.contract.run import LeftOut
from trifecta.contract.values import JsonObject
from trifecta.design import duration, plan, quantity
from trifecta.design.model import Cell, Study
from trifecta.design.phrases import counted

OFF_BY = 2.0  # an estimate of time is good within this factor (tests/design/test_duration.py)
_KEPT_TRIAL_BYTES = 70_000  # what a trial leaves in the run's folder: its row, link, resources
_KEPT_SAMPLE_BYTES = 60


@dataclass(frozen=True)
class Preflight:
    """What is to be expected. ``trials``, ``time_ns``, ``sent_bytes`` and ``kept_bytes`` are of ``blocks`` a cell."""

    cells: int
    arms: int
    blocks: int
    """Of every cell: as many as there must be, or those before which nothing can be decided."""
    fewest: int
    """Blocks before which no verdict is possible."""
    trials: int
    time_ns: tuple[int, int]
    """From, to."""
    budget_ns: int | None
    sent_bytes: int | None
    """Content of requests and answers; None where a trial is as long as its time, or its page is not known."""
    kept_bytes: int | None
    left_out: Sequence[LeftOut] = field(default_factory=list)
    warnings: Sequence[str] = field(default_factory=list)
    as_is: bool = False
    """Whether a path is the network between hosts, whose round trips nobody knows yet: ``time_ns`` is without them."""

    def lines(self) -> list[str]:
        """In words, a line each."""
        low, high = (_wall(ns) for ns in self.time_ns)
        sentence = (
            f"{counted(self.cells, 'cell')} x {counted(self.arms, 'arm')} x {counted(self.blocks, 'block')}: "
            f"{counted(self.trials, 'trial')}, {low if low == high else f'{low} to {high}'}"
        )
        if self.as_is:
            sentence += " (without the round trips between the hosts)"
        if self.budget_ns is not None:
            sentence += f" of a budget of {quantity.format_time(self.budget_ns)}"
        if self.sent_bytes is not None:
            sentence += f", {_size(self.sent_bytes)} to send"
        if self.kept_bytes is not None:
            sentence += f", {_size(self.kept_bytes)} to keep"
        left_out = [f"left out: {item['factor']} {item['level']}: {item['reason']}" for item in self.left_out]
        return [sentence, *left_out, *(f"warning: {warning}" for warning in self.warnings)]

    def as_data(self) -> JsonObject:
        """For a program."""
        return {
            "cells": self.cells,
            "arms": self.arms,
            "blocks": self.blocks,
            "fewest_blocks": self.fewest,
            "trials": self.trials,
            "time_ns": list(self.time_ns),
            "budget_ns": self.budget_ns,
            "sent_bytes": self.sent_bytes,
            "kept_bytes": self.kept_bytes,
            "left_out": [cast(JsonObject, item) for item in self.left_out],
            "warnings": list(self.warnings),
        }


def preflight(study: Study, cells: Sequence[Cell] | None = None, left_out: Sequence[LeftOut] = ()) -> Preflight:
    """What the study comes to with the cells that can run here (all of them by default)."""
    own = list(plan.cells(study) if cells is None else cells)
    fewest, arms = fewest_blocks(study.confidence), plan.arms(study)
    fixed = study.min_blocks == study.max_blocks
    blocks = study.max_blocks if fixed or study.max_blocks < fewest else max(study.min_blocks, fewest)
    if not study.gives_verdicts:
        blocks = study.min_blocks
    each_ns = sum(duration.block_ns(study, cell) for cell in own)
    time_ns = round(blocks * each_ns / OFF_BY), round(blocks * each_ns * OFF_BY)
    every = [plan.treatment(study, cell, arm) for cell in own for arm in arms]
    workloads = [plan.workload_for(study, one).for_protocol(one.protocol) for one in every]
    samples = [workload.every_sample for workload in workloads]
    octets = [workload.octets for workload in workloads]
    return Preflight(
        cells=len(own),
        arms=len(arms),
        blocks=blocks,
        fewest=fewest,
        trials=blocks * len(every),
        time_ns=time_ns,
        budget_ns=study.budget_ns,
        sent_bytes=None if None in octets else blocks * sum(one for one in octets if one is not None),
        kept_bytes=None
        if None in samples or study.capture
        else blocks * sum(_KEPT_TRIAL_BYTES + _KEPT_SAMPLE_BYTES * (one or 0) for one in samples),
        left_out=list(left_out),
        warnings=list(_warnings(study, fewest, len(own), each_ns)),
        as_is=any(path.as_is for path in study.paths.values()),
    )


def _warnings(study: Study, fewest: int, cells: int, each_ns: int) -> list[str]:
    if not study.gives_verdicts or len(plan.levels_of(study)) < 2 or not cells:
        return []
    blocks = counted(study.max_blocks, "block")
    if study.max_blocks < fewest:
        return [
            f"this run can give no verdict: one needs {fewest} blocks of its cell, and it ends at {blocks}; "
            "`trifecta resume RUN --blocks N` adds more"
        ]
    if study.budget_ns is None:
        return []
    low, high = fewest * each_ns / OFF_BY, fewest * each_ns * OFF_BY
    if fewest * each_ns <= study.budget_ns:
        return []
    budget, short = quantity.format_time(study.budget_ns), "is" if low > study.budget_ns else "may be"
    return [
        f"the budget of {budget} {short} too short for {fewest} blocks of every cell, the fewest that a verdict "
        f"needs: they take an estimated {_wall(low)} to {_wall(high)}; raise it, or remove levels"
    ]


def _wall(ns: float) -> str:
    seconds = max(1, round(ns / 1e9))
    if seconds < 100:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{round(minutes / 60)} h"


def _size(octets: float) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if octets >= scale:
            return f"{octets / scale:.3g} {unit}" if octets < 100 * scale else f"{octets / scale:,.0f} {unit}"
    return f"{octets:.0f} B"
