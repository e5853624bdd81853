"""An invented run with a manifest, as a run of this version leaves it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tests.report.synthetic import Shape, write_run
from trifecta.store import facts, manifest

SMALL = Shape(blocks=2, samples_per_trial=20, paths=("clean",), connections=("reused",), servers=("origin",))


def small(folder: Path, *, sealed: bool = True) -> Path:
    """A run of eight trials; without a manifest where it is not ``sealed``."""
    run = write_run(folder, SMALL)
    return seal(run) if sealed else run


def seal(run: Path) -> Path:
    """Give an invented run its manifest."""
    about = json.loads((run / "run.json").read_text())
    about |= {"schema": facts.SCHEMA_VERSION}
    about["study"]["sha256"] = hashlib.sha256((run / "study.yaml").read_bytes()).hexdigest()
    (run / "run.json").write_text(json.dumps(about))
    tables = (*manifest.TABLES, *manifest.NESTED)
    names = [path.relative_to(run).as_posix() for table in tables for path in sorted((run / table).glob("*"))]
    names += ["run.json", manifest.DECISIONS, *manifest.RESULTS]
    made = manifest.Manifest(run)
    made.path.write_text("")
    made.add(manifest.digests([(run / name, name) for name in names]))
    return run
