from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from trifecta.report import terminal


def printed(run: Path, width: int, *, color: bool = False, encoding: str = "utf-8") -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(
        file=stream, width=width, force_terminal=color, color_system="standard" if color else None, highlight=False
    )
    terminal.print_verdicts(run, console)
    stream.flush()
    stream.seek(0)
    return stream.read()


def test_it_fits_80_columns_without_colour(run: Path) -> None:
    text = printed(run, 80)
    assert "\x1b" not in text
    whole = ("Report: ", "Next: ")  # to be copied
    assert [line for line in text.splitlines() if len(line) > 80 and not line.startswith(whole)] == []
    assert "…" not in text, "nothing is cut off"
    assert "x faster" in text
    assert "Report: " + str(run / "report.html") in text


def test_it_says_everything_in_ascii(run: Path) -> None:
    text = printed(run, 80, encoding="ascii")
    assert text.isascii()
    assert "{" in text and "faster" in text


def test_a_wide_terminal_gets_one_line_a_cell(run: Path) -> None:
    text = printed(run, 180)
    line = next(line for line in text.splitlines() if line.startswith("new, origin") and "faster" in line)
    assert "HTTP/3 > HTTP/1.1 = HTTP/2" in line or "HTTP/3 > open" in line
    assert re.search(r"1\.\d\dx faster \[0\.\d+, 0\.\d+\] {0\.\d+, 0\.\d+}", line)


@pytest.mark.parametrize("width", [40, 50, 60, 79, 80, 100, 132, 169, 170, 200])
def test_it_keeps_to_the_width_and_cuts_nothing(run: Path, width: int) -> None:
    text = printed(run, width)
    whole = ("Report: ", "Next: ")  # to be copied
    assert [line for line in text.splitlines() if len(line) > width and not line.startswith(whole)] == []
    assert "…" not in text
    words = set(" ".join(text.split()).split(" "))
    assert {"faster", "undecided", "failed", "HTTP/1.1"} <= {word.strip(",.:;") for word in words}


def test_failed_checks_and_open_verdicts_are_in_the_table(run: Path) -> None:
    text = printed(run, 80)
    assert "1 failed" in text
    assert "1 warned" in text
    assert "undecided" in text
    assert "Left out: server nginx" in text


@pytest.mark.parametrize("name", ["run", "small"])
def test_json_is_for_programs(name: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(name)
    found = json.loads(terminal.as_json(run))
    assert found["verdicts"] == sum(len(cell["verdicts"]) for cell in found["cells"])
    assert found["decided"] == sum(one["verdict"] != "undecided" for cell in found["cells"] for one in cell["verdicts"])
    first = found["cells"][0]
    assert first["cell"].startswith("path=")
    assert {one["arm"] for one in first["verdicts"]} == {"h1", "h3"}
    assert set(first["checks"]) == {"passed", "warned", "failed", "unknown"}
