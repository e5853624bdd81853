"""A study as written, before it means anything: a tree of mappings, lists and scalars that knows its lines.

Both a study file and a study built in Python become a document, so that both are validated by the same code.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from trifecta.design.errors import UserError
from trifecta.design.quantity import QuantityError

T = TypeVar("T")
Place = tuple[str | int, ...]  # keys and list positions from the root


def dotted(place: Place) -> str:
    """A place as it is written in messages and on the command line: ``paths.rough.loss``, ``factors.path[1]``."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def nearest(word: str, known: Iterable[str]) -> str | None:
    """What the word could have been; None where nothing is like it."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What the word could have been, else what there is."""
    choices = list(known)
    near = nearest(word, choices)
    return f"did you mean {near!r}?" if near is not None else f"choose from {', '.join(choices)}"


@dataclass
class Document:
    """The tree, and where its parts come from (``race.yaml:12``, ``--set path=clean``)."""

    tree: dict[str, Any]
    name: str  # of the file, or "study NAME" when built in Python
    lines: dict[Place, int] = field(default_factory=dict)
    options: dict[Place, str] = field(default_factory=dict)  # parts that an option of the command line has set

    def where(self, place: Place) -> str:
        """The nearest known origin of a part: the option that set it, or file and line."""
        for end in range(len(place), -1, -1):
            start = place[:end]
            if start in self.options:
                return f"option {self.options[start]}"
            if start in self.lines:
                return f"{self.name}:{self.lines[start]}"
        return self.name

    def error(self, place: Place, message: str) -> UserError:
        """The one line that says where, which field, what is wrong, and the remedy."""
        field_name = dotted(place)
        return UserError(f"{self.where(place)}: {field_name}: {message}" if field_name else f"{self.name}: {message}")

    def root(self) -> Section:
        """The outermost section."""
        return Section(self, (), self.tree)


class Section:
    """A mapping of the document, read field by field; every complaint names the field and its place."""

    def __init__(self, document: Document, place: Place, mapping: dict[str, Any]) -> None:
        self.document = document
        self.place = place
        self.mapping = mapping

    def __contains__(self, key: str) -> bool:
        return self.mapping.get(key) is not None

    def error(self, key: str | None, message: str) -> UserError:
        """An error at a field of this section, or at the section itself."""
        return self.document.error(self.place if key is None else (*self.place, key), message)

    def allow(self, *known: str) -> None:
        """Refuse every field that is not known."""
        for key in self.mapping:
            if key not in known:
                raise self.error(key, f"unknown field; {did_you_mean(key, known)}")

    def raw(self, key: str) -> Any:
        """The field as written, or None."""
        return self.mapping.get(key)

    def parse(self, key: str, parser: Callable[[Any], T], default: T) -> T:
        """The field's value, or the default when it is not there."""
        value = self.mapping.get(key)
        return default if value is None else self.parse_value((*self.place, key), value, parser)

    def parse_value(self, place: Place, value: Any, parser: Callable[[Any], T]) -> T:
        """A value that stands at ``place``, parsed; a complaint of the parser is given its place."""
        if isinstance(value, dict | list):
            kind = "a mapping" if isinstance(value, dict) else "a list"
            raise self.document.error(place, f"is {kind}, not a single value; write one value after the colon")
        try:
            return parser(value)
        except QuantityError as error:
            raise self.document.error(place, str(error)) from None

    def section(self, key: str) -> Section:
        """The mapping under a field; empty when the field is not there."""
        value = self.mapping.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.error(key, f"{value!r} is not a mapping; write {{name: value}}, or lines 'name: value' below it")
        return Section(self.document, (*self.place, key), value)

    def items(self, key: str) -> list[tuple[Place, Any]]:
        """The entries of a list with their places; a single value is a list of one."""
        value = self.mapping.get(key)
        if value is None:
            return []
        if isinstance(value, list):
            return [((*self.place, key, index), item) for index, item in enumerate(value)]
        return [((*self.place, key), value)]


def parse_text(value: Any) -> str:
    """Any scalar as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_YES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def parse_flag(value: Any) -> bool:
    """True or false; also yes, no, on, off."""
    text = parse_text(value).lower()
    if text not in _YES:
        raise QuantityError(f"{parse_text(value)!r} is neither true nor false; write true or false")
    return _YES[text]


def one_of(what: str, *choices: str) -> Callable[[Any], str]:
    """A parser for one of a few words."""

    def parse(value: Any) -> str:
        text = parse_text(value)
        if text not in choices:
            raise QuantityError(f"{text!r} is not {what}; {did_you_mean(text, choices)}")
        return text

    return parse
