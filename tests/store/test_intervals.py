"""What verdicts said after each block: written by the run, read as the view ``intervals``."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.store.sealed import small
from trifecta.cli import main
from trifecta.design.model import Verdict
from trifecta.store import files, intervals, manifest, parquet, views
from trifecta.store.intervals import INTERVALS, Written
from trifecta.store.run import RunDirectory


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("runs") / "a run [1]*", sealed=False)


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    made = Path(shutil.copytree(whole, tmp_path / "a run [1]*"))
    (made / manifest.DECISIONS).unlink()
    return made


def verdict(blocks: int, ratio: float | None = 1.0, arm: str = "h3", **other: Any) -> Verdict:
    ends = {"low": None if ratio is None else ratio - 0.5, "high": None, "e_value": 3.0}
    return Verdict(**{"cell": "path=far", "metric": "latency_p50_ns", "arm": arm, "reference": "h2",
                      "verdict": "undecided", "ratio": ratio, "blocks": blocks, "margin": 0.05, "noise_floor": None,
                      **ends, **other})  # fmt: skip


def text(*lines: list[Verdict], written: Written | None = None) -> str:
    """As a run writes it that is gone on with before every line, or by one process (``written``)."""
    made = [(written or Written(resumed=True)).fresh(judged) for judged in lines]
    return "".join(files.to_json({"elapsed_ns": 10 * n, "intervals": one}) + "\n" for n, one in enumerate(made, 1))


def asked(run: Path, query: str = "SELECT blocks, ratio FROM intervals ORDER BY arm, blocks") -> list[tuple[Any, ...]]:
    with views.connect(run) as connection:
        return connection.execute(query).fetchall()


def test_what_changed_is_written_and_no_more() -> None:
    written = Written(resumed=False)
    assert written.fresh([verdict(0, None), verdict(1, arm="h1")]) == [
        {"cell": "path=far", "metric": "latency_p50_ns", "arm": "h1", "reference": "h2", "blocks": 1,
         "verdict": "undecided", "ratio": 1.0, "low": 0.5, "margin": 0.05}
    ]  # fmt: skip
    assert [one["arm"] for one in written.fresh([verdict(1), verdict(1, arm="h1", margin=0.1)])] == ["h3"]
    assert written.fresh([verdict(1), verdict(1, arm="h1")]) == []
    for other in ({"blocks": 2}, {"ratio": 1.1}, {"low": 0.6}, {"high": 1.6}, {"verdict": "slower"}):
        assert len(written.fresh([verdict(**{"blocks": 1} | other)])) == 1, other
        written.fresh([verdict(1)])


def test_a_file_that_is_large_grows_by_its_decisions_alone(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written(run, resumed=False)
    assert len(written.fresh([verdict(1)])) == 1, "there is no file yet"
    (run / manifest.DECISIONS).write_text(text([verdict(1)], [verdict(2)]))
    monkeypatch.setattr(intervals, "MOST_BYTES", (run / manifest.DECISIONS).stat().st_size)
    assert len(written.fresh([verdict(3)])) == 1
    with (run / manifest.DECISIONS).open("a") as file:
        file.write(text([verdict(3)]))
    assert written.fresh([verdict(4)]) == []
    assert asked(run) == [(1, 1.0), (2, 1.0), (3, 1.0)]


def test_who_goes_on_with_a_run_writes_all_once() -> None:
    written = Written(resumed=True)
    assert len(written.fresh([verdict(0, None), verdict(1, arm="h1")])) == 2
    assert written.fresh([verdict(0, None), verdict(1, arm="h1")]) == []


def test_numbers_that_json_has_not_are_left_out_and_those_of_numpy_are_plain() -> None:
    odd = verdict(np.int64(3), math.inf, low=-math.inf, high=math.nan, margin=np.float64(0.05))  # type: ignore[arg-type]
    [one] = Written(resumed=False).fresh([odd])
    assert json.loads(files.to_json(one)) == {
        "cell": "path=far", "metric": "latency_p50_ns", "arm": "h3", "reference": "h2", "blocks": 3,
        "verdict": "undecided", "margin": 0.05,
    }  # fmt: skip


def test_every_field_comes_back_as_it_was(run: Path) -> None:
    said = verdict(12, 0.1 + 0.2, low=1 / 3, high=2 / 3, family_low=1e-300, family_high=1e300, likely="faster",
                   blocks_needed_low=3, blocks_needed_high=2**31 - 1, margin=math.pi)  # fmt: skip
    (run / manifest.DECISIONS).write_text(text([said]))
    [row] = parquet.select(intervals.select(run))
    assert row == {name: getattr(said, name) for name in INTERVALS.names if name != "elapsed_ns"} | {"elapsed_ns": 10}
    described = {name: kind for name, kind, *_ in asked(run, "DESCRIBE intervals")}
    assert described == INTERVALS.types


def test_a_block_of_one_cell_leaves_the_others_as_they_stand(run: Path) -> None:
    written = Written(resumed=False)
    lines = [[verdict(1)], [verdict(1), verdict(1, 2.0, "h1")], [verdict(2, 3.0), verdict(1, 2.0, "h1")]]
    (run / manifest.DECISIONS).write_text(text(*lines, written=written))
    assert asked(run, "SELECT arm, blocks, ratio, elapsed_ns FROM intervals ORDER BY arm, blocks") == [
        ("h1", 1, 2.0, 20), ("h3", 1, 1.0, 10), ("h3", 2, 3.0, 30),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "stands"),
    [
        ([(1, 1.1), (2, 1.2), (2, 1.25), (5, 1.3)], [(1, 1.1), (2, 1.25), (5, 1.3)]),
        ([(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0), (5, 5.0), (3, 30.0)], [(1, 1.0), (2, 2.0), (3, 30.0)]),
        ([(5, 5.0), (3, 3.0), (4, 4.0)], [(3, 3.0), (4, 4.0)]),
        ([(1, 1.0), (2, 2.0), (0, None)], []),
        ([(1, 1.0), (2, None), (3, 3.0)], [(1, 1.0), (2, None), (3, 3.0)]),
        ([(0, None)], []),
    ],
)
def test_what_was_said_of_as_many_blocks_or_more_counts_no_longer(
    run: Path, said: list[tuple[int, float | None]], stands: list[tuple[int, float | None]]
) -> None:
    (run / manifest.DECISIONS).write_text(text(*([verdict(*one)] for one in said)))
    assert asked(run) == stands


def test_a_line_that_was_cut_off_and_lines_without_intervals_tell_nothing(run: Path) -> None:
    file = run / manifest.DECISIONS
    assert asked(run) == []  # no file
    file.write_text("")
    assert asked(run) == []
    file.write_text('{"elapsed_ns": 1, "block": 0}\n{"stop": "budget", "elapsed_ns": 2}\n')
    assert asked(run) == []
    assert {name: kind for name, kind, *_ in asked(run, "DESCRIBE intervals")} == INTERVALS.types
    whole = text([verdict(1)], [verdict(2)])
    for end in range(len(whole) - 20, len(whole) - 1):
        file.write_text(whole[:end])
        assert asked(run) == [(1, 1.0)]
    directory = RunDirectory.open(run)
    directory.log_decision({"elapsed_ns": 30, "intervals": Written(resumed=True).fresh([verdict(2, 7.0)])})
    assert asked(run) == [(1, 1.0), (2, 7.0)]  # and not the half of the line before


def test_what_is_no_file_of_the_run_tells_nothing(run: Path, tmp_path: Path) -> None:
    file, elsewhere = run / manifest.DECISIONS, tmp_path / "elsewhere"
    elsewhere.write_text(text([verdict(1)]))
    file.symlink_to(elsewhere)
    assert asked(run) == []
    for other in (file.mkdir, lambda: os.mkfifo(file), lambda: file.symlink_to("/nowhere")):
        file.unlink() if file.is_symlink() or not file.is_dir() else file.rmdir()
        other()
        assert asked(run) == []
    file.unlink()
    shutil.move(elsewhere, run / "kept")
    file.symlink_to("kept")
    assert asked(run) == [(1, 1.0)]


NO_INTERVALS = (
    b"\xff\n", b"[1]\n", b"1\n", b"null\n", b"\x00\n", b"[" * 100_000, b'{"a":' * 5_000, b'{"intervals": 3}\n',
    b'{"elapsed_ns": 1, "intervals": [1, "x", null, [], {}]}\n', b'{"elapsed_ns": NaN, "intervals": []}\n',
    b'{"elapsed_ns": 1, "intervals": [{"cell": "\\ud800", "blocks": 3}]}\n',
    b'{"elapsed_ns": 1, "intervals": [{"cell": "\xff", "blocks": 3}]}\n',
    b'{"elapsed_ns": ' + b"9" * 5_000 + b"}\n", b'{"reason": "' + b"x" * 40_000_000 + b'"}\n',
)  # fmt: skip
ODD = {"cell": "c", "metric": "m", "arm": "h3", "reference": "h2", "verdict": "slower", "blocks": 3}


@pytest.mark.parametrize("content", NO_INTERVALS, ids=lambda content: repr(content[:30]))
def test_lines_of_others_tell_nothing_and_end_nothing(
    run: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    good = text([verdict(1)]).encode()
    for before, after in ((b"", b""), (good, b""), (b"", good)):
        if after and not content.endswith(b"\n"):
            continue
        (run / manifest.DECISIONS).write_bytes(before + content + after)
        assert main.run(["sql", str(run), "--json", "SELECT blocks FROM intervals"]) == 0
        out, error = capsys.readouterr()
        assert (json.loads(out), error) == ([{"blocks": 1}] if before or after else [], "")


@pytest.mark.parametrize(
    "other",
    [{"blocks": 1e30}, {"blocks": "x"}, {"blocks": None}, {"blocks": -3}, {"blocks": [3]}, {"cell": None},
     {"arm": None}, {"verdict": None}],
)  # fmt: skip
def test_fields_of_other_types_tell_nothing(run: Path, other: dict[str, object]) -> None:
    (run / manifest.DECISIONS).write_text(json.dumps({"elapsed_ns": 1, "intervals": [ODD | other]}) + "\n")
    assert asked(run) == []
    (run / manifest.DECISIONS).write_text(json.dumps({"elapsed_ns": 1, "intervals": [ODD]}) + "\n")
    assert asked(run) == [(3, None)]
