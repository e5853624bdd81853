"""A search for causes with invented numbers: HTTP/3 waits longer behind caddy, and not behind the engine's server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report import synthetic
from tests.report.synthetic import Shape, write_run
from trifecta.conclude.why import result
from trifecta.contract.why import WhyRequest
from trifecta.design import plan
from trifecta.design.model import Study
from trifecta.design.why.rungs import Case
from trifecta.design.why.search_plan import case_asked, together_of
from trifecta.store import why
from trifecta.workloads.why import study_of

CELL = "path=far,connection=reused,server=caddy"
ROUNDS = 4


def source(folder: Path) -> Path:
    """The run whose difference is asked about."""
    shape = Shape(
        blocks=7, samples_per_trial=60, paths=("far",), connections=("reused",), servers=("caddy",), troubles=False,
        http3_wait={"caddy": 1.5},
    )  # fmt: skip
    return write_run(folder, shape)


def asked_of(run: Path) -> WhyRequest:
    """Without the server, and without Cubic."""
    one = {"suspicion": 6.0, "suspected": "caddy is another program", "path": {}, "nearest": False}
    return {
        "run": str(run.resolve()),
        "study": (run / "study.yaml").read_text(),
        "cell": CELL,
        "arm": "h3",
        "to": "h2",
        "budget_s": 300.0,
        "block_s": 1.0,
        "rounds": ROUNDS,
        "seed": 3,
        "causes": [
            {**one, "cause": "congestion-control", "levels": {"congestion_control": "bbr"}, "suspected": "nothing"},
            {**one, "cause": "server-program", "levels": {"server": "origin"}},
        ],
        "not_switched": [
            {"cause": "pacing", "title": "the pace of packets", "why": "cannot be switched in this version"},
            {"cause": "udp-buffers", "title": "socket buffers", "why": "cannot be switched in this version"},
        ],
        "not_measured": [],
        "began": "2026-01-02T03:04:05Z",
        "argv": ["trifecta", "why", "run"],
    }  # type: ignore[typeddict-item]


def searched(folder: Path, asked: WhyRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the search, with both of its runs."""
    why.create(folder, asked)
    case = case_asked(asked)
    monkeypatch.setattr(synthetic, "ARMS", ("h2", "h3", "h2#aa"))
    _write(folder / result.SEARCH, study_of(asked, case))
    pair = result.pair_of(folder, asked)
    if pair is not None:
        rungs = together_of(case, asked, *pair)
        _write(folder / result.PAIR, _pair(case, rungs))
    return folder


def _pair(case: Case, rungs: list) -> Study:  # type: ignore[type-arg]
    return case.study_of(rungs, rounds=ROUNDS, seed=4, title="why-together")


def _write(run: Path, study: Study) -> None:
    """A run of this study's cells with two blocks a round; other factors than the server do nothing."""

    class Own(Shape):
        def text(self) -> str:
            return study.source

        def cells(self):  # type: ignore[no-untyped-def]
            yield from (
                (one.key, {name: str(level) for name, level in one.levels.items()}) for one in plan.cells(study)
            )

    write_run(run, Own(blocks=2 * ROUNDS, samples_per_trial=60, troubles=False, http3_wait={"caddy": 1.5}))
