from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.synthetic import Shape, write_run
from trifecta.report.html import write_report


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run with troubles, and its report."""
    folder = write_run(tmp_path_factory.mktemp("runs") / "run")
    write_report(folder)
    return folder


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two cells without troubles; no report yet."""
    shape = Shape(blocks=5, samples_per_trial=60, paths=("far",), connections=("new", "reused"), servers=("origin",))
    shape.troubles = False
    return write_run(tmp_path_factory.mktemp("runs") / "small", shape)
