"""Stored results are not trusted: what was edited, deleted or added to a run is named, with what to do."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.store.sealed import seal, small
from trifecta.cli import main
from trifecta.conclude.packets.dissected import dissect_run
from trifecta.design import extras
from trifecta.design.errors import UserError
from trifecta.store import digest_cache, files, manifest, schema
from trifecta.store import trace_schema as trace
from trifecta.store.run import RunDirectory, TrialFiles
from trifecta.trace import overview

READERS = (["report"], ["report", "--json"], ["explain"], ["sql"], ["resume"], ["trace"])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = small(tmp_path_factory.mktemp("runs") / "made-up", sealed=False)
    for name in ("qlog/t00001/load/a.sqlog", "har/t00001/0.har", "frames/t00001/0/17.jpg", "captures/t00001.keys"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text("as it was\n")
    return seal(run)


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copied"))


def change(path: Path, column: str, value: Any) -> None:
    """The first row of a file says something else."""
    rows = pq.ParquetFile(path).read().to_pylist()
    rows[0][column] = value
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)


def refused(run: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which a command refuses a run."""
    assert main.run([command[0], str(run), *command[1:]]) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    return error


@pytest.mark.parametrize("command", READERS, ids=" ".join)
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda run: change(run / "samples/t00001.parquet", "done_ns", 1),
            "samples/t00001.parquet: was changed after the run wrote it; copy it again, or remove ",
        ),
        (
            lambda run: change(run / "trials/t00001.parquet", "latency_p50_ns", 1),
            "trials/t00001.parquet: was changed after the run wrote it; copy it again, or remove ",
        ),
        (
            lambda run: (run / "samples/t00002.parquet").unlink(),
            "samples/t00002.parquet: is missing, and manifest.sha256 lists it; copy it again, or remove ",
        ),
        (
            lambda run: shutil.copy(run / "trials/t00002.parquet", run / "trials/t00077.parquet"),
            "trials/t00077.parquet: is not in manifest.sha256: this run did not write it; remove it",
        ),
        (
            lambda run: (run / "manifest.sha256").unlink(),
            "manifest.sha256: is missing; copy the run's folder again",
        ),
        (
            lambda run: (run / "manifest.sha256").write_text("00  x\n"),
            "manifest.sha256: line 1 is not a SHA-256 and a name; copy the run's folder again",
        ),
        (
            lambda run: (run / "run.json").write_text((run / "run.json").read_text().replace('"seed": 7', '"seed": 8')),
            "run.json: was changed after the run wrote it; copy the run's folder again",
        ),
        (
            lambda run: [(run / f"link/t0000{n}.json").write_text("{}") for n in range(5)],
            "link/t00000.json, link/t00001.json, link/t00002.json, and 2 more that are not what the run wrote: "
            "were changed after the run wrote them; copy them again, or remove their rows in ",
        ),
        (
            lambda run: [shutil.copy(run / "trials/t00002.parquet", run / f"trials/t0007{n}.parquet") for n in (7, 8)],
            "trials/t00077.parquet, trials/t00078.parquet: are not in manifest.sha256: this run did not write them; "
            "remove them",
        ),
        (
            lambda run: (run / "planner.jsonl").write_text('{"elapsed_ns": 1}\n'),
            "planner.jsonl: was changed after the run wrote it; copy the run's folder again",
        ),
        (
            lambda run: (run / "planner.jsonl").unlink(),
            "planner.jsonl: is missing, and manifest.sha256 lists it; copy the run's folder again",
        ),
        (
            lambda run: (run / "qlog/t00001/load/a.sqlog").write_text(""),
            "qlog/t00001/load/a.sqlog: was changed after the run wrote it; copy it again, or remove ",
        ),
        (
            lambda run: shutil.rmtree(run / "qlog"),
            "qlog/t00001/load/a.sqlog: is missing, and manifest.sha256 lists it; copy it again, or remove ",
        ),
        (
            lambda run: (run / "captures/t00001.keys").write_text("CLIENT_RANDOM 00 00\n"),
            "captures/t00001.keys: was changed after the run wrote it; copy it again, or remove ",
        ),
        *(
            (
                lambda run, name=name: (run / name).write_text("x"),
                f"{name}: is not in manifest.sha256: this run did not write it; remove it",
            )
            for name in (
                "qlog/t00001/load/b.sqlog", "har/t00001/1.har", "frames/t00001/0/1.jpg", "captures/t00002.keys",
                "captures/better.pcapng",
            )
        ),
    ],
)  # fmt: skip
def test_what_is_not_as_the_run_wrote_it_is_named(
    run: Path, command: list[str], damage: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(run)
    assert f"{run}/{said}" in refused(run, command, capsys)


@pytest.mark.parametrize("command", [["report"], ["report", "--json"], ["explain"], ["sql"]], ids=" ".join)
def test_a_trial_that_was_deleted_is_named(run: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    (run / "trials/t00003.parquet").unlink()
    assert refused(run, command, capsys) == (
        f"trifecta: {run}/trials/t00003.parquet: is missing, and manifest.sha256 lists it; copy it again, or measure "
        f"that trial again with `trifecta resume {run}`\n"
    )


def test_a_run_of_schema_2_had_no_lines_for_qlog_and_decisions(whole: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(whole, tmp_path / "earlier"))
    about = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(about | {"schema": 2}))
    lines = (run / "manifest.sha256").read_text().splitlines(keepends=True)
    kept = [line for line in lines if line[66:].rstrip() not in ("run.json", "planner.jsonl") and "qlog/" not in line]
    (run / "manifest.sha256").write_text("".join([*kept, f"{digest_cache.digest(run / 'run.json')}  run.json\n"]))
    manifest.check(run)
    (run / "run.json").write_text(json.dumps(about | {"schema": 3}))
    (run / "manifest.sha256").write_text("".join([*kept, f"{digest_cache.digest(run / 'run.json')}  run.json\n"]))
    with pytest.raises(UserError, match=r"(planner.jsonl|a.sqlog).*, and 1 more|are not in manifest.sha256"):
        manifest.check(run)


@pytest.mark.parametrize("command", [["report"], ["explain"], ["sql"]], ids=" ".join)
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda table: change(table, "protocol", "h1"), "is not what results.sha256 says that was written there"),
        (lambda table: table.write_bytes(table.read_bytes()[:-9]), "is not what results.sha256 says that was written"),
        (lambda table: table.unlink(), "is missing, and results.sha256 lists it"),
        (lambda table: [table.unlink(), table.mkdir()], "is not what results.sha256 says that was written there"),
        (
            lambda table: (table.parent.parent / "results.sha256").write_text(""),
            "is not what results.sha256 says that was written there",
        ),
        (
            lambda table: shutil.copy(table, table.with_name("frames.parquet")),
            "is not what results.sha256 says that was written there",
        ),
    ],
)
def test_what_was_dissected_is_not_taken_as_anybody_left_it(
    run: Path, command: list[str], damage: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "trace").mkdir()
    row = dict.fromkeys(trace.CONNECTIONS.names) | {"capture": "t00000", "connection": 3, "protocol": "h3"}
    table = run / "trace/connections.parquet"
    pq.write_table(pa.Table.from_pylist([row], schema=trace.CONNECTIONS.arrow()), table)
    overview.note_tables(run)
    assert main.run(["sql", str(run), "SELECT protocol FROM connections", "--csv"]) == 0
    assert capsys.readouterr().out.split() == ["protocol", "h3"]
    damage(table)
    error = refused(run, command, capsys)
    assert error.startswith(f"trifecta: {run}/trace/")
    assert said in error
    assert error.endswith(f"; `trifecta trace {run}` writes it again\n")


