"""What the study asked of every wire, for the view ``link``: never what a link says that it was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trifecta.design.errors import UserError
from trifecta.design.model import Study
from trifecta.design.study_file import parse_study

# delay_ns, loss, rate: of a loss schedule or a trace, which depend on how much was sent, the link's own word stands.
_COLUMNS = "path, wire, direction, delay_ns, loss, scheduled, rate, traced"


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


def _row(path: str, wire: str | None, direction: str, asked: Sequence[Mapping[str, Any]]) -> str:
    kinds = {impairment["kind"] for impairment in asked}
    survive = 1.0
    for impairment in asked:
        if impairment["kind"] == "loss":
            survive *= 1 - float(impairment["probability"])
        elif impairment["kind"] == "gilbert_elliott":
            survive *= 1 - _lost_in_bursts(impairment)
    delay_ns = sum(int(impairment["delay_ns"]) for impairment in asked if impairment["kind"] == "delay")
    rates = [float(impairment["bits_per_s"]) for impairment in asked if impairment["kind"] == "rate"]
    rate = f"{min(rates)!r}::DOUBLE" if rates else "NULL::DOUBLE"
    named = "NULL::VARCHAR" if wire is None else _quoted(wire)
    return (
        f"({_quoted(path)}, {named}, '{direction}', {delay_ns}::BIGINT, {1 - survive!r}::DOUBLE, "
        f"{'loss_schedule' in kinds}, {rate}, {'trace' in kinds})"
    )


def _lost_in_bursts(channel: Mapping[str, Any]) -> float:
    """The long-run loss of a Gilbert-Elliott channel."""
    to_bad, to_good = float(channel["good_to_bad"]), float(channel["bad_to_good"])
    bad = to_bad / (to_bad + to_good) if to_bad + to_good else 0.0
    return (1 - bad) * float(channel.get("loss_good", 0.0)) + bad * float(channel.get("loss_bad", 1.0))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
