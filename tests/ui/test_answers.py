"""What each address answers with, against what the commands say of the same runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

from tests.analysis.mapping.plane import a_plan, a_study, explore
from tests.report.synthetic_reproduction import write_reproduction
from tests.ui.serving import Served, serving
from trifecta.analysis.mapping.result import work_out
from trifecta.conclude.two_runs.questions import compare
from trifecta.report import terminal, two_runs
from trifecta.report.map import page
from trifecta.report.map import words as map_words
from trifecta.ui import values

CELL = "path=far,connection=new,server=origin"


def test_a_run_says_what_the_terminal_says(served: Served, folder: Path) -> None:
    body, told = served.get("/api/run", {"name": "first"}).json, terminal.as_data(folder / "first")
    assert " ".join([body["headline"], *body["uneven"]]) == told["answer"]
    assert body["title"] == told["title"] and body["metric"] == told["metric"]
    assert [one["cell"] for one in body["cells"]] == [one["cell"] for one in told["cells"]]
    for shown, known in zip(body["cells"], told["cells"], strict=True):
        assert shown["checks"] == known["checks"]
        assert [one["ratio"] for one in shown["verdicts"]] == [one["ratio"] for one in known["verdicts"]]
        assert [one["kind"] for one in shown["verdicts"]] == [one["verdict"] for one in known["verdicts"]]
    assert len(body["verdicts"]["rows"]) == told["verdicts"]
    assert [one["mark"] for one in body["arms"]] == [1, 2, 3]
    assert "latency_p99_ns" in [one["name"] for one in body["metrics"]]
    assert set(body["factors"]) == {"path", "connection", "server", "protocol", "block", "position"}


def test_the_first_picture_has_the_same_intervals(served: Served) -> None:
    first, whole = (served.get(path, {"name": "first"}).json for path in ("/api/first", "/api/run"))
    assert [one["verdicts"] for one in first["cells"]] == [one["verdicts"] for one in whole["cells"]]
    assert first["title"] == whole["title"] and first["arms"] == whole["arms"]


def test_a_cell_has_the_report_s_tables_and_its_curves(served: Served) -> None:
    body = served.get("/api/cell", {"name": "first", "cell": CELL}).json
    assert [one["name"] for one in body["curves"]] == ["HTTP/1.1", "HTTP/2", "HTTP/3"]
    assert all(len(one["ns"]) == len(body["shares"]) for one in body["curves"])
    captions = [one["caption"] for one in body["tables"]]
    assert "Service time" in captions and "Mean time by phase" in captions
    assert all(len(row) == len(one["columns"]) for one in body["tables"] for row in one["rows"])
    assert "has no cell" in served.get("/api/cell", {"name": "first", "cell": "x'; DROP"}).json["error"]


@pytest.mark.parametrize("factor", ["connection", "protocol", "block"])
@pytest.mark.parametrize("metric", ["latency_p50_ns", "requests_per_s", "success_rate"])
def test_a_metric_against_a_factor_has_every_trial_as_it_was_written(
    served: Served, folder: Path, metric: str, factor: str
) -> None:
    body = served.get("/api/values", {"name": "first", "metric": metric, "factor": factor}).json
    column = {"protocol": "protocol", "connection": "connection", "block": "(block + 1)::VARCHAR"}[factor]
    known = duckdb.sql(f"SELECT trial, {column}, {metric}, valid FROM '{folder}/first/trials/*.parquet' ORDER BY trial")
    points = [(one["trial"], one["level"], one["value"], one["valid"]) for one in body["points"]]
    assert points == known.fetchall() and len(points) == 48
    if factor == "block":  # numbered as in the words of each
        assert all(f"block {one['level']}," in one["said"] for one in body["points"])
    assert not all(one["valid"] for one in body["points"])  # those that do not count are shown, and said to be
    assert [one["said"].endswith("; it does not count") for one in body["points"]] == [not one[3] for one in points]
    assert sum(int(row[2]) for row in body["table"]["rows"]) == sum(one[3] for one in points)


def test_what_is_no_metric_or_factor_is_refused_by_name(served: Served) -> None:
    wrong = {"name": "first", "metric": "x;--", "factor": "path"}
    assert "'x;--' is not known" in served.get("/api/values", wrong).json["error"]
    wrong = {"name": "first", "metric": "latency_p50_ns", "factor": "trial"}
    assert "'trial' is not of this run" in served.get("/api/values", wrong).json["error"]
    wrong = {"name": "first", "metric": "speed_index_ms", "factor": "path"}
    assert served.get("/api/values", wrong).status == 400
    assert "'metric' is missing" in served.get("/api/values", {"name": "first"}).json["error"]


def test_a_trial_has_all_of_its_samples_and_the_slowest_in_a_table(served: Served, folder: Path) -> None:
    body = served.get("/api/trial", {"name": "first", "trial": "t00003"}).json
    known = duckdb.sql(
        f"SELECT (done_ns - started_ns) / 1e6 FROM '{folder}/first/samples/t00003.parquet' ORDER BY started_ns, request"
    ).fetchall()
    assert body["samples"]["points"]["ms"] == pytest.approx([one for (one,) in known], abs=1e-5)
    assert body["samples"]["total"] == 40 and not body["samples"]["bucketed"]
    [slowest] = body["samples"]["tables"]
    assert len(slowest["rows"]) == 40 and slowest["rows"][0][0] == str(
        body["samples"]["points"]["request"][max(range(40), key=body["samples"]["points"]["ms"].__getitem__)]
    )
    assert {row[0] for row in body["checks"]["rows"]} >= {"path", "machine"}
    assert served.get("/api/trial", {"name": "first", "trial": "t99999"}).status == 400


def test_a_trial_that_failed_a_check_says_which_first(served: Served, folder: Path) -> None:
    body = served.get("/api/trial", {"name": "first", "trial": "t00017"}).json
    assert body["valid"] is False and body["checks"]["rows"][0][1] == "fail"


def test_many_samples_are_spans_that_say_what_they_are(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MOST_POINTS", 20)
    monkeypatch.setattr(values, "BUCKETS", 4)
    points = served.get("/api/trial", {"name": "first", "trial": "t00003"}).json["samples"]
    assert points["bucketed"] and points["total"] == 40 and "each of 4 spans of time" in points["said"]
    assert len(points["points"]["ms"]) == 4
    every = zip(*(points["points"][name] for name in ("least", "ms", "largest")), strict=True)
    assert all(low <= middle <= high for low, middle, high in every)


def test_har_files_and_pictures_are_those_that_the_run_wrote(served: Served, folder: Path) -> None:
    kept = served.get("/api/trial", {"name": "first", "trial": "t00003"}).json["kept"]
    assert kept["har"] == ["0.har"]
    assert kept["films"] == [{"visit": 0, "pictures": [{"at": "120 ms", "file": "0/120.jpg"}]}]
    fields = {"name": "first", "trial": "t00003"}
    har = served.get("/api/file", {**fields, "kind": "har", "file": "0.har"})
    assert har.body == (folder / "first/har/t00003/0.har").read_bytes()
    assert har.headers["content-disposition"] == 'attachment; filename="t00003-0.har"'
    picture = served.get("/api/file", {**fields, "kind": "frames", "file": "0/120.jpg"})
    assert picture.headers["content-type"] == "image/jpeg" and picture.body.startswith(b"\xff\xd8")


@pytest.mark.parametrize(
    ("kind", "trial", "file"),
    [
        ("har", "t00003", "../t00003/0.har"), ("har", "t00003", "/etc/passwd"), ("har", "..", "run.json"),
        ("har", "t00003/..", "t00003/0.har"), ("pki", "t00003", "ca.pem"), ("captures", "t00003", "t00003.keys"),
        ("har", "t00003", "link.har"), ("frames", "t00003", "0/../0/120.jpg"), ("..", "t00003", "0.har"),
    ],
)  # fmt: skip
def test_no_other_file_is_read(served: Served, folder: Path, kind: str, trial: str, file: str) -> None:
    link = folder / "first/har/t00003/link.har"
    link.unlink(missing_ok=True)
    link.symlink_to("/etc/passwd")
    try:
        answer = served.get("/api/file", {"name": "first", "trial": trial, "kind": kind, "file": file})
    finally:
        link.unlink()
    assert answer.status == 400 and "keeps no" in answer.json["error"]


def test_a_file_that_was_changed_is_not_shown(folder: Path, tmp_path: Path) -> None:
    there = tmp_path / "runs" / "one"
    shutil.copytree(folder / "first", there)
    (there / "har/t00003/0.har").write_text("{}")
    with serving(tmp_path / "runs", tmp_path) as made:
        answer = made.get("/api/file", {"name": "one", "trial": "t00003", "kind": "har", "file": "0.har"})
        assert answer.status == 400 and "was changed after the run wrote it" in answer.json["error"]
        assert "was changed" in made.get("/api/run", {"name": "one"}).json["error"]


def test_two_runs_are_compared_as_the_command_does(served: Served, folder: Path) -> None:
    body = served.get("/api/compare", {"first": "first", "second": "below/second"}).json
    made = compare(folder / "first", folder / "below" / "second")
    assert len(body["table"]["rows"]) == len(made.questions) == 6
    assert body["answer"] == list(two_runs.answer_lines(made))
    assert body["closing"] == two_runs.closing_words(made) and body["warnings"] == two_runs.warnings(made)
    assert served.get("/api/compare", {"first": "first", "second": "none"}).status == 400


def test_a_map_tells_of_each_place_what_its_page_tells(tmp_path: Path) -> None:
    plan = a_plan("6x6", blocks=20)
    study = a_study(plan)
    rows, stop, _ = explore(plan, study, lambda x, y: 0.5 * (x - 0.5) + 0.2 * y - 0.1)
    made = work_out(plan, study, rows, ending=stop.reason, about={"argv": []})
    (tmp_path / "runs" / "map").mkdir(parents=True)
    page.write(made, tmp_path / "runs" / "map")
    with serving(tmp_path / "runs", tmp_path) as asked:
        assert [one["kind"] for one in asked.get("/api/runs").json["runs"]] == ["map"]
        body = asked.get("/api/found", {"name": "map"}).json
    assert body["headline"] == map_words.headline(made) and len(body["places"]) == 36
    x, y = made.plan.x, made.plan.y
    for one in body["places"][::7]:
        assert one["said"] == map_words.sentence(made.at(x.values[one["i"]], y.values[one["j"]]))
        row = body["table"]["rows"][len(y.values) - 1 - one["j"]]
        assert row[0] == y.texts[one["j"]] and row[1 + one["i"]] == one["text"]


def test_a_reproduction_and_what_is_none(tmp_path: Path, served: Served) -> None:
    write_reproduction(tmp_path / "runs")
    with serving(tmp_path / "runs", tmp_path) as asked:
        found = {one["name"]: one["kind"] for one in asked.get("/api/runs").json["runs"]}
        assert found == {".": "reproduction", "bourbon2020/near": "run", "milicevic2023/far": "run"}
        body = asked.get("/api/found", {"name": "."}).json
    assert body["headline"].startswith("Of 2 claims: ") and len(body["table"]["rows"]) == 2
    assert "is a run" in served.get("/api/found", {"name": "first"}).json["error"]
