"""A study of one protocol compares nothing: it gets absolute numbers, in the terminal, the report and as JSON."""

import io
import json
import math
from pathlib import Path

import pytest
from rich.console import Console

from tests.report import synthetic
from tests.report.synthetic import Shape, write_run
from trifecta.report import terminal
from trifecta.report.html import write_report
from trifecta.store.views import connect


class OneProtocol(Shape):
    def text(self) -> str:
        return super().text().replace("protocol: [HTTP/1.1, HTTP/2, HTTP/3]", "protocol: [HTTP/2]")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = OneProtocol(blocks=6, samples_per_trial=60, paths=("far", "rough"), servers=("origin",))
    shape.troubles = False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "ARMS", ("h2", "h2#aa"))
        folder = write_run(tmp_path_factory.mktemp("runs") / "alone", shape)
    write_report(folder)
    return folder


def printed(run: Path, width: int) -> str:
    stream = io.StringIO()
    terminal.print_verdicts(run, Console(file=stream, width=width, highlight=False))
    return stream.getvalue()


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_the_terminal_has_the_numbers_of_every_cell(alone: Path, width: int) -> None:
    text = printed(alone, width)
    assert "HTTP/2 alone: nothing is compared" in " ".join(text.split())
    assert "all 0 verdicts" not in text
    assert "…" not in text
    assert [line for line in text.splitlines() if len(line) > width and not line.startswith("Report: ")] == []
    for word in ("p50", "p90", "p95", "p99", "max", "per second", "far, new connections", "rough, reused connections"):
        assert word in " ".join(text.split()), word


def test_json_has_them_as_they_are(alone: Path) -> None:
    found = json.loads(terminal.as_json(alone))
    assert (found["verdicts"], found["resume"]) == (0, None)
    assert [row["cell"] for row in found["alone"]] == sorted(row["cell"] for row in found["alone"])
    assert len(found["alone"]) == 4
    with connect(alone) as views:
        sql = """SELECT count(*) FILTER (WHERE success), quantile_disc(latency_censored_ns, 0.5), avg(latency_ns)
                 FROM samples JOIN trials USING (trial) WHERE valid AND NOT warmup AND cell = ?"""
        for row in found["alone"]:
            done, middle, mean = views.execute(sql, [row["cell"]]).fetchone()
            assert (row["succeeded"], row["p50_ns"]) == (done, middle)
            assert math.isclose(row["mean_ns"], mean)
            assert row["least_ns"] <= row["p50_ns"] <= row["p99_ns"]
            assert row["p999_ns"] is None  # of fewer than a thousand requests


def test_the_report_has_them_with_their_sql(alone: Path) -> None:
    page = (alone / "report.html").read_text()
    assert 'data-query="alone"' in page
    assert "HTTP/2 alone: nothing is compared" in page
    assert "All 0 verdicts" not in page
    assert "Undecided" not in page.split('<section id="cells"')[0]


def test_a_study_of_several_has_none(small: Path) -> None:
    assert json.loads(terminal.as_json(small))["alone"] is None
