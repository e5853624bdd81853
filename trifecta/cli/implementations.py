"""``trifecta implementations``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from trifecta.cli.options import as_json

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from trifecta.implementations.survey import Implementation

WIDTH = 100  # columns of the table at most; a narrower terminal is respected
_HTTP = {"h1": "1.1", "h2": "2", "h3": "3"}


@click.command(
    epilog="""\
\b
Exit code: 0, even if nothing is found.

\b
Examples:
  trifecta implementations
  trifecta implementations --json
  trifecta get nginx
"""
)
@as_json
def command(as_json: bool) -> None:
    """List all servers, clients, browsers and services: whether each is found, its version, where it comes from, and
    how to get it.

    Each is examined in a process of its own with a time limit. One that hangs or crashes is listed with the reason.
    """
    from trifecta.implementations.survey import survey

    implementations = survey()
    if as_json:
        click.echo(json.dumps([each.as_dict() for each in implementations], indent=2))
        return

    from rich.console import Console
    from rich.padding import Padding

    from trifecta.report import grids

    out = Console(highlight=False)
    # Not a terminal: rich would take 80 columns, and a file or a pipe has no width of its own.
    out.width = min(WIDTH, out.width) if out.is_terminal else WIDTH
    widths = _widths(implementations)
    titles = (("server", "Servers"), ("client", "Clients"), ("browser", "Browsers"), ("service", "Services"))
    for kind, title in titles:
        grids.show(out, _table(title, [each for each in implementations if each.kind == kind], widths))
        out.print()
    if any(each.proxy for each in implementations):
        out.print("+ adds a hop: a proxy in front of Trifecta's own origin.", style="dim")
    adapted: dict[str, str] = next(
        (dict(each.declared["quic_adaptations"]) for each in implementations if each.declared.get("quic_adaptations")),
        {},
    )
    if adapted:
        out.print("* adapted, in client and server alike; as the library comes with --with stock-quinn:", style="dim")
        for name, what in adapted.items():
            out.print(Padding(f"{name}: {what}", (0, 0, 0, 2)), style="dim")
    missing = [each.name for each in implementations if not each.found and each.get]
    if missing:
        out.print(f"To get what is missing: trifecta get {' '.join(missing)}", soft_wrap=True)


def _table(title: str, rows: list[Implementation], widths: list[int]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True, show_edge=False)
    for heading, width in zip((title, "version", "HTTP"), widths, strict=True):
        table.add_column(heading, overflow="fold", width=width)
    table.add_column("from; or why not, and how to get it", overflow="fold", ratio=1)
    for each in rows:
        table.add_row(*_cells(each))
    return table


def _widths(implementations: list[Implementation]) -> list[int]:
    """Of all columns but the last, which takes what is left: the same in both tables, and bounded."""
    longest = [max(len(cell) for cell in column) for column in zip(*map(_cells, implementations), strict=True)]
    bounds = ((10, 19), (9, 16), (7, 7))
    return [min(max(width, low), high) for width, (low, high) in zip(longest, bounds, strict=False)]


def _cells(each: Implementation) -> list[Text]:
    from rich.text import Text

    name = Text(f"{'✓' if each.found else '✗'} {each.name}{' +' if each.proxy else ''}")
    name.stylize("green" if each.found else "yellow", 0, 1)
    protocols = " ".join(_HTTP[protocol] for protocol in each.protocols)
    if not each.found:
        advice = each.reason or "not found"
        if each.get and each.get not in advice:
            advice += f"; {each.get}"
        return [name, Text("not found", "yellow"), Text(protocols), Text(advice)]
    where = Text(each.source if each.package == "trifecta" else f"{each.source} (adapter: {each.package})")
    parts = (("TLS", "tls_library"), ("congestion", "congestion_control"), ("QUIC", "quic_library"))
    declared = [(words, in_words(each.declared.get(key))) for words, key in parts]
    if each.declared.get("quic_adaptations"):
        declared[-1] = ("QUIC", f"{declared[-1][1]}, adapted *")
    sentence = "; ".join(f"{words}: {value}" for words, value in declared if value)
    if sentence:
        where.append(f"\n{sentence}", "dim")
    return [name, Text(each.short_version), Text(protocols), where]


def in_words(declared: object) -> str:
    """What an adapter declares: one word, or one each for TCP and QUIC where they differ; empty when it is silent."""
    if isinstance(declared, dict):
        words = {str(value) for value in declared.values()}
        return (
            words.pop() if len(words) == 1 else ", ".join(f"{key.upper()} {value}" for key, value in declared.items())
        )
    return str(declared or "")
