"""Servers that start quickly are restarted for every block: what a start draws by chance is in the interval."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from tests.workloads.drive import finish
from trifecta.analysis.planner import Decision
from trifecta.design import plan
from trifecta.design.model import Study
from trifecta.implementations.running import ServerFailed
from trifecta.implementations.servers.origin import Origin
from trifecta.store.run import RunDirectory
from trifecta.studies import known_servers, load
from trifecta.workloads.requests.session import RequestsSession
from trifecta.workloads.runner import StudyRun
from trifecta.workloads.session import SessionContext

BLOCK_NS = 1_000_000_000


class _Server:
    """A server that is up, or comes up no more."""

    def __init__(self, starts: bool = True, runs: bool = True, takes_s: float = 0.0) -> None:
        self.starts, self._runs, self.renewed, self.takes_s = starts, runs, 0, takes_s

    def running(self) -> bool:
        return self._runs

    def close(self) -> None:
        self._runs = False


def session_of(study: Study, server: _Server, start_ns: int | None, monkeypatch: pytest.MonkeyPatch) -> RequestsSession:
    session = RequestsSession(SessionContext(Path("engine"), cast(RunDirectory, None), study, lambda: False))
    (key,) = session.keys_of(plan.cells(study)[0])
    session.servers[key] = cast(Any, server)
    if start_ns is not None:
        session.start_ns[key] = start_ns

    def restart(again: Any, *, renewed: bool = False) -> None:
        assert renewed
        if not again.starts:
            raise ServerFailed("it ended")
        time.sleep(again.takes_s)
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


@pytest.mark.parametrize(("takes_s", "expected"), [(0.0, 3), (BLOCK_NS / 10e9, 1)])
def test_what_a_renewal_costs_is_not_known_until_one_was_made(
    study: Study, monkeypatch: pytest.MonkeyPatch, takes_s: float, expected: int
) -> None:
    server = _Server(takes_s=takes_s)
    session = session_of(study, server, None, monkeypatch)
    for _ in range(3):
        assert session.renew(plan.cells(study)[0], BLOCK_NS)
    assert server.renewed == expected


def test_one_slow_renewal_is_not_the_last(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    server = _Server(takes_s=BLOCK_NS / 10e9)
    session = session_of(study, server, BLOCK_NS // 30, monkeypatch)
    for _ in range(2):
        assert session.renew(plan.cells(study)[0], BLOCK_NS)
    assert server.renewed == 2


def test_a_block_lasts_from_its_first_trial_to_the_end_of_its_last(study: Study) -> None:
    cell, asked = plan.cells(study)[0], []
    rows = [
        {"cell": cell.key, "block": block, "started_ns": at, "ended_ns": at + 100}
        for block, at in ((0, 1000), (1, 5000), (1, 5400), (1, 5200))
    ]
    run = SimpleNamespace(rows=rows, _mark=lambda name: None)
    session = SimpleNamespace(renew=lambda cell, block_ns: asked.append(block_ns) or True)
    for block in (0, 2):
        assert StudyRun._renew(cast(Any, run), cast(Any, session), Decision(cell, block, "why"))
    assert asked == [500]


def test_one_that_died_is_left_to_who_tells_of_it(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    server = _Server(runs=False)
    assert session_of(study, server, 0, monkeypatch).renew(plan.cells(study)[0], BLOCK_NS)
    assert server.renewed == 0


def test_one_that_does_not_come_up_again_is_given_up(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(study, _Server(starts=False), 0, monkeypatch)
    cell = plan.cells(study)[0]
    assert not session.renew(cell, BLOCK_NS)
    assert session.has_failed(cell) == "it ended"


class _Ways:
    """A server that notes how it was known to be ready."""

    def __init__(self, says_ready: bytes | None) -> None:
        self.adapter = Origin()
        self.adapter.says_ready = says_ready
        self.known: list[str] = []

    def wait_word(self, word: bytes, stop: Any) -> float:
        self.known.append(word.decode())
        return 0.0


@pytest.mark.parametrize(
    ("says_ready", "renewed", "expected"),
    [(b"up", True, "up"), (b"up", False, "asked"), (None, True, "asked")],
)
def test_only_a_renewed_server_is_taken_at_its_word(
    study: Study, monkeypatch: pytest.MonkeyPatch, says_ready: bytes | None, renewed: bool, expected: str
) -> None:
    server = _Ways(says_ready)
    session = session_of(study, _Server(), 0, monkeypatch)
    monkeypatch.setattr(session, "_start", lambda server, renewed: None)
    monkeypatch.setattr(session, "link", lambda path, seed: nullcontext())
    monkeypatch.setattr(session, "_wait_ready", lambda server: server.known.append("asked"))
    RequestsSession.restart(session, cast(Any, server), renewed=renewed)
    assert server.known == [expected]


@pytest.mark.lab
def test_the_origin_is_started_anew_for_a_block_of_a_tenth_of_a_second(tmp_path: Path) -> None:
    settings = ["path=clean", "server=origin", "connection=reused", "blocks.at_least=2", "blocks.at_most=2"]
    code, _, _, errors = finish(tmp_path / "run", set=settings)
    assert code == 0, errors
    starts: dict[int, set[tuple[int, int]]] = {}
    for row in pq.read_table(tmp_path / "run" / "trials").to_pylist():
        said = json.loads(row["server_json"])
        starts.setdefault(row["block"], set()).add((said["restarts"], said["renewals"]))
    assert starts == {0: {(0, 0)}, 1: {(0, 1)}}
