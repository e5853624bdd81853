"""What the report adds for requests made one after the other, and that it adds nothing elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.report import pages
from tests.report.synthetic import Shape, write_run
from trifecta.analysis.sequential import histogram as of_samples
from trifecta.design import numbers
from trifecta.report.figures import sequential, svg
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
        hypotheses = connection.execute(
            "SELECT DISTINCT cell LIKE '%reused%', metric, hypothesis FROM trip_tests WHERE arm = 'h3' "
            "AND reference = 'h2' ORDER BY 1"
        ).fetchall()
    none = "no difference between HTTP/3 and HTTP/2 in"
    assert hypotheses == [
        (False, "latency_mean_ns", f"{none} latency"), (True, "requests_per_s", f"{none} throughput"),
    ]  # fmt: skip
    assert told == [(len(values),)]
    assert arms == [("h1",), ("h2",), ("h3",)]
    root = pages.read((in_turn / "report.html").read_text()).root
    shown = {
        one.column: one.shown for one in pages.numbers(root) if "mode_low_ns" in one.sql and one.key == f"{cell}|h3"
    }
    assert shown["requests"] == numbers.count(len(values))
    for column, value in (("smallest_ns", values.min()), ("mean_ns", values.mean()), ("largest_ns", values.max())):
        assert shown[column] == numbers.duration(float(value))


def _samples(connection, cell: str, arm: str):
    """Trial, latency, sent and answered of the successful requests of an arm in its valid trials."""
    return connection.execute(
        "SELECT s.trial, s.done_ns - s.started_ns AS latency, coalesce(s.request_sent_ns, s.started_ns) AS sent, "
        "s.done_ns AS done FROM samples AS s JOIN trials AS t USING (trial) "
        f"WHERE t.valid AND t.cell = '{cell}' AND t.arm = '{arm}' AND NOT s.warmup AND s.success"
    ).fetchnumpy()


def test_the_mode_is_the_fullest_bin(in_turn: Path) -> None:
    cell = "path=far,connection=new,server=origin"
    with views.connect(in_turn) as connection:
        found = _samples(connection, cell, "h3")["latency"].astype(float)
    width = float(np.median(found)) / 20
    places, counts = np.unique(np.floor(found / width), return_counts=True)
    low = float(places[counts.argmax()]) * width
    root = pages.read((in_turn / "report.html").read_text()).root
    shown = [
        one.shown for one in pages.numbers(root) if one.column.startswith("mode_low_ns") and one.key == f"{cell}|h3"
    ]
    assert shown == [numbers.FORMATS["duration_interval"]((low, low + width))]


def test_a_progression_is_told_as_the_samples_have_it(in_turn: Path) -> None:
    cell = "path=far,connection=reused,server=origin"
    with views.connect(in_turn) as connection:
        found = _samples(connection, cell, "h2")
        ends = connection.execute(
            f"SELECT place, value FROM progress WHERE cell = '{cell}' AND arm = 'h2' ORDER BY place"
        ).fetchall()
    smallest, largest, last, settled, there = [], [], [], [], []
    place, value = ends[-1]  # as far as all trials go
    for trial in np.unique(found["trial"]):
        here = found["trial"] == trial
        done = np.sort(found["done"][here])
        rates = np.arange(1, len(done) + 1) * 1e9 / (done - found["sent"][here].min())
        shown = rates[9:]  # ten requests at least, as a hundredth of them is fewer
        smallest.append(shown.min())
        largest.append(shown.max())
        last.append(rates[-1])
        there.append(rates[place - 1])
        off = np.flatnonzero(np.abs(rates / rates[-1] - 1) > 0.05)
        settled.append(off[-1] + 2 if len(off) else 1)
    root = pages.read((in_turn / "report.html").read_text()).root
    told = {one.column: one.shown for one in pages.numbers(root) if "settled" in one.sql and one.key == f"{cell}|h2"}
    assert told["smallest"] == numbers.per_second(min(smallest))
    assert told["largest"] == numbers.per_second(max(largest))
    assert told["last"] == numbers.per_second(float(np.median(last)))
    assert told["settled"] == numbers.count(float(np.median(settled)))
    assert value == pytest.approx(float(np.exp(np.mean(np.log(there)))))


def test_many_requests_in_flight_have_none_of_it(small: Path) -> None:
    write_report(small)
    text = (small / "report.html").read_text()
    assert "Tests of no difference" not in text
    assert "Progression" not in text


def test_a_histogram_is_of_shares_of_each_protocol_s_requests() -> None:
    few, many = np.full(40, 2e6), np.full(4000, 3e6)
    with svg.drawing():
        drawn = sequential.histogram(of_samples({"h2": few, "h3": many}), "round trip", "w0h")
    assert "HTTP/2: 2.00 ms to 2.00 ms" in drawn
    assert "100 %" in drawn
