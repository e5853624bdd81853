"""``map.json``, ``map.svg``, ``map.png`` and ``map.html``."""

from __future__ import annotations

import json
import math
import shlex
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from trifecta.analysis.mapping.result import MapResult
from trifecta.analysis.mapping.search import Outcome
from trifecta.conclude.maps import FILE
from trifecta.design import naming, numbers
from trifecta.design.metrics import METRICS
from trifecta.report.claims import is_
from trifecta.report.figures import picture_files, style, svg
from trifecta.report.map import picture, words
from trifecta.report.page_templates import page
from trifecta.store import files, results_manifest

PAGE = "map.html"
_SIGNS = {"faster": "▲", "slower": "▼", "same": "=", "open": "?"}


def naming_of(result: MapResult) -> AbstractContextManager[None]:
    """Within it arms are called, and look, as levels of what the map compares."""
    return naming.arms_of(result.plan.compare, [result.plan.reference, result.plan.arm])


def write(result: MapResult, folder: Path) -> Path:
    """Write all files of a map into its folder; the page's path."""
    with naming_of(result):
        return _write(result, folder)


def _write(result: MapResult, folder: Path) -> Path:
    files.write_text(folder / FILE, json.dumps(result.document(), indent=1, allow_nan=False) + "\n")
    results_manifest.note(folder, [FILE])
    with svg.drawing():
        picture_files.write(picture.draw(result), folder, "map")
    page = folder / PAGE
    files.write_text(page, html(result, folder))
    return page


def html(result: MapResult, folder: Path) -> str:
    """The page of a map; it needs nothing but itself."""
    sides = result.sides()
    with svg.drawing():
        figure = picture.draw(result).svg("map")
    return page(
        "map.html.j2",
        result=result,
        plan=result.plan,
        arm=style.name(result.plan.arm),
        reference=style.name(result.plan.reference),
        better=is_(METRICS[result.metric], "faster"),
        words=[METRICS[result.metric].word(kind) for kind in ("faster", "slower")],
        metric=METRICS[result.metric].label,
        headline=_tied(words.headline(result)),
        noise=_tied(words.noise(result.noise, result.plan.reference)),
        nodes=_tied(words.nodes(result)),
        checks=words.checks(_reasons(result)),
        figure=figure,
        command=shlex.join(result.about.get("argv", [])),
        rows=_rows(result) if sides is not None else [],
        confidence=_tied(numbers.percent(result.confidence)),
        margin=_tied(numbers.percent(result.margin)),
        wrong="" if sides is None else _tied(numbers.percent(sides.expected_wrong())),
        example=_example(result),
        folder=folder.name,
    )


def _tied(text: str) -> str:
    """A number and its percent sign stay on one line."""
    return text.replace(" %", "\u00a0%")


def _reasons(result: MapResult) -> dict[str, int]:
    total: dict[str, int] = {}
    for spot in result.spots:
        for check, number in spot.reasons.items():
            total[check] = total.get(check, 0) + number
    return total


def _rows(result: MapResult) -> list[dict[str, Any]]:
    """A row a value of the second axis, from the top, as in the picture."""
    sides = result.sides()
    assert sides is not None
    across, up = len(result.plan.x.values), len(result.plan.y.values)
    rows = []
    for j in reversed(range(up)):
        cells = []
        for i in range(across):
            number = i * up + j
            low, high = math.exp(float(sides.low[number])), math.exp(float(sides.high[number]))
            outcome = sides.outcomes[number]
            cells.append(
                {
                    "text": sign_words(outcome, float(sides.mean[number])),
                    "title": f"{numbers.ratio(low)} to {numbers.ratio(high)}",
                    "outcome": outcome,
                }
            )
        rows.append({"name": result.plan.y.texts[j], "cells": cells})
    return rows


def sign_words(outcome: Outcome, log_speed_up: float) -> str:
    """``▲ 1.14``: the side of a place, and the speed-up there."""
    return f"{_SIGNS[outcome]} {numbers.ratio(math.exp(log_speed_up))}"


def _example(result: MapResult) -> str:
    x, y = (axis.texts[len(axis.texts) // 2].replace(" ", "") for axis in (result.plan.x, result.plan.y))
    return f"{result.plan.x.name}={x},{result.plan.y.name}={y}"
