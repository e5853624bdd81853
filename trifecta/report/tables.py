"""Tables whose every number carries the query, the row and the column it came from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from trifecta.conclude.queries import QueryResult, Row
from trifecta.design import naming, numbers
from trifecta.report.figures import style
from trifecta.report.verdict_words import place_words

_ARMS = ("arm", "level")  # columns of what is compared
_BY_UNIT = ("unit", "unit_interval")
_FORM_OF_UNIT = {
    "ns": "duration", "B": "size", "bit/s": "bit_rate", "count": "number", "ratio": "ratio", "share": "percent",
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column: its heading, the query's column (two with a comma between, for an interval), how to write it.

    The forms ``unit`` and ``unit_interval`` write each row in the unit that its column ``unit`` names.
    """

    heading: str
    name: str
    form: str = "text"

    @property
    def numeric(self) -> bool:
        """Whether values are set flush right."""
        return self.form not in ("text", "protocol", "protocols", "mark")


@dataclass(frozen=True)
class Cell:
    """A table cell as it is shown, and where it comes from."""

    text: str
    column: Column
    form: str


@dataclass(frozen=True)
class Line:
    """A row: the key by which the query's row is found again, its heading, its cells."""

    key: str
    heading: str
    arm: str  # set when the row is about an arm, which then gets its mark
    cells: list[Cell]


@dataclass(frozen=True)
class Table:
    """A table of the report together with the SQL that gives its numbers."""

    identity: str
    caption: str
    heading: str
    columns: list[Column]
    lines: list[Line]
    sql: str
    key_columns: tuple[str, ...]
    notes: list[str] = field(default_factory=list)


def values_of_arms(arms: Sequence[str], form: str = "unit", ending: str = "") -> list[Column]:
    """A value of every arm and its interval, side by side; ``ending`` is that of the columns' names."""
    columns = []
    for arm in arms:
        own = naming.column(arm)
        columns.append(Column(style.name(arm), f"{own}_value{ending}", form))
        columns.append(Column("interval", f"{own}_low{ending},{own}_high{ending}", f"{form}_interval"))
    return columns


def changes_of_arms(arms: Sequence[str], baseline: str) -> list[Column]:
    """Of every other arm, the newest first, its ratio to the baseline and its difference from it, with intervals."""
    columns, base = [], style.name(baseline)
    for arm in reversed(arms):
        if arm != baseline:
            name, own = style.name(arm), naming.column(arm)
            columns += [
                Column(f"{name} ÷ {base}", f"{own}_ratio", "ratio"),
                Column("interval", f"{own}_ratio_low,{own}_ratio_high", "known_interval"),
                Column(f"{name} less {base}", f"{own}_difference", "unit"),
                Column("interval", f"{own}_difference_low,{own}_difference_high", "unit_interval"),
            ]
    return columns


def row_key(values: Iterable[object]) -> str:
    """The values that tell a row from the others, as the report's ``data-key`` carries them."""
    return "|".join(map(str, values))


def with_rows(answer: QueryResult, rows: list[dict[str, Any]]) -> QueryResult:
    """The answer with these of its rows, in this order."""
    return QueryResult(answer.query, rows)


def build(
    answer: QueryResult,
    identity: str,
    caption: str,
    heading: tuple[str, str],
    columns: Sequence[Column],
    *,
    cell: str | None = None,
    order: Sequence[str] = (),
    notes: Sequence[str] = (),
    keep_empty: bool = False,
) -> Table:
    """Make a table of the answer's rows, of one cell if given.

    ``heading`` is the row heading's title and column; when that column is ``arm``, ``level`` or ``protocol`` its name
    and mark are shown, in ``order``. Columns without a single value are left out unless ``keep_empty``.
    """
    title, head = heading
    if title == "protocol" and head in _ARMS:
        title = naming.factor()
    rows = answer.where(cell=cell) if cell is not None else list(answer.rows)
    if order:
        rows = sorted(rows, key=lambda row: order.index(row[head]) if row[head] in order else len(order))
    shown = [column for column in columns if keep_empty or any(_present(_value(column, row)) for row in rows)]
    lines = []
    for row in rows:
        is_arm = head in (*_ARMS, "protocol")
        value = str(row[head])
        forms = [(column, _form(column, row)) for column in shown]
        cells = [Cell(numbers.FORMATS[form](_value(column, row)), column, form) for column, form in forms]
        words = _heading_words(head, value)
        key = row_key(row[name] for name in answer.query.key)
        lines.append(Line(key, words, value if is_arm else "", cells))
    return Table(identity, caption, title, shown, lines, answer.query.text(cell), answer.query.key, list(notes))


def _value(column: Column, row: Row) -> Any:
    """What a row has in a column."""
    names = column.name.split(",")
    return row[column.name] if len(names) == 1 else tuple(row[name] for name in names)


def _form(column: Column, row: Row) -> str:
    """How to write a row's value."""
    return column.form.replace("unit", _FORM_OF_UNIT[row["unit"]]) if column.form in _BY_UNIT else column.form


def _present(value: Any) -> bool:
    return any(part is not None for part in value) if isinstance(value, tuple) else value is not None


def _heading_words(head: str, value: str) -> str:
    if head in (*_ARMS, "protocol"):
        return style.name(value)
    if head in ("cell", "place"):
        return place_words(value, without="")
    return value.replace("_", " ") if head == "check_name" else value
