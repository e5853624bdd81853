"""Drivers load nothing that they have no use for: what a driver takes to start, every trial takes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NoPandas(MetaPathFinder):
    """Says that pandas is not there, which pyarrow looks for before its first array and can do without."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """ModuleNotFoundError for pandas, None (look on) for everything else."""
        if fullname == "pandas":
            raise ModuleNotFoundError("drivers make no use of pandas", name=fullname)
        return None


def keep_pandas_out() -> None:
    """In this process pandas is not importable from now on; nothing happens where it is loaded already."""
    sys.meta_path.insert(0, _NoPandas())
