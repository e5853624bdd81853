"""Schemas of tables: the names and types of their columns, in the words of DuckDB."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

TEXT, BOOL, DOUBLE = "VARCHAR", "BOOLEAN", "DOUBLE"
INT32, INT64 = "INTEGER", "BIGINT"
UINT8, UINT16, UINT32, UINT64 = "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"

INTEGERS = {
    INT32: (-(2**31), 2**31 - 1),
    INT64: (-(2**63), 2**63 - 1),
    UINT8: (0, 2**8 - 1),
    UINT16: (0, 2**16 - 1),
    UINT32: (0, 2**32 - 1),
    UINT64: (0, 2**64 - 1),
}
"""Types of whole numbers: the least and the greatest."""


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order: name and type. Every column may hold nulls."""

    columns: tuple[tuple[str, str], ...]

    @property
    def names(self) -> list[str]:
        """The names, in order."""
        return [name for name, _ in self.columns]

    @property
    def types(self) -> dict[str, str]:
        """By name the type, in order."""
        return dict(self.columns)

    def __len__(self) -> int:
        """How many columns."""
        return len(self.columns)

    @functools.cache  # noqa: B019 - schemas are constants of modules
    def arrow(self) -> pa.Schema:
        """The same for Arrow, in whose tables captures are taken apart."""
        import pyarrow as pa

        kinds: dict[str, pa.DataType] = {
            TEXT: pa.string(),
            BOOL: pa.bool_(),
            DOUBLE: pa.float64(),
            INT32: pa.int32(),
            INT64: pa.int64(),
            UINT8: pa.uint8(),
            UINT16: pa.uint16(),
            UINT32: pa.uint32(),
            UINT64: pa.uint64(),
        }
        return pa.schema([(name, kinds[kind]) for name, kind in self.columns])


def make_schema(*columns: tuple[str, str]) -> Schema:
    """A schema of these columns: name and type."""
    return Schema(columns)
