"""What threats do to the comparisons of a reproduction, as statements that two reproductions can be compared by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from trifecta.analysis.agreement import WITHIN
from trifecta.analysis.intervals import Estimate
from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, OPEN, between_sessions, judge
from trifecta.analysis.statements import Assertion
from trifecta.contract.reproduction import Judged
from trifecta.contract.threats import EffectDocument, EffectRow, ThreatDocument
from trifecta.design.errors import UserError
from trifecta.design.model import PROTOCOL_NAMES

_STATES = {"more": "more", "less": "less", "same": WITHIN}
_SUCCESS = "success_rate"


def statements(file: Path, threats: Sequence[ThreatDocument] | None) -> list[Judged]:
    """One for each ratio of protocols (of successes for each protocol) that a threat may change.

    ``state`` is more or less where it holds after Holm's correction and beyond the margin, within the margin, or open;
    the last two of them as of a claim, with what sessions differ by. Empty where no threats were measured.
    """
    if threats is None:
        return []
    try:
        return [
            _statement(threat, effect, row)
            for threat in threats
            for effect in threat.get("effects") or ()
            for row in effect["rows"]
            if row["reference"] or effect["metric"] == _SUCCESS
        ]
    except (KeyError, TypeError, AttributeError):
        remedy = "give a folder of `trifecta reproduce`"
        raise UserError(f"{file}: 'threats' is not a list of what threats do; {remedy}") from None


def _statement(threat: ThreatDocument, effect: EffectDocument, row: EffectRow) -> Judged:
    arms = " : ".join(PROTOCOL_NAMES.get(arm, arm) for arm in (row["arm"], row["reference"]) if arm)
    parts = (
        effect["title"] or f"{effect['factor']} {effect['on']}",
        row["place"],
        f"{effect['metric_label']} of {arms}",
    )
    return {
        "id": ", ".join(str(part) for part in (threat["threat"], *parts) if part),
        "kind": "threat",
        "text": str(threat["title"]),
        "state": _state(effect, row),
        "form": "ratio",
        "metric": effect["metric"],
        "ratio": row["ratio"],
        "low": row["low"],
        "high": row["high"],
        "blocks": row["blocks"],
    }


def _state(effect: EffectDocument, row: EffectRow) -> str:
    """What two sessions can be compared by.

    "Not 1" and "within the margin" are both true of 1.03 [1.01, 1.05]: one session would say the one, the next the
    other, of the same truth.
    """
    outcome = _STATES.get(row["outcome"], OPEN)
    low, value, high = row["low"], row["ratio"], row["high"]
    if effect["metric"] == _SUCCESS or not row["reference"] or not (low and value and high):
        return outcome
    assertion = Assertion(effect["metric"], (row["arm"],), (row["reference"],), "same")
    one = Estimate(math.log(value), math.log(low), math.log(high), row["blocks"])
    judged, _ = judge(assertion, one, effect["margin"], between_sessions(assertion))
    if judged == CONFIRMED:
        return WITHIN
    return outcome if judged == CONTRADICTED and outcome != WITHIN else OPEN
