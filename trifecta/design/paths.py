"""Paths: the section of a study that says how packets travel, turned into impairment documents of the engine's link.

In each direction the impairments act in the order of `impairments.KINDS`, whatever the order in the file: losses
first, then the rate with its queue, then what delays. So a lost packet takes no capacity, as in tc-netem(8), and the
queue stands before the long wire, as in a router.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, cast

from trifecta.contract.impairments import ImpairmentDocument
from trifecta.contract.values import JsonValue
from trifecta.design import quantity
from trifecta.design.capacity import ETHERNET_FRAME_BYTES
from trifecta.design.document import Section, one_of
from trifecta.design.impairment_kind import DirectionFacts, Reading
from trifecta.design.impairments import (
    DEFAULT_QUEUE_PACKETS,
    KINDS,
    PATH_FIELDS,
    ReadTrace,
    missing_share,
    netem_problem,
    no_trace_files,
    read_discipline,
    read_trace_field,
)
from trifecta.design.lengths import read_lengths
from trifecta.design.model import PathSpec
from trifecta.design.quantity import QueueSize

DIRECTIONS = ("forward", "backward")  # client to server, server to client

Canonical = dict[str, JsonValue]
ByDirection = dict[str, dict[str, list[ImpairmentDocument]]]  # direction -> field -> documents


def read_path(name: str, section: Section, read_trace: ReadTrace = no_trace_files) -> tuple[PathSpec, Canonical]:
    """The path that a section describes, and the section in its canonical form."""
    section.allow(*PATH_FIELDS)
    canonical: Canonical = {}
    facts = {direction: DirectionFacts() for direction in DIRECTIONS}
    documents: ByDirection = {direction: {} for direction in DIRECTIONS}

    def add(field: str, read: Callable[[Section, str, DirectionFacts], Reading]) -> None:
        if field not in section:
            return
        written = {}
        for direction, where in _directions(section, field).items():
            documents[direction][field], written[direction] = read(*where, facts[direction])
        canonical[field] = _merged(written)

    _read_delays(section, facts, documents, canonical)
    for field, kind in KINDS.items():
        if kind.read is not None:
            add(field, kind.read)
    rtt_ns = sum(facts[direction].delay_ns for direction in DIRECTIONS)
    _read_rate(section, facts, documents, canonical, rtt_ns)
    if "trace" in section:
        if "rate" in section:
            raise section.error("trace", "a path has a rate or a trace, not both; remove one")
        add("trace", lambda at, key, _: read_trace_field(at, key, read_trace))
    for direction in DIRECTIONS:
        if "reorder" in documents[direction] and not documents[direction].get("delay"):
            raise section.error("reorder", "needs a delay to overtake in; give the path an rtt or a delay")
    frames = section.parse("frames", one_of("a kind of frames", "merged", "wire"), "merged")
    if "frames" in section:  # else left out: the identity of studies from before there was a choice stays
        canonical["frames"] = frames
    emulator = section.parse("emulator", one_of("an emulator", "engine", "netem"), "engine")
    if "emulator" in section:
        canonical["emulator"] = emulator
    trial = None
    if "trial" in section:
        trial, canonical["trial"] = read_lengths(section.section("trial"))
    ordered = {direction: _in_order(documents[direction]) for direction in DIRECTIONS}
    if emulator == "netem":
        _refuse_beyond_netem(section, documents)
    rates = [(f.rate_bits_per_s, f.queue_bytes) for f in facts.values() if f.rate_bits_per_s is not None]
    slowest = min(rates, key=lambda pair: pair[0]) if rates else (None, None)
    spec = PathSpec(
        name=name,
        rtt_ns=rtt_ns,
        rate_bits_per_s=slowest[0],
        queue_bytes=slowest[1],
        loss=max(f.loss for f in facts.values()),
        missing=sum(missing_share(way) or 0.0 for way in ordered.values()),
        forward=ordered["forward"],
        backward=ordered["backward"],
        trial=trial,
        frames=cast(Literal["merged", "wire"], frames),
        emulator=cast(Literal["engine", "netem"], emulator),
    )
    return spec, {field: canonical[field] for field in PATH_FIELDS if field in canonical}


def _refuse_beyond_netem(section: Section, documents: ByDirection) -> None:
    """UserError for what the kernel's netem cannot do, and for a second kind of loss."""
    for fields in documents.values():
        for field, each in fields.items():
            for document in each:
                if (problem := netem_problem(document)) is not None:
                    raise section.error(field, f"netem {problem}")
        lossy = [field for field, each in fields.items() if each and KINDS[field].loses]
        if len(lossy) > 1:
            raise section.error(lossy[1], f"netem allows only one kind of loss; remove this or {lossy[0]!r}")


