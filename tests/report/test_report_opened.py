"""A command writes the page and prints the table from one look at the run, and both are what each would be alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.report.synthetic import Shape, write_run
from tests.report.synthetic_services import ServicesShape, write_services_run
from tests.report.synthetic_visits import VisitsShape, write_visits_run
from tests.report.test_report_terminal import printed
from trifecta.cli import running
from trifecta.conclude import programs, queries
from trifecta.conclude.opened import opened
from trifecta.report import html, terminal

SERVERS = Shape(blocks=4, samples_per_trial=40, paths=("far",), connections=("reused",), troubles=False)
CHAIN = ServicesShape("kind: chain\n  hosts: 4", {"path": "[normal]", "connection": "[new]"}, blocks=4, cycles=8)


@pytest.fixture(params=["programs", "services", "visits"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    makers: dict[str, Callable[[Path], Path]] = {
        "programs": lambda folder: write_run(folder, SERVERS),
        "services": lambda folder: write_services_run(folder, CHAIN),
        "visits": lambda folder: write_visits_run(folder, VisitsShape(blocks=3)),
    }
    return makers[request.param](tmp_path / "run")


def test_it_is_the_same_as_the_page_and_the_table_of_two_looks(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, data = html.write_report(made).read_text(), terminal.as_json(made)
    table = printed(made, 80)
    running.show(made, as_json=False)
    assert (made / "report.html").read_text() == page
    assert capsys.readouterr().out == table
    running.show(made, as_json=True)
    assert capsys.readouterr().out == f"{data}\n"


def test_a_run_is_opened_and_its_programs_are_split_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, calls = write_run(tmp_path / "run", SERVERS), list[str]()

    def counting(module: object, name: str) -> None:
        real = getattr(module, name)

        def counted(*given: object, **named: object) -> object:
            calls.append(name)
            return real(*given, **named)

        monkeypatch.setattr(module, name, counted)

    counting(queries, "connect")
    counting(programs, "decompose")
    running.show(run, as_json=False)
    assert sorted(calls) == ["connect", "decompose"]
    assert "Protocol or program?" in capsys.readouterr().out


def test_what_is_open_is_not_opened_again_and_closed_by_who_opened_it(small: Path) -> None:
    with opened(small) as outer:
        with opened(outer) as inner:
            assert inner is outer
        assert outer.connection.execute("SELECT count(*) > 0 FROM trials").fetchall() == [(True,)]
