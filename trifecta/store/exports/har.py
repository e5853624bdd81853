"""HTTP Archives of the visits

## Writes
A file `TRIAL-VISIT.har` for each visit of the run's trials whose archive the run keeps (`t00012-0.har`), as the browser
left it: HTTP Archive 1.2.

## For
The network panel of browsers, and viewers and scripts that read HAR. Runs of pages and videos have archives; one
without is refused.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from trifecta.design.errors import UserError
from trifecta.store.exports.exporter import Source
from trifecta.store.run import RunDirectory


def gather(source: Source, folder: Path) -> list[Path]:
    """A copy of each archive. UserError where the run has none."""
    run = source.path
    written: list[Path] = []
    for trial in RunDirectory.open(run).trial_names():
        place = run / "har" / trial
        archives = [each for each in place.glob("*.har") if not each.name.startswith(".")] if place.is_dir() else []
        for archive in sorted(archives, key=lambda each: (len(each.stem), each.stem)):
            path = folder / f"{trial}-{archive.name}"
            shutil.copyfile(archive, path)
            written.append(path)
    if not written:
        raise UserError(f"{run} has no HTTP Archives: visits of browsers leave them (`trifecta run page`); export csv")
    return written
