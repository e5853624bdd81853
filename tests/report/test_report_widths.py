"""Tables that a terminal cannot hold stand as lists: from 40 to 200 columns nothing is cut."""

import io

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trifecta.report import grids, threats
from trifecta.threats import THREATS

WIDTHS = [40, 60, 80, 132, 200]


def shown(show, width):
    stream = io.StringIO()
    show(Console(file=stream, width=width, highlight=False))
    return stream.getvalue()


def table():
    made = Table(show_edge=False, pad_edge=False)
    made.add_column("who", no_wrap=True)
    made.add_column("what\nit is", no_wrap=True, justify="right")
    made.add_column("why", overflow="fold")
    made.add_row("a-name-of-thirty-characters-or-so", Text("12,345\n67 ms", "red"), "because " * 9)
    made.add_row("b", "1", "")
    return made


@pytest.mark.parametrize("width", WIDTHS)
def test_a_table_is_kept_or_turned_into_lists(width):
    text = shown(lambda out: grids.show(out, table()), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "a-name-of-thirty-characters-or-so" in text
    assert text.count("because") == 9
    assert ("what it is: " in text or "what, it is: 12,345, 67 ms" in text) == (width < 60)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_list_of_threats(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    threats.print_list(list(THREATS.values()))
    text = capsys.readouterr().out
    head = text.split("\nOne in full")[0]
    assert max(map(len, head.splitlines())) <= width
    assert "…" not in text
    assert all(name in "".join(text.split()) for name in THREATS)
