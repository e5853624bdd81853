"""Tables of the terminal that several commands print."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table


def grid(out: Console) -> Table:
    """An empty table with a line below its head, in ASCII where the terminal has no more."""
    edges = box.SIMPLE_HEAD if out.encoding.lower().startswith("utf") else box.ASCII
    return Table(box=edges, show_edge=False, padding=(0, 1, 0, 0))
