"""Servers that start quickly are started anew for every block: what a start draws by chance is in the interval."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from trifecta.design import plan
from trifecta.design.model import Study
from trifecta.implementations.running import ServerFailed
from trifecta.store.run import RunDirectory
from trifecta.studies import known_servers, load
from trifecta.workloads.session import Session

BLOCK_NS = 1_000_000_000


class _Server:
    """A server that is up, or comes up no more."""

    def __init__(self, starts: bool = True, runs: bool = True) -> None:
        self.starts, self._runs, self.renewed = starts, runs, 0

    def running(self) -> bool:
        return self._runs

    def close(self) -> None:
        self._runs = False


def session_of(study: Study, server: _Server, start_ns: int, monkeypatch: pytest.MonkeyPatch) -> Session:
    session = Session(Path("engine"), cast(RunDirectory, None), study, {}, lambda: False)
    (key,) = session._keys(plan.cells(study)[0])
    session.servers[key] = cast(Any, server)
    session.start_ns[key] = start_ns

    def restart(again: Any, *, renewed: bool = False) -> None:
        assert renewed
        if not again.starts:
            raise ServerFailed("it ended")
        again.renewed += 1

    monkeypatch.setattr(session, "restart", restart)
    return session


@pytest.fixture
def study() -> Study:
    return load("race", ["path=far", "server=origin", "connection=reused"], known_servers())


@pytest.mark.parametrize(("start_ns", "expected"), [(BLOCK_NS // 30, 1), (BLOCK_NS // 10, 0)])
def test_a_start_that_is_cheap_beside_a_block_is_done_for_it(
    study: Study, monkeypatch: pytest.MonkeyPatch, start_ns: int, expected: int
) -> None:
    server = _Server()
    session = session_of(study, server, start_ns, monkeypatch)
    assert session.renew(plan.cells(study)[0], BLOCK_NS)
    assert server.renewed == expected


def test_one_that_died_is_left_to_who_tells_of_it(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    server = _Server(runs=False)
    assert session_of(study, server, 0, monkeypatch).renew(plan.cells(study)[0], BLOCK_NS)
    assert server.renewed == 0


def test_one_that_does_not_come_up_again_is_given_up(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(study, _Server(starts=False), 0, monkeypatch)
    cell = plan.cells(study)[0]
    assert not session.renew(cell, BLOCK_NS)
    assert session.has_failed(cell) == "it ended"
