"""What a folder is that is not a run, and which run below it somebody may have meant."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from trifecta.store import campaign, ladders, reproduction, why

# By the file that says so. The last three are written by packages above this one.
_KINDS = {
    reproduction.REPRODUCTION_FILE: "a reproduction",
    ladders.LADDERS_FILE: "a folder of ladders",
    why.ASKED_FILE: "a search for causes",
    campaign.CAMPAIGN_FILE: "a campaign",
    "ladder.json": "a ladder",
    "threats.json": "a measurement of threats",
    "map.json": "a map that was kept without its run",
}
_RUN = "the folder that `trifecta run` made"


def instead(folder: Path) -> str:
    """What a folder without ``run.json`` is, where that is known, and what to give in its place: ends a message."""
    what = next((f"it is {kind}: " for name, kind in _KINDS.items() if (folder / name).is_file()), "")
    below: list[Path] = []
    with suppress(OSError):  # a hint, and a folder may vanish under it
        below = [match.parent for pattern in ("*/run.json", "*/*/run.json") for match in sorted(folder.glob(pattern))]
    return f"{what}give " + (f"one of the {len(below)} below it, such as {below[0]}" if below else _RUN)
