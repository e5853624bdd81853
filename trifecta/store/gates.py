"""The last good state of a gate, a JSON file in a folder of references."""

from __future__ import annotations

from pathlib import Path

from trifecta.contract import codec
from trifecta.contract.gate import SCHEMA, GateDocument
from trifecta.design.errors import UserError
from trifecta.store import documents, files

_REMEDY = "remove it, or give another folder with --references"


def reference_file(folder: Path, study: str, factor: str) -> Path:
    """Where the last good state of a study's gate of a factor is kept."""
    return folder / f"{study}-{factor}.json"


def read(path: Path) -> GateDocument | None:
    """The last good state; None where there is none. UserError for a file that is no such state."""
    if not path.exists():
        return None
    try:
        kept = codec.decode(GateDocument, documents.read_text(path, _REMEDY))
    except codec.Misfit as error:
        raise UserError(f"{path}: {error}; {_REMEDY}") from None
    if kept["schema"] != SCHEMA:
        raise UserError(f"{path}: schema: {kept['schema']} is of another version of Trifecta; {_REMEDY}")
    return kept


def keep(path: Path, made: GateDocument) -> bool:
    """Keep a state that passed and that nothing is said against; whether it was kept. CannotError on a bad disk."""
    if made["state"] != "pass" or made["warnings"]:
        return False
    with files.disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    files.write_text(path, codec.encode_pretty(made) + "\n")
    return True
