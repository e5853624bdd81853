"""The page of a campaign: a row a cell, with the values of what its run compares."""

from __future__ import annotations

import io
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from tests.report import pages
from tests.report.held import asked
from tests.report.synthetic import Shape, write_run
from trifecta.design import numbers
from trifecta.report import campaign as shown


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[shown.Overview, Path]:
    """A run that compares times and one that compares rates, in one campaign."""
    folder = tmp_path_factory.mktemp("campaign")
    shapes = {
        name: Shape(blocks=6, samples_per_trial=40, paths=("clean",), connections=("new",), servers=("origin",),
                    metric=metric)
        for name, metric in (("times", "latency_p50"), ("rates", "requests_per_s"))
    }  # fmt: skip
    for name, shape in shapes.items():
        write_run(folder / name, shape)
    made_up: Any = SimpleNamespace(
        name="c", title="Two", description="", depth="quick", as_published=False, tolerate=frozenset(),
        studies={name: shape.study for name, shape in shapes.items()},
        label=lambda name, own: name, test_names=lambda name, own: "",
    )  # fmt: skip
    return shown.overview(made_up, folder, {}), folder


@pytest.mark.parametrize(
    ("study", "metric", "write"),
    [("times", "latency_p50_ns", numbers.duration), ("rates", "requests_per_s", numbers.per_second)],
)
def test_a_row_has_the_values_of_what_its_run_compares(
    written: tuple[shown.Overview, Path], study: str, metric: str, write: Any
) -> None:
    made, folder = written
    (line,) = [one for one in made.lines if one.study == study]
    for arm in ("h2", "h3"):
        rows = asked(folder / study, f"SELECT {metric} AS value FROM trials WHERE arm = '{arm}' AND valid")
        middle = write(median(row["value"] for row in rows))
        assert line.value(arm) == middle
        assert middle in pages.read(shown.write_page(made, folder).read_text()).root.text
        out = Console(file=io.StringIO(), width=200)
        shown.print_overview(made, folder, out)
        assert middle in out.file.getvalue()  # type: ignore[attr-defined]
    (cell,) = [one for one in shown.as_data(made, folder)["cells"] if one["study"] == study]  # type: ignore[index,call-overload,union-attr]
    assert cell["metric"] == metric  # type: ignore[index,call-overload]


def test_trials_that_do_not_count_are_counted(written: tuple[shown.Overview, Path]) -> None:
    made, folder = written
    for count, words in (
        (1, "1 of 2 trials failed a check and does not count"),
        (2, "trials failed a check and do not"),
    ):
        for line in made.lines:
            line.arms = {}
        made.lines[0].arms = {"h2": {"trials": 2, "valid_trials": 2 - count, "value": None, "success_rate": 1.0}}
        out = Console(file=io.StringIO(), width=200)
        shown.print_overview(made, folder, out)
        assert words in out.file.getvalue()  # type: ignore[attr-defined]
