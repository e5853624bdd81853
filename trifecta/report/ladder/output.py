"""A ladder written beside its runs, and printed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from trifecta.conclude import ladder_results
from trifecta.contract.ladder import LadderDocument, RatioInterval
from trifecta.design.ladder import Ladder
from trifecta.design.phrases import counted
from trifecta.report import grids
from trifecta.report.figures import picture_files, svg
from trifecta.report.ladder import picture, words
from trifecta.store import files, results_manifest

TABLE = "ladder.csv"
PICTURE = "ladder"
_COLUMNS = (
    "part", "name", "title", "exchange", "metric", "ratio", "low", "high", "blocks", "p_holm", "counts", "source", "why"
)  # fmt: skip
_COLOURS = {"confirmed": "green", "held then": "magenta", "contradicted": "red", "open": "yellow"}


def write(document: LadderDocument, folder: Path) -> None:
    """Write ``ladder.json``, ``ladder.csv``, ``ladder.svg`` and ``ladder.png``."""
    ladder_results.write(folder, document)
    with files.disk_errors(folder):
        files.write_text(folder / TABLE, as_csv(document))
        results_manifest.note(folder, [TABLE])
        with svg.drawing():
            picture_files.write(picture.draw(document), folder, PICTURE)


def as_csv(document: LadderDocument) -> str:
    """A line a part of the picture: published, rungs, steps, end to end, the sum, what is left, and both orders."""
    out = io.StringIO()
    table = csv.DictWriter(out, _COLUMNS, lineterminator="\n")
    table.writeheader()
    for row in _rows(document):
        table.writerow({name: "" if value is None else value for name, value in row.items()})
    return out.getvalue()


def _rows(document: LadderDocument) -> Iterator[dict[str, str | float | int | bool | None]]:
    ends = document["published_range"] or []
    row: dict[str, str | float | int | bool | None] = {"part": "published", "title": document["published"]}
    if ends:
        row |= {"ratio": ends[0] if ends[0] == ends[-1] else None, "low": ends[0], "high": ends[-1]}
    yield row
    for number, rung in enumerate(document["rungs"]):
        yield {"part": "rung", "name": str(number), "exchange": rung["cell"], "metric": rung["metric"], **_ends(rung)}
    for step in document["steps"]:
        own = {name: step[name] for name in ("title", "p_holm", "counts", "source", "why")}
        yield {"part": "step", "name": step["step"], "exchange": words.exchanged(step), **own, **_ends(step)}
    for name in ("whole", "sum", "left"):
        yield {"part": name, **_ends(document[name])}
    for one in document["orders"]:
        for order in ("before", "after", "interaction"):
            yield {"part": order, "name": one["step"], **_ends(one[order])}


def _ends(interval: RatioInterval) -> dict[str, float | int | None]:
    return {"ratio": interval["ratio"], "low": interval["low"], "high": interval["high"], "blocks": interval["blocks"]}


def print_ladder(document: LadderDocument, folder: Path, console: Console | None = None) -> None:
    """The table: published, rung by rung with each step's effect, today, and what follows."""
    out = console or Console(highlight=False)
    out.print(Text(f"{document['ladder']}: {document['title']}", style="bold"), soft_wrap=True)
    out.print(Text(f"{document['text']} ({document['claim']}, {document['source']})"), soft_wrap=True)
    out.print(Text(words.quantity(document), style="dim"), soft_wrap=True)
    grid = grids.grid(out)
    grid.add_column("rung", overflow="fold", ratio=4)
    grid.add_column("ratio", overflow="fold", ratio=2)
    grid.add_column("step", overflow="fold", ratio=2)
    grid.add_column("rounds", justify="right")
    grid.add_row(Text(f"published: {document['published']}"), Text(_plain(out, words.published(document))), "", "")
    first, *rungs = document["rungs"]
    grid.add_row("published conditions, here", _plain(out, words.ratio(first)), "", str(first["blocks"]))
    for rung, step in zip(rungs, document["steps"], strict=True):
        change = Text(_plain(out, f"× {words.ratio(step)}"), style="bold" if step["counts"] else "dim")
        title = Text(_plain(out, f"{step['title']} ({words.exchanged(step)})").replace("→", "->"))
        grid.add_row(title, Text(_plain(out, words.ratio(rung))), change, _rounds(rung["blocks"], step["blocks"]))
    out.print(grid)
    out.print(Text(_plain(out, words.closing(document))), soft_wrap=True)
    for one in document["orders"]:
        out.print(Text(_plain(out, words.order(one))), soft_wrap=True)
    if document["no_orders"]:
        out.print(Text(f"Two steps in the other order: {document['no_orders']}.", style="dim"), soft_wrap=True)
    if lost := words.left_out(document):
        out.print(Text(lost, style="yellow"), soft_wrap=True)
    if document["lacks"]:
        out.print(Text(f"Not as published: {'; '.join(document['lacks'])}.", style="dim"), soft_wrap=True)
    out.print(Text(_plain(out, words.answer(document)), style=_COLOURS.get(document["answer"], "cyan")), soft_wrap=True)
    out.print(f"Picture: {folder / PICTURE}.svg", soft_wrap=True, markup=False)
    out.print()


def _rounds(rung: int, step: int) -> str:
    """The last rung has been run from end to end, too, where its step has not."""
    return str(rung) if rung == step else f"{rung}, step {step}"


def _plain(out: Console, text: str) -> str:
    return grids.plain(out, text).replace("→", "->")


def print_list(ladders: list[Ladder], console: Console | None = None) -> None:
    """What ladders there are: their claims and their steps."""
    out = console or Console(highlight=False)
    for one in ladders:
        out.print(Text(f"{one.id}: {one.title}", style="bold"), soft_wrap=True)
        rounds = f"{counted(one.quick_rounds, 'round')} with --quick, {one.full_rounds} with --full"
        out.print(Text(f"  claim {one.claim}; {rounds}"), soft_wrap=True)
        for step in one.steps:
            out.print(Text(f"  {step.id}: {step.title}. {step.why}"), soft_wrap=True)
