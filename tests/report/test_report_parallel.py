"""Figures that a process beside this one draws are those that this one would draw."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest

from tests.report import synthetic
from trifecta.design import naming
from trifecta.report.figures import load, parallel, svg
from trifecta.report.figures.parallel import Drawer, drawer

COMPARE, ARMS = "server", ["origin", "caddy"]


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def throughput(number: int) -> partial[str]:
    lines = {arm: [(1e8 * step, 10.0 + number * step) for step in range(9)] for arm in ARMS}
    return partial(load.throughput, lines, 1e8, f"c{number}t")


def told_by(number: int) -> str:
    return f"{number} {os.getpid()}"


def refused() -> str:
    raise ValueError("no figure")


def test_a_figure_is_the_same_whoever_draws_it() -> None:
    wanted = [throughput(number) for number in range(8)]
    with naming.arms_of(COMPARE, ARMS), svg.drawing():
        alone = Drawer().draw(wanted)
        with drawer(parallel.FEWEST, COMPARE, ARMS) as made:
            assert [made._ask(one) for one in wanted] == alone
            assert made.draw(wanted) == alone
    assert "caddy" in alone[0]
    assert len(set(alone)) == len(alone)


def test_both_processes_draw_and_none_is_left() -> None:
    with drawer(parallel.FEWEST, COMPARE, ARMS) as made:
        assert made._ask(partial(told_by, 1)) != told_by(1)  # it is ready
        drawn = made.draw([partial(told_by, number) for number in range(5000)])
        assert [int(one.split()[0]) for one in drawn] == list(range(5000))
        assert len({one.split()[1] for one in drawn}) == 2
        with pytest.raises(ValueError, match="no figure"):
            made.draw([partial(told_by, 1)] * 500 + [refused])
        with pytest.raises(ValueError, match="no figure"):
            made._ask(refused)
        assert made.draw([partial(told_by, 3)])[0].startswith("3 ")
    assert made._other is not None
    assert made._other.returncode == 0


def test_a_process_that_dies_is_an_error() -> None:
    with drawer(parallel.FEWEST, COMPARE, ARMS) as made:
        assert made._other is not None
        made._other.kill()
        made._other.wait()
        with pytest.raises((EOFError, BrokenPipeError)):
            made._ask(partial(told_by, 3))


def test_few_figures_or_one_core_need_no_second_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with drawer(parallel.FEWEST - 1, COMPARE, ARMS) as few:
        assert few._other is None
        assert few.draw([partial(told_by, 3)]) == [told_by(3)]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    with drawer(parallel.FEWEST, COMPARE, ARMS) as alone:
        assert alone._other is None


def test_a_script_without_a_guard_gets_its_report(tmp_path) -> None:
    """Nothing of the caller's is run a second time."""
    run = synthetic.write_run(tmp_path / "run", synthetic.Shape(blocks=6, samples_per_trial=20))
    script = tmp_path / "script.py"
    script.write_text(
        "print('once')\nfrom pathlib import Path\nfrom trifecta.report import html\n"
        f"html.write_report(Path({str(run)!r}))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "once\n"), done.stderr
    assert (run / "report.html").stat().st_size > 500_000
