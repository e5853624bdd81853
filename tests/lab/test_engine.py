"""Speaking the engine's protocol with programs that keep it and programs that do not."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from trifecta import __version__
from trifecta.contract.impairments import Delay, Loss, Rate
from trifecta.design.errors import CannotError
from trifecta.lab import engine
from trifecta.lab.engine import EngineError, EngineProcess, Stopped, as_user_error, engine_versions, find_engine
from trifecta.lab.host import LocalHost, browser_pin_table, describe_pins, keeping_off, pin_table
from trifecta.lab.paths import link_config
from trifecta.studies import known_servers, load


class Question(msgspec.Struct):
    """A configuration of no part of the engine."""

    answer: int
    more: str = ""


@pytest.fixture
def program(tmp_path: Path):
    """Starts a program that reads its configuration from a line and then runs the code given."""
    started: list[EngineProcess] = []

    def start(code: str) -> EngineProcess:
        path = tmp_path / f"engine-{len(started)}"
        path.write_text(
            f"#!{sys.executable}\nimport json, os, sys, time\nconfig = json.loads(sys.stdin.readline())\n{code}"
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        process = EngineProcess(path, "load", LocalHost(), tmp_path / "log")
        started.append(process)
        process.configure(Question(answer=42))
        return process

    yield start
    for process in started:
        process.close()


def say(key: str, value: str) -> str:
    return f"print(json.dumps({{{key!r}: {value}}}), flush=True)\n"


def test_ready_then_summary(program) -> None:
    process = program(say("ready", "config") + say("summary", '{"done": 1}'))
    assert process.wait_ready(Question, 20) == Question(answer=42)
    assert process.wait_summary(dict[str, int], 20) == {"done": 1}


def test_a_summary_may_come_without_waiting_for_ready(program) -> None:
    process = program(say("ready", "{}") + say("summary", "7"))
    assert process.wait_summary(int, 20) == 7


def test_lines_that_arrive_in_pieces(program) -> None:
    process = program(
        """
for piece in ('{"sum', 'mary": ', '{"n": 1}', '}\\n'):
    sys.stdout.write(piece); sys.stdout.flush(); time.sleep(0.05)
"""
    )
    assert process.wait_summary(dict[str, int], 20) == {"n": 1}


def test_its_own_words_say_why_it_ended(program) -> None:
    process = program('sys.exit(print("error: port: 8443 is taken; choose another", file=sys.stderr) or 3)')
    with pytest.raises(EngineError) as caught:
        process.wait_ready(dict, 20)
    assert caught.value.code == 3
    assert caught.value.message == "error: port: 8443 is taken; choose another"
    assert "\n" not in str(as_user_error(caught.value))


def test_words_of_an_earlier_program_are_not_taken_for_its_own(program) -> None:
    first = program('sys.exit(print("error: first", file=sys.stderr) or 3)')
    with pytest.raises(EngineError, match="first"):
        first.wait_ready(dict, 20)
    with pytest.raises(EngineError, match="ended with exit code 5 and no message"):
        program("sys.exit(5)").wait_ready(dict, 20)


def test_a_killed_program(program) -> None:
    with pytest.raises(EngineError, match="was killed by signal 9") as caught:
        program("os.kill(os.getpid(), 9)").wait_summary(dict, 20)
    assert caught.value.code == -9


def test_a_silent_program_is_not_waited_for_longer_than_asked(program) -> None:
    process = program("time.sleep(60)")
    began = time.monotonic()
    with pytest.raises(EngineError, match=r"did not end within 0.3 s"):
        process.wait_summary(dict, 0.3)
    assert time.monotonic() - began < 5
    assert process.running()
    process.close()
    assert not process.running()


@pytest.mark.parametrize("line", ["nonsense", "{", "\\xff\\xfe", '{"ready": '])
def test_what_is_no_json_is_an_error(program, line: str) -> None:
    with pytest.raises(EngineError, match="not JSON"):
        program(f"sys.stdout.buffer.write(b'{line}\\n'); sys.stdout.flush(); time.sleep(60)").wait_ready(dict, 20)


def test_what_does_not_fit_is_named_by_its_field(program) -> None:
    process = program(say("ready", '{"answer": "many"}') + "time.sleep(60)")
    with pytest.raises(EngineError, match="sent a ready that cannot be read: answer: expected `int`, got `str`"):
        process.wait_ready(Question, 20)


def test_waiting_can_be_stopped(program) -> None:
    with pytest.raises(Stopped):
        program("time.sleep(60)").wait_ready(dict, 20, lambda: True)


def test_ticks_come_while_waiting(program) -> None:
    ticks: list[float] = []
    began = time.monotonic()
    program("time.sleep(1)\n" + say("summary", "1")).wait_summary(int, 20, tick=lambda: ticks.append(time.monotonic()))
    assert 1 <= len(ticks) <= 10 * (time.monotonic() - began) + 2


def test_ticks_keep_their_schedule_however_long_each_takes(program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten readings a second are ten, with a poll that wakes late and a tick that takes its time: by a clock of ours."""
    waiting = program("time.sleep(60)")
    now = 0.0
    ticks: list[float] = []

    class Late:
        def poll(self, wait_ms: float) -> list[object]:
            nonlocal now
            now += wait_ms / 1000 + 0.002
            return []

    def tick() -> None:
        nonlocal now
        ticks.append(now)
        now += 0.3 if len(ticks) == 50 else 0.03

    monkeypatch.setattr(waiting, "_poll", Late())
    monkeypatch.setattr(engine.time, "monotonic", lambda: now)
    with pytest.raises(EngineError, match="did not end within 10 s"):
        waiting.wait_summary(int, 10, tick=tick)
    assert 95 <= len(ticks) <= 100


