"""The reconciliation report: one page with its figures inside, the figures as files, and the same as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from trifecta.conclude.reconcile.experiments import Experiment
from trifecta.conclude.reconcile.read import PairResult, Reconciled, run_facts
from trifecta.contract.reproduction import ReproductionRun
from trifecta.design import numbers
from trifecta.design.phrases import counted
from trifecta.report.figures import picture_files, style, svg
from trifecta.report.figures.panels import DescribedFigure
from trifecta.report.map import picture
from trifecta.report.page_templates import page
from trifecta.report.reconcile import citation, conditions, figures, maps, tables, words

PAGE = "reconciliation.html"
FIGURES = "reconciliation-figures"
BIBTEX = "reconciliation.bib"


@dataclass(frozen=True)
class PairView:
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


def write(reconciliation: Reconciled) -> Path:
    """Write the page and return its path; its figures as SVG, PDF, PNG and CSV, and how to cite it as BibTeX."""
    from trifecta.store import files

    target, folder = reconciliation.folder / PAGE, reconciliation.folder / FIGURES
    with files.disk_errors(target):
        files.write_text(target, render(reconciliation))
        files.write_text(reconciliation.folder / BIBTEX, citation.bibtex(reconciliation))
        folder.mkdir(parents=True, exist_ok=True)
        for one in reconciliation.pairs:
            files.write_text(folder / f"{one.evidence.pair.id}.csv", tables.pair_table(one, reconciliation))
        files.write_text(folder / "procedures.csv", tables.procedures_table(reconciliation))
    with svg.drawing():
        for name, drawn in _named_figures(reconciliation):
            picture_files.write(drawn, folder, name)
        for name, drawn in _named_figures(reconciliation):  # anew: a figure is spent when it was written as a picture
            files.write_bytes(folder / f"{name}.pdf", picture_files.pdf_file(drawn))
    return target


def _named_figures(reconciliation: Reconciled) -> Sequence[tuple[str, DescribedFigure]]:
    """Each figure with its name."""
    figures_by_name = [(one.evidence.pair.id, figures.pair(one, reconciliation.claims)) for one in reconciliation.pairs]
    figures_by_name.append(("procedures", figures.procedures(reconciliation.procedures)))
    figures_by_name += [(one.name, picture.draw(one.result)) for one in reconciliation.maps]
    return [(name, drawn) for name, drawn in figures_by_name if drawn is not None]


def render(reconciliation: Reconciled) -> str:
    """The page as HTML that needs nothing else."""
    with svg.drawing():
        drawn = {name: one.svg(f"f-{name}") for name, one in _named_figures(reconciliation)}
    return page(
        "reconciliation.html.j2",
        trim=True,
        pairs=[_pair_view(one, reconciliation, drawn) for one in reconciliation.pairs],
        reconciliation=reconciliation,
        title=citation.TITLE,
        studies=citation.references(reconciliation),
        procedures=[words.procedure(one) for one in reconciliation.procedures],
        procedures_svg=drawn.get("procedures", ""),
        retries=_retries(reconciliation),
        methods=citation.methods(reconciliation),
        cite=citation.cite(reconciliation),
        bibtex=citation.bibtex(reconciliation),
        bibtex_file=BIBTEX,
        command=citation.command(reconciliation),
        versions=citation.versions(reconciliation),
        runs=_runs(reconciliation),
        missing=[
            {name: str(one.get(name, "")) for name in ("study", "what", "reason")} for one in reconciliation.missing
        ],
        maps=[(one.name, maps.summary(one), drawn[one.name], maps.command(one)) for one in reconciliation.maps],
        figures=FIGURES,
    )


def _pair_view(one: PairResult, reconciliation: Reconciled, drawn: dict[str, str]) -> PairView:
    pair = one.evidence.pair
    sides = []
    for side, states in zip(pair.sides, one.evidence.states, strict=True):
        claims = [
            {
                "id": claim,
                "text": str(reconciliation.claims.get(claim, {}).get("text", "")),
                "source": str(reconciliation.claims.get(claim, {}).get("source", "")),
                "state": words.answered(reconciliation.claims.get(claim, {}), states[claim]),
                "reason": str(reconciliation.claims.get(claim, {}).get("reason", "")),
            }
            for claim in side.claims
        ]
        sides.append({"says": side.says, "claims": claims})
    return PairView(
        identity=pair.id,
        question=pair.question,
        answer=words.answer(one.evidence),
        condition=words.condition(one.evidence),
        conjecture=pair.condition,
        sides=sides,
        svg=drawn.get(pair.id, ""),
        metrics=words.metrics(one.evidence),
        short=[*conditions.short(one), *maps.sentences(pair, reconciliation.maps)],
        rows=conditions.rows(one),
        says=[side.says for side in pair.sides],
        expected=any(cell.expected is not None for cell in one.cells),
        not_run=conditions.missing(one),
        decide=list(pair.decide),
        because=[(words.label(each.place), words.because(each)) for each in one.explained if each is not None],
        threats=[(str(each["threat"]), str(each.get("title", "")), words.threat(each)) for each in one.threats],
    )


def _retries(reconciliation: Reconciled) -> list[str]:
    """What hidden retries would do to ratios, place by place."""
    sentences = []
    for place, identity, change in reconciliation.retries:
        ends = numbers.interval((change.low, change.high))
        arms = next(one.evidence.pair for one in reconciliation.pairs if one.evidence.pair.id == identity)
        ratio = f"{style.name(arms.arm)} ÷ {style.name(arms.to)}"
        sentences.append(
            f"{words.label(place)}: {ratio} of the means would be {numbers.ratio(change.ratio)} {ends} times that."
        )
    return list(dict.fromkeys(sentences))


def _runs(reconciliation: Reconciled) -> list[dict[str, Any]]:
    """A row a run: what it was, when, how much of it counts, and with which seed."""
    rows = []
    for run in [*reconciliation.runs, *(_experiment(reconciliation, one) for one in reconciliation.experiments)]:
        folder = str(run.get("folder", ""))
        report = str(run.get("report") or "")
        rows.append(
            {
                "folder": folder,
                "report": report if report and (reconciliation.folder / report).is_file() else "",
                "began": str(run.get("started_utc") or "")[:16].replace("T", " "),
                "trials": run.get("trials", numbers.NO_VALUE),
                "valid": run.get("valid", numbers.NO_VALUE),
                "seed": numbers.NO_VALUE if run.get("seed") is None else run["seed"],
                "sha256": str(run.get("sha256") or "")[:12],
            }
        )
    return rows


def _experiment(reconciliation: Reconciled, experiment: Experiment) -> ReproductionRun:
    """An experiment as the runs of studies are told."""
    folder = f"threats/{experiment.name}"
    trials, valid = (
        sum(numbers) for numbers in zip(*((p.trials, len(p.rows)) for p in experiment.places), strict=True)
    )
    run: ReproductionRun = {"folder": folder, "report": f"{folder}/report.html", "trials": trials, "valid": valid}
    return {**run, **run_facts(reconciliation.folder, folder)}


def print_reconciled(reconciliation: Reconciled, console: Console | None = None) -> None:
    """Print the answers, pair by pair, and where the page is."""
    out = console or Console(highlight=False)
    for one in reconciliation.pairs:
        out.print(Text(one.evidence.pair.question, style="bold"))
        out.print(Text(f"  {words.answer(one.evidence)}"))
        further = [words.condition(one.evidence), conditions.missing(one)]
        for line in [
            *conditions.short(one),
            *maps.sentences(one.evidence.pair, reconciliation.maps),
            *filter(None, further),
        ]:
            out.print(Text(f"  {line}"))
    if reconciliation.procedures:
        out.print(Text("What the studies' own procedures would have concluded from our data", style="bold"))
        for each in reconciliation.procedures:
            out.print(Text(f"  {words.procedure(each)}"))
    for problem in reconciliation.problems:
        out.print(Text(f"left out: {problem}", style="yellow"))
    if reconciliation.missing:
        out.print(
            Text(f"{counted(len(reconciliation.missing), 'part')} of the studies could not be run; the page says why")
        )
    out.print(f"Page: {reconciliation.folder / PAGE}", soft_wrap=True, markup=False)
