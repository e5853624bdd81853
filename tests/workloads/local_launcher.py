"""A launcher whose places are processes of this machine: what is at Ray's nodes, without Ray."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence

from trifecta.lab.agent_place import AgentPlaces
from trifecta.lab.launcher import Output
from trifecta.lab.place import Place
from trifecta.lab.ray_actor import NodeActor


class LocalLauncher:
    """So many places, ``n1`` and so on, each with the program that a node has."""

    shared = True

    def __init__(self, many: int) -> None:
        self.there = {f"place{number}": f"n{number}" for number in range(1, many + 1)}
        self.hands: dict[str, NodeActor] = {}
        self.numbers: dict[str, Iterator[int]] = {}
        self.talked = AgentPlaces(self)

    def places(self) -> Mapping[str, str]:
        return dict(self.there)

    def place(self, key: str) -> Place:
        return self.talked.place(key)

    def start(self, place: str, arguments: Sequence[str]) -> None:
        self.hands[place] = NodeActor(arguments)
        self.numbers[place] = itertools.count()

    def write(self, place: str, octets: bytes) -> None:
        self.hands[place].write(next(self.numbers[place]), octets)

    def read(self, timeout_s: float) -> Mapping[str, Output]:
        until = time.monotonic() + timeout_s
        while True:
            said = {place: Output(*hand.read(0.0)) for place, hand in self.hands.items()}
            found = {place: one for place, one in said.items() if one.octets or one.ended is not None}
            if found or time.monotonic() >= until:
                return found
            time.sleep(0.01)

    def end(self, place: str) -> None:
        self.talked.forget(place)
        if place in self.hands:
            self.hands.pop(place).end()

    def close(self) -> None:
        for place in list(self.hands):
            self.end(place)
