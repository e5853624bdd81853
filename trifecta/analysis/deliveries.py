"""What the links of a run did, over all its trials: a link that a single trial cannot convict.

A trial has a few hundred packets, and 2 % loss for 1 % is within what chance makes of so few. Over the run it is not.
Trials of a block share their seed, and so do the cells on a path: packet n has the same fate in all of them, so packets
are counted once a seed, in the trial that had most of them. Over those the test is exact at every look.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from trifecta.analysis.draws import log_e_binomial, log_e_bursts, smallest_error
from trifecta.analysis.estimate import Row
from trifecta.design import numbers, plan
from trifecta.design.impairments import KINDS, kind_of
from trifecta.design.model import AA_SUFFIX, Study

ALPHA = 0.01  # of runs whose links do what was asked lose a path, over all paths, directions, arms and looks
_POOLED_SHARE = 0.5  # of it for all arms together, the rest for arms alone
DIRECTIONS = {"a_to_b": "forward", "b_to_a": "backward"}
DIRECTION_TITLES = {"a_to_b": "client to server", "b_to_a": "server to client"}


@dataclass(frozen=True)
class Stream:
    """One impairment of one direction of a path, over the run; ``arm`` None for all arms together.

    ``packets`` are those that met it, each draw once.
    """

    path: str
    direction: str
    kind: str
    arm: str | None
    asked: float
    inflation: float
    packets: int
    hits: int
    log_e: float
    log_e_to_fail: float

    @property
    def failed(self) -> bool:
        """Whether chance is no explanation."""
        return self.log_e >= self.log_e_to_fail

    @property
    def smallest(self) -> float | None:
        """The smallest excess (a share) that nine of ten such runs would have seen; None while there is none."""
        if not self.packets or self.arm is not None:
            return None
        return smallest_error(self.packets, self.asked, self.inflation, self.log_e_to_fail)

    @property
    def text(self) -> str:
        """The counts, with what could have been seen."""
        whose = f" in the trials of {self.arm}" if self.arm else ""
        share = self.hits / self.packets if self.packets else 0.0
        title = DIRECTION_TITLES[self.direction]
        sentence = f"{title}{whose}: {KINDS[self.kind].deed} {100 * share:.2f} % of {self.packets:,} packets, "
        sentence += f"requested {numbers.requested_percent(self.asked)}"
        if self.failed:
            by_e = f"e-value {math.exp(self.log_e):.2g}" if self.log_e < 700 else "e-value over 1e300"
            return f"{sentence}, beyond chance over the run ({by_e}, {math.exp(self.log_e_to_fail):.2g} needed)"
        smallest = self.smallest
        if smallest is None:
            return f"{sentence}; too few packets to detect any error"
        return f"{sentence}; an error of {100 * smallest:.2g} points or more would have been detected"


def streams(study: Study, rows: Sequence[Row]) -> list[Stream]:
    """Every stream of the run, in the order of the plan; those of arms follow all arms together."""
    arms = [arm for arm in plan.arms(study) if not arm.endswith(AA_SUFFIX)]
    planned = [
        (path.name, direction, index, impairment, chance)
        for path in study.paths.values()
        for direction, attribute in DIRECTIONS.items()
        for index, impairment in enumerate(getattr(path, attribute))
        if (chance := kind_of(impairment).share) is not None
    ]
    if not planned:
        return []
    counted = _counts_by_stream(study, rows)
    all_streams = []
    for path, direction, index, impairment, chance in planned:
        chance_of_hit, inflation = chance(impairment)
        for arm in (None, *arms):
            share = _POOLED_SHARE if arm is None else (1 - _POOLED_SHARE) / len(arms)
            needed = math.log(len(planned) / (ALPHA * share))
            packets, hits = counted.get((path, direction, index, arm), (0, 0))
            e = (
                log_e_bursts(hits, packets, chance_of_hit, inflation)
                if inflation > 1
                else log_e_binomial(hits, packets, chance_of_hit)
            )
            kind = str(impairment["kind"])
            all_streams.append(Stream(path, direction, kind, arm, chance_of_hit, inflation, packets, hits, e, needed))
    return all_streams


def lies(study: Study, rows: Sequence[Row]) -> dict[str, str]:
    """The paths whose link did not do what was asked, with the reason: those of no chance first."""
    text_by_path: dict[str, str] = {}
    for one in streams(study, rows):
        if one.failed:
            text_by_path.setdefault(one.path, one.text)
    return text_by_path


_Key = tuple[str, str, int, str | None]


def _counts_by_stream(study: Study, rows: Sequence[Row]) -> dict[_Key, tuple[int, int]]:
    """(met, hit) by stream: of each seed the trial in which most packets met the impairment; of netem every trial."""
    most: dict[tuple[_Key, Any], tuple[int, int]] = {}
    lossy = {name: path for name, path in study.paths.items() if path.impaired}
    wires = set(study.workload.impaired_wires)
    for row in rows:
        path = lossy.get(str(row.get("path")))
        link_json = row.get("link_json")
        if path is None or not link_json:
            continue
        arm = str(row["arm"]).removesuffix(AA_SUFFIX)
        for wire, seed, tallies in _tallies(str(link_json)):
            if wire and wire not in wires:
                continue
            for direction, attribute in DIRECTIONS.items():
                planned = [str(impairment["kind"]) for impairment in getattr(path, attribute)]
                mine = tallies.get(direction, ())
                if [kind for kind, _, _ in mine] != planned:
                    continue  # the check `path` of the trial says so
                for index, (_, met, hit) in enumerate(mine):
                    for whose in (None, arm):
                        # The draws of netem are each trial's own; ours are those of the seed.
                        drawn = row["trial"] if path.emulator == "netem" else row.get("seed", seed)
                        place = ((path.name, direction, index, whose), (wire, drawn, row["block"]))
                        most[place] = max(most.get(place, (0, 0)), (met, hit))
    total: dict[_Key, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for (key, _), (met, hit) in most.items():
        total[key] = (total[key][0] + met, total[key][1] + hit)
    return total


@lru_cache(maxsize=20_000)
def _tallies(link_json: str) -> tuple[tuple[str, Any, Mapping[str, Sequence[tuple[str, int, int]]]], ...]:
    """Of each link: its wire, seed, and by direction (kind, met, hit) of its impairments."""
    document = json.loads(link_json) or {}
    links: Iterable[tuple[str, Any]] = document["links"].items() if "links" in document else [("", document)]
    return tuple(
        (
            str(wire),
            link.get("seed"),
            {
                direction: [
                    (str(one["kind"]), int(one["met"]), int(one["hit"]))
                    for one in (link.get(direction) or {}).get("impairments") or ()
                ]
                for direction in DIRECTIONS
            },
        )
        for wire, link in links
        if link
    )
