"""The nodes of a run: at each place that a launcher knows, the program `trifecta.workloads.cluster.node` stands."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trifecta.contract.run import RunDocument
from trifecta.design.errors import CannotError
from trifecta.lab.launcher import Output, StreamLauncher
from trifecta.workloads.cluster import wire
from trifecta.workloads.cluster.dispatch import BlockFinished, Event, Joined, LeftOut, NodeLost, Notice, Order
from trifecta.workloads.cluster.wire import Decoder, Message, NodeTask

_LOOK_S = 2.0  # between two looks at which places there are
_SILENT_S = 30.0  # a program says that it lives every 5 s
_COMING_S = 600.0  # until it stands: servers are started, and every implementation is probed
_TRIES = 3  # programs in a row that end at a place without a block
_PROGRAM = ("-P", "-m", "trifecta.workloads.cluster.node")

Accept = Callable[[str, RunDocument], str | None]
"""Why a node of this name, whose run says this of itself, is not used; None where it is."""


@dataclass
class _Node:
    """What is known of the program at a place."""

    name: str
    decoder: Decoder = field(default_factory=Decoder)
    heard_s: float | None = None
    began_s: float = field(default_factory=time.monotonic)
    machine: str = ""
    """Which machine it is on, for comparison only; empty where it does not say."""
    stands: bool = False
    warned: bool = False
    """Whether it was said that it does not begin."""
    orders: deque[Order] = field(default_factory=deque)
    """What it runs, and what it runs after that."""


class ProgramNodes:
    """`trifecta.workloads.cluster.dispatch.Nodes` over a launcher."""

    def __init__(self, launcher: StreamLauncher, study: str, accept: Accept, store: str = "") -> None:
        """``study`` is its canonical text; ``store``: where nodes put what trials leave, if not to the head."""
        self._launcher = launcher
        self._study = study
        self._store = store
        self._accept = accept
        self._at: dict[str, _Node] = {}
        """By place."""
        self._tries: dict[str, int] = {}
        self._refused: set[str] = set()
        self._looked_s: float | None = None

    def poll(self, timeout_s: float, gather_s: float = 0.0) -> Sequence[Event]:
        """As `Nodes.poll`."""
        events: list[Event] = []
        self._look(events)
        until = time.monotonic() + timeout_s
        while not events and (left := until - time.monotonic()) > 0:  # what is heard may be nothing new
            self._read(left, events)
        until = time.monotonic() + gather_s
        while (left := until - time.monotonic()) > 0:
            self._read(left, events)
        self._watch(events)
        return events

    def offer(self, node: str, order: Order) -> None:
        """As `Nodes.offer`."""
        place, own = next((place, one) for place, one in self._at.items() if one.name == node)
        own.orders.append(order)
        self._launcher.write(place, wire.order_line(order))

    def dismiss(self, node: str) -> None:
        """As `Nodes.dismiss`."""
        self._forget(next(place for place, one in self._at.items() if one.name == node))

    def waiting(self) -> int:
        """As `Nodes.waiting`."""
        return sum(not one.stands for one in self._at.values())

    def _look(self, events: list[Event]) -> None:
        """Start a program at every place that is new, or whose program has ended; forget those that are gone."""
        now = time.monotonic()
        if self._looked_s is not None and now - self._looked_s < _LOOK_S:
            return
        self._looked_s = now
        places = self._launcher.places()
        for place in [place for place in self._at if place not in places]:
            self._lose(place, "the node is gone", events)
        for place, name in places.items():
            if place not in self._at and place not in self._refused:
                taken = any(one.name == name for one in self._at.values())  # by one that had the name to itself before
                own = self._at[place] = _Node(f"{name}-{place[:8]}" if taken else name)
                self._launcher.start(place, _PROGRAM)
                self._launcher.write(place, wire.asked_line(NodeTask(own.name, self._study, self._store)))

    def _read(self, timeout_s: float, events: list[Event]) -> None:
        for place, octets in self._launcher.read(timeout_s).items():
            if place in self._at:
                self._hear(place, octets, events)

    def _hear(self, place: str, output: Output, events: list[Event]) -> None:
        node = self._at[place]
        node.heard_s = time.monotonic()
        try:
            for message in node.decoder.feed(output.octets):
                self._take(place, node, message, events)
                if place not in self._at:  # it was left out
                    return
        except CannotError as error:
            self._leave_out(place, str(error), events)
            return
        if output.ended is not None:
            self._lose(place, output.ended, events)

    def _take(self, place: str, node: _Node, message: Message, events: list[Event]) -> None:
        if message.kind == "told":
            events.append(Notice(node.name, message.text))
        elif message.kind == "cannot":
            self._leave_out(place, message.text, events)
        elif message.kind == "ready" and not node.stands:
            node.machine = message.text
            reason = self._why_not_used(node) or self._accept(node.name, message.facts)
            if reason is not None:
                self._leave_out(place, reason, events)
                return
            node.stands = True
            events.append(Joined(node.name))
        elif message.kind == "ran":
            order = node.orders[0] if node.orders else None
            if order is None or (order.cell, order.block) != (message.cell, message.block):
                sentence = f"it ran a block that it was not given, {message.block} of {message.cell}"
                self._leave_out(place, sentence, events)
                return
            node.orders.popleft()
            self._tries.pop(place, None)
            events.append(BlockFinished(node.name, order, message.files, message.stored))

    def _why_not_used(self, node: _Node) -> str | None:
        """Why a node is not used: another of its machine is, and two trials at a time would disturb each other."""
        if self._launcher.shared or not node.machine:
            return None
        other = next((one.name for one in self._at.values() if one.stands and one.machine == node.machine), None)
        return None if other is None else f"it is on the machine of node {other}, where two trials never run at a time"

    def _watch(self, events: list[Event]) -> None:
        """Give up for lost whoever says nothing any more."""
        now = time.monotonic()
        for place, node in list(self._at.items()):
            if node.heard_s is not None and now - node.heard_s > _SILENT_S:
                self._lose(place, f"it has said nothing for {_SILENT_S:.0f} s", events)
            elif node.heard_s is not None and not node.stands and now - node.began_s > _COMING_S:
                self._leave_out(place, f"its lab did not come up within {_COMING_S:.0f} s", events)
            elif node.heard_s is None and not node.warned and now - node.began_s > _SILENT_S:
                node.warned = True
                sentence = "nothing has arrived from it yet: others use its CPUs, or another run has the node"
                events.append(Notice(node.name, sentence))

    def _lose(self, place: str, reason: str, events: list[Event]) -> None:
        self._tries[place] = self._tries.get(place, 0) + 1
        if self._tries[place] >= _TRIES:
            self._leave_out(place, reason, events)
            return
        self._launcher.end(place)
        events.append(NodeLost(self._at.pop(place).name, reason))

    def _leave_out(self, place: str, reason: str, events: list[Event]) -> None:
        events.append(LeftOut(self._at[place].name, reason))
        self._forget(place)

    def _forget(self, place: str) -> None:
        self._launcher.end(place)
        self._refused.add(place)
        del self._at[place]
