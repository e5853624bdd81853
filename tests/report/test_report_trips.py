"""What the report adds for requests made one after the other, and that it adds nothing elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report import pages
from tests.report.synthetic import Shape, write_run
from trifecta.report import numbers
from trifecta.report.html import write_report
from trifecta.store import views


@pytest.fixture(scope="module")
def in_turn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = Shape(
        blocks=6, samples_per_trial=80, paths=("far",), connections=("new", "reused"), servers=("origin",), in_flight=1
    )
    shape.troubles = False
    folder = write_run(tmp_path_factory.mktemp("runs") / "in-turn", shape)
    write_report(folder)
    return folder


MADE_HERE = ("mode_low_ns", "settled", "trip_tests")


def test_every_number_is_in_the_answer_of_its_sql(in_turn: Path) -> None:
    root = pages.read((in_turn / "report.html").read_text()).root
    found = [one for one in pages.numbers(root) if any(word in one.sql for word in MADE_HERE)]
    assert len(found) > 60
    pages.assert_sql_gives(in_turn, found)


def test_new_connections_have_round_trips_and_a_reused_one_its_progression_too(in_turn: Path) -> None:
    root = pages.read((in_turn / "report.html").read_text()).root
    captions = [
        [caption.text for caption in cell.all("figcaption")] for cell in root.all("section") if cell.has("cell")
    ]
    assert ["Round trips" in titles for titles in captions] == [True, True]
    assert ["Progression" in titles for titles in captions] == [False, True]


def test_the_tables_say_what_the_samples_say(in_turn: Path) -> None:
    cell = "path=far,connection=new,server=origin"
    with views.connect(in_turn) as connection:
        values = connection.execute(
            "SELECT s.latency_ns FROM samples AS s JOIN trials AS t USING (trial) "
            f"WHERE t.valid AND t.cell = '{cell}' AND t.arm = 'h3' AND NOT s.warmup AND s.success"
        ).fetchnumpy()["latency_ns"]
        told = connection.execute(
            f"SELECT samples FROM trip_tests WHERE cell = '{cell}' AND arm = 'h3' AND reference = 'h2'"
        ).fetchall()
        arms = connection.execute("SELECT DISTINCT arm FROM progress ORDER BY arm").fetchall()
    assert told == [(len(values),)]
    assert arms == [("h1",), ("h2",), ("h3",)]
    root = pages.read((in_turn / "report.html").read_text()).root
    shown = {
        one.column: one.shown for one in pages.numbers(root) if "mode_low_ns" in one.sql and one.key == f"{cell}|h3"
    }
    for column, value in (("smallest_ns", values.min()), ("mean_ns", values.mean()), ("largest_ns", values.max())):
        assert shown[column] == numbers.duration(float(value))


def test_many_requests_in_flight_have_none_of_it(small: Path) -> None:
    write_report(small)
    text = (small / "report.html").read_text()
    assert "Tests of no difference" not in text
    assert "Progression" not in text
