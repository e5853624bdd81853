from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.synthetic import Shape, write_run
from tests.store.sealed import seal


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four cells with troubles, as this version leaves one; tests leave it as it is."""
    shape = Shape(blocks=7, samples_per_trial=60, paths=("far", "rough"), servers=("origin",))
    return seal(write_run(tmp_path_factory.mktemp("runs") / "a run", shape))
