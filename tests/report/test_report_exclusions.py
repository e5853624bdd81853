"""Trials of one arm that were left out more often than others are said in the headline, with the remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.report.synthetic import Shape, write_run
from trifecta.conclude.exclusions import BY_ARM, uneven
from trifecta.conclude.queries import QueryResult
from trifecta.report import terminal
from trifecta.report.html import write_report


def answer(counts: dict[str, dict[str, tuple[int, int]]]) -> QueryResult:
    """By cell and arm: excluded ones of so many trials."""
    rows = [
        {"cell": cell, "arm": arm, "trials": of, "excluded": excluded, "check_name": "path", "remedy": "wait"}
        for cell, arms in counts.items()
        for arm, (excluded, of) in arms.items()
    ]
    return QueryResult(BY_ARM, rows)


@pytest.mark.parametrize(
    ("counts", "arms"),
    [
        ({"clean": {"h1": (24, 24), "h2": (0, 48), "h3": (0, 24)}}, ["h1"]),
        ({"clean": {"h1": (3, 3), "h2": (0, 6), "h3": (0, 3)}}, ["h1"]),
        ({"clean": {"h1": (2, 24), "h2": (4, 48), "h3": (3, 24)}}, []),
        ({"clean": {"h1": (24, 24), "h2": (48, 48), "h3": (24, 24)}}, []),
        ({"clean": {"h1": (0, 24), "h2": (0, 48), "h3": (0, 24)}}, []),
        ({"clean": {"h1": (1, 3), "h2": (0, 6), "h3": (0, 3)}}, []),
        # A path that is bad for all, and more trials of one arm on it, is no exclusion of that arm.
        ({"bad": {"h1": (30, 30), "h2": (6, 6)}, "good": {"h1": (0, 6), "h2": (0, 30)}}, []),
        ({"a": {"h3": (2, 8), "h2": (0, 16)}, "b": {"h3": (3, 8), "h2": (0, 16)}}, ["h3"]),
        ({}, []),
    ],
)
def test_what_chance_leaves_out_is_not_said_of_an_arm(counts: dict, arms: list[str]) -> None:
    assert [one.arm for one in uneven(answer(counts))] == arms


def test_the_headline_names_the_arm_its_trials_and_the_remedy(tmp_path: Path) -> None:
    shape = Shape(blocks=4, samples_per_trial=60, paths=("clean",), connections=("new", "reused"), servers=("origin",))
    shape.troubles, shape.left_out = False, "h1"
    run = write_run(tmp_path / "run", shape)
    write_report(run)
    said = json.loads(terminal.as_json(run))["answer"]
    counts = (
        "Trials of HTTP/1.1 were excluded more often than others: 8 of 8, against 0 of 24 (in 2 cells, mostly by the"
    )
    assert counts in said
    assert "To fix this: " in said
    page = (run / "report.html").read_text(encoding="utf-8")
    headline = page.split('<p class="headline">')[1].split("</p>")[0]
    assert "Trials of HTTP/1.1 were excluded more often than others" in headline.replace("\u00a0", " ")


def test_nothing_is_said_where_nothing_was_left_out(small: Path) -> None:
    assert "excluded more often" not in json.loads(terminal.as_json(small))["answer"]
