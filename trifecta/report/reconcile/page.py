"""The reconciliation report: one page with its figures inside, the figures as files, and the same as data."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from trifecta import __version__
from trifecta.report import numbers
from trifecta.report.figures import picture_files, svg
from trifecta.report.figures.panels import Drawn
from trifecta.report.html import TEMPLATES
from trifecta.report.reconcile import figures, words
from trifecta.report.reconcile.read import PairFound, Reconciled

PAGE = "reconciliation.html"
FIGURES = "reconciliation-figures"


@dataclass(frozen=True)
class Shown:
    """A pair as the page shows it."""

    identity: str
    question: str
    answer: str
    condition: str
    conjecture: str
    sides: list[dict[str, Any]]
    svg: str
    metrics: str
    because: list[tuple[str, list[str]]]
    threats: list[tuple[str, str, str]]


def write(found: Reconciled) -> Path:
    """Write the page and its figures (SVG and PNG, in ``reconciliation-figures``) and return the page's path."""
    from trifecta.store import files

    target = found.folder / PAGE
    text = render(found)
    with files.disk_errors(target):
        files.write_text(target, text)
    with svg.drawing():
        for name, drawn in _drawn(found):
            picture_files.write(drawn, found.folder / FIGURES, name)
    return target


def _drawn(found: Reconciled) -> Sequence[tuple[str, Drawn]]:
    """Each figure with its name; drawn anew, for a figure is spent when it was written as a picture."""
    made = [(one.found.pair.id, figures.pair(one.found, found.claims)) for one in found.pairs]
    made.append(("procedures", figures.procedures(found.procedures)))
    return [(name, drawn) for name, drawn in made if drawn is not None]