def test_tables_that_nobody_knows_are_dissected_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = small(tmp_path / "run", sealed=False)
    (run / "captures").mkdir()
    (run / "captures/t00000.pcapng").write_bytes(b"")
    (run / "trace").mkdir()
    dissected: list[Path] = []

    def dissect(files: Any, keys: Any, out: Path, **options: Any) -> None:
        dissected.append(out)
        for name in trace.TABLES:
            (out / f"{name}.parquet").write_bytes(b"whole")

    monkeypatch.setattr(extras, "missing", lambda name: None)
    monkeypatch.setattr("trifecta.trace.dissect.dissect", dissect)
    dissect([], None, run / "trace")
    for calls in (2, 2):  # once of what lies there without a line, and not again
        dissect_run(run)
        assert len(dissected) == calls


def test_a_study_that_was_changed_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "study.yaml").write_text((run / "study.yaml").read_text().replace("margin: 5 %", "margin: 50 %"))
    assert f"{run}/study.yaml: is not the study of this run (run.json, study.sha256); " in refused(
        run, ["report"], capsys
    )


def flatter(run: Path) -> None:
    """The verdicts say that HTTP/3 is ten times as fast."""
    path = run / "verdicts.parquet"
    rows = pq.ParquetFile(path).read().to_pylist()
    for row in rows:
        if row["arm"] == "h3":
            row |= {"verdict": "faster", "ratio": 0.1, "low": 0.09, "high": 0.11, "blocks": 60}
    pq.write_table(pa.Table.from_pylist(rows, schema=schema.VERDICTS.arrow()), path)


