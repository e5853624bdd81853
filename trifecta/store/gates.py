"""What the run of a gate keeps of what was asked, and the last good states, JSON files in a folder of references."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from trifecta.contract import codec
from trifecta.contract.gate import SCHEMA, GateDocument
from trifecta.contract.machine import StaticFacts
from trifecta.contract.run import GateRequest, RunDocument
from trifecta.design.errors import UserError
from trifecta.store import documents, facts, files

_REMEDY = "remove it, or give another folder with --references"
_DIGITS = 8


def is_gate(about: RunDocument) -> bool:
    """Whether a run is a gate, by its ``run.json``."""
    return "gate" in about


def gate_request(run: Path, about: RunDocument) -> GateRequest:
    """What the gate of a run was asked; UserError where that is damaged."""
    try:
        return codec.convert(GateRequest, about["gate"])
    except codec.Misfit as error:
        raise UserError(f"{run / facts.FILE}: gate.{error}; {facts.REMEDY}") from None


def reference_file(folder: Path, study: str, factor: str, asked_sha256: str, machine: StaticFacts) -> Path:
    """Where the last good state of a study's gate of a factor is kept, by what it asks and on which machine."""
    of_machine = hashlib.sha256(files.to_json(machine).encode()).hexdigest()
    return folder / f"{study}-{factor}-{asked_sha256[:_DIGITS]}-{of_machine[:_DIGITS]}.json"


def count_others(path: Path) -> int:
    """How many states of the same study and factor lie beside this file."""
    stem = re.escape(path.stem[: -2 * (_DIGITS + 1)])
    name = re.compile(rf"{stem}(-[0-9a-f]{{{_DIGITS}}}){{2}}\.json")
    there = path.parent.iterdir() if path.parent.is_dir() else ()
    return sum(bool(name.fullmatch(one.name)) and one.name != path.name for one in there)


def read(path: Path) -> GateDocument | None:
    """The last good state; None where there is none. UserError for a file that is no such state."""
    if not path.exists():
        return None
    try:
        document = codec.decode(GateDocument, documents.read_text(path, _REMEDY))
    except codec.Misfit as error:
        raise UserError(f"{path}: {error}; {_REMEDY}") from None
    if document["schema"] != SCHEMA:
        raise UserError(f"{path}: schema: {document['schema']} is of another version of Trifecta; {_REMEDY}")
    return document


def keep(path: Path, document: GateDocument) -> None:
    """Make a gate the last good state. CannotError on a bad disk."""
    with files.disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    files.write_text(path, codec.encode_pretty(document) + "\n")
