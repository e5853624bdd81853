"""Reads a report back: elements, the numbers in it and the SQL beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from tests.report import held
from trifecta.design.numbers import FORMATS

VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def all(self, tag: str = "") -> list[Element]:
        found = []
        for child in self.children:
            if not tag or child.tag == tag:
                found.append(child)
            found += child.all(tag)
        return found

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def has(self, name: str) -> bool:
        return name in self.attributes.get("class", "").split()


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.at = Element("", {})
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs}, self.at)
        self.at.children.append(made)
        if tag not in VOID:
            self.at = made

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.at.children.append(Element(tag, {name: value or "" for name, value in attrs}, self.at))

    def handle_endtag(self, tag: str) -> None:
        if self.at.tag != tag:
            self.faults.append(f"</{tag}> closes <{self.at.tag}> at {self.getpos()}")
            return
        assert self.at.parent is not None
        self.at = self.at.parent

    def handle_data(self, data: str) -> None:
        at: Element | None = self.at
        while at is not None:
            at.texts.append(data)
            at = at.parent


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


@dataclass(frozen=True)
class Number:
    """A number shown in a table: where the SQL's answer has it, and what the report says it is."""

    sql: str
    key_columns: tuple[str, ...]
    key: str
    column: str
    form: str
    shown: str


def numbers(root: Element) -> list[Number]:
    """Every number of every table, with the SQL that stands under the table."""
    found = []
    for table in root.all("table"):
        if "data-query" not in table.attributes:
            continue
        answer = table
        while not answer.has("answer"):
            assert answer.parent is not None
            answer = answer.parent
        sql = next(span.text for span in answer.all("span") if span.has("query"))
        columns = tuple(table.attributes["data-key-columns"].split("|"))
        for element in table.all():
            if "data-column" not in element.attributes:
                continue
            row: Element | None = element
            while row is not None and "data-key" not in row.attributes:
                row = row.parent
            assert row is not None
            attributes = element.attributes
            found.append(
                Number(
                    sql,
                    columns,
                    row.attributes["data-key"],
                    attributes["data-column"],
                    attributes["data-format"],
                    element.text,
                )
            )
    return found


def assert_sql_gives(run: Path, found: list[Number]) -> None:
    """Running the SQL beside each number gives the number that is shown."""
    answers: dict[str, dict[str, dict[str, object]]] = {}
    with held.opened(run) as connection:
        for number in found:
            if number.sql not in answers:
                cursor = connection.execute(number.sql)
                names = [column[0] for column in cursor.description or ()]
                rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
                answers[number.sql] = {"|".join(str(row[name]) for name in number.key_columns): row for row in rows}
            row = answers[number.sql][number.key]
            values = tuple(row[name] for name in number.column.split(","))
            value = values if len(values) > 1 else values[0]
            assert FORMATS[number.form](value) == number.shown, number
