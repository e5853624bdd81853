"""Nothing of a trial reaches into the next: its programs are gone, and the ends of its connections have passed."""

from __future__ import annotations

import itertools
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from msgspec.structs import replace

from tests.workloads import drive
from trifecta import studies
from trifecta.contract.link import LinkConfig
from trifecta.design import plan
from trifecta.design.model import PathSpec
from trifecta.lab.engine import EngineProcess, Stopped
from trifecta.lab.network import WIRE
from trifecta.store.views import connect
from trifecta.workloads import trial
from trifecta.workloads.capturing import LONGEST_LINGER_NS, TrialCapture
from trifecta.workloads.faults import NO_FAULTS
from trifecta.workloads.requests import trial as requests_trial
from trifecta.workloads.requests.session import RequestsSession
from trifecta.workloads.requests.trial import LAST_WORDS, Programs, RequestsTrialRunner
from trifecta.workloads.trial import let_pass


class Program:
    """One that ends a while after its last word; says what was done to it."""

    def __init__(self, name: str, said: list[str]) -> None:
        self.name, self.said = name, said

    def wait_end(self, timeout_s: float) -> None:
        assert timeout_s > 0
        self.said.append(f"{self.name} ended")

    def close(self) -> None:
        self.said.append(f"{self.name} closed")


def test_the_programs_of_the_trial_before_are_waited_for_and_then_forgotten() -> None:
    said: list[str] = []
    runner: Any = RequestsTrialRunner.__new__(RequestsTrialRunner)
    link, load = Program("link", said), Program("load", said)
    runner._ending = [Programs(link, load, "load", WIRE)]  # type: ignore[arg-type]
    runner._see_off_ending()
    assert sorted(said[:2]) == ["link ended", "load ended"], "nothing is killed that ends by itself"
    assert sorted(said[2:]) == ["link closed", "load closed"]
    runner._see_off_ending()
    assert len(said) == 4


def test_a_trial_lets_those_before_go_before_anything_is_observed_or_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    study = studies.experiment("round-trips")
    one = plan.block_trials(study, plan.cells(study)[0], 0, 0)[0]
    said: list[str] = []
    runner: Any = RequestsTrialRunner.__new__(RequestsTrialRunner)
    runner._session = MagicMock(study=study)
    runner._faults, runner._start_costs, runner._ending = NO_FAULTS, MagicMock(), []
    runner._take = lambda *_: MagicMock()
    runner._load_config = MagicMock()
    runner._see_off_ending = lambda: said.append("gone")
    monkeypatch.setattr(requests_trial, "TrialCapture", MagicMock())
    runner._session.free_wire = lambda: said.append("the wire is free")
    monkeypatch.setattr(requests_trial, "set_to_work", lambda *_: said.append("the link works"))

    def observe(*_: Any, **__: Any) -> None:
        said.append("observed")
        raise Stopped

    monkeypatch.setattr(trial, "ResourceObserver", observe)
    with pytest.raises(Stopped):
        runner.run(one)
    assert said == ["the wire is free", "the link works", "gone", "observed"]


def speaker(started: list[subprocess.Popen[bytes]], script: str) -> EngineProcess:
    made = EngineProcess.__new__(EngineProcess)
    made.process = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    started.append(made.process)
    made._stdin, made._stdout = made.process.stdin, made.process.stdout  # type: ignore[assignment]
    made._poll = select.poll()
    made._listen(made._stdout.fileno())
    return made


def test_the_next_link_waits_until_the_one_that_lingers_carries_nothing_more(
    started: list[subprocess.Popen[bytes]],
) -> None:
    session: Any = RequestsSession.__new__(RequestsSession)
    session.lingering = None
    session.free_wire()
    began = time.monotonic()
    session.lingering = link = speaker(started, "sleep 0.3; echo x; sleep 0.2; exec >&-; sleep 30")
    session.free_wire()
    assert 0.4 < time.monotonic() - began < 15
    assert link.running(), "its end is not waited for"
    assert session.lingering is None


def test_a_link_that_lingers_for_too_long_is_ended(started: list[subprocess.Popen[bytes]]) -> None:
    link = speaker(started, "sleep 30")
    link.wait_silent(0.2)
    assert not link.running()


def test_a_link_lingers_unless_the_rest_is_kept_or_would_take_it_too_long() -> None:
    capture: Any = TrialCapture.__new__(TrialCapture)
    plain = LinkConfig(a_device="a", b_device="b")
    assert capture.lingering(plain, 90_000_000).linger_ns == 90_000_000
    assert capture.lingering(plain, LONGEST_LINGER_NS).linger_ns == LONGEST_LINGER_NS
    assert capture.lingering(plain, LONGEST_LINGER_NS + 1) == plain, "the trial waits, as before"
    for kept in (replace(plain, capture_file="c"), replace(plain, log_file="l")):
        assert capture.lingering(kept, 90_000_000) == kept


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    found: list[subprocess.Popen[bytes]] = []
    yield found
    for one in found:
        one.kill()
        one.wait()


def program(started: list[subprocess.Popen[bytes]], seconds: float) -> EngineProcess:
    made = EngineProcess.__new__(EngineProcess)
    made.process = subprocess.Popen(["sleep", str(seconds)])
    started.append(made.process)
    return made


def test_a_program_is_waited_for_until_it_ends_or_the_time_is_up(started: list[subprocess.Popen[bytes]]) -> None:
    short, long = program(started, 0.1), program(started, 30)
    short.wait_end(10)
    assert not short.running()
    assert short.process.returncode == 0
    short.wait_end(10)  # again: it is gone already
    began = time.monotonic()
    long.wait_end(0.05)
    assert 0.04 < time.monotonic() - began < 5
    assert long.running()


@pytest.mark.parametrize(("protocol", "round_trips"), [("h1", 1.5), ("h2", 1.5), ("h3", 0.5)])
def test_a_connection_over_tcp_gets_the_time_to_be_closed(
    protocol: str, round_trips: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(trial.time, "sleep", slept.append)
    monkeypatch.setattr(trial.time, "monotonic_ns", lambda: 5_000_000)
    let_pass(PathSpec("far", rtt_ns=40_000_000), since_ns=0, round_trips=LAST_WORDS[protocol])
    assert slept == [pytest.approx(40e-3 * round_trips + 1e-3 - 5e-3)]


@pytest.mark.lab
def test_no_trial_begins_with_packets_of_the_one_before(tmp_path: Path) -> None:
    """Of 12 trials some 3 did when the link was ended half a round trip after the last answer."""
    settings = ["path=rtt10", "tls_version=1.3", "connection=new,reused", "blocks.at_least=2", "blocks.at_most=2"]
    code, _, _, errors = drive.finish(
        tmp_path / "run", study="threats/round-trips", set=[*settings, "capture=true"], timeout_s=60
    )
    assert code == 0, errors
    flows: dict[str, set[int]] = {}
    with connect(tmp_path / "run") as connection:
        for name, flow in connection.execute("SELECT DISTINCT trial, flow_hash FROM link_packets").fetchall():
            flows.setdefault(name, set()).add(flow)
    assert len(flows) == 12
    strays = [after for before, after in itertools.pairwise(sorted(flows)) if flows[before] & flows[after]]
    assert len(strays) <= 1, "what else the machine does can make one late"
