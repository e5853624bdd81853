"""The loop of a budget in a simulated world: where it spends, when it ends, and how it goes on."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import kept
from trifecta.analysis.interim_looks import blocks_at
from trifecta.analysis.judging import CONFIRMED, OPEN
from trifecta.analysis.places import Place
from trifecta.analysis.published import evaluate
from trifecta.analysis.statements import Assertion, Published, parse
from trifecta.cli.budgeting import Budget, lost_s
from trifecta.conclude.reproduction import rejudge
from trifecta.conclude.reproduction.result import Result, StudyResult, as_data
from trifecta.conclude.reproduction.spending import BUDGET_SPENT, SpendingEnd, choose
from trifecta.contract.reproduction import Spending
from trifecta.store import reproduction

FIRST = 6


@dataclass(frozen=True)
class Truth:
    """A cell of the world: HTTP/3's ratio, how blocks vary, and what one takes."""

    ratio: float
    noise: float = 0.05
    block_s: float = 1.0
    spread_seed: int = 1


class Killed(BaseException):
    """What kill -9 does."""


@dataclass
class World:
    """A lab whose cells are known; a run `s/NAME` has one cell of that name, and one claim about it."""

    cells: dict[str, Truth]
    done: dict[str, int] = field(default_factory=dict)
    measured: list[tuple[str, int]] = field(default_factory=list)
    clock_s: float = 0.0
    took_s: dict[str, float] = field(default_factory=dict)
    die_after: int | None = None
    """Blocks, after which it is killed."""
    deaf: Collection[str] = ()
    """Runs that give no further block."""
    stopped: bool = False
    room_s: float = 0.0
    stop_after: int | None = None

    def __post_init__(self) -> None:
        for name in self.cells:
            self.done.setdefault(name, FIRST)
            self.took_s.setdefault(name, FIRST * self.cells[name].block_s)

    @property
    def study(self) -> Published:
        says = {"metric": "latency_p50_ns", "arm": "h3", "to": "h2", "is": "above"}
        claims = [{"id": n, "text": n, "where": {"kind": "chain", "cell": n}, "says": says} for n in self.cells]
        whole: Any = {"id": "s", "title": "T", "year": 1, "stack": "", "facts": "", "baseline": "h2", "claims": claims}
        return parse(whole)

    def read(self, changed: Collection[str]) -> Result:
        places = tuple(self.place(name) for name in self.cells)
        study = self.study
        found = tuple(evaluate(one, places) for one in study.statements)
        asked = {"studies": ["s"], "depth": "quick", "began": "2026-01-02T03:04:05Z", "elapsed_s": {}}
        return Result(Path(), asked, (StudyResult(study, found, places=places),))

    def place(self, name: str) -> Place:
        truth, rows = self.cells[name], []
        rng = np.random.default_rng(truth.spread_seed)
        for block in range(self.done[name]):
            noise = rng.normal(0, truth.noise, 3)
            for arm, factor, one in zip(("h2", "h2#aa", "h3"), (1.0, 1.0, truth.ratio), noise, strict=True):
                rows.append({"arm": arm, "block": block, "latency_p50_ns": 1e6 * factor * math.exp(one)})
        levels = {"kind": "chain", "cell": name}
        return Place(f"s/{name}", f"cell={name}", levels, rows, first=FIRST, done=self.done[name],
                     block_ns=round(truth.block_s * 1e9), checks={"headroom": 1}, trials=len(rows))  # type: ignore[arg-type]  # fmt: skip

    def measure(self, run: str, cells: Mapping[str, int], left_s: float) -> str:
        name = run.partition("/")[2]
        if name in self.deaf:
            return "its server does not come up"
        if left_s < self.room_s:
            return BUDGET_SPENT
        self.measured.append((name, cells[f"cell={name}"]))
        while self.done[name] < cells[f"cell={name}"]:
            cost = self.cells[name].block_s
            if left_s < cost:
                break
            if self.die_after is not None and sum(self.done.values()) >= self.die_after:
                raise Killed
            if self.stop_after is not None and sum(self.done.values()) >= self.stop_after:
                self.stopped = True
                break
            self.done[name] += 1
            self.clock_s += cost
            self.took_s[name] += cost
            left_s -= cost
        return ""

    def elapsed_s(self, run: str) -> float:
        return self.took_s[run.partition("/")[2]]

    def spend(self, folder: Path, budget_s: float) -> tuple[Result, Spending, list[str]]:
        folder.mkdir(exist_ok=True)
        said: list[str] = []
        budget = Budget(folder, budget_s, lambda: self.clock_s, lambda: self.stopped, said.append)
        return *budget.spend(self), said


