"""Calls in a process of their own: whatever they do, the caller goes on and knows why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from trifecta.implementations.isolated import MAX_ANSWER_BYTES, call_apart

LONG_S = 600


def ask(call, timeout_s=60.0):
    return call_apart({"it": call}, timeout_s=timeout_s)["it"]


def crash():
    print("  about to\n  fall over  ")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def gone(pid: int) -> bool:
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True  # whoever inherited it has not reaped it yet
        time.sleep(0.05)
    return False


def test_an_answer_comes_back():
    assert ask(lambda: {"a": [1, None, "é"]}).value == {"a": [1, None, "é"]}


def test_answers_keep_the_order_of_the_calls():
    answers = call_apart({name: lambda name=name: name for name in "cab"}, timeout_s=60, at_once=2)
    assert [(key, answer.value) for key, answer in answers.items()] == [("c", "c"), ("a", "a"), ("b", "b")]


def test_an_exception_is_a_reason():
    def fail():
        raise ValueError("no\n such thing")

    assert ask(fail).problem == "ValueError: no such thing"


def test_an_exit_is_a_reason_and_not_the_callers():
    assert ask(lambda: sys.exit("I leave")).problem == "SystemExit: I leave"
    assert ask(lambda: os._exit(7)).problem == "crashed (exit code 7)"


def test_what_json_cannot_hold_is_a_reason():
    assert "not JSON serializable" in ask(object).problem


def test_a_crash_is_a_reason_with_the_last_words():
    assert ask(crash).problem == "crashed (signal 9): fall over"


def test_an_endless_answer_is_refused():
    assert ask(lambda: "x" * MAX_ANSWER_BYTES).problem == "answered with more than 1 MB"


def test_what_hangs_is_ended_with_all_it_started(tmp_path):
    def hang():
        child = subprocess.Popen(["sleep", str(LONG_S)])
        (tmp_path / "pid").write_text(str(child.pid))
        print("waiting for nothing", flush=True)
        time.sleep(LONG_S)

    answers = call_apart({"hangs": hang, "well": lambda: "well"}, timeout_s=2)
    assert answers["hangs"].problem == "did not answer within 2 s: waiting for nothing"
    assert answers["well"].value == "well"
    assert gone(int((tmp_path / "pid").read_text()))


def test_what_an_ended_call_started_ends_too(tmp_path):
    def leave():
        return subprocess.Popen(["sleep", str(LONG_S)]).pid

    assert gone(ask(leave).value)


def test_a_call_does_not_touch_the_callers_streams_or_state(capfd):
    kept = []

    def noisy():
        print("out")
        print("err", file=sys.stderr)
        kept.append(1)
        return sys.stdin.read()

    assert ask(noisy).value == ""
    assert (capfd.readouterr(), kept) == (("", ""), [])


def test_an_interrupt_ends_them_all(tmp_path):
    code = (
        # Where SIGINT was ignored, as of what a shell starts in the background, that is inherited.
        "import os, signal, time; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from trifecta.implementations.isolated import call_apart\n"
        "def hang():\n"
        f"    open('{tmp_path}/' + str(os.getpid()), 'w').close(); time.sleep({LONG_S})\n"
        f"call_apart({{1: hang, 2: hang}}, timeout_s={LONG_S})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    while len(list(tmp_path.iterdir())) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert all(gone(int(path.name)) for path in tmp_path.iterdir())


def test_no_descriptor_and_no_process_is_left():
    before = len(list(Path("/proc/self/fd").iterdir()))
    call_apart({number: lambda: 1 for number in range(20)}, timeout_s=60, at_once=3)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    with suppress(ChildProcessError):
        assert os.waitpid(-1, os.WNOHANG) == (0, 0)