def render(found: Reconciled) -> str:
    """The page as HTML that needs nothing else."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    with svg.drawing():
        drawn = {name: one.svg(f"f-{name}") for name, one in _drawn(found)}
    css = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    return environment.get_template("reconciliation.html.j2").render(
        pairs=[_shown(one, found, drawn) for one in found.pairs],
        found=found,
        procedures=[words.procedure(one) for one in found.procedures],
        procedures_svg=drawn.get("procedures", ""),
        retries=_retries(found),
        methods=methods(found),
        cite=cite(found),
        command=command(found),
        versions=_versions(found),
        figures=FIGURES,
        css=css,
    )


def _shown(one: PairFound, found: Reconciled, drawn: dict[str, str]) -> Shown:
    pair = one.found.pair
    sides = []
    for side, states in zip(pair.sides, one.found.states, strict=True):
        claims = [
            {
                "id": claim,
                "text": str(found.claims.get(claim, {}).get("text", "")),
                "source": str(found.claims.get(claim, {}).get("source", "")),
                "state": states[claim],
                "reason": str(found.claims.get(claim, {}).get("reason", "")),
            }
            for claim in side.claims
        ]
        sides.append({"says": side.says, "claims": claims})
    return Shown(
        identity=pair.id,
        question=pair.question,
        answer=words.answer(one.found),
        condition=words.condition(one.found),
        conjecture=pair.condition,
        sides=sides,
        svg=drawn.get(pair.id, ""),
        metrics=words.metrics(one.found),
        because=[(words.label(each.place), words.because(each)) for each in one.explained if each is not None],
        threats=[(str(each["threat"]), str(each.get("title", "")), words.threat(each)) for each in one.threats],
    )


def _retries(found: Reconciled) -> list[str]:
    """What hidden retries would do to ratios, place by place."""
    told = []
    for place, _, change in found.retries:
        ends = numbers.interval((change.low, change.high))
        told.append(
            f"{words.label(place)}: the ratio of the means would be {numbers.ratio(change.ratio)} {ends} times."
        )
    return list(dict.fromkeys(told))


def command(found: Reconciled) -> str:
    """The command that makes all of it again."""
    argv = [str(word) for word in found.asked.get("argv") or ()]
    shown = ["trifecta", *argv[1:]] if argv else ["trifecta", "reproduce", "all", "--quick"]
    return shlex.join(shown)


def methods(found: Reconciled) -> str:
    """A paragraph on how it was measured, fit to be quoted."""
    trials = sum(int(run.get("trials") or 0) for run in found.runs)
    valid = sum(int(run.get("valid") or 0) for run in found.runs)
    seconds = sum(float(value) for value in (found.asked.get("elapsed_s") or {}).values())
    began = found.asked.get("began", "an unknown day")
    version, runs = found.asked.get("version", __version__), found.runs
    studied, lasted = len(found.asked.get("studies") or ()), numbers.duration(seconds * 1e9)
    return (
        f"Trifecta {version} ran the treatments of {studied} published studies on one machine, from {began} on, for "
        f"{lasted}: {len(runs)} runs with {numbers.count(trials)} trials, of which {numbers.count(valid)} passed every "
        "check and count. A block held every protocol once and HTTP/2 twice, in random order, over the same emulated "
        "path with the same impairment seed. One trial gives one value; ratios are geometric means over blocks, paired "
        "within them; intervals are at 95 %. A published claim is confirmed when the whole interval lies beyond the "
        "margin on the claimed side, contradicted when it lies short of that, and open otherwise. Failed requests "
        "count as infinitely long; nothing is tried again. What a study's own procedure would have concluded was drawn "
        "from the same samples, 200 times a cell; the right answer is that of all blocks, and where these name no "
        "protocol every name is wrong."
    )


def cite(found: Reconciled) -> str:
    """How to cite the page."""
    day = str(found.asked.get("began", ""))[:10]
    seeds = sorted({run["seed"] for run in found.runs if run.get("seed") is not None})
    seeded = f", seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}" if seeds else ""
    return (
        f"The Trifecta authors, “Four studies of HTTP/3 reconciled”, reproduction of {day or 'unknown date'} with "
        f"Trifecta {found.asked.get('version', __version__)}{seeded}, made by “{command(found)}”."
    )


def _versions(found: Reconciled) -> list[tuple[str, str]]:
    machine = found.asked.get("machine") or {}
    rows = _flat(machine) if isinstance(machine, dict) else []
    return [(name, text) for name, text in rows if text]


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [pair for key, inner in value.items() for pair in _flat(inner, f"{name} {key}".strip())]
    if isinstance(value, list):
        return [(name.replace("_", " "), ", ".join(str(inner) for inner in value))]
    return [(name.replace("_", " "), "" if value is None else str(value))]


def as_data(found: Reconciled) -> dict[str, Any]:
    """The same for a program."""
    return {
        "folder": str(found.folder),
        "command": command(found),
        "methods": methods(found),
        "cite": cite(found),
        "pairs": [
            {
                "id": one.found.pair.id,
                "question": one.found.pair.question,
                "outcome": one.found.outcome,
                "answer": words.answer(one.found),
                "differ": {name: [list(side) for side in sides] for name, sides in one.found.differ.items()},
                "sides": [
                    {"says": side.says, "states": dict(states), "places": [asdict(place) for place in places]}
                    for side, states, places in zip(
                        one.found.pair.sides, one.found.states, one.found.places, strict=True
                    )
                ],
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
            for one in found.pairs
        ],
        "procedures": [asdict(one) for one in found.procedures],
        "problems": found.problems,
    }


def as_json(found: Reconciled) -> str:
    """The same as text."""
    return json.dumps(as_data(found), indent=1, ensure_ascii=False)


def print_reconciled(found: Reconciled, console: Console | None = None) -> None:
    """Print the answers, pair by pair, and where the page is."""
    out = console or Console(highlight=False)
    for one in found.pairs:
        out.print(Text(one.found.pair.question, style="bold"))
        out.print(Text(f"  {words.answer(one.found)}"))
        if told := words.condition(one.found):
            out.print(Text(f"  {told}"))
    if found.procedures:
        out.print(Text("What the studies' own procedures would have concluded from our data", style="bold"))
        for each in found.procedures:
            out.print(Text(f"  {words.procedure(each)}"))
    for problem in found.problems:
        out.print(Text(f"left out: {problem}", style="yellow"))
    out.print(f"Page: {found.folder / PAGE}", soft_wrap=True, markup=False)
