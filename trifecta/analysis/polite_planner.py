"""A planner that stops where a server of others has been asked enough: its caps, and its own word for patience.

As the planner that it wraps it keeps no state: what was sent follows from the rows, so that a resumed run goes on
within its caps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import cast

from trifecta.analysis.estimate import Row
from trifecta.analysis.planner import AnyPlanner, Decision, Stop
from trifecta.contract.stored import Load
from trifecta.design import manners, plan, quantity
from trifecta.design.far import FAMILIES
from trifecta.design.manners import Manners
from trifecta.design.model import Cell, Study, Verdict
from trifecta.design.workloads.far_base import FarBaseWorkload

TURNED_AWAY = "status"  # how a load ended that was answered 429 or 503


@dataclass(frozen=True)
class TrialTraffic:
    """What a trial does: its workload, its way to use connections, and who asks."""

    workload: FarBaseWorkload
    connection: str
    client: str


class PolitePlanner:
    """What another planner decides, as long as there is room for it."""

    def __init__(self, planner: AnyPlanner, study: Study, cells: Sequence[Cell]) -> None:
        """``cells`` are those of the planner."""
        self._planner = planner
        self._study = study
        work = {cell.key: _treated(study, cell) for cell in cells}
        self._block_turns = {
            key: sum(one.workload.turns(one.connection) for one in every) for key, every in work.items()
        }
        self._every = [one for every in work.values() for one in every]
        self._caps: Manners = self._every[0].workload.manners

    def next(self, rows: Sequence[Row], elapsed_ns: int, judged: Sequence[Verdict] | None = None) -> Decision | Stop:
        """The next block, or that it is enough, as `trifecta.analysis.planner.Planner.next`."""
        turned_away = refusals(rows)
        if turned_away is not None:
            return Stop(turned_away, "refused")
        decided = self._planner.next(rows, elapsed_ns, judged)
        return decided if isinstance(decided, Stop) else self._room(decided, rows) or decided

    def _room(self, decision: Decision, rows: Sequence[Row]) -> Stop | None:
        """Why the block does not fit below the caps any more; None where it does."""
        requests, octets = spent(rows)
        each_turn = self._burst(rows)
        more = each_turn * self._block_turns[decision.cell.key]
        looks = look_requests(self._every, each_turn)
        each = octets / requests if requests else 0.0
        if requests + looks + more > self._caps.most_requests:
            most = f"{self._caps.most_requests:,} requests"
            return Stop(f"{requests:,} requests were made, and {most} at most leave no room for a block", "capped")
        if octets + each * (more + looks) > self._caps.most_bytes:
            most = quantity.format_size(self._caps.most_bytes)
            sent = f"{octets / 1e6:.3g} MB"
            return Stop(f"{sent} were sent both ways, and {most} at most leave no room for a block", "capped")
        return None

    def _burst(self, rows: Sequence[Row]) -> int:
        """The most requests that a turn was seen to make: one where it is a request, and of a page before the first."""
        requests_made = [
            int((_load(str(row.get("load_json") or "null")) or {}).get("requests_made") or 0) for row in rows
        ]
        first = self._every[0]
        return max(1, math.ceil(max(requests_made, default=0) / first.workload.turns(first.connection)))


def look_requests(every: Iterable[TrialTraffic], each_turn: int = 1) -> int:
    """The most requests that looks make at the places of these treatments, where a visit makes ``each_turn``."""
    known = list(every)
    levels = {(one.workload.url, one.workload.address, one.workload.asked_from) for one in known}
    addresses = sum(manners.MOST_ADDRESSES if level in FAMILIES else 1 for _, level, _ in levels)
    visits = {(one.workload.url, one.client): one.workload.look_turns for one in known}
    robots = {one.workload.url for one in known if one.workload.visiting}
    single = manners.LOOKS * manners.LOOK_REQUESTS * addresses + 2 * manners.ROBOTS_REQUESTS * len(robots)
    return single + each_turn * sum(visits.values())


def trial_traffic(study: Study, cells: Iterable[Cell]) -> list[TrialTraffic]:
    """What each trial of a block does, of these cells, the baseline's second run too."""
    return [one for cell in cells for one in _treated(study, cell)]


def _treated(study: Study, cell: Cell) -> list[TrialTraffic]:
    every = [plan.treatment(study, cell, arm) for arm in plan.arms(study)]
    return [TrialTraffic(plan.workload_of(FarBaseWorkload, study, one), one.connection, one.client) for one in every]


def spent(rows: Sequence[Row]) -> tuple[int, int]:
    """Requests and octets, both ways, of all trials: those that count for nothing were sent, too."""
    requests = octets = 0
    for row in rows:
        load = _load(str(row.get("load_json") or "null")) or {}
        requests += int(load.get("requests_made") or load.get("samples") or 0)
        octets += int(load.get("octets_about") or 0)
        octets += int(load.get("wire_bytes_in") or 0) + int(load.get("wire_bytes_out") or 0)
    return requests, octets


def refusals(rows: Sequence[Row]) -> str | None:
    """Why nothing more is asked: the server asked for patience too often, or for too much of it."""
    last = [_load(str(row.get("load_json") or "null")) or {} for row in rows[-manners.MOST_REFUSALS :]]
    if not last or last[-1].get("ended") != TURNED_AWAY:
        return None
    asked_ns = retry_after_ns(last[-1], str(rows[-1].get("wall_started_utc") or ""))
    if asked_ns is not None and asked_ns > manners.LONGEST_BACK_OFF_NS:
        return f"the server asks to slow down for {asked_ns / 1e9:.0f} s (Retry-After); no more requests are sent"
    if len(last) == manners.MOST_REFUSALS and all(one.get("ended") == TURNED_AWAY for one in last):
        return f"{len(last)} trials in a row were answered 429 or 503; no more requests are sent"
    return None


def retry_after_ns(load: Load, wall: str) -> int | None:
    """How long a server asks to wait (RFC 9110, 10.2.3), in ns; None where it does not say, or nobody can read it.

    ``wall``: when that was, as ISO 8601.
    """
    field = (load.get("response_fields") or {}).get("retry-after")
    for text in field["values"] if field is not None else ():
        if text.isdigit():
            return int(text) * 1_000_000_000
        try:
            until = parsedate_to_datetime(text)
            since = datetime.fromisoformat(wall)
        except (TypeError, ValueError):
            continue
        if until.tzinfo is None:
            until = until.replace(tzinfo=UTC)
        return max(0, round((until - since).total_seconds() * 1e9))
    return None


@lru_cache(maxsize=20_000)
def _load(text: str) -> Load | None:
    return cast("Load | None", json.loads(text))
