"""YAML as study files use it: text to plain values that know their lines.

The YAML is composed to nodes only: no tag is looked at, no object is made, and every node keeps its line. Anchors,
tags and repeated keys are refused, so that what is read is what is seen.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from trifecta.design.document import Document, Place, dotted
from trifecta.design.errors import UserError

MAX_CHARACTERS = 4_000_000
_MAX_DEPTH = 20
_MAX_FLOW = 100  # brackets
_KEPT = 32
_NULL_TAG = "tag:yaml.org,2002:null"
_IMPLICIT_TAGS = {
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp", "map", "seq", "merge")
}


def parse_document(text: str, file: str, begins: str = "") -> Document:
    """The tree of a study file with the lines of its parts; not validated yet. ``begins``: how another file begins."""
    root = _compose(text, file)
    document = Document(tree={}, name=file)
    if root is None:
        remedy = f"begin with {begins!r}" if begins else "see 'trifecta studies' for examples"
        raise UserError(f"{file}:1: the file is empty; {remedy}")
    tree = _Reader(document).value(root, ())
    if not isinstance(tree, dict):
        raise UserError(f"{file}:1: the file is not a mapping; begin with {begins or 'study: NAME'!r}")
    document.tree = tree
    return document


def parse_value(text: str, what: str) -> Any:
    """One value as it stands on a command line: a scalar, ``[a, b]`` or ``{name: value}``."""
    root = _compose(text, what, numbered=False)
    return None if root is None else _Reader(Document(tree={}, name=what)).value(root, ())


@lru_cache(maxsize=_KEPT)
def _compose(text: str, file: str, *, numbered: bool = True) -> Any:
    """The nodes of a text, which nobody changes: a report reads the same study again and again."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    if len(text) > MAX_CHARACTERS:
        raise UserError(f"{file}: has more than {MAX_CHARACTERS} characters; a study file is small")
    try:
        text.encode()
        reading = YAML(typ="safe", pure=True)
        reading.Scanner = _shallow()
        return reading.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark is not None and numbered else ""
        problem = " ".join(str(error.problem or error.context or "is not YAML").split())
        remedy = "fix this line or the one above it" if numbered else "mend the value"
        raise UserError(f"{file}{line}: not YAML: {problem}; {remedy}") from None
    except (YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{file}: not YAML: {problem[:200]}; fix the file") from None


@cache
def _shallow() -> Any:
    """A scanner that goes only so deep into brackets: the time ruamel.yaml takes grows with the square of the depth."""
    from ruamel.yaml.scanner import Scanner, ScannerError

    class Shallow(Scanner):
        def fetch_flow_collection_start(self, TokenClass: Any, to_push: str) -> None:
            if self.flow_level > _MAX_FLOW:
                raise ScannerError(None, None, "is nested too deeply", self.reader.get_mark())
            super().fetch_flow_collection_start(TokenClass, to_push)

    return Shallow


class _Reader:
    """Turns composed nodes into plain values, noting lines in the document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.seen: set[int] = set()

    def value(self, node: Any, place: Place) -> Any:
        """The plain value of a node; scalars stay text, an empty one is None."""
        document = self.document
        document.lines.setdefault(place, node.start_mark.line + 1)
        if id(node) in self.seen or node.anchor:
            raise document.error(place, "anchors and aliases are not used here; write the value out")
        self.seen.add(id(node))
        if len(place) > _MAX_DEPTH:
            raise document.error(place[:3], "is nested too deeply; a study has a few levels")
        tag = str(node.tag or "")
        if tag and tag not in _IMPLICIT_TAGS:
            raise document.error(place, f"tag {tag[:40]!r} is not used here; remove it")
        if node.id == "mapping":
            return self._mapping(node, place)
        if node.id == "sequence":
            return [self.value(item, (*place, index)) for index, item in enumerate(node.value)]
        text = str(node.value)
        return None if tag == _NULL_TAG or (text in ("", "null", "~") and not node.style) else text

    def _mapping(self, node: Any, place: Place) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.id != "scalar" or key_node.anchor:
                raise UserError(f"{self.document.name}:{line}: {dotted(place)}: a field's name is one word; correct it")
            key = str(key_node.value)
            here = (*place, key)
            if key in values:
                first = self.document.lines[here]
                self.document.lines[here] = line
                raise self.document.error(here, f"appears twice, first in line {first}; remove one")
            self.document.lines[here] = line
            values[key] = self.value(value_node, here)
        return values
