"""Values of JSON, for documents that are written for others and read by nobody here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = "str | int | float | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = Mapping[str, JsonValue]

Level: TypeAlias = str | int | float | bool
"""A level of a factor in its canonical form."""
