"""Two reproductions side by side: claim by claim, figure by figure, threat by threat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trifecta import studies
from trifecta.analysis import agreement
from trifecta.analysis.agreement import Pair, RatioSpread
from trifecta.analysis.statements import Statement
from trifecta.conclude.reproduction import rejudge, switches
from trifecta.conclude.reproduction.programs import programs_of
from trifecta.contract.reproduction import Judged
from trifecta.design.errors import UserError
from trifecta.store import documents, results_manifest
from trifecta.store.reproduction import AS_PUBLISHED_FOLDER, DATA_FILE


@dataclass(frozen=True)
class Comparison:
    """What two reproductions say of the same statements."""

    first: Mapping[str, Any]
    second: Mapping[str, Any]
    claims: list[Pair]
    figures: list[Pair]
    threats: list[Pair]
    session_spread: RatioSpread | None

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """How many claims, figures and threats stand in each relation."""
        kinds = {"claims": self.claims, "figures": self.figures, "threats": self.threats}
        return {kind: agreement.count_relations(pairs) for kind, pairs in kinds.items()}

    @property
    def agree(self) -> bool:
        """Whether every claim, figure and effect of a threat that both decided is decided alike."""
        return agreement.agree([*self.claims, *self.figures, *self.threats])


def compare(first: Path, second: Path) -> Comparison:
    """Read two folders of `trifecta reproduce`, or their reproduction.json, and compare them."""
    documents = [_document(path) for path in (first, second)]
    conditions = [bool(one["reproduction"].get("as_published")) for one in documents]
    if len(set(conditions)) > 1:
        one, other = (first, second) if conditions[0] else (second, first)
        raise UserError(
            f"{one} was made as published, {other} under today's conditions; these two are taken together where the "
            f"first is the folder {AS_PUBLISHED_FOLDER} of the second: move it there, then `trifecta resume {other}`"
        )
    claims, figures, threats = (
        agreement.compare(documents[0][kind], documents[1][kind]) for kind in ("claims", "figures", "threats")
    )
    abouts = [_about(path, document) for path, document in zip((first, second), documents, strict=True)]
    return Comparison(abouts[0], abouts[1], claims, figures, threats, agreement.session_spread([*claims, *figures]))


def _document(path: Path) -> dict[str, Any]:
    file = path / DATA_FILE if path.is_dir() else path
    if not file.exists():
        raise UserError(f"{file} does not exist; give two folders that `trifecta reproduce` made")
    document = documents.read_json(file, "give a folder of `trifecta reproduce`")
    results_manifest.check(file.parent, [file.name], f"`trifecta resume {file.parent}` writes it again")
    for field in ("claims", "figures"):
        rows = document.get(field) if isinstance(document, dict) else None
        if not isinstance(rows, list) or not all(
            isinstance(row, dict) and {"id", "kind", "text", "state"} <= row.keys() for row in rows
        ):
            raise UserError(f"{file}: '{field}' is not a list of statements; give a folder of `trifecta reproduce`")
    if not isinstance(document.get("reproduction"), dict):
        raise UserError(f"{file}: 'reproduction' is missing; give a folder of `trifecta reproduce`")
    conditions = bool(document["reproduction"].get("as_published"))
    today = {one.id: one for study in studies.published(as_published=conditions).values() for one in study.statements}
    judged = {kind: [_by_rule_of_today(row, today) for row in document[kind]] for kind in ("claims", "figures")}
    return {**document, **judged, "threats": switches.statements(file, document.get("threats"))}


def _by_rule_of_today(row: Judged, today: Mapping[str, Statement]) -> Judged:
    """By today's rule, where it is today's statement: two rules would differ where two runs do not."""
    statement = today.get(str(row["id"]))
    if statement is None or row.get("defined") != statement.defined:
        return row
    return rejudge.rejudge(row, statement)


def _about(path: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """When it was made, of what, and with what."""
    recorded = document["reproduction"]
    facts = recorded.get("machine") or {}
    machine = facts.get("machine") or {}
    return {
        "folder": str(path),
        "began": recorded.get("began"),
        "studies": recorded.get("studies"),
        "depth": recorded.get("depth"),
        "as_published": bool(recorded.get("as_published")),
        "version": recorded.get("version"),
        "seed": facts.get("seed"),
        "machine": {name: machine.get(name) for name in ("cpu_model", "cpus", "kernel", "distribution")},
        "programs": _programs(path, document),
    }


def _programs(path: Path, document: Mapping[str, Any]) -> dict[str, str]:
    """As the document says, which needs no runs beside it; else, of an earlier version, as its runs say."""
    versions = document["reproduction"].get("programs")
    if isinstance(versions, dict):
        return {str(name): str(version) for name, version in versions.items()}
    folders = [str(run.get("folder", "")) for run in document.get("runs") or ()]
    return programs_of(path if path.is_dir() else path.parent, folders)
