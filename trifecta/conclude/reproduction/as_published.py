"""What statements were under the conditions of their studies: of a reproduction as published, or of a ladder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from trifecta import studies
from trifecta.analysis.judging import OPEN, State
from trifecta.analysis.published import NOT_RUN
from trifecta.conclude.reproduction import rejudge
from trifecta.contract.ladder import LadderDocument
from trifecta.contract.reproduction import Judged, StatementDocument
from trifecta.design.errors import UserError
from trifecta.store import documents, reproduction, results_manifest
from trifecta.store.reproduction import DATA_FILE
from trifecta.studies import ladder_files


def below(folder: Path, ladders: Sequence[LadderDocument]) -> dict[str, StatementDocument]:
    """By statement what it was as published: in the folder ``as-published`` of a reproduction, else on a ladder.

    A statement that stays open in the folder is taken from a ladder that decides it. One of which nothing was run there
    names the ladder that makes its conditions.
    """
    statements = _of_folder(folder / reproduction.AS_PUBLISHED_FOLDER)
    for one in ladders:
        end = one["then"]
        before = statements.get(one["claim"])
        if end["state"] != OPEN if before is not None and before["state"] == OPEN else before is None:
            statements[one["claim"]] = StatementDocument(
                state=end["state"],
                form="ratio",
                value=end["ratio"],
                low=end["low"],
                high=end["high"],
                blocks=end["blocks"],
                reason=one["reason"] if end["state"] == OPEN else "",
                by=f"ladder {one['ladder']}",
            )
    return statements | {claim: _with_ladder(one, claim) for claim, one in statements.items() if _not_run(one)}


def _not_run(statement: StatementDocument) -> bool:
    return statement["state"] == OPEN and statement["reason"].startswith(NOT_RUN)


def _with_ladder(statement: StatementDocument, claim: str) -> StatementDocument:
    ladder = next((name for name, about in ladder_files.claim_of().items() if about == claim), "")
    if not ladder:
        return statement
    reason = f"{statement['reason']}; a ladder makes these conditions (`trifecta ladder {ladder}`)"
    return StatementDocument({**statement, "reason": reason})


def _of_folder(folder: Path) -> dict[str, StatementDocument]:
    path = folder / DATA_FILE
    if not path.is_file():
        return {}
    remedy = f"`trifecta resume {folder}` writes it again"
    results_manifest.check(folder, [DATA_FILE], remedy)
    document = documents.read_object(path, remedy, {"claims": list, "figures": list, "reproduction": dict})
    if not document["reproduction"].get("as_published"):
        raise UserError(f"{path}: was not made as published; make it by `trifecta reproduce --as-published`")
    known = {one.id: one for study in studies.published(as_published=True).values() for one in study.statements}
    statements: dict[str, StatementDocument] = {}
    for row in cast(Sequence[Judged], [*document["claims"], *document["figures"]]):
        statement = known.get(row["id"])
        if statement is None or row["defined"] != statement.defined:
            continue  # what it says is no longer what was measured there
        statements[row["id"]] = _statement_document(rejudge.rejudge(row, statement))
    return statements


def _statement_document(row: Judged) -> StatementDocument:
    return StatementDocument(
        state=row["state"],
        form=row["form"],
        value=row["difference"] if row["form"] == "difference" else row["ratio"],
        low=row["low"],
        high=row["high"],
        blocks=row["blocks"],
        reason=row["reason"],
        by=reproduction.AS_PUBLISHED_FOLDER,
    )


def state(then: Mapping[str, StatementDocument], statement: str) -> State | None:
    """A statement's state as published; None where it was not tried."""
    one = then.get(statement)
    return None if one is None else cast(State, one["state"])
