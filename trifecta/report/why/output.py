"""A search for causes written beside its runs, and printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from trifecta.contract.why import NotMeasured, WhyDocument
from trifecta.design import naming
from trifecta.design.why.candidate import Candidate
from trifecta.design.why.change import Change
from trifecta.report import grids, page_templates
from trifecta.report.figures import picture_files, svg
from trifecta.report.ladder.words import ratio
from trifecta.report.why import picture, section, words
from trifecta.store import files, why

PICTURE, PAGE = "why", "why.html"
_STYLES = {"explains": "bold", "hides": "magenta", "nothing": "dim", "open": "yellow"}
_CAUSES_SHOWN = 12


def write(document: WhyDocument, folder: Path) -> None:
    """Write ``why.json``, ``why.svg``, ``why.png`` and ``why.html``."""
    why.write(folder, document)
    with svg.drawing():
        picture_files.write(picture.draw(document), folder, PICTURE)
    with files.disk_errors(folder):
        files.write_text(folder / PAGE, page(document))


def page(document: WhyDocument) -> str:
    """The page of a search."""
    with svg.drawing():
        shown = section.why_view(document, "why", "")
    return page_templates.page("why-page.html.j2", one=shown, document=document)


def print_result(document: WhyDocument, folder: Path, console: Console | None = None) -> None:
    """One screen: the answer, each cause, the largest two together, and what could not be measured."""
    out = console or Console(highlight=False)
    out.print(Text(_plain(out, words.answer(document)), style="bold"), soft_wrap=True)
    out.print(Text(words.quantity(document), style="dim"), soft_wrap=True)
    grid = grids.grid(out)
    grid.add_column("without", overflow="fold")
    for name in ("remains", "share of it", "so it"):
        grid.add_column(name, no_wrap=True)
    for place, one in enumerate(document["causes"][:_CAUSES_SHOWN]):
        if document["nearest"] is not None and place == words.first_nearest(document):
            grid.add_row(*(Text(_plain(out, text)) for text in (words.AS_NEAREST, ratio(document["nearest"]), "", "")))
        texts = [_plain(out, text) for text in (one["title"], ratio(one), words.share(one))]
        grid.add_row(*map(Text, texts), Text(words.STATES[one["state"]], style=_STYLES[one["state"]]))
    grids.show(out, grid)
    removed = [words.removed_words(one) for one in document["causes"][:_CAUSES_SHOWN]]
    if removed:
        out.print(Text(_plain(out, f"Removed by: {'; '.join(removed)}."), style="dim"), soft_wrap=True)
    if (more := len(document["causes"]) - _CAUSES_SHOWN) > 0:
        out.print(Text(f"{more} more in why.json.", style="dim"))
    for line in words.closing(document):
        out.print(Text(_plain(out, line)), soft_wrap=True)
    for what, ones in (("Cannot be switched", document["not_switched"]), ("Not measured", document["not_measured"])):
        if ones:
            out.print(Text(f"{what}: {_reasons(ones)}.", style="dim"), soft_wrap=True)
    if lost := words.left_out(document):
        out.print(Text(lost, style="yellow"), soft_wrap=True)
    out.print(f"Page: {folder / PAGE}", soft_wrap=True, markup=False)


def _reasons(ones: Sequence[NotMeasured]) -> str:
    """Causes by the reason that they share."""
    by: dict[str, list[str]] = {}
    for one in ones:
        by.setdefault(one["why"], []).append(one["title"])
    return "; ".join(f"{', '.join(titles)}: {why}" for why, titles in by.items())


def _plain(out: Console, text: str) -> str:
    return grids.plain(out, text)


def print_list(candidates: Sequence[Candidate], console: Console | None = None) -> None:
    """The causes that a cell may have, the most suspected first, each with what removes it or why nothing can."""
    out = console or Console(highlight=False)
    for one in candidates:
        title = f"{one.cause.id}: {one.cause.title}"
        out.print(Text(title, style="dim" if one.problem else "bold"), soft_wrap=True)
        out.print(Text(f"  {one.problem or _changes(one)}; {one.suspect.reason}"), soft_wrap=True)


def _changes(candidate: Candidate) -> str:
    change = candidate.change or Change()
    fields = [f"{name}={level}" for name, level in change.levels]
    fields += [f"path.{name}={value}" for name, value in change.path]
    where = [f"{naming.name(candidate.only)} only"] * bool(candidate.only) + [words.NEAREST.lower()] * candidate.nearest
    return ", ".join([*fields, *where])