def test_finish_asks_politely(program) -> None:
    process = program(
        "import signal\n"
        "def end(*_):\n    print(json.dumps({'summary': 'ended'}), flush=True)\n    os._exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n" + say("ready", "{}") + "time.sleep(60)"
    )
    process.wait_ready(dict, 20)
    assert process.finish(str) == "ended"


def test_a_program_that_died_before_its_configuration(program) -> None:
    process = program("")
    process.process.wait()
    process.configure(Question(answer=42, more="x" * 100_000))  # nobody reads it
    with pytest.raises(EngineError, match="exit code 0 and no message"):
        process.wait_ready(dict, 20)


def test_the_engine_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tmp_path / "trifecta-engine"
    monkeypatch.setenv("TRIFECTA_ENGINE", str(engine))
    with pytest.raises(CannotError, match="is not a program"):
        find_engine()
    engine.write_text("#!/bin/sh\necho nonsense\n")
    engine.chmod(0o755)
    assert find_engine() == engine
    with pytest.raises(CannotError, match=r"does not report its version .*; run `make setup`"):
        engine_versions(engine)


def test_an_engine_of_another_version_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "trifecta-engine"
    program.write_text("""#!/bin/sh\necho '{"engine": "0.0.9"}'\n""")
    program.chmod(0o755)
    with pytest.raises(CannotError, match=rf"of version 0\.0\.9, and this is {re.escape(__version__)}"):
        engine_versions(program)


def test_a_checkout_uses_its_own_build_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRIFECTA_ENGINE", raising=False)
    monkeypatch.setattr(engine, "_CHECKOUT", tmp_path)
    monkeypatch.setattr(engine, "_scripts", lambda: iter([str(tmp_path / "bin")]))
    installed, built = tmp_path / "bin/trifecta-engine", tmp_path / "engine/target/release/trifecta-engine"
    for program in (installed, built):
        program.parent.mkdir(parents=True)
    with pytest.raises(CannotError, match=r"not among the scripts .*; run `pip install --force-reinstall trifecta`"):
        find_engine()
    installed.write_text("#!/bin/sh\n")
    installed.chmod(0o755)
    assert find_engine() == installed
    (tmp_path / "engine/Cargo.toml").touch()
    with pytest.raises(CannotError, match=r"is not built .*; run `make setup`"):
        find_engine()
    built.write_text("#!/bin/sh\n")
    built.chmod(0o755)
    assert find_engine() == built


def test_the_wheel_that_only_reads_says_how_to_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRIFECTA_ENGINE", raising=False)
    monkeypatch.setattr(engine, "_CHECKOUT", tmp_path)
    monkeypatch.setattr(engine, "_scripts", lambda: iter([str(tmp_path)]))
    monkeypatch.setattr(engine, "_reads_only", lambda: True)
    # On an old Linux pip chose it for its C library; to install the same wheel again would change nothing.
    remedy = "pip install --force-reinstall --no-deps --no-binary trifecta trifecta"
    with pytest.raises(CannotError, match=rf"only reads runs: .*glibc 2\.34 or newer.*`{remedy}`"):
        find_engine()
    assert engine.rebuild() == remedy


def test_measured_programs_have_cpus_of_their_own() -> None:
    assert pin_table(frozenset({0})) == {"server": None, "client": None, "link": None, "probe": None}
    two = pin_table(frozenset({0, 1}))
    assert (two["server"], two["client"], two["link"]) == (frozenset({0}), frozenset({1}), frozenset({0}))
    four = pin_table(frozenset({2, 3, 6, 7}))
    assert four["link"] == frozenset({6})
    assert describe_pins(four)["server"] == [2]


def test_a_browser_has_every_core_that_server_and_link_leave() -> None:
    assert browser_pin_table(frozenset({0})) == pin_table(frozenset({0}))
    for few in (frozenset({0, 1}), frozenset({0, 1, 2})):
        assert browser_pin_table(few) == pin_table(few)
    table = browser_pin_table(frozenset({2, 3, 6, 7, 9}))
    assert table["client"] == frozenset({3, 7, 9})
    assert table["server"] == frozenset({2})
    assert table["link"] == frozenset({6})


def test_a_path_becomes_the_links_configuration() -> None:
    study = load("race", [], known_servers())
    config = link_config(study.paths["rough"], seed=5)
    assert config.seed == 5
    assert [type(impairment) for impairment in config.a_to_b] == [Loss, Rate, Delay]
    assert link_config(study.paths["clean"], seed=5).b_to_a == ()


def test_nothing_is_left_of_closed_programs(program) -> None:
    process = program("import subprocess; time.sleep(60)")
    process.close()
    assert not Path(f"/proc/{process.pid}").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    assert subprocess.run(["true"], check=False).returncode == 0


def test_the_engine_is_built_without_the_entropy_source_that_costs_more_than_a_short_trial() -> None:
    """Cargo reads .cargo/config.toml of the folder it is called in and those above, not beside the manifest."""
    try:
        engine = find_engine()
    except CannotError as error:
        pytest.skip(str(error))
    assert b"jent_entropy_init" not in engine.read_bytes()


def test_a_thread_is_kept_off_a_cpu_and_let_back() -> None:
    before = os.sched_getaffinity(0)
    first = frozenset({min(before)})
    with keeping_off(first):
        inside = os.sched_getaffinity(0)
    assert os.sched_getaffinity(0) == before
    assert inside == (before - first if len(before) > 1 else before)
    with keeping_off(frozenset(before)):  # nowhere else to go
        assert os.sched_getaffinity(0) == before
    with keeping_off(None):
        assert os.sched_getaffinity(0) == before
