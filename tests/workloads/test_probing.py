"""When the path is probed: once a minute, and before every block while it is not what was asked for."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.workloads import drive
from tests.workloads.test_checks_fail import _engine_missing
from trifecta import studies
from trifecta.design import plan
from trifecta.design.model import Levelled, Study
from trifecta.workloads.progress import NoProgress
from trifecta.workloads.runner import StudyRun

STUDY = studies.load("race", ["path=far"], studies.known_servers())
CELL = plan.cells(STUDY)[0]
RTT_NS = STUDY.paths["far"].rtt_ns


def probe(rtt_ns: int) -> dict[str, Any]:
    """What a probe says of a path that loses nothing."""
    return {"sent": 200, "received": 200, "rtt_ns": {"p50": rtt_ns}, "loss_forward": 0.0, "loss_backward": 0.0}


class Session:
    """One whose probes find what they are told to; the last was ``age_s`` ago."""

    def __init__(self, *rtts_ns: int, age_s: float = 5.0) -> None:
        self.ahead = [probe(rtt_ns) for rtt_ns in rtts_ns]
        self.age_s, self.last = age_s, None

    def probe_key(self, at: Levelled) -> str:
        return at.path

    def probe_of(self, at: Levelled) -> dict[str, Any] | None:
        return self.last

    def probe_due(self, at: Levelled, every_s: float) -> bool:
        return self.last is None or self.age_s >= every_s

    def probe(self, at: Levelled, seed: int) -> dict[str, Any]:
        self.last = self.ahead.pop(0)
        return self.last


def probes_of_blocks(session: Session, blocks: int, study: Study = STUDY) -> list[int]:
    """How many probes were made before each block."""
    run: Any = StudyRun.__new__(StudyRun)
    run.study, run.rows, run.progress, run._mark = study, [], NoProgress(), lambda _: None
    made = []
    for _ in range(blocks):
        before = len(session.ahead)
        run._probe_when_due(session, CELL)
        made.append(before - len(session.ahead))
    return made


def test_a_path_that_is_delivered_is_probed_once_a_minute() -> None:
    assert probes_of_blocks(Session(RTT_NS, RTT_NS), 4) == [1, 0, 0, 0]
    assert probes_of_blocks(Session(*[RTT_NS] * 4, age_s=60.0), 3) == [1, 1, 1]


def test_one_that_is_not_is_probed_before_every_block_until_it_is() -> None:
    off = round(RTT_NS * 1.1)
    assert probes_of_blocks(Session(off, off, RTT_NS), 5) == [1, 1, 1, 0, 0]


def test_a_probe_that_lost_everything_is_followed_by_another() -> None:
    session = Session(RTT_NS, RTT_NS)
    session.last = probe(RTT_NS) | {"received": 0}
    assert probes_of_blocks(session, 3) == [1, 0, 0]


def test_a_path_without_a_constant_delay_is_not_held_to_one() -> None:
    jitter = ({"kind": "jitter", "sigma_ns": 1_000_000},)
    far = STUDY.paths["far"]
    study = dataclasses.replace(STUDY, paths={"far": dataclasses.replace(far, forward=(*far.forward, *jitter))})
    assert probes_of_blocks(Session(2 * RTT_NS), 3, study) == [1, 0, 0]


@pytest.mark.lab
@pytest.mark.skipif(bool(_engine_missing()), reason=_engine_missing() or "built")
def test_with_a_real_link_that_delays_a_tenth_more(tmp_path: Path) -> None:
    delay = [{"kind": "delay", "delay_ns": 44_000_000}]
    settings = ["server=origin", "connection=reused", "blocks.at_least=2", "blocks.at_most=2", "budget=2 min"]
    code, events, outcome, errors = drive.finish(
        tmp_path / "run",
        set=[*settings, "path=far", "paths.far={rtt: 80 ms}", "workload.requests=5", "workload.warmup=1 requests"],
        faults={"link": {"a_to_b": delay, "b_to_a": delay}},
    )
    assert code == 0, errors
    assert outcome["trials"] == 8
    assert sum(event[0] == "path_probed" for event in events) == 2
