"""How the intervals of a run closed in: what stood in its verdicts whenever a page followed it.

Verdicts are replaced after every block, and are not worked out again here for blocks before: beside a measurement that
would cost too much. So a page that is loaded again is told what the server saw for it or for another page.
"""

from __future__ import annotations

from typing import cast

from trifecta.contract.values import JsonObject

_POINT = ("ratio", "low", "high", "mark")


class History:
    """Of one run, by comparison: its ratio and interval after so many blocks."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self._began: object = None
        self._points: dict[tuple[str, str, str], list[JsonObject]] = {}

    def take(self, document: JsonObject) -> None:
        """Keep what `live.Follower.document` says now.

        What was seen of as many blocks or more is no longer so: trials of theirs do not count any more. Nothing of it
        is where the run in this folder is another one.
        """
        if document["began"] != self._began:
            self._began = document["began"]
            self._points.clear()
        for cell in cast(list[JsonObject], document["cells"]):
            for one in cast(list[JsonObject], cell["verdicts"]):
                points = self._points.setdefault((str(one["cell"]), str(one["arm"]), str(one["reference"])), [])
                blocks = cast(int, one["blocks"] or 0)
                while points and cast(int, points[-1]["block"]) >= blocks:
                    points.pop()
                if one["ratio"] is not None:
                    points.append({"block": blocks, "said": one["statement"], **{name: one[name] for name in _POINT}})

    def document(self) -> JsonObject:
        """As the page is sent it."""
        return {
            "comparisons": [
                {"cell": cell, "arm": arm, "reference": reference, "points": list(points)}
                for (cell, arm, reference), points in self._points.items()
                if points
            ]
        }
