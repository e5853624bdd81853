"""Containers of a trial are started side by side; when one does not start, the others end with the trial."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from trifecta.design.errors import CannotError
from trifecta.workloads.services.places import NATIVE, Place, Start

SERVICES = ["A", "D", "C", "B"]
STARTS = [Start(name, "host1") for name in SERVICES]


class Program:
    """One that is told to end."""

    def __init__(self, ended: list[str], name: str) -> None:
        self.ended, self.name = ended, name

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.append(self.name)


def place_in(where: str, start: Any) -> Place:
    """A place whose programs are started by ``start``, which gets what to start and whose program it is."""
    place = Place.__new__(Place)
    place.key = SimpleNamespace(place=where)  # type: ignore[assignment]
    place.start_service = start  # type: ignore[method-assign]
    return place


def test_containers_are_started_side_by_side() -> None:
    ended: list[str] = []
    all_there = threading.Barrier(len(SERVICES), timeout=10)

    def start(one: Start, _program: object) -> Program:
        all_there.wait()
        return Program(ended, one.name)

    with ExitStack() as stack:
        programs = place_in("docker-bridge", start).start_services(stack, STARTS)
        assert [program.name for program in programs] == SERVICES
        assert not ended
    assert sorted(ended) == sorted(SERVICES)


@pytest.mark.parametrize("where", ["docker-bridge", "docker-host", NATIVE])
def test_when_one_does_not_start_the_others_end_with_the_trial(where: str) -> None:
    begun: list[str] = []
    ended: list[str] = []

    def start(one: Start, _program: object) -> Program:
        if one.name == "B":
            raise CannotError("the container of service B cannot be started")
        begun.append(one.name)
        return Program(ended, one.name)

    with pytest.raises(CannotError, match="service B"), ExitStack() as stack:
        place_in(where, start).start_services(stack, STARTS)
    assert sorted(begun) == ["A", "C", "D"]
    assert sorted(ended) == sorted(begun)


def test_native_programs_are_started_in_order_by_the_thread_that_asks() -> None:
    """A fork of a thread is a hazard, and they start in milliseconds."""
    seen: list[tuple[str, int]] = []

    def start(one: Start, _program: object) -> Program:
        seen.append((one.name, threading.get_ident()))
        return Program([], one.name)

    with ExitStack() as stack:
        place_in(NATIVE, start).start_services(stack, STARTS)
    assert seen == [(name, threading.get_ident()) for name in SERVICES]
