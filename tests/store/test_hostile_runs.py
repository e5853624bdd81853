"""Every command that takes a run, on runs that are damaged in every way: one line that names the file, exit code 2."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.report.synthetic_packets import write_traces
from tests.store.sealed import seal, small
from trifecta.cli import main

READERS = (
    ["report", "{run}"], ["report", "{run}", "--json"], ["explain", "{run}"], ["explain", "{run}", "--json"],
    ["sql", "{run}"], ["sql", "{run}", "SELECT count(*) FROM samples JOIN trials USING (trial)"],
)  # fmt: skip
COMMANDS = (
    *READERS, ["resume", "{run}"], ["map", "{run}"], ["map", "{run}", "--at", "rtt=10ms,loss=1%"], ["trace", "{run}"],
)  # fmt: skip

TEXTS: dict[str, bytes] = {
    "empty": b"",
    "not UTF-8": b'{"schema": 1, "study": {"title": "\xff"}}',
    "cut short": b'{"schema": 1, "st',
    "a list": b"[]",
    "a number": b"1",
    "nested deeply": b"[" * 100_000,
    "a long number": b'{"schema": 1, "seed": ' + b"9" * 5000 + b"}",
}
REMOVED = object()
FIELDS: dict[str, tuple[str, Any, str]] = {
    "schema 99": ("schema", 99, "in schema 99; this is "),
    "schema 0": ("schema", 0, "field 'schema' is 0, and this version reads 1 to 3"),
    "schema a string": ("schema", "2", "field 'schema' is not a whole number"),
    "schema a boolean": ("schema", True, "field 'schema' is not a whole number"),
    "no schema": ("schema", REMOVED, "field 'schema' is missing"),
    "a later version": ("trifecta", "99.0.0", "by Trifecta 99.0.0 in a later version; this is "),
    "version a number": ("trifecta", 2, "field 'trifecta' is not a string"),
    "study a list": ("study", [], "field 'study' is not an object"),
    "metric a number": ("study", {"name": "race", "metric": 3}, "field 'study.metric' is not a string"),
    "seed a string": ("seed", "seven", "field 'seed' is not a whole number"),
    "seed null": ("seed", None, "field 'seed' is not a whole number"),
    "argv an object": ("argv", {}, "field 'argv' is not a list"),
    "argv of numbers": ("argv", [1], "field 'argv[0]' is not a string"),
    "servers a list": ("servers", [], "field 'servers' is not an object"),
    "a server a string": ("servers", {"caddy": "2"}, "field 'servers.caddy' is not an object"),
    "unsupported of numbers": ("unsupported", [1], "field 'unsupported[0]' is not an object"),
    "failed without a reason": ("failed", [{"factor": "server", "level": "x"}], "'failed[0].reason' is not a string"),
    "faults a list": ("faults", [1], "field 'faults' is not an object"),
    "time a string": ("elapsed_ns", "soon", "field 'elapsed_ns' is not a whole number"),
    "time negative": ("elapsed_ns", -1, "field 'elapsed_ns' is negative"),
    "time huge": ("elapsed_ns", 10**30, "field 'elapsed_ns' is beyond 64 bits"),
    "NaN": ("measuring_share", float("nan"), "is not valid JSON (NaN is not a number)"),
    "infinity": ("time_share", {"load": float("inf")}, "is not valid JSON (Infinity is not a number)"),
    "half a surrogate": ("ended_because", "\ud800", "field 'ended_because' holds half of a surrogate pair"),
    "half of one in a name": ("machine", {"\udfff": 1}, "a name in field 'machine' holds half of a surrogate pair"),
    "a map that is none": ("map", [], "field 'map' is not an object"),
    "a gate that is none": ("gate", [], "field 'gate' is not an object"),
    "looks that are none": ("elsewhere", {}, "field 'elsewhere' is not a list"),
    "a look without a time": (
        "elsewhere", [{"when": "before", "places": []}], "field 'elsewhere[0].utc' is not a string",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """The same run with and without a manifest."""
    folder = tmp_path_factory.mktemp("runs")
    plain = small(folder / "plain", sealed=False)
    return {False: plain, True: seal(Path(shutil.copytree(plain, folder / "sealed")))}


def run_of(whole: dict[bool, Path], tmp_path: Path, sealed: bool) -> Path:
    return Path(shutil.copytree(whole[sealed], tmp_path / "copied"))


def one_line(command: list[str], run: Path, capsys: pytest.CaptureFixture[str]) -> str:
    code = main.run([word.format(run=run) for word in command])
    out, error = capsys.readouterr()
    assert (code, out, error.count("\n")) == (2, "", 1), error
    assert (error.startswith("trifecta: "), len(error) < 600) == (True, True), error
    return error


@pytest.mark.parametrize("sealed", [True, False], ids=["manifest", "none"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_run_whose_facts_are_no_json(
    whole: dict[bool, Path], tmp_path: Path, sealed: bool, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(whole, tmp_path, sealed)
    (run / "run.json").write_bytes(TEXTS[text])
    for command in COMMANDS:
        assert f"{run / 'run.json'}: is no" in one_line(command, run, capsys)


@pytest.mark.parametrize("sealed", [True, False], ids=["manifest", "none"])
@pytest.mark.parametrize("field", FIELDS)
def test_a_run_whose_facts_are_of_other_types(
    whole: dict[bool, Path], tmp_path: Path, sealed: bool, field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(whole, tmp_path, sealed)
    name, value, said = FIELDS[field]
    facts = json.loads((run / "run.json").read_text())
    facts[name] = value
    if value is REMOVED:
        del facts[name]
    (run / "run.json").write_text(json.dumps(facts))
    for command in COMMANDS:
        error = one_line(command, run, capsys)
        assert f"{run / 'run.json'}: " in error
        assert said in error
        assert "copy the run's folder again" in error or "use that version, or update this one" in error


def without(path: Path) -> str:
    """A file lacks its third column."""
    table = pq.ParquetFile(path).read()
    name = table.column_names[2]
    pq.write_table(table.drop_columns([name]), path)
    return f"lacks the column '{name}'"


def retyped(path: Path) -> str:
    """A file's third column is of dates."""
    table = pq.ParquetFile(path).read()
    name = table.column_names[2]
    dates = pa.array([0] * table.num_rows, pa.date32())
    pq.write_table(table.set_column(2, name, dates), path)
    return f"column '{name}' is of type DATE, not "


