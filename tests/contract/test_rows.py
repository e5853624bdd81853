"""The rows that are handed about are those of the files: columns, in order, and their types."""

from __future__ import annotations

from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from trifecta.contract.sample import SampleRow
from trifecta.contract.trial import TrialRow
from trifecta.design.tables import BOOL, DOUBLE, INTEGERS, TEXT, Schema
from trifecta.store import schema

KINDS = {TEXT: str, BOOL: bool, DOUBLE: float} | dict.fromkeys(INTEGERS, int)


@pytest.mark.parametrize(("row", "columns"), [(TrialRow, schema.TRIALS), (SampleRow, schema.SAMPLES)])
def test_a_row_is_that_of_its_file(row: Any, columns: Schema) -> None:
    typed = {
        name: next((part for part in get_args(hint) if part is not NoneType), hint)
        for name, hint in get_type_hints(row).items()
    }
    typed = {name: str if get_origin(kind) is Literal else kind for name, kind in typed.items()}
    assert list(typed.items()) == [(name, KINDS[kind]) for name, kind in columns.columns]
