"""JSON documents and texts that a folder keeps, read as what they are: input that anybody may have changed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from trifecta.design.errors import UserError

LARGEST_BYTES = 64 << 20  # a thousand times what the largest campaign writes
_LARGEST_INTEGER = 2**64
_NAMES: dict[type, str] = {dict: "an object", list: "a list", str: "a string", int: "a whole number", bool: "a boolean"}


def read_text(path: Path, remedy: str) -> str:
    """A text file of a folder; UserError where it is missing, no text in UTF-8, or too large to be one of ours."""
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise UserError(f"{path}: has {path.stat().st_size:,} octets, more than Trifecta ever writes; {remedy}")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8 (octet {error.start}); {remedy}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None


def read_json(path: Path, remedy: str) -> Any:
    """A JSON file of a folder; UserError for what is not JSON (RFC 8259) or holds what no file of ours can.

    Refused are NaN and infinities, integers beyond 64 bits, and surrogates alone, which no text can hold.
    """
    text = read_text(path, remedy)

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number")

    try:
        content = json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise UserError(f"{path}: is not valid JSON (nested too deeply); {remedy}") from None
    except ValueError as error:
        sentence = "it is empty" if not text.strip() else str(error)
        raise UserError(f"{path}: is not valid JSON ({sentence}); {remedy}") from None
    unusable = _unusable(content, "")
    if unusable is not None:
        raise UserError(f"{path}: {unusable}; {remedy}")
    return content


def read_object(
    path: Path, remedy: str, fields: Mapping[str, type | tuple[type, ...]], *, complete: bool = False
) -> dict[str, Any]:
    """A JSON object of a folder whose fields, where they are there, have these types; UserError names the first that
    has not. Of one that is ``complete`` every field is there.
    """
    content = read_json(path, remedy)
    if not isinstance(content, dict):
        raise UserError(f"{path}: is not a JSON object; {remedy}")
    for name, kinds in fields.items():
        if name in content:
            expect(content[name], kinds, name, path, remedy)
        elif complete:
            raise UserError(f"{path}: field {name!r} is missing; {remedy}")
    return content


def expect(value: Any, kinds: type | tuple[type, ...], name: str, path: Path, remedy: str) -> None:
    """UserError unless the field ``name`` is of one of these types; a boolean is not a number."""
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    if type(value) not in wanted:
        sentence = " or ".join(_NAMES.get(kind, "null" if kind is type(None) else "a number") for kind in wanted)
        raise UserError(f"{path}: field {name!r} is not {sentence}; {remedy}")


def _unusable(value: Any, name: str) -> str | None:
    """The first part of a document that nothing can be done with, in words."""
    where = f"field {name!r}" if name else "it"
    inside: Iterable[tuple[str, Any]] = ()
    sentence = None
    if isinstance(value, str) and not _is_text(value):
        sentence = f"{where} holds half of a surrogate pair"
    elif isinstance(value, int) and abs(value) >= _LARGEST_INTEGER:
        sentence = f"{where} is beyond 64 bits"
    elif isinstance(value, float) and not math.isfinite(value):
        sentence = f"{where} is too large for a number"
    elif isinstance(value, dict):
        if not all(map(_is_text, value)):
            sentence = f"a name in {where} holds half of a surrogate pair"
        inside = ((f"{name}.{key}" if name else key, inner) for key, inner in value.items())
    elif isinstance(value, list):
        inside = ((f"{name}[{place}]", inner) for place, inner in enumerate(value))
    return sentence or next((problem for at, inner in inside if (problem := _unusable(inner, at))), None)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
