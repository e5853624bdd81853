"""What one capture says in numbers: a value a metric, over its connections and requests (docs/packets.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING

from trifecta.analysis.transport.acknowledgements import acknowledgements
from trifecta.analysis.transport.attribution import attribute
from trifecta.analysis.transport.blocking import RequestBlocking, blocking
from trifecta.analysis.transport.columns import Connection, connections
from trifecta.analysis.transport.delivery import passage
from trifecta.analysis.transport.differences import mean_parts
from trifecta.analysis.transport.recovery import Recovery, recovery
from trifecta.analysis.transport.setup import setup
from trifecta.analysis.transport.stalls import stalls
from trifecta.analysis.transport.window_reuse import window_reuses

if TYPE_CHECKING:
    import pyarrow as pa

Values = dict[str, float | None]


@dataclass(frozen=True)
class Capture:
    """The numbers of a capture, and what they are made of.

    ``parts``: where the time of a request went, the mean over requests in ns; empty where it cannot be split.
    ``blocking``: of responses.
    """

    values: Values
    parts: dict[str, float]
    blocking: list[RequestBlocking]
    recovered: list[Recovery]


def look_at(tables: Mapping[str, pa.Table]) -> Capture:
    """Of the four tables of one capture."""
    all_passages = passage(tables["packets"], tables["frames"], tables["connections"])
    recovered, _ = recovery(tables, all_passages)
    all_connections = connections(*(tables[name] for name in ("packets", "frames", "messages", "connections")))
    times, _ = attribute(tables, known_passage=all_passages, recovered=recovered, of=all_connections)
    # What a former trial left over, a late FIN, is no connection of this one.
    own = [one for one in all_connections if one.starts and not one.lacks_packets]
    numbers = {one.number for one in own}
    recovered = [one for one in recovered if one.connection in numbers]
    deliveries = blocking(tables, all_passages).requests
    blocked = [one for one in deliveries if one.direction == "down" and one.connection in numbers]
    values = _setups(own) | _later(own) | _of_the_server(own) | _blocking_values(blocked) | _recovered(recovered)
    return Capture(values, mean_parts(times) if times else {}, blocked, recovered)


def _setups(own: Iterable[Connection]) -> Values:
    setups = [setup(one) for one in own]
    to_requests = [one.to_request for one in setups if one.to_request is not None]
    round_trips = [one.to_response.round_trips for one in setups if one.to_response is not None]
    return {
        "request_packets": _median(one.packets_up + one.packets_down for one in to_requests),
        "setup_round_trips": _median(round_trips),
        "setup_ratio": _median(one.ratio for one in setups),
    }


def _later(own: Iterable[Connection]) -> Values:
    later = [each for one in own for each in window_reuses(one)]
    return {
        "again_kept": _median(each.kept for each in later),
        "again_ramp_ns": _mean(each.ramp_ns for each in later),
    }


def _of_the_server(own: Sequence[Connection]) -> Values:
    acks = [acknowledgements(one, up=True) for one in own]
    known = [one for one in acks if one.count is not None and one.data_packets is not None]
    count, packets = sum(one.count or 0 for one in known), sum(one.data_packets or 0 for one in known)
    held = [stalls(one, up=False) for one in own if one.both_sides]
    return {
        "packets_per_ack": packets / count if count else None,
        "flow_control_ns": float(sum(end - start for one in held for start, end in one.flow_control)) if held else None,
    }


def _blocking_values(blocked: Sequence[RequestBlocking]) -> Values:
    return {
        "by_others_ns": _mean(one.by_others_ns for one in blocked),
        "by_own_ns": _mean(one.by_own_ns for one in blocked),
        "by_others_share": _mean(one.share for one in blocked),
    }


def _recovered(recoveries: Sequence[Recovery]) -> Values:
    return {
        "spurious": _sum(one.spurious for one in recoveries),
        "timeouts": _sum(one.timeouts for one in recoveries),
        "probes": _sum(one.probes for one in recoveries),
        "repair_ns": _median(each.took_ns for one in recoveries for each in one.repairs),
    }


def _not_none(values: Iterable[float | None]) -> list[float]:
    return [float(value) for value in values if value is not None]


def _median(values: Iterable[float | None]) -> float | None:
    known = _not_none(values)
    return median(known) if known else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = _not_none(values)
    return fmean(known) if known else None


def _sum(values: Iterable[float | None]) -> float | None:
    """Over all directions; None where one of them cannot be known."""
    known_values = list(values)
    return None if not known_values or None in known_values else sum(_not_none(known_values))
