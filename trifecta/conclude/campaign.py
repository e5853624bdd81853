"""What of a campaign was run, and what was not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trifecta.conclude import facts
from trifecta.design.campaign import Campaign


def left_out(campaign: Campaign, folder: Path, problems: Mapping[str, str]) -> dict[str, str]:
    """Studies that were not run, and levels that a run had to leave out (``study, factor level``), with the reason.

    ``problems`` are studies that could not run, with the reason.
    """
    reasons = dict(problems)
    for name in campaign.studies:
        run = folder / name
        if not (run / "run.json").is_file():
            reasons.setdefault(name, "not run")
            continue
        for item in facts.read(run).left_out:
            reasons[f"{name}, {item['factor']} {item['level']}"] = str(item["reason"])
    return reasons