# Cheap and clear after a look or two, dear and clear, and one that nothing decides.
MANY = {
    "dear": Truth(1.25, 0.15, 30.0, 4),
    "cheap": Truth(1.25, 0.15, 1.0, 4),
    "clear": Truth(2.0, 0.02, 1.0),
    "hopeless": Truth(1.05, 0.004, 1.0),
}


def state_of(result: Result, name: str) -> str:
    return next(one.state for one in result.evaluations() if one.statement.id == f"s.{name}")


def test_time_goes_first_where_it_decides_most_and_ends_when_no_more_helps(tmp_path: Path) -> None:
    world = World(dict(MANY))
    before = world.read(())
    assert {name: state_of(before, name) for name in MANY} == {
        "dear": OPEN, "cheap": OPEN, "clear": CONFIRMED, "hopeless": OPEN,
    }  # fmt: skip
    result, told, said = world.spend(tmp_path / "out", 1e6)
    order = [name for name, _ in world.measured]
    assert "clear" not in order  # what is decided gets nothing
    assert order.index("cheap") < order.index("dear")
    assert state_of(result, "cheap") == state_of(result, "dear") == CONFIRMED
    assert (told["decided"], told["claims"]) == (3, 4)
    assert told["ended"] == "no further block decides anything more here"
    assert [one["claim"] for one in told["open"]] == ["s.hopeless"]
    assert "hardly help" in told["open"][0]["why"]
    assert said[0] == "budget: spent 1 s of 11 days 14 h: 1 of 4 claims decided"
    assert "for s.cheap" in said[1]


def test_only_looks_are_measured_and_every_decision_says_why(tmp_path: Path) -> None:
    world = World({"cheap": MANY["cheap"]})
    _, told, _ = world.spend(tmp_path / "out", 1e6)
    assert told["ended"] == "every claim is decided"
    looks = [blocks_at(FIRST, look) for look in range(2, 20)]
    assert [blocks for _, blocks in world.measured] == looks[: len(world.measured)]
    steps = reproduction.steps(tmp_path / "out")
    assert [one["step"] for one in steps] == list(range(1, len(steps) + 1))
    for one in steps:
        assert one["claim"] == "s.cheap" and "of 0" not in one["why"] and one["reached"]
        assert one["took_s"] == pytest.approx(one["step_s"])
        assert "is decided with a chance of" in one["why"]
    assert told["steps"] == steps


def test_it_ends_when_what_is_left_decides_nothing_and_says_how_much_would(tmp_path: Path) -> None:
    world = World({"dear": MANY["dear"]})
    result, told, _ = world.spend(tmp_path / "out", 60)
    assert state_of(result, "dear") == OPEN
    assert world.clock_s <= 60 and world.measured == []
    assert told["ended"] == "what is left of the budget decides nothing more"
    assert (
        "blocks a cell would decide, which take" in told["open"][0]["why"] or "might decide" in told["open"][0]["why"]
    )
    assert told["open"][0]["why"].endswith("60 s is left")
    more, _, _ = world.spend(tmp_path / "out", 1e5)  # with more of it, it goes on
    assert state_of(more, "dear") == CONFIRMED


def test_a_budget_is_never_overdrawn(tmp_path: Path) -> None:
    world = World(dict(MANY))
    _, told, _ = world.spend(tmp_path / "out", 200)
    assert told["spent_s"] <= 200


def test_a_run_that_finds_no_room_for_a_block_ends_it_and_is_asked_again_with_more(tmp_path: Path) -> None:
    world = World({"cheap": MANY["cheap"]})
    world.room_s = 5.0  # what starting the lab takes, which no forecast knows yet
    _, told, _ = world.spend(tmp_path / "out", 4)
    assert len(told["steps"]) == 1 and told["steps"][0]["problem"] == "the budget was spent"
    assert told["ended"] == "what is left of the budget decides nothing more"
    result, _, _ = world.spend(tmp_path / "out", 1e5)
    assert state_of(result, "cheap") == CONFIRMED


def uninterrupted(folder: Path) -> World:
    world = World(dict(MANY))
    world.spend(folder, 1e6)
    return world


