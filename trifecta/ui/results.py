"""Maps, ladders and reproductions as the page shows them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

from trifecta.analysis.answers import Answer
from trifecta.analysis.mapping.result import MapResult
from trifecta.conclude import ladder_results, maps
from trifecta.contract.ladder import LadderDocument, RatioInterval
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
    content = {"map": _map, "ladder": _ladder, "reproduction": _reproduction}[kind](folder)
    return {"name": name, "kind": kind, **content}


def _map(folder: Path) -> JsonObject:
    result = maps.load(folder)
    with page.naming_of(result):
        return _of_map(result)


def _of_map(result: MapResult) -> JsonObject:
    x, y = result.plan.x, result.plan.y
    places = _places(result)
    metric = METRICS[result.metric]
    rows = [
        [y.texts[j], *(f"{places[i * len(y.values) + j]['text']}" for i in range(len(x.values)))]
        for j in reversed(range(len(y.values)))
        if places
    ]
    arm, reference, better = style.name(result.plan.arm), style.name(result.plan.reference), is_(metric, "faster")
    return {
        "title": f"{arm} ÷ {reference}",
        "headline": words.headline(result),
        "lines": [
            words.noise(result.noise, result.plan.reference),
            *([nodes] if (nodes := words.nodes(result)) else []),
            f"Metric: {metric.label}.",
            f"▲ {arm} {better}, ▼ {reference} {better}, = the same, ? open",
        ],
        "x": {"name": x.name, "texts": x.texts},
        "y": {"name": y.name, "texts": y.texts},
        "places": places,
        "table": tables.table(f"{y.name} ↓  {x.name} →", [y.name, *x.texts], rows),
    }


def _places(result: MapResult) -> list[dict[str, Any]]:
    """What the map says at each place of its grid, by the functions that its page says it with."""
    if (sides := result.sides()) is None:
        return []
    up = len(result.plan.y.values)
    rows = []
    for number, outcome in enumerate(sides.outcomes):
        i, j = divmod(number, up)
        here = result.at(result.plan.x.values[i], result.plan.y.values[j])
        rows.append(
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
    return rows


def _ladder(folder: Path) -> JsonObject:
    document = ladder_results.load(folder)
    rungs, steps = document["rungs"], document["steps"]
    titles = ["published conditions, here", *(f"{one['title']} ({ladder_words.exchanged(one)})" for one in steps)]
    changes = ["", *(f"× {ladder_words.ratio(one)}" for one in steps)]
    rows = [[f"published: {document['published']}", ladder_words.published(document), "", "", ""]]
    for title, rung, change, step in zip(titles, rungs, changes, [None, *steps], strict=True):
        why = "" if step is None else f"{step['why']} ({step['source']})"
        rows.append([title, ladder_words.ratio(rung), change, numbers.count(rung["blocks"]), why])
    return {
        "title": document["title"],
        "headline": ladder_words.answer(document),
        "lines": [f"{document['text']} ({document['claim']}, {document['source']})", *_closing(document)],
        "quantity": ladder_words.quantity(document),
        "rungs": [_rung(title, rung, f"{title}: {ladder_words.ratio(rung)}") for title, rung in zip(titles, rungs,
                  strict=True)],
        "table": tables.table("Rungs", ["rung", "ratio", "step", "rounds", "why"], rows, numeric=[1, 2, 3]),
    }  # fmt: skip


def _rung(title: str, interval: RatioInterval, text: str) -> dict[str, Any]:
    return {
        "title": title,
        "said": text,
        **{name: tables.json_value(interval[name]) for name in ("ratio", "low", "high")},
    }


def _closing(document: LadderDocument) -> list[str]:
    lines = [
        ladder_words.closing(document),
        *map(ladder_words.order, document["orders"]),
        ladder_words.left_out(document),
    ]
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
            **{name: tables.json_value(row.get(name)) for name in ("ratio", "low", "high")},
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
