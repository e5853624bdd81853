"""What was asked of a search for causes: its cell, and what is measured for it."""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.contract.why import WhyRequest
from trifecta.design.errors import UserError
from trifecta.design.study_file import parse_study
from trifecta.design.why.change import Change
from trifecta.design.why.rungs import Case, Rung, case_of, cell_named
from trifecta.design.why.table import CAUSES


def case_asked(request: WhyRequest) -> Case:
    """The cell and the arms that were asked about. UserError where this version lacks a cause that is removed."""
    for one in request["causes"]:
        if one["cause"] not in CAUSES:
            raise UserError(f"no cause {one['cause']!r} in this version; ask anew with --out")
    study = parse_study(request["study"], "study.yaml")
    return case_of(study, cell_named(study, request["cell"]), request["arm"], request["to"])


def changes_of(request: WhyRequest) -> dict[str, Change]:
    """What removes each of the causes that are measured."""
    return {one["cause"]: Change(tuple(one["levels"].items()), tuple(one["path"].items())) for one in request["causes"]}


def rungs_of(request: WhyRequest) -> list[Rung]:
    """The cell as it is, as it is on the nearest stack where a cause needs that, and without each cause."""
    changes = changes_of(request)
    removed = [Rung((one["cause"],), changes[one["cause"]], one["nearest"]) for one in request["causes"]]
    return [Rung(), *([Rung(nearest=True)] if any(one.nearest for one in removed) else []), *removed]


def goes_together(case: Case, request: WhyRequest, ids: Sequence[str]) -> bool:
    """Whether one cell can be without all of these causes, which are measured on one stack."""
    change = case.together(changes_of(request), ids)
    return change is not None and case.can_be(Rung(tuple(ids), change, _is_nearest(request, ids[0])))


def _is_nearest(request: WhyRequest, cause: str) -> bool:
    return next(one["nearest"] for one in request["causes"] if one["cause"] == cause)


def together_of(case: Case, request: WhyRequest, pair: Sequence[str], named: Sequence[str]) -> list[Rung]:
    """As it is, without each of two causes, without both, and without all that are named and go together; where
    ``pair`` is one cause, as it is and without it.
    """
    changes = changes_of(request)
    nearest = _is_nearest(request, pair[0])
    sets = [(), *((one,) for one in pair), tuple(pair), tuple(named)] if len(pair) > 1 else [(), tuple(pair)]
    return [Rung(ids, case.together(changes, ids) or Change(), nearest) for ids in sets]
