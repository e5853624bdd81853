"""What a path was asked to be, in words: ``80 ms round trip, 100 Mbit/s, a queue of 1 MB, 2 % loss each way``.

Quantities stand as they were asked for, not rounded as measured ones are; where the directions differ both are told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from trifecta.contract.impairments import ImpairmentDocument
from trifecta.contract.path import PathDocument
from trifecta.design import numbers, quantity

NOTHING = "no impairment"


def in_words(spec: PathDocument) -> str:
    """What the path of this description does to packets."""
    ways = [spec.get("forward") or (), spec.get("backward") or ()]
    there, back = (_direction(way) for way in ways)
    said = [_delay(_delay_of(ways[0]), _delay_of(ways[1]))]
    kinds = [kind for kind in _PHRASES if kind in there or kind in back]
    said += [_both(there.get(kind, ""), back.get(kind, ""), _PHRASES[kind]) for kind in kinds]
    if spec.get("frames") == "wire":
        said.append("frames of a wire's size")
    return ", ".join(filter(None, said)) or NOTHING


# The kinds in the order in which they are told, and what stands behind one that is the same in both directions.
_PHRASES = {
    "rate": "",
    "queue": "",
    "trace": "",
    "loss": " each way",
    "gilbert_elliott": " each way",
    "loss_schedule": " each way",
    "corrupt": " each way",
    "duplicate": " each way",
    "jitter": " each way",
    "reorder": " each way",
}


def _delay_of(documents: Sequence[ImpairmentDocument]) -> int:
    """The delay of one direction, in ns: the last one's."""
    return next((int(one["delay_ns"]) for one in reversed(documents) if one["kind"] == "delay"), 0)


def _direction(documents: Sequence[ImpairmentDocument]) -> dict[str, str]:
    """The phrase of each kind in one direction but its delay."""
    told: dict[str, str] = {}
    for document in documents:
        kind = str(document["kind"])
        if kind == "delay":
            continue
        if kind == "rate":
            told["rate"] = quantity.format_rate(document["bits_per_s"])
            told["queue"] = _queue(document)
        else:
            told[kind] = _WRITERS[kind](document)
    return told


def _delay(there: int, back: int) -> str:
    if abs(there - back) <= 1:  # half of an odd number of ns
        return f"{quantity.format_time(there + back)} round trip" if there + back else ""
    return f"{quantity.format_time(there)} there and {quantity.format_time(back)} back"


def _both(there: str, back: str, each: str) -> str:
    if there == back:
        return f"{there}{each}"
    return " and ".join(f"{text} {way}" for text, way in ((there, "there"), (back, "back")) if text)


def _queue(document: ImpairmentDocument) -> str:
    packets, octets = document.get("queue_packets"), document.get("queue_bytes")
    told = f"{packets:,} packets" if packets else numbers.plain(numbers.size(octets)) if octets else ""
    codel = "CoDel" if document.get("discipline") == "codel" else ""
    return " with ".join(filter(None, (told and f"a queue of {told}", codel)))


def _bursts(document: ImpairmentDocument) -> str:
    to_bad, to_good = float(document["good_to_bad"]), float(document["bad_to_good"])
    bad = to_bad / (to_bad + to_good) if to_bad else 0.0
    mean = bad * float(document["loss_bad"]) + (1 - bad) * float(document["loss_good"])
    return f"bursts of loss ({numbers.percent(mean)} in all)"


def _jitter(document: ImpairmentDocument) -> str:
    kind = document["distribution"]
    sizes = {"normal": "sigma_ns", "uniform": "range_ns", "pareto": "scale_ns"}
    size = f" of {quantity.format_time(cast(Mapping[str, int], document)[sizes[kind]])}" if kind in sizes else ""
    return f"{kind} jitter{size}{' that reorders' if document.get('reorder') else ''}"


_WRITERS: Mapping[str, Callable[[ImpairmentDocument], str]] = {
    "trace": lambda _: "deliveries by a trace",
    "loss": lambda document: f"{quantity.format_ratio(document['probability'])} loss",
    "gilbert_elliott": _bursts,
    "loss_schedule": lambda document: (
        f"packets {', '.join(map(str, document['drop'][:5]))} lost"
        if len(document["drop"]) <= 5
        else f"{len(document['drop'])} packets lost by a schedule"
    ),
    "corrupt": lambda document: f"{quantity.format_ratio(document['probability'])} corrupted",
    "duplicate": lambda document: f"{quantity.format_ratio(document['probability'])} sent twice",
    "jitter": _jitter,
    "reorder": lambda document: (
        f"{quantity.format_ratio(document['probability'])} sent {quantity.format_time(document['gap_ns'])} ahead"
    ),
}
