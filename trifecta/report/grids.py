"""Tables of the terminal that several commands print."""

from __future__ import annotations

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

# What stands for a sign where the terminal has ASCII alone.
_ASCII = {
    "∞": "inf", "µ": "u", "–": "-", "“": '"', "”": '"', "†": "^", "÷": "/", "─": "-", "●": "*", "○": "o", "│": "|",
    "⁶": "^6",
}  # fmt: skip
_FOLDED = 10  # a column that folds is read down to this width


def grid(out: Console) -> Table:
    """An empty table with a line below its head, in ASCII where the terminal has no more."""
    edges = box.SIMPLE_HEAD if out.encoding.lower().startswith("utf") else box.ASCII
    return Table(box=edges, show_edge=False, padding=(0, 1, 0, 0))


def plain(out: Console, sentence: str) -> str:
    """What the terminal can show: the signs beyond ASCII only where its encoding has them."""
    sentence = sentence.replace("×", "x")
    if out.encoding.lower().startswith("utf"):
        return sentence
    for sign, simple in _ASCII.items():
        sentence = sentence.replace(sign, simple)
    return sentence


def show(out: Console, table: Table) -> None:
    """Print a table where the terminal is wide enough for it, else its rows as lists; nothing is cut either way."""
    if _least(table) <= out.width:
        out.print(table)
        return
    if table.title:
        out.print(table.title)
    heads = [_text(column.header, " ") for column in table.columns]
    for row in zip(*(list(column.cells) for column in table.columns), strict=True):
        first, *others = (_text(cell) for cell in row)
        labelled_cells = [(head, cell) for head, cell in zip(heads[1:], others, strict=True) if cell.plain.strip()]
        label = Text(f"{heads[0].plain} " if heads[0].plain and first.plain.strip() else "", style="dim")
        out.print(Text.assemble(label, first) if labelled_cells else first, style="bold" if not labelled_cells else "")
        for head, cell in labelled_cells:
            out.print(Padding(Text.assemble((f"{head.plain}: ", "dim"), cell), (0, 0, 0, 2)))


def _least(table: Table) -> int:
    """The columns that a table needs: words may be broken only where a column folds."""
    widths = []
    for column in table.columns:
        lines = [line for cell in (column.header, *column.cells) for line in _lines(cell)]
        longest = max(map(cell_len, lines), default=0)
        folded = max(column.min_width or 0, min(longest, _FOLDED))
        widths.append(longest if column.no_wrap else column.width if column.width is not None else folded)
        if column.no_wrap and column.max_width is not None:
            widths[-1] = min(widths[-1], column.max_width)
    between = table.padding[1] + table.padding[3]  # of one cell; the box adds what stands between two
    return sum(widths) + (between + 1) * max(0, len(widths) - 1)


def _lines(cell: RenderableType) -> list[str]:
    return (Text.from_markup(cell).plain if isinstance(cell, str) else getattr(cell, "plain", "")).split("\n")


def _text(cell: RenderableType, between: str = ", ") -> Text:
    """A cell in one line, with its colour; ``between``: what stands for the end of a line in it."""
    text = Text.from_markup(cell) if isinstance(cell, str) else cell
    if not isinstance(text, Text):
        return Text("")
    one = text.copy()
    one.plain = between.join(line.strip() for line in text.plain.split("\n") if line.strip())
    return one