def verdicts(run: Path, capsys: pytest.CaptureFixture[str]) -> tuple[list[Any], dict[str, Any]]:
    assert main.run(["report", str(run), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    return [row for cell in told["cells"] for row in cell["verdicts"]], told


def test_verdicts_that_were_edited_are_worked_out_again_and_named(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, told = verdicts(run, capsys)
    assert not any("not taken" in said for said in told["warnings"])
    flatter(run)
    after, told = verdicts(run, capsys)
    assert after == before
    said = "verdicts.parquet was changed after the run wrote it: what follows was worked out from the trials again"
    assert told["warnings"][0] == f"Stored results are not used unchanged: {said}."
    assert said in (run / "report.html").read_text()
    for command in (["sql", str(run), "FROM verdicts"], ["explain", str(run)]):
        assert main.run(command) == 0
        out, error = capsys.readouterr()
        assert error == f"trifecta: {run}: {said}\n"
        assert "faster" not in out.replace("HTTP/1.1 is", "")


@pytest.mark.parametrize("sealed", [True, False])
def test_verdicts_of_an_earlier_version_are_worked_out_again(
    tmp_path: Path, sealed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    run = small(tmp_path / "run", sealed=sealed)
    whole, _ = verdicts(run, capsys)
    younger = ["family_low", "family_high", "likely", "blocks_needed_low", "blocks_needed_high", "mean_ratio",
               "mean_low", "mean_high", "modes", "weather_floor"]  # fmt: skip
    path = run / "verdicts.parquet"
    pq.write_table(pq.ParquetFile(path).read().drop_columns(younger), path)
    again, told = verdicts(run, capsys)
    assert again == whole
    assert told["warnings"][0].startswith("Stored results are not used unchanged: verdicts.parquet ")
    assert main.run(["sql", str(run), "SELECT count(family_low), count(*) FROM verdicts", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(",3")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (flatter, "does not say what the trials give (first of HTTP/3 against HTTP/"),
        (lambda run: change(run / "verdicts.parquet", "cell", "path=far"), "the comparison "),
    ],
)
def test_without_a_manifest_verdicts_are_compared_with_the_trials(
    tmp_path: Path, damage: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = small(tmp_path / "run", sealed=False)
    before, _ = verdicts(run, capsys)
    damage(run)
    after, told = verdicts(run, capsys)
    assert after == before
    assert said in told["warnings"][0]


def test_without_a_manifest_reasons_of_an_earlier_version_are_worded_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = small(tmp_path / "run", sealed=False)
    before, told = verdicts(run, capsys)
    change(run / "verdicts.parquet", "reason", "the interval holds 1 and reaches beyond the margin of 5.0%")
    assert main.run(["sql", str(run), "SELECT DISTINCT reason FROM verdicts", "--csv"]) == 0
    assert "5.0%" not in capsys.readouterr().out
    after, again = verdicts(run, capsys)
    assert (after, again["warnings"]) == (before, told["warnings"])


def test_checks_that_were_edited_are_made_again(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / "checks.parquet"
    table = pq.ParquetFile(path).read()
    pq.write_table(table.set_column(2, "status", pc.replace_substring(table["status"], "fail", "pass")), path)
    change(path, "evidence", "all is well")
    assert main.run(["sql", str(run), "SELECT DISTINCT evidence FROM checks WHERE \"check\" = 'blocks'"]) == 0
    out, error = capsys.readouterr()
    assert "checks.parquet was changed after the run wrote it" in error
    assert "all is well" not in out


def test_a_table_of_a_report_that_was_edited_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["report", str(run), "--json"]) == 0
    capsys.readouterr()
    name = next(path for path in sorted(run.glob("*.parquet")) if path.name == "causes.parquet")
    pq.write_table(pq.ParquetFile(name).read().slice(0, 0), name)
    assert refused(run, ["sql"], capsys) == (
        f"trifecta: {name}: is not what results.sha256 says that was written there; `trifecta report {run}` writes it "
        "again\n"
    )
    assert main.run(["report", str(run), "--json"]) == 0
    assert main.run(["sql", str(run)]) == 0
    capsys.readouterr()
    name.unlink()
    assert f"{name}: is missing, and results.sha256 lists it; `trifecta report" in refused(run, ["sql"], capsys)


def test_sha256sum_says_the_same(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", {}, "study: s\n")
    commit(run, 0)
    run.write_facts({"schema": 2, "state": "over"})
    run.close()
    command = ["sha256sum", "--check", "--strict", "--quiet", "manifest.sha256"]
    assert subprocess.run(command, cwd=run.path, check=False).returncode == 0
    lines = (run.path / "manifest.sha256").read_text().splitlines()
    assert [line[66:] for line in lines] == ["link/t00000.json", "qlog/t00000/load/a.sqlog", "run.json",
                                             "samples/t00000.parquet", "trials/t00000.parquet"]  # fmt: skip


def row(number: int, **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(schema.TRIALS.names)
    return values | {"trial": f"t{number:05d}", "arm": "h2", "block": number, "valid": True, **changes}


def commit(run: RunDirectory, number: int) -> None:
    draft = run.draft("samples", f"t{number:05d}", ".parquet")
    values = dict.fromkeys(schema.SAMPLES.names) | {"trial": f"t{number:05d}", "done_ns": number}
    pq.write_table(pa.Table.from_pylist([values], schema=schema.SAMPLES.arrow()), draft)
    log(run.path, number, "load/a.sqlog")
    run.commit_trial(row(number), TrialFiles(samples=draft, link_summary={"realtime": True}))


def log(run: Path, number: int, name: str) -> Path:
    """What a program logs of a trial's connection."""
    path = run / "qlog" / f"t{number:05d}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{name} of trial {number}\n")
    return path


def work(path: Path, die_at: int) -> None:
    """Writes a run as a run is written, and is killed before its n-th step that the disk sees."""
    steps = 0

    def counting(real: Any) -> Any:
        def step(*given: Any, **named: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given, **named)

        return step

    run = RunDirectory.open(path, write=True)
    servers = [log(path, 0, f"origin/.tmp-{letter}.sqlog") for letter in "bc"]
    files.sync, files.sync_all = counting(files.sync), counting(files.sync_all)
    Path.replace = counting(Path.replace)  # type: ignore[method-assign]
    manifest.Manifest.add = counting(manifest.Manifest.add)  # type: ignore[method-assign]
    commit(run, 1)
    run.write_facts(run.facts | {"state": "running"})
    run.rewrite_row(row(0, valid=False))
    run.end_block([], {"block": 1, "elapsed_ns": 1})
    run.add_files([(draft, draft.with_name(draft.name[5:])) for draft in servers])
    run.close()
    os._exit(0)


def test_whenever_it_is_killed_the_manifest_holds(tmp_path: Path) -> None:
    begun = RunDirectory.create(tmp_path / "begun", {}, "study: s\n")
    commit(begun, 0)
    begun.end_block([], {"block": 0, "elapsed_ns": 0})
    begun.close()
    context = multiprocessing.get_context("forkserver")  # which imports once what each of some thirty would
    context.set_forkserver_preload([__name__])
    die_at, ended = 0, False
    while not ended:
        die_at += 1
        path = Path(shutil.copytree(begun.path, tmp_path / f"killed-{die_at}"))
        child = context.Process(target=work, args=(path, die_at))
        child.start()
        child.join()
        ended = child.exitcode == 0
        assert ended or child.exitcode == -signal.SIGKILL
        manifest.check(path)
        assert manifest.results_changed(path) == {}
        again = RunDirectory.open(path, write=True)
        assert "removed" not in again.facts
        if "t00001" not in again.trial_names():
            commit(again, 1)
        again.close()
        manifest.check(path)
        assert [found["trial"] for found in again.rows()] == ["t00000", "t00001"]
        assert {made["block"] for made in again.decisions()} in ({0}, {0, 1})
        logs = sorted(file.relative_to(path / "qlog").as_posix() for file in (path / "qlog").rglob("*.sqlog"))
        assert logs == ["t00000/load/a.sqlog", "t00000/origin/b.sqlog", "t00000/origin/c.sqlog", "t00001/load/a.sqlog"]
        assert {f"qlog/{name}" for name in logs} <= set(again.manifest.entries())
    assert die_at > 20


def test_a_trial_that_was_removed_is_kept_in_mind(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", {}, "study: s\n")
    commit(run, 0)
    commit(run, 1)
    run.close()
    (run.path / "trials/t00001.parquet").unlink()
    with pytest.raises(UserError, match=r"t00001.parquet: is missing"):
        run.rows()
    again = RunDirectory.open(run.path, write=True)
    assert again.facts["removed"] == ["t00001"]
    assert not [name for name in again.manifest.entries() if "t00001" in name]
    assert not (run.path / "samples/t00001.parquet").exists()
    commit(again, 1)
    again.close()
    assert [found["trial"] for found in again.rows()] == ["t00000", "t00001"]


def test_evidence_of_conformance_is_kept_as_it_was(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", {}, "study: s\n")
    evidence = run.path / "conformance/server-caddy-h3/result.json"
    evidence.parent.mkdir(parents=True)
    evidence.write_text("{}\n")
    run.write_conformance([])
    run.close()
    manifest.check(run.path)
    evidence.write_text('{"result": "pass"}\n')
    with pytest.raises(UserError, match=r"conformance/server-caddy-h3/result.json: was changed after the run wrote it"):
        manifest.check(run.path)


def test_a_run_without_a_manifest_gets_none_when_it_goes_on(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path / "run", {}, "study: s\n").close()
    (tmp_path / "run/manifest.sha256").unlink()
    (tmp_path / "run/run.json").write_text('{"schema": 1}')
    run = RunDirectory.open(tmp_path / "run", write=True)
    commit(run, 0)
    run.close()
    assert not (tmp_path / "run/manifest.sha256").exists()
    assert len(run.rows()) == 1


def test_reading_a_run_imports_nothing_heavy() -> None:
    code = (
        "import sys; from trifecta.store import run, manifest, facts; assert not {'pyarrow', 'duckdb'} & {*sys.modules}"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
