"""A statement and what was found of it, as a row of ``reproduction.json`` (docs/reproduce.md)."""

from __future__ import annotations

import math
from typing import cast

from trifecta.analysis.answers import Answer
from trifecta.analysis.deciding import Effect
from trifecta.analysis.published import Evaluation
from trifecta.contract.reproduction import StatementDocument
from trifecta.contract.values import JsonObject


def evaluation_data(evaluation: Evaluation, answer: tuple[Answer, str], then: StatementDocument | None) -> JsonObject:
    """One statement for a program; ``ratio`` is null where a difference is compared.

    ``answer`` is what becomes of it, and why; ``then`` what it was as published.
    """
    statement = evaluation.statement
    only = evaluation.effects[0] if len({(effect.run, effect.cell) for effect in evaluation.effects}) == 1 else None
    return {
        "id": statement.id,
        "study": statement.study,
        "kind": statement.kind,
        "defined": statement.defined,
        "text": statement.text,
        "source": statement.source,
        "state": evaluation.state,
        "answer": answer[0],
        "why": answer[1],
        "as_published": cast(JsonObject, then) if then is not None else None,
        "reason": evaluation.reason,
        "depends": evaluation.depends,
        "metric": statement.says.metric if statement.says else None,
        "over": (statement.says.over or None) if statement.says else None,
        "is": statement.says.relation if statement.says else None,
        "of": evaluation.change(),
        "form": "difference" if evaluation.difference else "ratio",
        "ratio": None if evaluation.difference else evaluation.value,
        "difference": evaluation.value if evaluation.difference else None,
        "low": evaluation.low,
        "high": evaluation.high,
        "blocks": evaluation.blocks,
        "margin": evaluation.rule.margin if evaluation.rule else None,
        "confidence": round(evaluation.rule.confidence, 9) if evaluation.rule else None,
        "look": evaluation.look,
        "published": statement.published,
        "published_range": list(statement.says.size) if statement.says and statement.says.size else None,
        "said": statement.said,
        "quote": statement.quote,
        "here": statement.here,
        "size": evaluation.size,
        "arms": dict(evaluation.arms),
        "run": only.run if only else None,
        "cell": only.cell if only else None,
        "cells": [_cell_data(effect, by_difference=evaluation.difference) for effect in evaluation.effects],
        "rates": [list(trial) for trial in evaluation.rates],
        "checks": dict(evaluation.checks),
        "threats": list(statement.threats),
    }


def _cell_data(effect: Effect, *, by_difference: bool) -> JsonObject:
    """A cell with the values of its blocks, from which the answer can be had again (`again`)."""

    def plain(value: float) -> float | str:
        shown = value if by_difference or math.isinf(value) else math.exp(value)
        return shown if math.isfinite(shown) else str(shown)

    document = vars(effect) | {
        "values": [[plain(value) for value in side] for side in effect.values],
        "again": [plain(value) for value in effect.again],
    }
    return cast(JsonObject, document)
