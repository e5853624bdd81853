"""``trifecta page``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trifecta.cli.options import as_json, complete_server, ip_version, split_names

if TYPE_CHECKING:
    from trifecta.implementations.server import ServerAdapter
    from trifecta.pages.archive import Page

INTERRUPTED = 130
_SHOWN = 5  # URLs of each reason


@click.group(
    epilog="""\
\b
Examples:
  trifecta page list
  trifecta page record https://www.example.com/ --out example
  trifecta page record site.har --out example
  trifecta page show example
"""
)
def command() -> None:
    """Record pages, generate them from a seed, and inspect them. A page is a folder that servers replay."""


@command.command(name="list")
@as_json
def listed(as_json: bool) -> None:
    """List the bundled pages."""
    from trifecta import pages
    from trifecta.design.errors import CannotError
    from trifecta.pages.bundled import TITLES

    rows = []
    for name in pages.BUNDLED:
        try:
            pages.find(name, make=False)
            note = None
        except CannotError as error:
            note = str(error)
        rows.append({"name": name, "title": TITLES[name], "note": note})
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for each in rows:
        click.echo(f"{each['name']}: {each['title']}")
        if each["note"]:
            click.echo(f"  {each['note']}")


@command.command()
@click.argument("page")
@click.option("--responses", is_flag=True, help="List every response, one per line.")
@as_json
def show(page: str, responses: bool, as_json: bool) -> None:
    """Validate a page (a name or a folder) and list what it holds, by origin and kind, and what it lacks."""
    from trifecta import pages
    from trifecta.pages.archive import read_page
    from trifecta.pages.summary import describe

    archive = read_page(pages.find(page))
    if as_json:
        click.echo(json.dumps(describe(archive, responses), indent=2))
        return
    _print_summary(archive)
    for each in archive.responses if responses else ():
        click.echo(f"{each.status} {each.method} {each.url} {each.bytes} B {each.kind}")


@command.command(
    epilog="""\
\b
Exit code: 0 every server that can replay it did so without a difference, 1 there are differences, or none can; 2 bad
input, 3 not possible on this machine, 130 interrupted.

\b
Examples:
  trifecta page check light
  trifecta page check example --server nginx,origin
  trifecta page check light --ip IPv6
"""
)
@click.argument("page")
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="NAME,...",
    shell_complete=complete_server,
    help="Only these servers.  [default: all that are found]",
)
@ip_version()
@as_json
def check(page: str, servers: tuple[str, ...], ip: str | None, as_json: bool) -> int:
    """Replay a page from servers in a lab, request every response over every protocol, and compare every octet."""
    from trifecta import pages
    from trifecta.cli.option_parsing import is_ipv6
    from trifecta.lab import sandbox
    from trifecta.pages.archive import read_page

    folder = pages.find(page)
    read_page(folder)  # a bad archive is told before anything is started
    chosen = _servers(servers)
    sandbox.enter()

    import tempfile

    from trifecta.workloads import replaying
    from trifecta.workloads.stopping import StopFlag

    results, alike, there = [], True, False
    with StopFlag() as stop, tempfile.TemporaryDirectory(prefix="trifecta-check-") as work:
        for replayed in replaying.check(folder, chosen, Path(work), stop=stop, ipv6=is_ipv6(ip)):
            results.append(dataclasses.asdict(replayed) | {"same": replayed.same})
            alike &= replayed.same or not replayed.asked
            there |= replayed.same
            for line in () if as_json else replaying.in_words(replayed):
                click.echo(line)
        interrupted = stop()
    if as_json:
        click.echo(json.dumps(results, indent=1))
    if interrupted:
        return INTERRUPTED
    return 0 if alike and there else 1


def _servers(names: tuple[str, ...]) -> dict[str, ServerAdapter]:
    """The adapters of these names, or of all that are found."""
    from trifecta.design.document import did_you_mean
    from trifecta.design.errors import UserError
    from trifecta.implementations.registry import SERVERS
    from trifecta.implementations.survey import survey

    chosen_names = [name for name in split_names(names) if name != "any"]
    for name in chosen_names:
        if name not in SERVERS:
            raise UserError(f"option --server: no server {name!r}; {did_you_mean(name, SERVERS)}")
    chosen = chosen_names or [each.name for each in survey(["server"]) if each.found]
    return {name: SERVERS[name] for name in dict.fromkeys(chosen)}


@command.command()
@click.argument("what", type=click.Choice(["light", "light-fonts", "heavy", "many"]))
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="The folder to write, which must not exist."
)
@click.option("--seed", type=click.IntRange(0, 2**20), default=2021, show_default=True, help="Seed of the content.")
@click.option(
    "--requests",
    type=click.IntRange(10, 20_000),
    default=1000,
    show_default=True,
    help="For `many`: how many requests the page makes.",
)
def make(what: str, out: Path, seed: int, requests: int) -> None:
    """Generate a page from a seed: light, light-fonts and heavy (of the sizes in the study baccichet2021), or many
    (small resources)."""
    from trifecta.pages import generate
    from trifecta.pages.many import many

    page = many(requests, out, seed=seed) if what == "many" else generate.make(generate.RECIPES[what], out, seed)
    _print_summary(page)
    click.echo(f"written: {out}")


@command.command(
    epilog="""\
