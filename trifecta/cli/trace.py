"""``trifecta trace``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trifecta.cli.options import as_json


@click.command(
    epilog="""\
FILE is any pcap or pcapng file, or the folder of a run: then all captures of the run are read, and the tables go to its
folder trace/. Tables: packets, frames, messages, connections, metrics (docs/trace.md, docs/packets.md). Needs tshark.

\b
Examples:
  trifecta trace capture.pcapng --keys keys.log
  trifecta trace small-closed-http2.pcapng small-closed-http3.pcapng --out tables --csv
  trifecta trace small-closed-http2.pcapng small-closed-http3.pcapng --figures pictures
  trifecta trace runs/transfer-1
"""
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--keys", type=click.Path(path_type=Path), metavar="FILE", help="TLS key log (SSLKEYLOGFILE).")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Write the tables to this folder, as Parquet."
)
@click.option("--csv", "as_csv", is_flag=True, help="Write the tables as CSV too.")
@click.option(
    "--figures", type=click.Path(path_type=Path), metavar="DIR", help="Write pictures to this folder, as SVG and PNG."
)
@as_json
def command(
    *, files: tuple[Path, ...], keys: Path | None, out: Path | None, as_csv: bool, figures: Path | None, as_json: bool
) -> None:
    """Analyse captures: packets, frames and requests, and what the captures cannot show."""
    from rich.console import Console

    from trifecta.design import extras
    from trifecta.design.errors import UserError

    for module in extras.EXTRAS["capture"].modules:
        extras.load(module)
    from trifecta.report import trace
    from trifecta.store.trace_schema import TABLES
    from trifecta.trace import overview, tables
    from trifecta.trace.analyse import analyse
    from trifecta.trace.dissect import dissect
    from trifecta.trace.summary import by_connection

    captures, logs, run = overview.find_captures(files)
    folder = out or (run / "trace" if run else None)
    if as_csv and folder is None:
        raise UserError("--csv: there is no folder to write to; name one with --out")
    if figures is not None and figures.exists() and not figures.is_dir():
        raise UserError(f"--figures: {figures} is a file; name a folder")
    dissection = dissect(captures, keys, folder, csv=as_csv, link_logs=logs)
    analysed = analyse(dissection) if folder is not None or as_json else None
    if folder is not None and analysed is not None:
        tables.write({"metrics": analysed.metrics}, folder, csv=as_csv)
    if run is not None and folder == run / "trace":
        overview.note_tables(run)
    overviews = (
        overview.by_capture(dissection),
        analysed.connections if analysed else overview.by_connection(dissection),
    )
    if figures is not None:
        from trifecta.report.packets import write_figures

        drawn = write_figures({name: getattr(dissection, name) for name in TABLES}, figures)
    if as_json and analysed is not None:
        by_number = by_connection(analysed.metrics)
        for row in overviews[1]:
            row["metrics"] = by_number.get(row["connection"], {})
        click.echo(
            json.dumps({"captures": overviews[0], "connections": overviews[1], "notes": dissection.notes}, indent=2)
        )
        return
    trace.show(Console(), *overviews, dissection.notes)
    if folder is not None:
        click.echo(f"tables: {folder}")
    if figures is not None:
        click.echo(f"pictures: {figures}" if drawn else "pictures: none, there are no packets")
