"""``--set KEY=VALUE``: any factor and any field of a study changed from the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trifecta.design.document import Document, Place, did_you_mean
from trifecta.design.errors import UserError
from trifecta.design.factors import (
    CLIENT_FACTOR,
    CORE_FACTORS,
    KNOWN_FACTORS,
    LENGTH_FIELDS,
    WORKLOAD_FACTORS,
    WORKLOAD_FIELDS,
)


def apply_overrides(document: Document, overrides: Sequence[str], source: str | None = None) -> None:
    """Change the document as asked; each changed part remembers its option, so that later messages name it.

    A key is a factor (``path=clean``, ``connection=new,reused``), a field of the study (``budget=1 min``), a field of
    the workload (``response=10 kB``), or a place with dots (``paths.rough.loss=5 %``). Later options win.
    ``source``: the option that asked for it, where that is not ``--set``.
    """
    for override in overrides:
        key, equals, text = override.partition("=")
        option = source or f"--set {override}"
        key = key.strip()
        if not equals or not key:
            raise UserError(f"option {option}: write KEY=VALUE, for example --set path=clean")
        place = _place(document, key, option)
        if len(place) == 2 and place[0] == "workload" and place[1] in WORKLOAD_FACTORS and "," in text:
            _forget(document, place)  # several levels: the field becomes a factor
            place = ("factors", str(place[1]))
        _put(document, place, _value(text, place, option), option)


def _place(document: Document, key: str, option: str) -> Place:
    from trifecta.design.resolve import STUDY_FIELDS

    parts = tuple(key.split("."))
    if not all(parts):
        raise UserError(f"option {option}: {key!r} has an empty part; write for example paths.rough.loss")
    if len(parts) > 1 or key in STUDY_FIELDS:
        if parts[0] not in STUDY_FIELDS:
            raise UserError(
                f"option {option}: no field {parts[0]!r} in a study; {did_you_mean(parts[0], STUDY_FIELDS)}"
            )
        return parts
    factors = document.tree.get("factors")
    if key in (*CORE_FACTORS, CLIENT_FACTOR) or (isinstance(factors, dict) and key in factors):
        return ("factors", key)
    if key in WORKLOAD_FIELDS or key in LENGTH_FIELDS:
        return ("workload", key)
    known = dict.fromkeys((*KNOWN_FACTORS, *WORKLOAD_FIELDS, *LENGTH_FIELDS, *STUDY_FIELDS))
    raise UserError(f"option {option}: no factor or field {key!r}; {did_you_mean(key, known)}")


def _value(text: str, place: Place, option: str) -> Any:
    from trifecta.design.study_file import parse_value

    text = text.strip()
    if place[0] == "factors" and len(place) == 2 and not text.startswith("["):
        text = f"[{text}]"
    value = parse_value(text, f"option {option}")
    if value is None:
        raise UserError(f"option {option}: has no value; write KEY=VALUE")
    return value


def _put(document: Document, place: Place, value: Any, option: str) -> None:
    mapping = document.tree
    for depth, part in enumerate(place[:-1]):
        inner = mapping.get(str(part))
        if inner is None:
            inner = mapping[str(part)] = {}
            document.options[place[: depth + 1]] = option
        if not isinstance(inner, dict):
            raise document.error(place[: depth + 1], f"is a single value, so {option!r} finds no field in it")
        mapping = inner
    mapping[str(place[-1])] = value
    _forget_places(document, place)
    document.options[place] = option


def _forget(document: Document, place: Place) -> None:
    """Take a field of the workload out."""
    workload = document.tree.get("workload")
    if isinstance(workload, dict):
        workload.pop(str(place[1]), None)
    _forget_places(document, place)


def _forget_places(document: Document, place: Place) -> None:
    for known in [*document.lines, *document.options]:
        if known[: len(place)] == place:
            document.lines.pop(known, None)
            document.options.pop(known, None)
