"""Columns and definitions of exported tables, as Athena and Spark have them."""

from __future__ import annotations

from trifecta.store import data_dictionary, parquet
from trifecta.store.exports import tables
from trifecta.store.exports.tables import Table

PARTITIONS = ("study", "run")
"""What the folders say of every row; a column of that name is called otherwise in the files."""
_LONG = 250  # of a comment: catalogues take 255
_TYPES = {"BOOLEAN": "boolean", "INTEGER": "int", "BIGINT": "bigint", "DOUBLE": "double", "VARCHAR": "string"}


def renamed(column: str) -> str:
    """What a column is called in the files."""
    return f"{column}_told" if column.lower() in PARTITIONS else column


def selected(table: Table) -> str:
    """The columns of a table in SQL of DuckDB, in types that all readers have."""
    return ", ".join(
        f"{tables.portable(name, kind)} AS {parquet.name_of(renamed(name))}" for name, kind in table.columns
    )


def definition(table: Table, location: str) -> str:
    """The table in SQL of Hive: Athena takes it, and Spark with Hive's catalogue."""
    columns = []
    for name, kind in table.columns:
        about = data_dictionary.meaning(table.name, name)[:_LONG]
        columns.append(f"  `{renamed(name)}` {_TYPES[tables.portable_type(kind)]} COMMENT {_text(about)}")
    lines = ",\n".join(columns)
    return f"""\
-- Of Trifecta: {data_dictionary.TABLES.get(table.name, table.name)}.
CREATE EXTERNAL TABLE IF NOT EXISTS `trifecta_{table.name}` (
{lines}
)
PARTITIONED BY (`study` string, `run` string)
STORED AS PARQUET
LOCATION {_text(location)};

-- Again after every export: it finds the runs that are new.
MSCK REPAIR TABLE `trifecta_{table.name}`;
"""


def _text(words: str) -> str:
    return "'" + words.replace("\\", "").replace("'", "") + "'"