def _in_order(documents: dict[str, list[ImpairmentDocument]]) -> tuple[ImpairmentDocument, ...]:
    return tuple(document for field in KINDS for document in documents.get(field, ()))


def _directions(section: Section, field: str) -> dict[str, tuple[Section, str]]:
    """For each direction where its value stands: the field itself, or its ``forward`` and ``backward``."""
    value = section.raw(field)
    if isinstance(value, dict) and any(direction in value for direction in DIRECTIONS):
        inner = section.section(field)
        inner.allow(*DIRECTIONS)
        return {direction: (inner, direction) for direction in DIRECTIONS if direction in inner}
    return dict.fromkeys(DIRECTIONS, (section, field))


def _merged(written: Mapping[str, JsonValue]) -> JsonValue:
    """One value when both directions have the same, else both by name."""
    values = list(written.values())
    return values[0] if len(values) == len(DIRECTIONS) and values[0] == values[1] else written


def _read_delays(
    section: Section,
    facts: dict[str, DirectionFacts],
    documents: ByDirection,
    canonical: Canonical,
) -> None:
    if "rtt" in section and "delay" in section:
        raise section.error("delay", "a path has an rtt or a delay of each direction, not both; remove one")
    if "rtt" in section:
        rtt_ns = section.parse("rtt", quantity.parse_time_ns, 0)
        canonical["rtt"] = quantity.format_time(rtt_ns)
        facts["forward"].delay_ns = rtt_ns // 2
        facts["backward"].delay_ns = rtt_ns - rtt_ns // 2
    elif "delay" in section:
        written = {}
        for direction, (at, key) in _directions(section, "delay").items():
            delay_ns = at.parse(key, quantity.parse_time_ns, 0)
            facts[direction].delay_ns = delay_ns
            written[direction] = quantity.format_time(delay_ns)
        canonical["delay"] = _merged(written)
    for direction in DIRECTIONS:
        if facts[direction].delay_ns:
            documents[direction]["delay"] = [{"kind": "delay", "delay_ns": facts[direction].delay_ns}]


def _read_rate(
    section: Section,
    facts: dict[str, DirectionFacts],
    documents: ByDirection,
    canonical: Canonical,
    rtt_ns: int,
) -> None:
    for field in ("queue", "discipline"):
        if field in section and "rate" not in section:
            raise section.error(field, "needs a rate; give the path a rate, for example 'rate: 20 Mbit/s'")
    if "rate" not in section:
        return
    queues = _directions(section, "queue")
    disciplines = _directions(section, "discipline")
    written: dict[str, dict[str, JsonValue]] = {"rate": {}, "queue": {}, "discipline": {}}
    for direction, (at, key) in _directions(section, "rate").items():
        rate = at.parse(key, quantity.parse_rate_bits_per_s, 0)
        if rate == 0:
            raise at.error(key, "nothing passes at rate 0; give more, or leave the rate out")
        written["rate"][direction] = quantity.format_rate(rate)
        document: ImpairmentDocument = {"kind": "rate", "bits_per_s": rate}
        default = QueueSize(1, "bdp") if rtt_ns else QueueSize(DEFAULT_QUEUE_PACKETS, "packets")
        queue_at, queue_key = queues.get(direction, (section, "queue"))
        queue = queue_at.parse(queue_key, quantity.parse_queue, default) if direction in queues else default
        written["queue"][direction] = str(queue)
        if queue.unit == "packets":
            document["queue_packets"] = int(queue.amount)
        else:
            document["queue_bytes"] = _queue_bytes(queue, rate, rtt_ns, queue_at, queue_key)
        facts[direction].rate_bits_per_s = rate
        facts[direction].queue_bytes = document.get("queue_bytes")
        document["discipline"] = "droptail"
        if direction in disciplines and "discipline" in section:
            changes, written["discipline"][direction] = read_discipline(*disciplines[direction])
            document |= changes
        documents[direction]["rate"] = [document]
    canonical |= {field: _merged(values) for field, values in written.items() if values}
    for field in ("queue", "discipline"):
        for direction in _directions(section, field) if field in section else ():
            if direction not in written["rate"]:
                raise section.error(field, f"the {direction} direction has no rate; give it one")


def _queue_bytes(queue: QueueSize, rate: int, rtt_ns: int, section: Section, key: str) -> int:
    if queue.unit == "bytes":
        if queue.amount < ETHERNET_FRAME_BYTES:
            raise section.error(key, f"{queue} holds no full packet; give at least {ETHERNET_FRAME_BYTES} B")
        return int(queue.amount)
    if rtt_ns == 0:
        raise section.error(key, "a bandwidth-delay product needs a delay; give the path an rtt, or a queue in packets")
    product = rate * rtt_ns / 8e9
    return max(math.ceil(product * queue.amount), ETHERNET_FRAME_BYTES)
