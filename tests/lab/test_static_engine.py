"""The static engine: told from a shared one, brought where it fits the one here, else refused; and its build."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trifecta.design.errors import CannotError
from trifecta.design.machine import Machine
from trifecta.lab import machines, static_engine
from trifecta.lab.engine import engine_versions, find_engine

ROOT = Path(__file__).resolve().parents[2]
LOAD, DYNAMIC, INTERPRETER = 1, 2, 3


def elf(file: Path, *kinds: int, word: int = 2, cut: int = 0) -> Path:
    """An ELF file with these program headers, and nothing that they speak of."""
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF" + bytes([word, 1, 1]), 3, 62, 1, 0, 64, 0, 0, 64, 56, len(kinds), 0, 0, 0
    )
    table = b"".join(struct.pack("<IIQQQQQQ", kind, 4, 0, 0, 0, 0, 0, 0) for kind in kinds)
    content = header + table
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content[: len(content) - cut])
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("kinds", "static"),
    [((LOAD,), True), ((LOAD, DYNAMIC), True), ((LOAD, INTERPRETER, DYNAMIC), False), ((INTERPRETER,), False)],
)
def test_a_program_without_an_interpreter_is_static(tmp_path: Path, kinds: tuple[int, ...], static: bool) -> None:
    assert static_engine.is_static(elf(tmp_path / "program", *kinds)) is static


def test_what_is_no_whole_program_is_not(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n" + "true\n" * 100)
    assert not static_engine.is_static(script)
    assert not static_engine.is_static(elf(tmp_path / "narrow", LOAD, word=1))
    assert not static_engine.is_static(elf(tmp_path / "cut", LOAD, LOAD, cut=20))
    assert not static_engine.is_static(elf(tmp_path / "short", cut=1))


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The engine of a checkout, as built; all programs say the same version unless their folder is another's."""
    monkeypatch.delenv(static_engine.STATIC_VARIABLE, raising=False)
    monkeypatch.setattr(static_engine, "engine_versions", lambda path: "other" if "other" in path.parts else "same")
    return elf(tmp_path / "target/release/trifecta-engine", LOAD, INTERPRETER)


def beside(engine: Path, *kinds: int) -> Path:
    made = elf(engine.parent.parent / "static/trifecta-engine", *kinds)
    os.utime(engine, ns=(1, 1))
    return made


def test_without_a_static_one_the_engine_itself_is_brought(engine: Path) -> None:
    assert static_engine.to_bring(engine) == engine
    installed = elf(engine.parents[2] / "bin/trifecta-engine", LOAD, INTERPRETER)
    elf(engine.parents[2] / "static/trifecta-engine", LOAD)
    assert static_engine.to_bring(installed) == installed, "nothing lies beside what a wheel installed"
    assert static_engine.facts(engine)["linkage"] == "shared"


def test_the_static_one_beside_it_is_brought(engine: Path) -> None:
    made = beside(engine, LOAD)
    assert static_engine.to_bring(engine) == made
    assert static_engine.facts(made)["linkage"] == "static"
    assert static_engine.facts(made)["sha256"] != static_engine.facts(engine)["sha256"]


def test_one_that_is_older_is_refused_with_the_command(engine: Path) -> None:
    os.utime(beside(engine, LOAD), ns=(0, 0))
    with pytest.raises(CannotError, match=r"is older than the engine; run `make static` again, or remove it$"):
        static_engine.to_bring(engine)


def test_one_that_is_not_static_is_refused(engine: Path) -> None:
    beside(engine, LOAD, INTERPRETER)
    with pytest.raises(CannotError, match="is no static program; run `make static`"):
        static_engine.to_bring(engine)


def test_one_that_is_named_counts(engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = elf(tmp_path / "named/trifecta-engine", LOAD)
    monkeypatch.setenv(static_engine.STATIC_VARIABLE, str(named))
    assert static_engine.to_bring(engine) == named
    other = elf(tmp_path / "other/trifecta-engine", LOAD)
    monkeypatch.setenv(static_engine.STATIC_VARIABLE, str(other))
    with pytest.raises(CannotError, match=r"is not of the versions of .*unset TRIFECTA_STATIC_ENGINE"):
        static_engine.to_bring(engine)
    monkeypatch.setenv(static_engine.STATIC_VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(CannotError, match="is not a program"):
        static_engine.to_bring(engine)


def test_a_host_by_ssh_gets_the_static_one(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, brought = beside(engine, LOAD), []

    class Host:
        def __init__(self, name: str, machine: Machine, program: Path) -> None:
            brought.append(program)

        def open(self) -> None:
            """Connects to nothing."""

    monkeypatch.setattr(machines, "SshHost", Host)
    monkeypatch.setattr(machines, "SshPlace", lambda host: None)
    machines.Machines(engine).connect("server", Machine("ssh://a"))
    assert brought == [made]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real one, with what cargo has already where the engine lies; put where nobody looks for it."""
    if shutil.which("cargo") is None and not (Path.home() / ".cargo/bin/cargo").exists():
        pytest.skip("needs cargo")
    made = tmp_path_factory.mktemp("static") / "trifecta-engine"
    target = {"CARGO_TARGET_DIR": str(find_engine().parents[1])}
    command = [str(ROOT / "scripts/static.sh"), str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | target)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_real_one_needs_no_library_and_starts(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert static_engine.is_static(built)
    headers = subprocess.run(["readelf", "-lW", built], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in headers and "LOAD" in headers
    dynamic = subprocess.run(["readelf", "-dW", built], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" not in dynamic
    assert engine_versions(built) == engine_versions(find_engine())
    monkeypatch.setenv(static_engine.STATIC_VARIABLE, str(built))
    assert static_engine.to_bring(find_engine()) == built


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_real_one_answers_and_takes_addresses_but_no_names(built: Path) -> None:
    reflect = subprocess.Popen([built, "probe", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert reflect.stdin is not None and reflect.stdout is not None
    try:
        reflect.stdin.write('{"role": "reflect", "address": "127.0.0.1", "port": 0}\n')
        reflect.stdin.flush()
        assert json.loads(reflect.stdout.readline())["ready"]["role"] == "reflect"
    finally:
        reflect.kill()
        reflect.wait()
    refused = "localhost cannot be resolved: the static engine resolves no names"
    for name, said in (("localhost", refused), ("127.0.0.1", "/nowhere/ca.pem")):  # past its address it wants that
        config: dict[str, Any] = {
            "trial": "t00001", "protocol": "h2", "address": None, "port": 1, "server_name": name, "method": "GET",
            "path": "/", "connection_mode": "new", "loop": {"kind": "closed"}, "requests": 1,
            "ca_file": "/nowhere/ca.pem",
        }  # fmt: skip
        done = subprocess.run(
            [built, "load", "-"], input=json.dumps(config) + "\n", capture_output=True, text=True, check=False
        )
        assert done.returncode in (2, 3), done.stderr
        assert said in done.stderr