def cut(path: Path) -> str:
    path.write_bytes(path.read_bytes()[:-20])
    return "is damaged (no whole Parquet file)"


def emptied(path: Path) -> str:
    path.write_bytes(b"")
    return "is damaged (no whole Parquet file)"


def unreadable_json(path: Path) -> str:
    rows = pq.ParquetFile(path).read().to_pylist()
    rows[0]["checks_json"] = '[{"check'
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)
    return "column 'checks_json' is not JSON"


DAMAGES = (without, retyped, cut, emptied)


@pytest.mark.parametrize("sealed", [True, False], ids=["manifest", "none"])
@pytest.mark.parametrize(
    ("file", "damage"),
    [
        *((file, damage) for file in ("trials/t00000.parquet", "samples/t00003.parquet") for damage in DAMAGES),
        ("trials/t00003.parquet", without),
        ("trials/t00003.parquet", unreadable_json),
    ],
)
def test_a_table_of_a_trial_that_is_damaged(
    whole: dict[bool, Path], tmp_path: Path, sealed: bool, file: str, damage: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(whole, tmp_path, sealed)
    said = damage(run / file)
    for command in (*READERS, *([["resume", "{run}"]] if sealed else [])):
        if not sealed and damage is unreadable_json and command[0] == "sql":
            continue  # it names no column that is not JSON before a query reads it
        error = one_line(command, run, capsys)
        assert f"{run / file}: {said}" in error
        assert "; copy it again, or remove " in error


@pytest.mark.parametrize("sealed", [True, False], ids=["manifest", "none"])
@pytest.mark.parametrize("file", ["trials/t00000.parquet", "samples/t00003.parquet", "trials", "samples"])
def test_a_table_that_is_a_link(
    whole: dict[bool, Path], tmp_path: Path, sealed: bool, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Out of the run's folder it is named and not followed; within the folder it is read as what it leads to."""
    run = run_of(whole, tmp_path, sealed)
    (run / file).rename(tmp_path / "elsewhere.parquet")
    (run / file).symlink_to(tmp_path / "elsewhere.parquet")
    for command in READERS:
        error = one_line(command, run, capsys)
        assert f"{run / file}: is a link out of the run's folder" in error
        assert "; put what it leads to in its place" in error
    (tmp_path / "elsewhere.parquet").rename(run / "within.parquet")
    (run / file).unlink()
    (run / file).symlink_to(run / "within.parquet")
    assert main.run([word.format(run=run) for word in READERS[-1]]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("file", ["trace/packets.parquet", "trace"])
def test_a_dissection_that_is_a_link(
    whole: dict[bool, Path], tmp_path: Path, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(whole, tmp_path, True)
    write_traces(run, size=1000)
    (run / file).rename(tmp_path / "elsewhere")
    (run / file).symlink_to(tmp_path / "elsewhere")
    assert f"{run / file}: is a link out of the run's folder" in one_line(READERS[-1], run, capsys)


@pytest.mark.parametrize("name", ["my-own.parquet", "samples/.t00099.parquet"])
def test_a_link_that_no_view_reads_is_left_alone(
    whole: dict[bool, Path], tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(whole, tmp_path, True)
    (run / name).symlink_to(tmp_path / "elsewhere.parquet")
    (tmp_path / "via").symlink_to(run)
    for folder in (run, tmp_path / "via"):
        assert main.run([word.format(run=folder) for word in READERS[-1]]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("damage", "file", "sealed"),
    [
        # Each kind of damage meets both files, and a run with a manifest and one without; the other half is long.
        pytest.param(
            damage, f"{file}.parquet", sealed,
            id=f"{damage.__name__}-{file}-{'manifest' if sealed else 'none'}",
            marks=[pytest.mark.long] if (number + (file == "verdicts") + sealed) % 2 else [],
        )
        for number, damage in enumerate(DAMAGES) for file in ("verdicts", "checks") for sealed in (True, False)
    ],
)  # fmt: skip
def test_a_result_that_is_damaged_is_worked_out_again_or_named(
    whole: dict[bool, Path], tmp_path: Path, sealed: bool, file: str, damage: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(whole, tmp_path, sealed)
    damage(run / file)
    for command in READERS[1:]:
        code = main.run([word.format(run=run) for word in command])
        out, error = capsys.readouterr()
        assert code in (0, 2), error
        if code:
            assert (out, sealed) == ("", False)
            assert (str(run / file) in error, error.count("\n")) == (True, 1)
        elif sealed:
            assert f"{file} was changed after the run wrote it" in out + error or "causes" in out


@pytest.mark.parametrize(
    "content", [b"\xff\n", b"[1]\n", b'{"elapsed_ns": "1"}\n', b'{"elapsed_ns": 1.5}\n', b"[" * 100_000]
)
def test_a_planners_log_that_is_damaged(
    whole: dict[bool, Path], tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(whole, tmp_path, True)
    (run / "planner.jsonl").write_bytes(content)
    for command in READERS:
        code = main.run([word.format(run=run) for word in command])
        error = capsys.readouterr().err
        assert code == 0 or (code == 2 and str(run / "planner.jsonl") in error), error


@pytest.mark.parametrize("content", [b"", b"\xff", b"\x00", b"study: [", b'"\\ud800"', b"[" * 5000, b"a: &a [*a]"])
def test_a_study_that_is_damaged(
    whole: dict[bool, Path], tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(whole, tmp_path, False)
    (run / "study.yaml").write_bytes(content)
    for command in (READERS[0], READERS[2], ["resume", "{run}"]):
        assert str(run / "study.yaml") in one_line(command, run, capsys)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_study_that_is_a_folder(
    whole: dict[bool, Path], tmp_path: Path, sealed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(whole, tmp_path, sealed)
    (run / "study.yaml").unlink()
    (run / "study.yaml").mkdir()
    for command in READERS:
        code = main.run([word.format(run=run) for word in command])
        error = capsys.readouterr().err
        assert code == 0 or (code == 2 and str(run / "study.yaml") in error), error


@pytest.mark.parametrize("name", ["campaign.json", "reproduce.json"])
@pytest.mark.parametrize("content", [*TEXTS.values(), b'{"text": 1}', b'{"studies": ["x"], "text": "a"}'])
def test_what_was_asked_of_many_runs_is_damaged(
    tmp_path: Path, name: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    assert f"{tmp_path / name}: " in one_line(["resume", "{run}"], tmp_path, capsys)


@pytest.mark.parametrize("content", [*TEXTS.values(), b'{"claims": {}, "reproduction": {}}', b'{"claims": [1]}'])
def test_a_reproduction_that_is_damaged(tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "reproduction.json").write_bytes(content)
    for command in (["reconcile", "{run}"], ["reproduce", "--compare", "{run}", "{run}"]):
        assert f"{tmp_path / 'reproduction.json'}: " in one_line(command, tmp_path, capsys)


def mutated(run: Path, seed: int) -> None:
    """One to three files of a run are changed: octets, length, JSON values, columns, or they are gone."""
    choose = random.Random(seed)
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.name != ".lock")
    for path in choose.sample(files, choose.randint(1, 3)):
        content = bytearray(path.read_bytes())
        way = choose.choice(("gone", "cut", "octets", "empty", "folder", "swap", "column", "json"))
        if way == "gone":
            path.unlink()
        elif way == "folder":
            path.unlink()
            path.mkdir()
        elif way == "swap":
            shutil.copy(choose.choice([file for file in files if file.is_file() and file != path]), path)
        elif way == "column" and path.suffix == ".parquet":
            choose.choice((without, retyped))(path)
        elif way == "json" and path.suffix == ".json" and isinstance(document := json.loads(content), dict):
            values = (None, [], {}, "", 1, -1, True, 1e300, [None], {"a": [{}]}, "\ud800", 2**63)
            document[choose.choice(sorted(document))] = choose.choice(values)
            path.write_text(json.dumps(document))
        else:
            for _ in range(choose.randint(1, 8)):
                if content and way == "octets":
                    content[choose.randrange(len(content))] = choose.randrange(256)
            path.write_bytes(content[: choose.randrange(len(content) + 1)] if way == "cut" else
                             b"" if way == "empty" else content)  # fmt: skip


def holds(whole: dict[bool, Path], folder: Path, seed: int, sealed: bool) -> None:
    """A run that is mutated is read or refused, and no command ends with a fault of ours."""
    shutil.rmtree(folder / "copied", ignore_errors=True)
    run = run_of(whole, folder, sealed)
    mutated(run, seed)
    for command in READERS[1:]:
        assert main.run([word.format(run=run) for word in command]) in (0, 2), (seed, sealed, command)
    assert main.run(["compare", str(whole[sealed]), str(run)]) in (0, 1, 2), (seed, sealed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sealed", [True, False], ids=["manifest", "none"])
def test_a_few_mutated_runs(whole: dict[bool, Path], tmp_path: Path, seed: int, sealed: bool) -> None:
    holds(whole, tmp_path, seed, sealed)


@pytest.mark.long
@pytest.mark.timeout(3600)
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), sealed=st.booleans())
def test_many_mutated_runs(whole: dict[bool, Path], tmp_path: Path, seed: int, sealed: bool) -> None:
    holds(whole, tmp_path, seed, sealed)
