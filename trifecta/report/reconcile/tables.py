"""The page's figures as data: CSV for a spreadsheet, and all of it for a program."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from trifecta.conclude.reconcile.read import PairResult, Reconciled
from trifecta.contract.values import JsonObject
from trifecta.report.reconcile import citation, conditions, maps, words

_PLACES = ("kind", "side", "claim", "run", "cell", "metric", "ratio", "low", "high", "blocks", "state", "published")


def pair_table(pair: PairResult, reconciliation: Reconciled) -> str:
    """Every cell of a pair's figure: those of the claims, then those of the experiments, a row for either side."""
    rows: list[Sequence[Any]] = []
    for side, places in zip(pair.evidence.pair.sides, pair.evidence.places, strict=True):
        for place in places:
            published = reconciliation.claims.get(place.claim, {}).get("published")
            rows.append(("claim", side.says, place.claim, place.run, place.cell, place.metric, place.ratio, place.low,
                         place.high, place.blocks, place.state, published))  # fmt: skip
    for cell in pair.cells:
        for side, truth in zip(pair.evidence.pair.sides, cell.truths, strict=True):
            if truth is not None:
                rows.append(("experiment", side.says, "", f"threats/{cell.experiment}", cell.cell, "time", cell.ratio,
                             cell.low, cell.high, cell.blocks, truth, None))  # fmt: skip
    return _csv(_PLACES, rows)


def procedures_table(reconciliation: Reconciled) -> str:
    """What every procedure concluded in every cell."""
    names = ("procedure", "arm", "reference", "winner", "draws", "wrong", "opposite", "rate", "low", "high", "named",
             "contradict", "ratio", "ratio_low", "ratio_high")  # fmt: skip
    rows = [
        (
            study,
            run,
            one.cell,
            *("open" if name == "winner" and one.winner is None else getattr(one, name) for name in names),
        )
        for study, run, one in reconciliation.concluded
    ]
    return _csv(("study", "run", "cell", *("truth" if name == "winner" else name for name in names)), rows)


def _csv(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    return buffer.getvalue()


def as_data(reconciliation: Reconciled) -> JsonObject:
    """All of the page for a program."""
    return {
        "folder": str(reconciliation.folder),
        "command": citation.command(reconciliation),
        "methods": citation.methods(reconciliation),
        "cite": citation.cite(reconciliation),
        "bibtex": citation.bibtex(reconciliation),
        "references": citation.references(reconciliation),
        "versions": dict(citation.versions(reconciliation)),
        "pairs": [_pair(one, reconciliation) for one in reconciliation.pairs],
        "procedures": [asdict(one) for one in reconciliation.procedures],
        "problems": reconciliation.problems,
    }


def _pair(one: PairResult, reconciliation: Reconciled) -> dict[str, Any]:
    pair = one.evidence.pair
    return {
        "id": pair.id,
        "question": pair.question,
        "outcome": one.evidence.outcome,
        "answer": words.answer(one.evidence),
        "condition": [*conditions.short(one), *maps.sentences(pair, reconciliation.maps)],
        "differ": {name: [list(side) for side in sides] for name, sides in one.evidence.differ.items()},
        "sides": [
            {"says": side.says, "holds": holds, "states": dict(states), "places": [asdict(place) for place in places]}
            for side, holds, states, places in zip(
                pair.sides, one.evidence.holds, one.evidence.states, one.evidence.places, strict=True
            )
        ],
        "experiments": [asdict(cell) for cell in one.cells],
        "not_run": list(one.not_run),
        "decide": [{"what": what, "run": run} for what, run in pair.decide],
        "because": [
            {"run": each.place.run, "cell": each.place.cell, "sentences": words.because(each)}
            for each in one.explained
            if each is not None
        ],
        "threats": [
            {"threat": each["threat"], "outcome": each.get("outcome"), "said": words.threat(each)}
            for each in one.threats
        ],
    }


def as_json(reconciliation: Reconciled) -> str:
    """The same as text."""
    return json.dumps(as_data(reconciliation), indent=1, ensure_ascii=False)
