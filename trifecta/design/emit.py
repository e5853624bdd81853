"""Plain values to YAML text: the canonical form of a study, the same for the same study."""

from __future__ import annotations

import re
from typing import Any

from trifecta.contract.values import JsonObject

# A plain scalar that every YAML 1.2 reader, and ours, takes for exactly this text.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./%+-]*( [A-Za-z0-9_./%+-]+)*")
_WIDTH = 100


def to_yaml(value: JsonObject) -> str:
    """Block YAML of nested mappings; lists in flow style."""
    return "".join(_lines(value, 0))


def _lines(mapping: JsonObject, depth: int) -> list[str]:
    lines = []
    for key, value in mapping.items():
        start = "  " * depth + _scalar(key) + ":"
        if isinstance(value, dict) and value:
            lines += [start + "\n", *_lines(value, depth + 1)]
        elif isinstance(value, dict):
            lines.append(f"{start} {{}}\n")
        elif isinstance(value, list):
            lines.append(_list(start, value, depth))
        else:
            lines.append(f"{start} {_scalar(value)}\n")
    return lines


def _list(start: str, values: list[Any], depth: int) -> str:
    text = f"{start} ["
    column = len(text)
    parts = []
    for index, value in enumerate(values):
        part = _scalar(value) + ("," if index + 1 < len(values) else "")
        if column + len(part) > _WIDTH:
            parts.append("\n" + "  " * (depth + 1) + part)
            column = 2 * (depth + 1) + len(part)
        else:
            parts.append((" " if index else "") + part)
            column += len(part) + 1
    return text + "".join(parts) + "]\n"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in ("null", "true", "false", "yes", "no", "on", "off"):
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    """A character of a double-quoted scalar (YAML 1.2.2 section 5.7); JSON's surrogate pairs would not read back."""
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\U{ord(character):08x}"
