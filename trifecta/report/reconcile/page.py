"""The reconciliation report: one page with its figures inside, the figures as files, and the same as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from trifecta.conclude.reconcile.experiments import Experiment
from trifecta.conclude.reconcile.read import PairFound, Reconciled, run_facts
from trifecta.contract.reproduction import RunTold
from trifecta.design import numbers
from trifecta.design.phrases import counted
from trifecta.report.figures import picture_files, style, svg
from trifecta.report.figures.panels import Drawn
from trifecta.report.map import picture
from trifecta.report.page_templates import page
from trifecta.report.reconcile import citation, conditions, figures, maps, tables, words

PAGE = "reconciliation.html"
FIGURES = "reconciliation-figures"
BIBTEX = "reconciliation.bib"


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
    short: list[str]
    rows: list[conditions.Row]
    says: list[str]
    expected: bool
    not_run: str
    decide: list[tuple[str, str]]
    because: list[tuple[str, list[str]]]
    threats: list[tuple[str, str, str]]


def write(found: Reconciled) -> Path:
    """Write the page and return its path; its figures as SVG, PDF, PNG and CSV, and how to cite it as BibTeX."""
    from trifecta.store import files

    target, folder = found.folder / PAGE, found.folder / FIGURES
    with files.disk_errors(target):
        files.write_text(target, render(found))
        files.write_text(found.folder / BIBTEX, citation.bibtex(found))
        folder.mkdir(parents=True, exist_ok=True)
        for one in found.pairs:
            files.write_text(folder / f"{one.found.pair.id}.csv", tables.of_pair(one, found))
        files.write_text(folder / "procedures.csv", tables.of_procedures(found))
    with svg.drawing():
        for name, drawn in _drawn(found):
            picture_files.write(drawn, folder, name)
        for name, drawn in _drawn(found):  # anew: a figure is spent when it was written as a picture
            files.write_bytes(folder / f"{name}.pdf", picture_files.pdf_file(drawn))
    return target


def _drawn(found: Reconciled) -> Sequence[tuple[str, Drawn]]:
    """Each figure with its name."""
    made = [(one.found.pair.id, figures.pair(one, found.claims)) for one in found.pairs]
    made.append(("procedures", figures.procedures(found.procedures)))
    made += [(one.name, picture.draw(one.made)) for one in found.maps]
    return [(name, drawn) for name, drawn in made if drawn is not None]


def render(found: Reconciled) -> str:
    """The page as HTML that needs nothing else."""
    with svg.drawing():
        drawn = {name: one.svg(f"f-{name}") for name, one in _drawn(found)}
    return page(
        "reconciliation.html.j2",
        trim=True,
        pairs=[_shown(one, found, drawn) for one in found.pairs],
        found=found,
        title=citation.TITLE,
        studies=citation.references(found),
        procedures=[words.procedure(one) for one in found.procedures],
        procedures_svg=drawn.get("procedures", ""),
        retries=_retries(found),
        methods=citation.methods(found),
        cite=citation.cite(found),
        bibtex=citation.bibtex(found),
        bibtex_file=BIBTEX,
        command=citation.command(found),
        versions=citation.versions(found),
        runs=_runs(found),
        missing=[{name: str(one.get(name, "")) for name in ("study", "what", "reason")} for one in found.missing],
        maps=[(one.name, maps.summary(one), drawn[one.name], maps.command(one)) for one in found.maps],
        figures=FIGURES,
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
                "state": words.answered(found.claims.get(claim, {}), states[claim]),
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
        short=[*conditions.short(one), *maps.sentences(pair, found.maps)],
        rows=conditions.rows(one),
        says=[side.says for side in pair.sides],
        expected=any(cell.expected is not None for cell in one.cells),
        not_run=conditions.missing(one),
        decide=list(pair.decide),
        because=[(words.label(each.place), words.because(each)) for each in one.explained if each is not None],
        threats=[(str(each["threat"]), str(each.get("title", "")), words.threat(each)) for each in one.threats],
    )


def _retries(found: Reconciled) -> list[str]:
    """What hidden retries would do to ratios, place by place."""
    told = []
    for place, identity, change in found.retries:
        ends = numbers.interval((change.low, change.high))
        arms = next(one.found.pair for one in found.pairs if one.found.pair.id == identity)
        ratio = f"{style.name(arms.arm)} ÷ {style.name(arms.to)}"
        told.append(
            f"{words.label(place)}: {ratio} of the means would be {numbers.ratio(change.ratio)} {ends} times that."
        )
    return list(dict.fromkeys(told))


def _runs(found: Reconciled) -> list[dict[str, Any]]:
    """A row a run: what it was, when, how much of it counts, and with which seed."""
    made = []
    for run in [*found.runs, *(_experiment(found, one) for one in found.experiments)]:
        folder = str(run.get("folder", ""))
        report = str(run.get("report") or "")
        made.append(
            {
                "folder": folder,
                "report": report if report and (found.folder / report).is_file() else "",
                "began": str(run.get("started_utc") or "")[:16].replace("T", " "),
                "trials": run.get("trials", numbers.NO_VALUE),
                "valid": run.get("valid", numbers.NO_VALUE),
                "seed": numbers.NO_VALUE if run.get("seed") is None else run["seed"],
                "sha256": str(run.get("sha256") or "")[:12],
            }
        )
    return made


def _experiment(found: Reconciled, one: Experiment) -> RunTold:
    """An experiment as the runs of studies are told."""
    folder = f"threats/{one.name}"
    trials, valid = (sum(numbers) for numbers in zip(*((p.trials, len(p.rows)) for p in one.places), strict=True))
    made: RunTold = {"folder": folder, "report": f"{folder}/report.html", "trials": trials, "valid": valid}
    return {**made, **run_facts(found.folder, folder)}


def print_reconciled(found: Reconciled, console: Console | None = None) -> None:
    """Print the answers, pair by pair, and where the page is."""
    out = console or Console(highlight=False)
    for one in found.pairs:
        out.print(Text(one.found.pair.question, style="bold"))
        out.print(Text(f"  {words.answer(one.found)}"))
        further = [words.condition(one.found), conditions.missing(one)]
        for told in [*conditions.short(one), *maps.sentences(one.found.pair, found.maps), *filter(None, further)]:
            out.print(Text(f"  {told}"))
    if found.procedures:
        out.print(Text("What the studies' own procedures would have concluded from our data", style="bold"))
        for each in found.procedures:
            out.print(Text(f"  {words.procedure(each)}"))
    for problem in found.problems:
        out.print(Text(f"left out: {problem}", style="yellow"))
    if found.missing:
        out.print(Text(f"{counted(len(found.missing), 'part')} of the studies could not be run; the page says why"))
    out.print(f"Page: {found.folder / PAGE}", soft_wrap=True, markup=False)
