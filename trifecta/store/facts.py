"""``run.json``: its schema, the types of its fields, and which versions of Trifecta can read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from trifecta import __version__
from trifecta.contract.run import RunDocument
from trifecta.design.errors import UserError
from trifecta.store import documents

FILE = "run.json"
SCHEMA_VERSION = 3
"""Of a run's folder. 1 had no manifest of its files, that of 2 no lines for qlog and what the planner decided."""
READABLE = (1, 2, 3)
WITH_MANIFEST = 2
WITH_ALL_LINES = 3
REMEDY = "copy the run's folder again from where it was made"
_NUMBER = (int, float)
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "schema": int,
    "trifecta": str,
    "python": str,
    "engine": dict,
    "code": dict,
    "study": dict,
    "seed": int,
    "argv": list,
    "started_utc": str,
    "servers": dict,
    "clients": dict,
    "browsers": dict,
    "unsupported": list,
    "not_found": list,
    "failed": list,
    "machine": dict,
    "pins": dict,
    "parity": dict,
    "network": dict,
    "hosts": dict,
    "nodes": dict,
    "nodes_left_out": dict,
    "nodes_share_machine": bool,
    "lost_blocks": list,
    "stored": str,
    "faults": dict,
    "cells": list,
    "removed": list,
    "extended": list,
    "map": dict,
    "gate": dict,
    "elsewhere": list,
    "counted_elsewhere": list,
    "resumed": int,
    "state": str,
    "ended_because": (str, type(None)),
    "elapsed_ns": int,
    "time_share": dict,
    "measuring_share": _NUMBER,
}
_OF_STUDY: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "title": (str, type(None)),
    "sha256": str,
    "metric": str,
}
_ITEMS: dict[str, type | tuple[type, ...]] = {
    "hosts": dict,
    "nodes": dict,
    "nodes_left_out": str,
    "lost_blocks": dict,
    "servers": dict,
    "clients": dict,
    "unsupported": dict,
    "not_found": dict,
    "failed": dict,
    "argv": str,
    "cells": str,
    "removed": str,
    "time_share": _NUMBER,
    "extended": dict,
    "elsewhere": dict,
    "counted_elsewhere": str,
}
_LEFT_OUT = ("unsupported", "not_found", "failed")
_OF_LOOK: dict[str, type] = {"when": str, "utc": str, "places": list}


def read(run: Path) -> RunDocument:
    """``run.json`` of a run that this version can read; UserError with file, field and remedy for any other."""
    path = run / FILE
    facts = documents.read_object(path, REMEDY, {"schema": int, "trifecta": str})
    _refuse_other_versions(path, facts)
    for name, kinds in _FIELDS.items():
        if name in facts:
            documents.expect(facts[name], kinds, name, path, REMEDY)
    for name, kinds in _OF_STUDY.items():
        if name in facts.get("study", {}):
            documents.expect(facts["study"][name], kinds, f"study.{name}", path, REMEDY)
    for (name, place), value in _parts(facts, *_ITEMS):
        documents.expect(value, _ITEMS[name], f"{name}{place}", path, REMEDY)
    for (name, place), item in _parts(facts, *_LEFT_OUT):
        for part in ("factor", "level", "reason"):
            documents.expect(item.get(part), str, f"{name}{place}.{part}", path, REMEDY)
    for (name, place), look in _parts(facts, "elsewhere"):
        for part, kind in _OF_LOOK.items():
            documents.expect(look.get(part), kind, f"{name}{place}.{part}", path, REMEDY)
    for name in ("elapsed_ns", "resumed"):
        if facts.get(name, 0) < 0:
            raise UserError(f"{path}: field {name!r} is negative; {REMEDY}")
    return cast(RunDocument, facts)


def _parts(facts: dict[str, Any], *names: str) -> Iterator[tuple[tuple[str, str], Any]]:
    """What lies in these fields: field and place (``.caddy``, ``[0]``), and value."""
    for name in names:
        there = facts.get(name, [])
        inner = there.items() if isinstance(there, dict) else enumerate(there)
        for key, value in inner:
            yield (name, f".{key}" if isinstance(there, dict) else f"[{key}]"), value


def _refuse_other_versions(path: Path, facts: dict[str, Any]) -> None:
    schema, version = facts.get("schema"), facts.get("trifecta", "")
    by = f" by Trifecta {version}" if version else ""
    if schema is None:
        raise UserError(f"{path}: field 'schema' is missing; {REMEDY}")
    if schema > SCHEMA_VERSION or _numbers(version) > _numbers(__version__):
        what = f"schema {schema}" if schema > SCHEMA_VERSION else "a later version"
        raise UserError(
            f"{path}: was written{by} in {what}; this is {__version__}, which reads schemas up to {SCHEMA_VERSION}: "
            "use that version, or update this one"
        )
    if schema not in READABLE:
        raise UserError(f"{path}: field 'schema' is {schema}, and this version reads {READABLE[0]} to {READABLE[-1]}; "
                        f"{REMEDY}")  # fmt: skip


def _numbers(text: str) -> tuple[int, ...]:
    """``1.12.0.dev3`` as (1, 12, 0): what is behind the numbers does not change what can be read."""
    match = re.match(r"\d+(\.\d+)*", text)
    numbers = [int(part) for part in match.group().split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def require(run: Path, facts: RunDocument, *names: str) -> None:
    """UserError where ``run.json`` lacks one of these fields; ``study.sha256`` is that of ``study``."""
    for name in names:
        at: Any = facts
        for part in name.split("."):
            if part not in at:
                raise UserError(f"{run / FILE}: field {name!r} is missing; {REMEDY}")
            at = at[part]
