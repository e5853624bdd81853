"""What the study asked of every wire, for the view ``link``: never what a link says that it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from trifecta.contract.impairments import ImpairmentDocument
from trifecta.design.errors import UserError
from trifecta.design.impairments import lost_share
from trifecta.design.model import Study
from trifecta.design.study_file import parse_study
from trifecta.store.parquet import quoted

# delay_ns, loss, rate: of a loss schedule or a trace, which depend on how much was sent, the link's own word stands.
_COLUMNS = "path, wire, direction, delay_ns, loss, scheduled, rate, traced"


@lru_cache(maxsize=32)  # whoever opens a run again, as a report and its tables do, has the same text
def asked_select(study_text: str) -> str:
    """A SELECT of one row per path, wire (null in a lab of two hosts) and direction; no row where that is unknown."""
    try:
        rows = _rows(parse_study(study_text, "study.yaml"))
    except UserError:  # a damaged or foreign study: `trifecta report` names it; a query says null
        rows = []
    if not rows:
        return f"SELECT {', '.join(f'NULL AS {name}' for name in _COLUMNS.split(', '))} WHERE false"
    return f"SELECT * FROM (VALUES {', '.join(rows)}) AS asked({_COLUMNS})"  # noqa: S608 - quoted names and numbers


def _rows(study: Study) -> list[str]:
    wires: list[str | None] = [None, *filter(None, study.workload.wires)]
    impaired: set[str | None] = {None, *study.workload.impaired_wires}
    return [
        _row(path.name, wire, direction, impairments if wire in impaired else ())
        for path in study.paths.values()
        for wire in wires
        for direction, impairments in (("a_to_b", path.forward), ("b_to_a", path.backward))
    ]


def _row(path: str, wire: str | None, direction: str, impairments: Sequence[ImpairmentDocument]) -> str:
    lost, _ = lost_share(impairments)
    scheduled = any("drop" in impairment for impairment in impairments)
    traced = any("opportunities_ms" in impairment for impairment in impairments)
    delay_ns = sum(int(impairment["delay_ns"]) for impairment in impairments if impairment["kind"] == "delay")
    rates = [float(impairment["bits_per_s"]) for impairment in impairments if impairment["kind"] == "rate"]
    rate = f"{min(rates)!r}::DOUBLE" if rates else "NULL::DOUBLE"
    named = "NULL::VARCHAR" if wire is None else quoted(wire)
    return (
        f"({quoted(path)}, {named}, '{direction}', {delay_ns}::BIGINT, {lost!r}::DOUBLE, {scheduled}, {rate}, {traced})"
    )
