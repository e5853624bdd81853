"""What threats do to the comparisons of a reproduction, as statements that two reproductions can be compared by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trifecta.analysis.agreement import WITHIN
from trifecta.analysis.judging import OPEN
from trifecta.design.errors import UserError
from trifecta.design.model import PROTOCOL_NAMES

_STATES = {"more": "more", "less": "less", "same": WITHIN}


def statements(file: Path, document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One for each ratio of protocols (of successes for each protocol) that a threat may change.

    ``state`` is more or less where it holds after Holm's correction, within the margin, or open. Empty where no threats
    were measured.
    """
    threats = document.get("threats")
    if threats is None:
        return []
    try:
        return [
            _statement(threat, effect, row)
            for threat in threats
            for effect in threat.get("effects") or ()
            for row in effect["rows"]
            if row["reference"] or effect["metric"] == "success_rate"
        ]
    except (KeyError, TypeError, AttributeError):
        remedy = "give a folder of `trifecta reproduce`"
        raise UserError(f"{file}: 'threats' is no list of what threats do; {remedy}") from None


def _statement(threat: Mapping[str, Any], effect: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
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
        "state": _STATES.get(row["outcome"], OPEN),
        "form": "ratio",
        "metric": effect["metric"],
        **{key: row[key] for key in ("ratio", "low", "high", "blocks")},
    }
