"""A statement and what was found of it, as a row of ``reproduction.json`` (docs/reproduce.md)."""

from __future__ import annotations

import math
from typing import cast

from trifecta.analysis.answers import Answer
from trifecta.analysis.deciding import Effect
from trifecta.analysis.published import Evaluation
from trifecta.contract.reproduction import Then
from trifecta.contract.values import JsonObject


def evaluation_data(one: Evaluation, answer: tuple[Answer, str], then: Then | None) -> JsonObject:
    """One statement for a program; ``ratio`` is null where a difference is compared.

    ``answer`` is what becomes of it, and why; ``then`` what it was as published.
    """
    statement = one.statement
    only = one.effects[0] if len({(effect.run, effect.cell) for effect in one.effects}) == 1 else None
    return {
        "id": statement.id,
        "study": statement.study,
        "kind": statement.kind,
        "defined": statement.defined,
        "text": statement.text,
        "source": statement.source,
        "state": one.state,
        "answer": answer[0],
        "why": answer[1],
        "as_published": cast(JsonObject, then) if then is not None else None,
        "reason": one.reason,
        "depends": one.depends,
        "metric": statement.says.metric if statement.says else None,
        "over": (statement.says.over or None) if statement.says else None,
        "is": statement.says.relation if statement.says else None,
        "of": one.change(),
        "form": "difference" if one.difference else "ratio",
        "ratio": None if one.difference else one.value,
        "difference": one.value if one.difference else None,
        "low": one.low,
        "high": one.high,
        "blocks": one.blocks,
        "margin": one.rule.margin if one.rule else None,
        "confidence": round(one.rule.confidence, 9) if one.rule else None,
        "look": one.look,
        "published": statement.published,
        "published_range": list(statement.says.size) if statement.says and statement.says.size else None,
        "said": statement.said,
        "quote": statement.quote,
        "here": statement.here,
        "size": one.size,
        "arms": dict(one.arms),
        "run": only.run if only else None,
        "cell": only.cell if only else None,
        "cells": [_cell_data(effect, by_difference=one.difference) for effect in one.effects],
        "rates": [list(trial) for trial in one.rates],
        "checks": dict(one.checks),
        "threats": list(statement.threats),
    }


def _cell_data(effect: Effect, *, by_difference: bool) -> JsonObject:
    """A cell with the values of its blocks, from which the answer can be had again (`again`)."""

    def plain(value: float) -> float | str:
        shown = value if by_difference or math.isinf(value) else math.exp(value)
        return shown if math.isfinite(shown) else str(shown)

    told = vars(effect) | {
        "values": [[plain(value) for value in side] for side in effect.values],
        "again": [plain(value) for value in effect.again],
    }
    return cast(JsonObject, told)