\b
A page is loaded twice, to detect URLs that scripts generate anew at each load. Request data is never stored. Cookies
that responses set are dropped unless --keep-cookies is given. What a recording cannot replay: docs/pages.md.

\b
Exit code: 0 recorded, 2 bad input, 3 not possible here (no browser, no network), 130 interrupted.

\b
Examples:
  trifecta page record https://www.example.com/ --out example
  trifecta page record https://localhost:8443/ --rename https://localhost:8443=https://www.mine.lab --out mine
  trifecta page record site.har --start https://www.example.com/ --out example
  trifecta page record public/ --name mine --out mine
"""
)
@click.argument("source", metavar="URL|HAR|FOLDER")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="The folder to write, which must not exist."
)
@click.option("--name", help="The page's name.  [default: derived from the source]")
@click.option("--start", metavar="URL", help="For a HAR: the page's URL.  [default: its first document]")
@click.option(
    "--origin", metavar="ORIGIN", help="For a folder: the origin to serve it from.  [default: https://www.NAME.lab]"
)
@click.option(
    "--rename", metavar="FROM=TO", multiple=True, help="For a URL or a HAR: store origin FROM as https origin TO."
)
@click.option(
    "--resolve", metavar="HOST[:PORT]=ADDRESS[:PORT]", multiple=True, help="For a URL: connect to this address instead."
)
@click.option(
    "--ca",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="For a URL: trust this certificate authority (PEM).",
)
@click.option("--keep-cookies", is_flag=True, help="Keep the cookies that responses set.")
@click.option(
    "--once",
    is_flag=True,
    help="For a URL: load the page once, not twice; URLs that scripts generate are then not detected.",
)
@click.option(
    "--settle", default="2 s", show_default=True, help="For a URL: wait for this much quiet after the load event."
)
@click.option("--timeout", default="60 s", show_default=True, help="For a URL: time limit of one load.")
@as_json
def record(source: str, out: Path, name: str | None, as_json: bool, **given: Any) -> None:
    """Store a page with headers, methods and origins; servers of the lab can then replay it byte for byte."""
    from trifecta.cli.option_parsing import time_ns
    from trifecta.pages.summary import describe
    from trifecta.recording.job import RecordingJob
    from trifecta.recording.page import record_page

    times: dict[str, Any] = {f"{each}_ns": time_ns(f"--{each}", given.pop(each)) for each in ("settle", "timeout")}
    wanted = RecordingJob(source, out, name, **times, **given)
    recorded = record_page(wanted, lambda text: click.echo(text, err=True))
    if as_json:
        click.echo(json.dumps({**describe(recorded.page), "folder": str(out), "notes": recorded.notes}, indent=2))
        return
    _print_summary(recorded.page)
    for note in recorded.notes:
        click.echo(f"note: {note}")
    click.echo(f"written: {out}; look at it: trifecta page show {out}")


def _print_summary(page: Page) -> None:
    """The summary, for a person."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from trifecta.pages.summary import reasons, shares

    facts = ", ".join(
        f"{key} {value}" for key, value in page.source.items() if key != "kind" and not isinstance(value, list)
    )
    click.echo(f"{page.name}: {page.title}")
    click.echo(f"  {page.start}; {page.source['kind']}{f' ({facts})' if facts else ''}")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading, side in (("origin; kind", "left"), ("requests", "right"), ("kB", "right")):
        table.add_column(heading, justify="right" if side == "right" else "left", overflow="fold")
    for by in ("host", "kind"):
        for share in shares(page, by):
            name = f"{share.name} (third party)" if share.name in page.third_parties else share.name
            table.add_row(name, str(share.responses), f"{share.bytes / 1000:,.1f}")
        table.add_section()
    table.add_row("together", str(len(page.responses)), f"{page.bytes / 1000:,.1f}")
    Console(highlight=False).print(table)
    for reason, left in reasons(page.left_out):
        click.echo(f"not replayed: {len(left)}: {reason}")
        for each in left[:_SHOWN]:
            click.echo(f"  {each.method} {each.url[:160]}")
        if len(left) > _SHOWN:
            click.echo(f"  and {len(left) - _SHOWN} more: trifecta page show --json")
