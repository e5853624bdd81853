"""The services on Go: the recipes of both programs, and what they leave as the files of a trial."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trifecta.contract.services import ProgramConfig
from trifecta.design.errors import CannotError
from trifecta.design.workloads.services import ChainWorkload
from trifecta.implementations.recipes.patched_go import Change, PatchedGoProgram
from trifecta.implementations.registry import RECIPES, SERVICES
from trifecta.implementations.server import Unsupported
from trifecta.implementations.services import go_services, rows
from trifecta.store import parquet
from trifecta.workloads.services.configs import program_config

PROGRAMS = [go_services.GoServices(), go_services.GoServices2019()]
SAMPLE = {"request": 0, "connection": 1, "client": 0, "warmup": False, "started_ns": 5, "done_ns": 9, "error": None}
SPAN = {
    "request": 0, "connection": 1, "client": 0, "warmup": False, "ordinal": 0, "depth": 0, "caller": "A", "callee": "B",
    "method": "GET", "path": "/chain", "started_ns": 5, "error": None,
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.name)
def test_it_is_in_the_tables(program: go_services.GoServices) -> None:
    assert type(SERVICES[program.name]) is type(program)
    assert RECIPES[program.name] is program.recipe


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.name)
def test_one_that_is_not_in_the_cache_says_how_to_get_it(
    program: go_services.GoServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TRIFECTA_CACHE", raising=False)
    with pytest.raises(Unsupported, match=f"run: trifecta get {program.name}$"):
        program.find()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("arguments", "line", "said"),
    [
        (["load"], "", "needs two arguments"),
        (["serve", "-"], "{}\n", '"serve" is neither load nor origin'),
        (["load", "-"], "{]\n", "invalid character"),
        (["load", "-"], '{"connections": 1, "streams": 1, "requests": 1}\n', "to: is missing"),
        (
            ["load", "-"],
            '{"connections": 2, "streams": 1, "requests": 1, "to": "B", "samples_file": "s", "spans_file": "p", '
            '"among": {"number": 0, "of": 2}}\n',
            "among: number must be 0 or more and below of, and connections and streams 1",
        ),
        (["origin", "-"], "{}\n", "relay: is missing"),
        (
            ["origin", "-"],
            '{"tls_versions": ["1.3"], "faults": {"stall": true}, "relay": {"routes": {"/": {}}}}\n',
            "faults: this program has none",
        ),
    ],
)
def test_bad_input_is_one_line(program: go_services.GoServices, arguments: list[str], line: str, said: str) -> None:
    if not program.recipe.installed():
        pytest.skip(program.recipe.missing())
    done = subprocess.run([program.program(), *arguments], input=line, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_switches_of_a_study_are_those_of_the_program() -> None:
    assert program_config(ChainWorkload(requests=1), "h2") == ProgramConfig()
    everything = ChainWorkload(
        requests=1,
        alpn_mismatch=True,
        connection_leak=True,
        unverified=True,
        retries=True,
        think_time_ns=(10_000_000, 10_000_000, 20_000_000),
        read_timeout_ns=5_000_000_000,
        write_timeout_ns=1_000_000_000,
    )
    assert program_config(everything, "h3") == ProgramConfig(
        own_tls=True,
        leak_ns=30_000_000_000,
        verify=False,
        attempts=10,
        retry_delay_ns=100_000_000,
        think_ns=20_000_000,
        read_timeout_ns=5_000_000_000,
        write_timeout_ns=1_000_000_000,
    )
    assert program_config(everything, "h1").think_ns == 10_000_000
    assert program_config(everything, "h1", "10.78.0.1:53").name_server == "10.78.0.1:53"
    assert program_config(ChainWorkload(requests=1, think_time_ns=(5,)), "h3").think_ns == 5


def write(path: Path, made: list[dict[str, Any]], end: int | None = None) -> None:
    columns = list(made[0])
    lines = [{"columns": columns}, *([one[name] for name in columns] for one in made)]
    lines += [] if end is None else [{"rows": end}]
    rows.lines_of(path).write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_lines_become_the_files_of_a_trial(tmp_path: Path) -> None:
    samples, spans = tmp_path / "s.parquet", tmp_path / "p.parquet"
    write(samples, [SAMPLE, SAMPLE | {"request": 1, "error": "timeout", "done_ns": None}], 2)
    write(spans, [SPAN], 1)
    rows.gather("t00007", samples, spans)
    found = parquet.read(samples, ["trial", "worker", "request", "done_ns", "status", "error"])
    assert found == [
        {"trial": "t00007", "worker": 0, "request": 0, "done_ns": 9, "status": None, "error": None},
        {"trial": "t00007", "worker": 0, "request": 1, "done_ns": None, "status": None, "error": "timeout"},
    ]
    assert [(one["caller"], one["callee"], one["returned_ns"]) for one in parquet.read(spans)] == [("A", "B", None)]
    assert not list(tmp_path.glob(f"*{rows.ENDING}"))


@pytest.mark.parametrize(
    ("made", "end", "said"),
    [
        ([SAMPLE], None, "has no end after 1 rows"),
        ([SAMPLE], 2, "tells of 2 rows, there are 1"),
        ([SAMPLE | {"error": "bad luck"}], 1, "is no error class"),
        ([SAMPLE | {"mood": "good"}], 1, "columns that are not known: mood"),
        ([SAMPLE | {"started_ns": "now"}], 1, "started_ns"),
    ],
)
def test_lines_that_are_not_whole_or_not_understood_are_refused(
    tmp_path: Path, made: list[dict[str, Any]], end: int | None, said: str
) -> None:
    samples, spans = tmp_path / "s.parquet", tmp_path / "p.parquet"
    write(samples, made, end)
    write(spans, [SPAN], 1)
    with pytest.raises(ValueError, match=said):
        rows.gather("t00007", samples, spans)


# --- patched_go.py


@pytest.fixture
def patched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PatchedGoProgram:
    """A program on a module whose folder holds one file; the ``go`` is a script that keeps what it would build."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRIFECTA_CACHE", raising=False)
    module, source, tools = tmp_path / "module", tmp_path / "source", tmp_path / "bin"
    for folder in (module / "deep", source, tools):
        folder.mkdir(parents=True)
    (module / "deep" / "old.go").write_text("package deep // cast\n")
    (module / "deep" / "old_test.go").write_text("package deep\n")
    (source / "go.mod").write_text("module hello\n\ngo 1.21\n")
    (tools / "go").write_text(
        f'#!/bin/sh\ncase "$1 $2" in\n\'mod download\') echo \'{{"Dir": "{module}"}}\';;\n'
        f"'mod edit') echo \"$@\" > {tmp_path}/edit;;\n"
        f'build*) cp -r patched {tmp_path}/built; while [ "$1" != -o ]; do shift; done; echo > "$2"; '
        'chmod +x "$2";;\nesac\n'
    )
    (tools / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return PatchedGoProgram("hello", source, [], "example.org/old", [Change("deep/old.go", "cast", "copied")])


def test_a_copy_of_the_module_is_changed_and_built(patched: PatchedGoProgram, tmp_path: Path) -> None:
    patched.install(lambda _: None)
    assert patched.installed()
    assert (tmp_path / "built/deep/old.go").read_text() == "package deep // copied\n"
    assert (tmp_path / "module/deep/old.go").read_text() == "package deep // cast\n"
    assert not (tmp_path / "built/deep/old_test.go").exists()
    assert "-replace=example.org/old=./patched" in (tmp_path / "edit").read_text()
    other = PatchedGoProgram("hello", tmp_path / "source", [], "example.org/old", [])
    assert not other.installed()  # made with other changes


def test_a_module_that_is_not_as_expected_is_not_built(patched: PatchedGoProgram, tmp_path: Path) -> None:
    (tmp_path / "module/deep/old.go").write_text("package deep // cast, cast\n")
    with pytest.raises(CannotError, match=r"deep/old.go does not have 'cast' once; report it"):
        patched.install(lambda _: None)
    assert not (tmp_path / "built").exists()
