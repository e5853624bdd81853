"""Documents to octets and back; what does not fit its type is named by its field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)


class Misfit(ValueError):
    """A document does not have the form of its type: the field, and what is wrong with it."""


def encode(document: object) -> bytes:
    """A document as JSON on one line, without its end."""
    return msgspec.json.encode(document)


def encode_pretty(document: object) -> str:
    """A document as JSON for files that people read."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def decode(kind: type[T], text: bytes | str) -> T:
    """A document read from JSON; Misfit names the field that is missing, unknown or wrong."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Misfit(describe(error)) from error


def convert(kind: type[T], value: object) -> T:
    """A document made of what JSON gives; Misfit as ``decode``."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Misfit(describe(error)) from error


def plain(document: object) -> Any:
    """A document as what JSON gives: dicts, lists, texts, numbers."""
    return msgspec.to_builtins(document)


def describe(error: Exception) -> str:
    """``FIELD: what is wrong``, from the words of msgspec."""
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return f"configuration: is not JSON ({text})"
    what, _, place = text.partition(" - at `")
    path = place.rstrip("`").removeprefix("$").lstrip(".").replace("[...]", "")
    for words, problem in (
        ("Object missing required field `", "is missing"),
        ("Object contains unknown field `", "is not a field"),
    ):
        if what.startswith(words):
            name = what.removeprefix(words).rstrip("`")
            return f"{path}.{name}: {problem}" if path else f"{name}: {problem}"
    return f"{path or 'configuration'}: {what[:1].lower()}{what[1:]}"


def changed(document: S, changes: Mapping[str, object]) -> S:
    """A document with some of its fields changed; Misfit names one that it does not have, or that does not fit."""
    return convert(type(document), {**plain(document), **changes}) if changes else document
