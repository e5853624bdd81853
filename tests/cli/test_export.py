"""``trifecta export``: what it takes, its exit codes, and help that says of every target what it needs."""

import csv
import json
import re

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.report.synthetic import Shape, write_run
from tests.store import servers
from tests.store.sealed import seal
from trifecta.cli import main
from trifecta.store.exports import EXPORTERS, TARGETS

SMALL = Shape(blocks=4, samples_per_trial=40, paths=("clean",), connections=("new",), servers=("origin",))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("made") / "run", SMALL)


def test_a_format_and_to_write_the_same(run, tmp_path, capsys):
    assert main.run(["export", str(run), "benchstat", "--out", str(tmp_path / "one"), "--json"]) == 0
    assert main.run(["export", str(run), "--to", f"benchstat:{tmp_path / 'two'}"]) == 0
    told = capsys.readouterr().out
    assert json.loads(told[: told.index("]") + 1]) == [str(tmp_path / "one/trials.txt")]
    assert (tmp_path / "one/trials.txt").read_text() == (tmp_path / "two/trials.txt").read_text()


@pytest.mark.parametrize("more", [[], ["csv", "--to", "csv"], ["--to", "csv", "--out", "x"]])
def test_one_way_to_ask_is_needed(run, more, capsys):
    assert main.run(["export", str(run), *more]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_server_that_is_away_is_one_line_and_leaves_the_run_alone(run, capsys):
    before = {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in run.rglob("*")}
    assert main.run(["export", str(run), "--to", f"influxdb://127.0.0.1:{servers.free_port()}/x"]) == 3
    told = capsys.readouterr()
    assert re.fullmatch(r"trifecta: influxdb://127\.0\.0\.1:\d+/x: no answer .*\n", told.err)
    assert told.out == ""
    assert {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in run.rglob("*")} == before


def test_help_lists_formats_and_targets_with_what_they_need(capsys):
    assert main.run(["export", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for exporter in EXPORTERS.values():
        assert exporter.documentation.title in said
    for target in TARGETS.values():
        assert f"{target.schemes[0]}://" in said
        assert target.documentation.title in said
    for variable in ("AWS_SECRET_ACCESS_KEY", "INFLUX_TOKEN", "MYSQL_PWD", "AWS_ENDPOINT_URL_DYNAMODB",
                     "OTEL_EXPORTER_OTLP_HEADERS"):  # fmt: skip
        assert variable in said


def test_verdicts_that_were_changed_are_told_as_the_trials_give_them(tmp_path, capsys):
    made = seal(write_run(tmp_path / "run", SMALL))
    assert main.run(["export", str(made), "csv", "--out", str(tmp_path / "one")]) == 0
    assert "was changed" not in capsys.readouterr().err
    kept = made / "verdicts.parquet"
    table = pq.read_table(kept)
    doubled = pc.multiply(table["ratio"], 2.0)
    pq.write_table(table.set_column(table.schema.get_field_index("ratio"), "ratio", doubled), kept)
    assert main.run(["export", str(made), "csv", "--out", str(tmp_path / "two")]) == 0
    assert re.search(r"verdicts\.parquet was changed .*: what follows was worked out", capsys.readouterr().err)
    ratios = [
        {(row["cell"], row["arm"], row["reference"]): float(row["ratio"]) for row in csv.DictReader(text.splitlines())}
        for text in ((tmp_path / name / "verdicts.csv").read_text() for name in ("one", "two"))
    ]
    assert ratios[0] == pytest.approx(ratios[1])
