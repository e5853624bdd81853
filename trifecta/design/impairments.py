"""The impairments of a path: each field of a study file to a document of the engine's link and its canonical form.

And that document in words: quantities stand as they were asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from trifecta.contract.impairments import ImpairmentDocument
from trifecta.contract.values import JsonValue
from trifecta.design import numbers, quantity
from trifecta.design.capacity import ETHERNET_FRAME_BYTES
from trifecta.design.document import Section, one_of, parse_flag, parse_text
from trifecta.design.impairment_kind import DirectionFacts, Kind, Reading, both_directions, each_direction
from trifecta.design.quantity import QuantityError, QueueSize

DEFAULT_QUEUE_PACKETS = 1_000  # tc-netem(8)'s default, where there is no delay to size a queue by
_JITTER_FIELDS = {
    "normal": ("sigma",),
    "uniform": ("range",),
    "pareto": ("scale", "shape"),
    "table": ("table",),
}

ReadTrace = Callable[[str], Sequence[int]]


def no_trace_files(name: str) -> Sequence[int]:
    """The reader of trace files where there is no folder to read them from."""
    raise QuantityError(f"the trace file {name!r} cannot be read here; list its opportunities instead")


def read_discipline(section: Section, key: str) -> tuple[ImpairmentDocument, JsonValue]:
    """``droptail``, ``codel``, or ``{kind: codel, target: 5 ms, interval: 100 ms}`` (RFC 8289's defaults)."""
    kind_of = one_of("a queue discipline", "droptail", "codel")
    if not isinstance(section.raw(key), dict):
        kind = section.parse(key, kind_of, "droptail")
        inner = None
    else:
        inner = section.section(key)
        inner.allow("kind", "target", "interval")
        kind = inner.parse("kind", kind_of, "droptail")
    if kind == "droptail":
        if inner is not None and ("target" in inner or "interval" in inner):
            raise inner.error(None, "a drop-tail queue has no target and no interval; write 'kind: codel'")
        return {"discipline": "droptail"}, "droptail"
    target = inner.parse("target", quantity.parse_time_ns, 5_000_000) if inner else 5_000_000
    interval = inner.parse("interval", quantity.parse_time_ns, 100_000_000) if inner else 100_000_000
    if not 0 < target < interval:
        raise section.error(key, "the target of codel lies between 0 and its interval (RFC 8289 section 4.3)")
    canonical = {"kind": "codel", "target": quantity.format_time(target), "interval": quantity.format_time(interval)}
    return {"discipline": "codel", "target_ns": target, "interval_ns": interval}, canonical


def _read_loss(section: Section, key: str, facts: DirectionFacts) -> Reading:
    probability = section.parse(key, quantity.parse_probability, 0.0)
    facts.loss = probability
    return _chance("loss", probability), quantity.format_ratio(probability)


def _read_corrupt(section: Section, key: str, _: DirectionFacts) -> Reading:
    probability = section.parse(key, quantity.parse_probability, 0.0)
    return _chance("corrupt", probability), quantity.format_ratio(probability)


def _read_duplicate(section: Section, key: str, _: DirectionFacts) -> Reading:
    probability = section.parse(key, quantity.parse_probability, 0.0)
    return _chance("duplicate", probability), quantity.format_ratio(probability)


def _chance(kind: str, probability: float) -> list[ImpairmentDocument]:
    return [{"kind": kind, "probability": probability}] if probability else []


def _read_gilbert_elliott(section: Section, key: str, _: DirectionFacts) -> Reading:
    """The two-state loss model: chances of changing state, and of loss within each (Elliott 1963)."""
    inner = section.section(key)
    inner.allow("good_to_bad", "bad_to_good", "loss_good", "loss_bad")
    for needed in ("good_to_bad", "bad_to_good"):
        if needed not in inner:
            raise inner.error(needed, "is missing; give the chance for each packet, for example '1 %'")
    defaults = {"good_to_bad": 0.0, "bad_to_good": 0.0, "loss_good": 0.0, "loss_bad": 1.0}
    values = {name: inner.parse(name, quantity.parse_probability, default) for name, default in defaults.items()}
    if values["good_to_bad"] > 0 and values["bad_to_good"] == 0:
        raise inner.error("bad_to_good", "the bad state would never end; give more than 0 %")
    channel = cast(ImpairmentDocument, {"kind": "gilbert_elliott", **values})
    return [channel], {n: quantity.format_ratio(v) for n, v in values.items()}


def _read_loss_schedule(section: Section, key: str, _: DirectionFacts) -> Reading:
    ordinals = [section.parse_value(place, item, quantity.parse_count) for place, item in section.items(key)]
    if len(set(ordinals)) != len(ordinals):
        raise section.error(key, "names a packet twice; list each ordinal once, from 0")
    ordinals.sort()
    return [{"kind": "loss_schedule", "drop": ordinals}], ordinals


def _read_reorder(section: Section, key: str, _: DirectionFacts) -> Reading:
    inner = section.section(key)
    inner.allow("probability", "gap")
    for needed in ("probability", "gap"):
        if needed not in inner:
            raise inner.error(needed, "is missing; write for example 'reorder: {probability: 1 %, gap: 2 ms}'")
    probability = inner.parse("probability", quantity.parse_probability, 0.0)
    gap_ns = inner.parse("gap", quantity.parse_time_ns, 0)
    canonical = {"probability": quantity.format_ratio(probability), "gap": quantity.format_time(gap_ns)}
    return [{"kind": "reorder", "probability": probability, "gap_ns": gap_ns}], canonical


def _read_jitter(section: Section, key: str, _: DirectionFacts) -> Reading:
    inner = section.section(key)
    distribution = inner.parse("distribution", one_of("a distribution", *_JITTER_FIELDS), "normal")
    wanted = _JITTER_FIELDS[distribution]
    inner.allow("distribution", "reorder", *wanted)
    for needed in wanted:
        if needed not in inner:
            raise inner.error(needed, f"is missing; a {distribution} jitter needs {' and '.join(wanted)}")
    reorder = inner.parse("reorder", parse_flag, False)
    document: ImpairmentDocument = {"kind": "jitter", "distribution": distribution, "reorder": reorder}
    canonical: dict[str, JsonValue] = {"distribution": distribution}
    for field in wanted:
        if field == "shape":
            document["shape"] = inner.parse(field, _parse_shape, 0.0)
            canonical["shape"] = document["shape"]
        elif field == "table":
            times = [inner.parse_value(place, item, quantity.parse_time_ns) for place, item in inner.items(field)]
            if not times:
                raise inner.error(field, "is empty; list at least one time")
            document["table_ns"] = times
            canonical["table"] = [quantity.format_time(time) for time in times]
        else:
            time_ns = inner.parse(field, quantity.parse_time_ns, 0)
            document |= cast(ImpairmentDocument, {f"{field}_ns": time_ns})
            canonical[field] = quantity.format_time(time_ns)
    return [document], canonical | {"reorder": reorder}


def _parse_shape(value: Any) -> float:
    try:
        shape = float(parse_text(value))
    except ValueError:
        shape = math.nan
    if not 1 < shape <= 100:  # at 1 and below the mean is infinite
        raise QuantityError(f"{value!r} is not a Pareto shape; give a number above 1, at most 100")
    return shape


def read_trace_field(section: Section, key: str, read_trace: ReadTrace) -> Reading:
    """Delivery opportunities of a full packet each, in ms, repeated for ever: the text format of mahimahi's mm-link."""
    inner = section.section(key)
    inner.allow("file", "opportunities", "queue")
    if ("file" in inner) == ("opportunities" in inner):
        raise inner.error(None, "give either the file of a trace or its opportunities")
    if "file" in inner:
        opportunities = inner.parse("file", lambda name: list(read_trace(parse_text(name))), list[int]())
        field = "file"
    else:
        parse = quantity.parse_count
        opportunities = [inner.parse_value(place, item, parse) for place, item in inner.items("opportunities")]
        field = "opportunities"
    problem = trace_problem(opportunities)
    if problem:
        raise inner.error(field, problem)
    queue = inner.parse("queue", quantity.parse_queue, QueueSize(DEFAULT_QUEUE_PACKETS * ETHERNET_FRAME_BYTES, "bytes"))
    if queue.unit == "bdp":
        raise inner.error("queue", "a trace has no one rate to multiply; give the queue in bytes or packets")
    queue_bytes = int(queue.amount) * (ETHERNET_FRAME_BYTES if queue.unit == "packets" else 1)
    document: ImpairmentDocument = {"kind": "trace", "opportunities_ms": opportunities, "queue_bytes": queue_bytes}
    return [document], {"opportunities": opportunities, "queue": str(queue)}


def trace_problem(opportunities: Sequence[int]) -> str | None:
    """Why this is no trace, or None: times in ms must not decrease and must end above 0 (the trace repeats)."""
    if not opportunities:
        return "the trace is empty; give at least one time in ms"
    for index in range(1, len(opportunities)):
        if opportunities[index] < opportunities[index - 1]:
            return f"time {opportunities[index]} ms at position {index} goes back; sort the trace"
    return None if opportunities[-1] > 0 else "the trace ends at 0 ms and could not repeat; let it end later"


def _independent(document: ImpairmentDocument) -> tuple[float, float]:
    return float(document["probability"]), 1.0


def burst_share(channel: ImpairmentDocument) -> tuple[float, float]:
    """Long-run loss of a Gilbert-Elliott channel, and the variance of its count relative to independent loss.

    The states form a Markov chain with autocorrelation r = 1 - p - q; the sum of n losses has variance
    n (P (1 - P) + 2 r / (1 - r) g b (lb - lg)^2) with the shares g, b of the states and their losses lg, lb.
    """
    to_bad, to_good = float(channel["good_to_bad"]), float(channel["bad_to_good"])
    in_good, in_bad = float(channel.get("loss_good", 0.0)), float(channel.get("loss_bad", 1.0))
    if to_bad + to_good == 0:
        return in_good, 1.0
    bad = to_bad / (to_bad + to_good)
    share = (1 - bad) * in_good + bad * in_bad
    memory = 1 - to_bad - to_good
    between = bad * (1 - bad) * (in_bad - in_good) ** 2
    own = share * (1 - share)
    if own == 0:
        return share, 1.0
    return share, max(1.0, 1 + 2 * memory / (1 - memory) * between / own)


def _say_delay(there: ImpairmentDocument | None, back: ImpairmentDocument | None) -> list[str]:
    forward, backward = (document["delay_ns"] if document else 0 for document in (there, back))
    if abs(forward - backward) <= 1:  # half of an odd number of ns
        return [f"{quantity.format_time(forward + backward)} round trip"] if forward + backward else []
    return [f"{quantity.format_time(forward)} there and {quantity.format_time(backward)} back"]


def _say_rate(document: ImpairmentDocument) -> list[str]:
    packets, octets = document.get("queue_packets"), document.get("queue_bytes")
    sentence = f"{packets:,} packets" if packets else numbers.without_zeros(numbers.size(octets)) if octets else ""
    codel = "CoDel" if document.get("discipline") == "codel" else ""
    queue = " with ".join(filter(None, (sentence and f"a queue of {sentence}", codel)))
    return [quantity.format_rate(document["bits_per_s"]), queue]


def _say_chance(deed: str) -> Callable[[ImpairmentDocument], str]:
    return lambda document: f"{quantity.format_ratio(document['probability'])} {deed}"


def _say_bursts(document: ImpairmentDocument) -> str:
    return f"bursts of loss ({numbers.percent(burst_share(document)[0])} in all)"


def _say_schedule(document: ImpairmentDocument) -> str:
    drop = document["drop"]
    return f"packets {', '.join(map(str, drop))} lost" if len(drop) <= 5 else f"{len(drop)} packets lost by a schedule"


def _say_jitter(document: ImpairmentDocument) -> str:
    kind = document["distribution"]
    sizes = {"normal": "sigma_ns", "uniform": "range_ns", "pareto": "scale_ns"}
    size = f" of {quantity.format_time(cast(Mapping[str, int], document)[sizes[kind]])}" if kind in sizes else ""
    return f"{kind} jitter{size}{' that reorders' if document.get('reorder') else ''}"


def _say_reorder(document: ImpairmentDocument) -> str:
    return f"{quantity.format_ratio(document['probability'])} sent {quantity.format_time(document['gap_ns'])} ahead"


def _by_netem(_: ImpairmentDocument) -> str:
    return ""


def _jitter_by_netem(document: ImpairmentDocument) -> str:
    if document["distribution"] not in ("normal", "uniform"):
        return f"has no {document['distribution']} distribution like this one; use normal or uniform"
    return "" if document.get("reorder") else "reorders packets that it delays differently; set reorder: true"


def netem_problem(document: ImpairmentDocument) -> str | None:
    """Why the kernel's netem cannot do what a document asks, with the remedy; None where it can."""
    why = KINDS[document["kind"]].netem
    return (why(document) or None) if why else "does not do it, or does not count it; leave the emulator out"


# As a study file has them, in this order.
PATH_FIELDS = (
    "rtt",
    "delay",
    "jitter",
    "rate",
    "queue",
    "discipline",
    "loss",
    "gilbert_elliott",
    "loss_schedule",
    "corrupt",
    "duplicate",
    "reorder",
    "trace",
    "frames",
    "emulator",
    "trial",
)
KINDS: dict[str, Kind] = {
    "loss_schedule": Kind(each_direction(_say_schedule), _read_loss_schedule, removes=True, hidden=True),
    "loss": Kind(each_direction(_say_chance("loss")), _read_loss, _independent, removes=True, netem=_by_netem),
    "gilbert_elliott": Kind(
        each_direction(_say_bursts), _read_gilbert_elliott, burst_share, removes=True, hidden=True, netem=_by_netem
    ),
    "corrupt": Kind(
        each_direction(_say_chance("corrupted")),
        _read_corrupt,
        _independent,
        deed="corrupted",
        damages=True,
        hidden=True,
    ),
    "duplicate": Kind(
        each_direction(_say_chance("sent twice")),
        _read_duplicate,
        _independent,
        deed="duplicated",
        copies=True,
        hidden=True,
    ),
    "rate": Kind(both_directions(_say_rate), about="capacity", queues=True, netem=_by_netem),
    "trace": Kind(
        both_directions(lambda _: ["deliveries by a trace"]), about="capacity", queues=True, wavers=True, hidden=True
    ),
    "delay": Kind(_say_delay, about="distance", netem=_by_netem),
    "jitter": Kind(each_direction(_say_jitter), _read_jitter, about="timing", wavers=True, netem=_jitter_by_netem),
    "reorder": Kind(
        each_direction(_say_reorder), _read_reorder, _independent, about="timing", deed="sent ahead", wavers=True
    ),
}
"""In the order in which they act on a packet. A new one is a line here, and a field above."""


def kind_of(document: ImpairmentDocument) -> Kind:
    """What the impairment of a document does."""
    return KINDS[document["kind"]]


def lost_share(documents: Iterable[ImpairmentDocument]) -> tuple[float, float]:
    """The share of packets that are to be lost by chance, and by how much bursts widen what chance makes of it."""
    survive, inflation = 1.0, 1.0
    for document in documents:
        kind = kind_of(document)
        if kind.removes and kind.share is not None:
            share, factor = kind.share(document)
            survive *= 1 - share
            inflation = max(inflation, factor)
    return 1 - survive, inflation


def missing_share(documents: Iterable[ImpairmentDocument]) -> float | None:
    """The share of packets that reach no program: lost by chance, or damaged. None where some are lost by plan."""
    kinds = [(kind_of(document), document) for document in documents]
    if any(kind.removes and kind.share is None for kind, _ in kinds):
        return None
    damaged = [kind.share(document)[0] for kind, document in kinds if kind.damages and kind.share is not None]
    return 1 - (1 - lost_share(document for _, document in kinds)[0]) * math.prod(1 - share for share in damaged)
