"""The pictures of a captured run as files: ``figures/CELL-PICTURE.svg`` and ``.png``."""

from __future__ import annotations

from pathlib import Path

from trifecta.conclude.packets.derive import Packets
from trifecta.report.figures import picture_files, svg
from trifecta.report.packets.pictures import stem
from trifecta.report.packets.section import cell_pictures


def write_run_figures(run: Path, derived: Packets) -> list[Path]:
    """Write the pictures of every cell's median trials; returns the files."""
    written: list[Path] = []
    with svg.drawing():
        for cell in derived.cells:
            for picture in cell_pictures(derived, cell):
                name = f"{stem(cell.replace('=', '-').replace(',', '_'))}-{picture.name}"
                written += picture_files.write(picture.draw(), run / "figures", name, picture.legend)
    return written
