"""Maps, ladders and reproductions as the page shows them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

from trifecta.analysis.answers import Answer
from trifecta.analysis.mapping.result import MapResult
from trifecta.conclude import ladder_results, maps
from trifecta.contract.ladder import Ends, LadderFound
from trifecta.contract.values import JsonObject
from trifecta.design import numbers
from trifecta.design.errors import UserError
from trifecta.design.metrics import METRICS
from trifecta.report.claims import is_
from trifecta.report.figures import style
from trifecta.report.ladder import words as ladder_words
from trifecta.report.map import page, words
from trifecta.report.reproduction import words as reproduction_words
from trifecta.store import documents, results_manifest
from trifecta.store.reproduction import DATA_FILE
from trifecta.ui import tables


def show(folder: Path, kind: str, name: str) -> JsonObject:
    """What a folder of this kind holds."""
    made = {"map": _map, "ladder": _ladder, "reproduction": _reproduction}[kind](folder)
    return {"name": name, "kind": kind, **made}


def _map(folder: Path) -> JsonObject:
    made = maps.load(folder)
    with page.naming_of(made):
        return _of_map(made)


def _of_map(made: MapResult) -> JsonObject:
    x, y = made.plan.x, made.plan.y
    places = _places(made)
    metric = METRICS[made.metric]
    rows = [
        [y.texts[j], *(f"{places[i * len(y.values) + j]['text']}" for i in range(len(x.values)))]
        for j in reversed(range(len(y.values)))
        if places
    ]
    arm, reference, better = style.name(made.plan.arm), style.name(made.plan.reference), is_(metric, "faster")
    return {
        "title": f"{arm} ÷ {reference}",
        "headline": words.headline(made),
        "lines": [
            words.noise(made.noise, made.plan.reference),
            *([nodes] if (nodes := words.nodes(made)) else []),
            f"Metric: {metric.label}.",
            f"▲ {arm} {better}, ▼ {reference} {better}, = the same, ? open",
        ],
        "x": {"name": x.name, "texts": x.texts},
        "y": {"name": y.name, "texts": y.texts},
        "places": places,
        "table": tables.table(f"{y.name} ↓  {x.name} →", [y.name, *x.texts], rows),
    }


def _places(made: MapResult) -> list[dict[str, Any]]:
    """What the map says at each place of its grid, by the functions that its page says it with."""
    if (sides := made.sides()) is None:
        return []
    up = len(made.plan.y.values)
    found = []
    for number, outcome in enumerate(sides.outcomes):
        i, j = divmod(number, up)
        here = made.at(made.plan.x.values[i], made.plan.y.values[j])
        found.append(
            {
                "i": i,
                "j": j,
                "outcome": outcome,
                "ratio": math.exp(float(sides.mean[number])),
                "text": page.sign_words(outcome, float(sides.mean[number])),
                "said": words.sentence(here),
                "evidence": words.evidence(here),
            }
        )
    return found


def _ladder(folder: Path) -> JsonObject:
    found = ladder_results.load(folder)
    rungs, steps = found["rungs"], found["steps"]
    titles = ["published conditions, here", *(f"{one['title']} ({ladder_words.exchanged(one)})" for one in steps)]
    changes = ["", *(f"× {ladder_words.ratio(one)}" for one in steps)]
    rows = [[f"published: {found['published']}", ladder_words.published(found), "", "", ""]]
    for title, rung, change, step in zip(titles, rungs, changes, [None, *steps], strict=True):
        why = "" if step is None else f"{step['why']} ({step['source']})"
        rows.append([title, ladder_words.ratio(rung), change, numbers.count(rung["blocks"]), why])
    return {
        "title": found["title"],
        "headline": ladder_words.answer(found),
        "lines": [f"{found['text']} ({found['claim']}, {found['source']})", *_closing(found)],
        "quantity": ladder_words.quantity(found),
        "rungs": [_rung(title, rung, f"{title}: {ladder_words.ratio(rung)}") for title, rung in zip(titles, rungs,
                  strict=True)],
        "table": tables.table("Rungs", ["rung", "ratio", "step", "rounds", "why"], rows, numeric=[1, 2, 3]),
    }  # fmt: skip


def _rung(title: str, one: Ends, told: str) -> dict[str, Any]:
    return {"title": title, "said": told, **{name: tables.plain(one[name]) for name in ("ratio", "low", "high")}}


def _closing(found: LadderFound) -> list[str]:
    lines = [ladder_words.closing(found), *map(ladder_words.order, found["orders"]), ladder_words.left_out(found)]
    return [one for one in lines if one]


def reproduction_answer(folder: Path) -> str:
    """``Of 14 claims: 6 confirmed ...``, as the page of the reproduction says it."""
    document = _document(folder)
    return "" if document is None else _summary(document["claims"])


def _summary(claims: list[dict[str, Any]]) -> str:
    return reproduction_words.summary([_answer(row) for row in claims], "claim")


def _answer(row: dict[str, Any]) -> Answer:
    return cast(Answer, row.get("answer") or row["state"])  # earlier versions had the state alone


def _reproduction(folder: Path) -> JsonObject:
    document = _document(folder)
    if document is None:
        raise UserError(f"{folder / DATA_FILE} is not there yet; `trifecta resume {folder}` goes on with it")
    claims = document["claims"]
    about = document["reproduction"]
    columns = ["statement", "answer", "what is compared", "published", "here", "alone", "why", "where it stands"]
    rows = [
        [
            str(row["text"]),
            _answer(row),
            str(row.get("of") or ""),
            str(row.get("said") or "") or _number(row.get("published")),
            _number(row.get("ratio"), row.get("difference")),
            numbers.interval((row.get("low"), row.get("high"))) if row.get("ratio") is not None else "",
            str(row.get("why") or row.get("reason") or ""),
            str(row.get("source") or ""),
        ]
        for row in claims
    ]
    points = [
        {
            "text": row["text"],
            "answer": _answer(row),
            "study": row["study"],
            "said": f"{row['text']} {_answer(row)}: {cells[4]} {cells[5]}",
            **{name: tables.plain(row.get(name)) for name in ("ratio", "low", "high")},
        }
        for row, cells in zip(claims, rows, strict=True)
        if isinstance(row.get("ratio"), float)
    ]
    return {
        "title": ", ".join(about.get("studies") or []),
        "headline": _summary(claims),
        "lines": [f"begun {about.get('began', 'unknown')}, depth {about.get('depth', 'unknown')}"],
        "points": points,
        "table": tables.table("Claims", columns, rows, numeric=[3, 4, 5]),
    }


def _number(ratio: object, difference: object = None) -> str:
    if isinstance(ratio, int | float):
        return numbers.ratio(ratio)
    return f"{difference:+.3g}" if isinstance(difference, int | float) else numbers.NO_VALUE


def _document(folder: Path) -> dict[str, Any] | None:
    """``reproduction.json``, as it was left; None before it is written."""
    remedy = f"`trifecta resume {folder}` writes it again"
    if not (folder / DATA_FILE).is_file():
        return None
    results_manifest.check(folder, [DATA_FILE], remedy)
    document = documents.read_object(folder / DATA_FILE, remedy, {"claims": list, "reproduction": dict})
    for number, row in enumerate(document["claims"]):
        if not isinstance(row, dict) or not {"text", "state", "study"} <= row.keys():
            raise UserError(f"{folder / DATA_FILE}: claims[{number}] is no statement; {remedy}")
    return document
