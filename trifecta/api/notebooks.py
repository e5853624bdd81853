"""Writes a notebook that opens a run, asks three questions of it and draws: of marimo, or of Jupyter (nbformat 4.5)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from trifecta.design.errors import UserError
from trifecta.store import files
from trifecta.store.run import RunDirectory

MARIMO, JUPYTER = ".py", ".ipynb"
"""The endings of the files of each."""
_WRITTEN_FOR = "0.25.2"  # marimo, which asks for the version of the file's format


@dataclass(frozen=True)
class Cell:
    """Code with the names that it takes from other cells and gives to them, or text in Markdown."""

    text: str
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    code: bool = True


_HEAD = """# A run of Trifecta

Its tables are `run.trials`, `run.samples`, `run.verdicts` and so on; `.df()` and `.pl()` make frames of them.
`trifecta sql RUN` lists them with what each column means."""
_COMPARED = (
    Cell(
        """## Who is faster where, and how sure is it?

The ratio in every cell with its interval, which holds at every look: filled when decided, hollow when open.""",
        code=False,
    ),
    Cell("run.plot.ratios()", takes=("run",)),
    Cell(
        '''run.sql("""
    SELECT cell, arm, reference, verdict, ratio, low, high, blocks, reason
    FROM verdicts ORDER BY ALL
""").df()''',
        takes=("run",),
    ),
)
# Of a study with one arm, which has no verdicts.
_ALONE = (
    Cell("## How fast is it in each cell?\n\nMedians over the trials that count; times in ms.", code=False),
    Cell(
        '''run.sql("""
    SELECT cell, count(*) AS trials, median(latency_p50_ns) / 1e6 AS p50_ms, median(latency_p99_ns) / 1e6 AS p99_ms
    FROM trials WHERE valid AND NOT is_aa GROUP BY cell ORDER BY cell
""").df()''',
        takes=("run",),
    ),
)
_MORE = (
    Cell(
        """## How are the times of requests distributed?

In one cell; take another of `run.cells`. A curve that ends below 100 % had failures.""",
        code=False,
    ),
    Cell("cell = run.cells[0]\ncell", takes=("run",), gives=("cell",)),
    Cell("run.plot.ecdf(cell)", takes=("cell", "run")),
    Cell(
        """## Were machine and path calm, and what was left out?

Trials that do not count are hollow; below, the checks that failed or warned.""",
        code=False,
    ),
    Cell("run.plot.blocks(cell)", takes=("cell", "run")),
    Cell(
        '''run.sql("""
    SELECT "check", status, count(*) AS times, min(evidence) AS for_example
    FROM checks WHERE status IN ('fail', 'warn') GROUP BY "check", status ORDER BY status, "check"
""").df()''',
        takes=("run",),
    ),
)


def cells(run: Path, *, compares: bool) -> list[Cell]:
    """The notebook of a run: nothing that was measured is in it but the name of the folder."""
    opening = [
        Cell(_HEAD, code=False),
        Cell("import trifecta", gives=("trifecta",)),
        Cell(f"run = trifecta.open({str(run)!r})\nrun", takes=("trifecta",), gives=("run",)),
    ]
    return [*opening, *(_COMPARED if compares else _ALONE), *_MORE]


def write(run: Path, out: Path) -> Path:
    """Write the notebook of a run; the ending of ``out`` says of which kind. The file.

    UserError for a folder that is no run or has no trial yet, for another ending, and for a file that is there: it may
    have been worked on.
    """
    from trifecta.conclude import facts

    if out.suffix not in (MARIMO, JUPYTER):
        raise UserError(f"{out}: ends with neither {MARIMO} (marimo) nor {JUPYTER} (Jupyter); give another with --out")
    directory = RunDirectory.open(run)
    if not directory.trial_names():
        raise UserError(f"{run} has no finished trial yet, so there is nothing to ask; wait for the first")
    if out.exists():
        raise UserError(f"{out} is there, and may have been worked on; choose another with --out, or remove it")
    if not out.absolute().parent.is_dir():
        raise UserError(f"{out.parent} is no folder; make it, or choose another with --out")
    notebook_cells = cells(directory.path, compares=bool(facts.read(directory.path).pairs))
    with files.disk_errors(out):
        files.write_text(out, marimo(notebook_cells) if out.suffix == MARIMO else jupyter(notebook_cells))
    return out


def marimo(cells: list[Cell]) -> str:
    """The cells as marimo keeps them: a program, with a function a cell."""
    parts = [f'import marimo\n\n__generated_with = "{_WRITTEN_FOR}"\napp = marimo.App(width="medium")\n']
    parts.append(_function(Cell("import marimo as mo", gives=("mo",))))
    for cell in cells:
        if cell.code:
            parts.append(_function(cell))
        else:
            parts.append(_function(Cell(f'mo.md(r"""\n{cell.text}\n""")', takes=("mo",)), "(hide_code=True)"))
    parts.append('if __name__ == "__main__":\n    app.run()\n')
    return "\n\n".join(parts)


def _function(cell: Cell, options: str = "") -> str:
    body = "\n".join(f"    {line}" if line else "" for line in cell.text.splitlines())
    given = f"return ({', '.join(cell.gives)},)" if cell.gives else "return"
    return f"@app.cell{options}\ndef _({', '.join(cell.takes)}):\n{body}\n    {given}\n"


def jupyter(cells: list[Cell]) -> str:
    """The cells as Jupyter keeps them, nbformat 4.5, without an output."""
    document_cells: list[dict[str, object]] = []
    for number, cell in enumerate(cells, 1):
        kind: dict[str, object] = {"cell_type": "markdown"}
        if cell.code:
            kind = {"cell_type": "code", "execution_count": None, "outputs": []}
        source = cell.text.splitlines(keepends=True)
        document_cells.append(kind | {"id": f"cell-{number:02d}", "metadata": {}, "source": source})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {
        "cells": document_cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
