"""The nodes as the head sees them, over a launcher that does what a test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from trifecta.contract.run import RunDocument
from trifecta.lab.launcher import Output
from trifecta.workloads.cluster import nodes as module
from trifecta.workloads.cluster import wire
from trifecta.workloads.cluster.dispatch import BlockFinished, Joined, LeftOut, NodeLost, Notice, Order
from trifecta.workloads.cluster.head import differs
from trifecta.workloads.cluster.nodes import ProgramNodes
from trifecta.workloads.cluster.wire import Message

ORDER = Order("c", 0, 0, "first")
FACTS: RunDocument = {
    "trifecta": "1",
    "engine": {"engine": "1"},
    "code": {"engine": "ab"},
    "servers": {"origin": {"version": "1", "sha256": "a" * 64}},
    "clients": {},
    "unsupported": [],
    "failed": [],
}


class Scripted:
    """A launcher whose places and answers are set by a test."""

    shared = False

    def __init__(self, **places: str) -> None:
        self.there = dict(places)
        self.say: dict[str, list[Output]] = {}
        self.started: list[str] = []
        self.ended: list[str] = []
        self.written: dict[str, bytes] = {}

    def places(self) -> Mapping[str, str]:
        return dict(self.there)

    def start(self, place: str, arguments: Sequence[str]) -> None:
        self.started.append(place)

    def write(self, place: str, octets: bytes) -> None:
        self.written[place] = self.written.get(place, b"") + octets

    def read(self, timeout_s: float) -> Mapping[str, Output]:
        found = {place: said.pop(0) for place, said in self.say.items() if said}
        return found

    def end(self, place: str) -> None:
        self.ended.append(place)

    def close(self) -> None:
        """Nothing."""

    def says(self, place: str, *messages: Message, ended: str | None = None) -> None:
        self.say.setdefault(place, []).append(Output(b"".join(map(wire.encode, messages)), ended))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.0)


def stood(launcher: Scripted, *places: str) -> ProgramNodes:
    nodes = ProgramNodes(launcher, "study", lambda name, facts: differs(FACTS, facts))
    for place in places:
        launcher.says(place, Message("beat"), Message("ready", facts=FACTS))
    assert list(nodes.poll(0.01)) == [Joined(launcher.there[place]) for place in places]
    return nodes


def test_a_node_is_told_what_to_measure_and_joins() -> None:
    launcher = Scripted(p1="one", p2="two")
    nodes = stood(launcher, "p1", "p2")
    assert launcher.started == ["p1", "p2"]
    assert wire.read_asked(launcher.written["p1"]) == wire.NodeTask("one", "study")
    assert nodes.waiting() == 0


def test_a_block_goes_there_and_comes_back() -> None:
    launcher = Scripted(p1="one")
    nodes = stood(launcher, "p1")
    nodes.offer("one", ORDER)
    assert wire.read_order(launcher.written["p1"].splitlines()[-1]) == ORDER
    launcher.says("p1", Message("told", text="slow"), Message("ran", cell="c", block=0, files={"trials/t0": b"x"}))
    assert list(nodes.poll(0.01)) == [Notice("one", "slow"), BlockFinished("one", ORDER, {"trials/t0": b"x"})]


def test_a_node_runs_what_it_was_given_one_after_the_other() -> None:
    launcher = Scripted(p1="one")
    nodes = stood(launcher, "p1")
    after = replace(ORDER, block=1, first_trial=4)
    nodes.offer("one", ORDER)
    nodes.offer("one", after)
    assert [wire.read_order(line) for line in launcher.written["p1"].splitlines()[-2:]] == [ORDER, after]
    launcher.says("p1", Message("ran", cell="c", block=0), Message("ran", cell="c", block=1))
    assert list(nodes.poll(0.01)) == [BlockFinished("one", ORDER, {}), BlockFinished("one", after, {})]
    nodes.offer("one", ORDER)
    nodes.offer("one", after)
    launcher.says("p1", Message("ran", cell="c", block=1))
    (left,) = nodes.poll(0.01)
    assert left == LeftOut("one", "it ran a block that it was not given, 1 of c")


def test_a_program_that_ends_is_lost_and_started_again_three_times_at_most() -> None:
    launcher = Scripted(p1="one")
    nodes = stood(launcher, "p1")
    for _ in range(2):
        launcher.says("p1", ended="it was killed by signal 9")
        assert list(nodes.poll(0.01)) == [NodeLost("one", "it was killed by signal 9")]
        launcher.says("p1", Message("ready", facts=FACTS))
        assert list(nodes.poll(0.01)) == [Joined("one")]
    launcher.says("p1", ended="it was killed by signal 9")
    assert list(nodes.poll(0.01)) == [LeftOut("one", "it was killed by signal 9")]
    nodes.poll(0.01)
    assert launcher.started == ["p1"] * 3
    assert launcher.ended == ["p1"] * 3


def test_a_block_that_is_done_gives_a_node_its_tries_back() -> None:
    launcher = Scripted(p1="one")
    nodes = stood(launcher, "p1")
    for _ in range(5):
        nodes.offer("one", ORDER)
        launcher.says("p1", Message("ran", cell="c", block=0))
        launcher.says("p1", ended="gone")
        assert [type(one) for one in (*nodes.poll(0.01), *nodes.poll(0.01))] == [BlockFinished, NodeLost]
        launcher.says("p1", Message("ready", facts=FACTS))
        assert list(nodes.poll(0.01)) == [Joined("one")]


def test_one_that_is_dismissed_is_ended_and_not_started_again() -> None:
    launcher = Scripted(p1="one", p2="two")
    nodes = stood(launcher, "p1", "p2")
    nodes.dismiss("one")
    launcher.says("p1", Message("ready", facts=FACTS))
    assert list(nodes.poll(0.01)) == []
    assert launcher.ended == ["p1"]
    assert launcher.started == ["p1", "p2"]


def test_a_place_that_is_gone_is_lost_and_one_that_comes_joins() -> None:
    launcher = Scripted(p1="one")
    nodes = stood(launcher, "p1")
    launcher.there = {"p2": "one"}  # the same machine, started again
    launcher.says("p2", Message("ready", facts=FACTS))
    assert [*nodes.poll(0.01), *nodes.poll(0.01)] == [NodeLost("one", "the node is gone"), Joined("one")]


def test_one_that_says_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Scripted(p1="one")
    nodes = stood(launcher, "p1")
    monkeypatch.setattr(module, "_SILENT_S", -1.0)
    (event,) = nodes.poll(0.01)
    assert isinstance(event, NodeLost)
    assert "said nothing" in event.reason
    assert launcher.ended == ["p1"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"trifecta": "2"}, "its trifecta is 2, this run's is 1; install the same version there"),
        ({"code": {"engine": "cd"}}, "its code is"),
        ({"engine": {"engine": "2"}}, "its engine is"),
        ({"servers": {}}, "server origin is missing there and 1 (aaaaaaaaaaaa) here"),
        ({"clients": {"curl": {"version": "8"}}}, "client curl is 8 there and missing here"),
        ({"failed": [{"factor": "server", "level": "x", "reason": "no port"}]}, "x is not possible there: no port"),
        ({"unsupported": [{"factor": "path", "level": "x", "reason": "no fq"}]}, "x is not possible there: no fq"),
    ],
)
def test_a_node_that_is_another_instrument_is_left_out_with_the_reason(change: RunDocument, reason: str) -> None:
    launcher = Scripted(p1="one", p2="two")
    nodes = stood(launcher, "p1")
    launcher.says("p2", Message("ready", facts=FACTS | change))
    (event,) = nodes.poll(0.01)
    assert isinstance(event, LeftOut)
    assert event.node == "two"
    assert reason in event.reason
    nodes.poll(0.01)
    assert launcher.started == ["p1", "p2"], "it is not tried again"


def test_a_node_that_says_what_is_no_message_or_runs_what_it_was_not_given_is_left_out() -> None:
    launcher = Scripted(p1="one", p2="two")
    nodes = stood(launcher, "p1", "p2")
    launcher.say["p1"] = [Output(b"Traceback (most recent call last)")]
    launcher.says("p2", Message("ran", cell="c", block=7))
    events = list(nodes.poll(0.01))
    assert [type(one) for one in events] == [LeftOut, LeftOut]


def test_one_that_cannot_is_left_out() -> None:
    launcher = Scripted(p1="one")
    nodes = stood(launcher, "p1")
    launcher.says("p1", Message("cannot", text="caddy does not come up"))
    assert list(nodes.poll(0.01)) == [LeftOut("one", "caddy does not come up")]


@pytest.mark.parametrize("shared", [False, True])
def test_of_two_nodes_on_a_machine_one_is_used_unless_that_was_asked_for(shared: bool) -> None:
    launcher = Scripted(p1="one", p2="two", p3="three")
    launcher.shared = shared
    nodes = ProgramNodes(launcher, "study", lambda name, facts: None)
    for place, machine in (("p1", "m"), ("p2", "m"), ("p3", "other")):
        launcher.says(place, Message("ready", text=machine, facts=FACTS))
    events = list(nodes.poll(0.01))
    assert events[0] == Joined("one")
    assert events[2] == Joined("three")
    if shared:
        assert events[1] == Joined("two")
    else:
        assert isinstance(events[1], LeftOut)
        assert "on the machine of node one" in events[1].reason


def test_a_name_that_is_taken_is_told_apart() -> None:
    launcher = Scripted(p1="host")
    nodes = stood(launcher, "p1")
    launcher.there = {"p0123456789": "host", "p1": "host-p1"}  # names are by the places that are there
    launcher.says("p0123456789", Message("ready", facts=FACTS))
    assert list(nodes.poll(0.01)) == [Joined("host-p0123456")]


def test_one_that_does_not_begin_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Scripted(p1="one")
    nodes = ProgramNodes(launcher, "study", lambda name, facts: None)
    monkeypatch.setattr(module, "_SILENT_S", -1.0)
    (event,) = nodes.poll(0.01)
    assert isinstance(event, Notice)
    assert "others use its CPUs" in event.text
    assert list(nodes.poll(0.01)) == []
    assert nodes.waiting() == 1
