"""What the report adds for a sweep of request rates, and that it adds nothing elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report import pages
from tests.report.synthetic import Shape, write_run
from trifecta.analysis.knee import Knee, Step
from trifecta.report.html import write_report
from trifecta.report.sweep import sentence
from trifecta.store import views


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = Shape(
        blocks=4, samples_per_trial=40, paths=("far",), connections=("reused",), servers=("origin",), troubles=False,
        rates={"100/s": 1.0, "400/s": 1.0, "1600/s": 3.0},
    )  # fmt: skip
    folder = write_run(tmp_path_factory.mktemp("runs") / "swept", shape)
    write_report(folder)
    return folder


def test_the_rate_is_named_from_which_latency_departs(swept: Path) -> None:
    text = (swept / "report.html").read_text().replace("\u00a0", " ")
    assert "HTTP/3: becomes the bottleneck between 400/s and 1,600/s." in text
    assert "HTTP/2: keeps up at every requested rate, 1,600/s the highest." in text
    with views.connect(swept) as connection:
        found = connection.execute(
            "SELECT rate_per_s, state FROM rate_sweep WHERE arm = 'h3' ORDER BY rate_per_s"
        ).fetchall()
        ends = connection.execute(
            "SELECT DISTINCT arm, knee_low, knee_high FROM rate_sweep WHERE arm <> 'h1' ORDER BY arm"
        ).fetchall()
    assert found == [(100.0, "keeps up"), (400.0, "keeps up"), (1600.0, "departs")]
    assert ends == [("h2", 1600.0, None), ("h3", 400.0, 1600.0)]


def test_every_number_is_in_the_answer_of_its_sql(swept: Path) -> None:
    root = pages.read((swept / "report.html").read_text()).root
    found = [one for one in pages.numbers(root) if "rate_sweep" in one.sql]
    assert len(found) > 40
    pages.assert_sql_gives(swept, found)


def test_one_rate_has_none_of_it(small: Path) -> None:
    write_report(small)
    assert "become the bottleneck" not in (small / "report.html").read_text()


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (100.0, 800.0, "becomes the bottleneck between 100/s and 800/s."),
        (None, 100.0, "is the bottleneck at 100/s, perhaps below."),
        (None, None, "where it becomes the bottleneck is open."),
        (800.0, None, "keeps up at every requested rate, 800/s the highest."),
        (100.0, None, "keeps up to 100/s; open from there to 800/s."),
    ],
)
def test_what_is_known_of_it_is_said(low: float | None, high: float | None, said: str) -> None:
    step = dict.fromkeys(Step.__dataclass_fields__)
    steps = tuple(Step(**(step | {"rate_per_s": rate})) for rate in (100.0, 800.0))
    knee = dict.fromkeys(Knee.__dataclass_fields__) | {"place": "", "arm": "h2", "low": low, "high": high}
    assert sentence(Knee(**(knee | {"steps": steps}))) == f"all cells, HTTP/2: {said}"