@pytest.mark.parametrize("after", [26, 30, 41, 50])
def test_it_is_killed_and_goes_on_as_if_it_had_not_been(tmp_path: Path, after: int) -> None:
    whole = uninterrupted(tmp_path / "whole")
    world = World(dict(MANY), die_after=after)
    with pytest.raises(Killed):
        world.spend(tmp_path / "out", 1e6)
    unfinished = reproduction.steps(tmp_path / "out")[-1]
    assert "took_s" not in unfinished
    lost = sum(world.elapsed_s(run) - before for run, before in unfinished["before_s"].items())
    assert lost_s(tmp_path / "out", world.elapsed_s) == pytest.approx(lost)  # the next session counts it
    world.die_after = None
    result, told, _ = world.spend(tmp_path / "out", 1e6)
    assert (world.done, told["decided"]) == (whole.done, 3)
    assert [one["targets"] for one in told["steps"]] == [
        one["targets"] for one in reproduction.steps(tmp_path / "whole")
    ]
    assert lost_s(tmp_path / "out", world.elapsed_s) == 0
    assert state_of(result, "cheap") == CONFIRMED
    for one in told["steps"]:  # a step that was killed took what it took: later forecasts rest on that
        assert one["took_s"] == pytest.approx(one["step_s"])


def test_it_is_stopped_and_the_step_is_ended_first(tmp_path: Path) -> None:
    whole = uninterrupted(tmp_path / "whole")
    world = World(dict(MANY), stop_after=29)
    _, told, _ = world.spend(tmp_path / "out", 1e6)
    assert told["ended"] == ""
    assert lost_s(tmp_path / "out", world.elapsed_s) == 0  # its time was counted when it was stopped
    world.stopped, world.stop_after = False, None
    world.spend(tmp_path / "out", 1e6)
    assert world.done == whole.done


def test_a_run_that_gives_no_more_blocks_is_named_and_not_asked_again(tmp_path: Path) -> None:
    world = World(dict(MANY), deaf=("cheap",))
    _, told, _ = world.spend(tmp_path / "out", 1e6)
    assert [one["claim"] for one in told["steps"]].count("s.cheap") == 1
    why = {one["claim"]: one["why"] for one in told["open"]}
    assert why["s.cheap"] == "further blocks of it could not be measured: its server does not come up"


def test_claims_about_the_same_cells_count_together() -> None:
    """Two open claims about one cell are worth more than one about another that is as cheap."""
    world = World({"a": MANY["cheap"], "b": MANY["cheap"]})
    result = world.read(())
    study = result.studies[0]
    twin = study.evaluations[1]
    more = replace(twin, statement=replace(twin.statement, id="s.twin"))
    step = choose(replace(result, studies=(replace(study, evaluations=(*study.evaluations, more)),)), 1e6, [])
    assert not isinstance(step, SpendingEnd)
    assert list(step["targets"]) == ["s/b"]
    assert sorted([step["claim"], *step["also"]]) == ["s.b", "s.twin"]


def test_a_claim_about_what_was_not_run_costs_nothing() -> None:
    result = World({"a": MANY["clear"]}).read(())
    study = result.studies[0]
    gone = evaluate(replace(study.published.statements[0], where={"kind": "video"}), study.places)
    ended = choose(replace(result, studies=(replace(study, evaluations=(gone,)),)), 1e6, [])
    assert isinstance(ended, SpendingEnd)
    assert ended.open[0]["why"] == "nothing was run that it is about"


# ------------------------------------------------------------------ what is kept


def test_every_answer_can_be_had_again_from_the_kept_file_alone(tmp_path: Path) -> None:
    world = World(dict(MANY))
    result, told, _ = world.spend(tmp_path / "out", 1e6)
    document = json.loads(json.dumps(kept.kept(json.loads(json.dumps(as_data(replace(result, spending=told)))))))
    statements = {one.id: one for one in world.study.statements}
    assert len(document["claims"]) == len(MANY)
    assert document["budget"]["ended"]
    for row in document["claims"]:
        says = statements[row["id"]].says
        assert isinstance(says, Assertion)
        one = rejudge.decided(row, says, row["confidence"])
        assert one is not None and one.state == row["state"]
        for end, value in (("low", one.pooled.low), ("high", one.pooled.high), ("ratio", one.pooled.value)):
            assert value is not None and math.exp(value) == pytest.approx(row[end], rel=1e-4)
        assert row["arms"].keys() == {"h2", "h3"} and row["checks"] == {"headroom": 1}
        assert rejudge.rejudge(row, statements[row["id"]]) == row


def test_an_answer_that_its_blocks_do_not_give_is_found_out(tmp_path: Path) -> None:
    world = World({"clear": MANY["clear"]})
    (row,) = kept.kept(json.loads(json.dumps(as_data(world.read(())))))["claims"]
    (statement,) = world.study.statements
    assert rejudge.rejudge({**row, "state": "contradicted"}, statement)["state"] == CONFIRMED
    row["cells"][0]["values"][0] = [1 / value for value in row["cells"][0]["values"][0]]
    assert rejudge.rejudge(row, statement)["state"] == "contradicted"
