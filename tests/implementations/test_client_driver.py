"""The driver of foreign clients: it speaks the load's contract, loses no request, and leaves nothing running."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.lab.ended import gone
from tests.workloads.drive import REPOSITORY
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.client import Job, Output
from trifecta.implementations.clients import jobs, records
from trifecta.implementations.registry import CLIENTS
from trifecta.implementations.server import Unsupported
from trifecta.store.schema import SAMPLES

ROW = {"started_ns": 1000, "done_ns": 900_000, "status": 200, "bytes_in": 10, "protocol": "h2"}


def rows(count: int, **changes: Any) -> str:
    """A script that prints so many rows, the last started first."""
    return (
        f"import json\nfor i in range({count}):\n"
        f"    print(json.dumps({ROW | changes!r} | dict(started_ns=1000 * ({count} - i))))\n"
    )


def config(folder: Path, **changes: Any) -> dict[str, Any]:
    return {
        "trial": "t00007", "protocol": "h2", "address": "127.0.0.1", "port": 1, "server_name": "origin.lab",
        "ca_file": "ca.pem", "connections": 1, "streams": 2, "connection_mode": "reused", "requests": 4,
        "warmup_requests": 1, "method": "GET", "path": "/bytes/10", "request_body_bytes": 0, "expect_body_bytes": 10,
        "expect_status": 200, "connect_timeout_ns": 10**9, "request_timeout_ns": 10**9, "total_timeout_ns": 20 * 10**9,
        "tls_version": "1.3", "key_exchange": "X25519", "cipher": "TLS_AES_128_GCM_SHA256",
        "loop": {"kind": "closed"}, "duration_ns": 0, "samples_file": str(folder / "samples.parquet"),
    } | changes  # fmt: skip


@contextmanager
def driver(folder: Path, script: str, **changes: Any) -> Iterator[subprocess.Popen[str]]:
    """The driver at work."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.implementations.driven", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(config(folder, **changes)) + "\n")
        process.stdin.flush()
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()


def finish(folder: Path, script: str, **changes: Any) -> tuple[int, dict[str, Any], list[dict[str, Any]], str]:
    """Exit code, summary, rows and standard error."""
    with driver(folder, script, **changes) as process:
        return end_of(process, folder)


def end_of(process: subprocess.Popen[str], folder: Path) -> tuple[int, dict[str, Any], list[dict[str, Any]], str]:
    assert process.stdout is not None
    assert process.stderr is not None
    said = [json.loads(line) for line in process.stdout.read().splitlines()]
    errors = process.stderr.read()
    summary = next((line["summary"] for line in said if "summary" in line), {})
    file = folder / "samples.parquet"
    return process.wait(60), summary, pq.read_table(file).to_pylist() if file.exists() else [], errors


def told_pid(process: subprocess.Popen[str]) -> int:
    """The process id of the client, from ``ready``."""
    assert process.stdout is not None
    assert json.loads(process.stdout.readline()) == {"loaded": {"client": "scripted"}}
    return int(json.loads(process.stdout.readline())["ready"]["pid"])


def test_every_request_is_a_row_in_the_order_of_the_starts_with_the_types_of_the_engine(tmp_path: Path) -> None:
    code, summary, found, errors = finish(tmp_path, rows(5))
    assert (code, errors) == (0, "")
    assert [row["request"] for row in found] == [0, 1, 2, 3, 4]
    assert [row["warmup"] for row in found] == [True, False, False, False, False]
    starts = [row["started_ns"] for row in found]
    assert starts == sorted(starts)
    assert pq.read_schema(tmp_path / "samples.parquet").equals(SAMPLES.arrow())
    assert {(row["trial"], row["worker"], row["error"], row["connection"]) for row in found} == {
        ("t00007", 0, None, None)
    }
    assert (summary["samples"], summary["errors"], summary["ended"]) == (4, 0, "requests")
    assert summary["client"] == "scripted"
    assert summary["declared"] == {"tls_library": "none"}
    assert summary["program_started_ns"] <= summary["started_ns"] <= summary["ended_ns"]
    assert summary["tcp"] is None
    assert summary["udp_receive_errors"] is None


def test_the_summary_counts_the_cpu_of_the_whole_tree(tmp_path: Path) -> None:
    burn = "import subprocess, sys\nburn = 'import time\\nwhile time.process_time() < 0.4: pass'\n"
    burn += "subprocess.run([sys.executable, '-c', burn], check=True)\n"
    _, summary, _, _ = finish(tmp_path, burn + rows(5))
    assert 0.4e9 < summary["cpu_user_ns"] + summary["cpu_system_ns"] < 10e9
    assert summary["busy_ratio"] == pytest.approx(
        (summary["cpu_user_ns"] + summary["cpu_system_ns"]) / summary["wall_ns"]
    )


def test_asked_for_a_start_only_it_makes_no_request(tmp_path: Path) -> None:
    code, summary, found, errors = finish(tmp_path, "sum(range(10**6))", only_start=True)
    assert (code, errors, found) == (0, "", [])
    assert [*summary] == ["start_cpu_ns"]
    assert summary["start_cpu_ns"] > 0


@pytest.mark.parametrize(
    ("script", "error", "ended"),
    [
        (rows(3), "client:missing", "requests"),
        (rows(3) + "raise SystemExit(9)", "client:crashed", "requests"),
        (rows(3) + "import os, sys\nsys.stdout.flush()\nos.kill(os.getpid(), 11)", "client:crashed", "crashed"),
    ],
)
def test_a_request_without_a_word_is_a_failure(tmp_path: Path, script: str, error: str, ended: str) -> None:
    code, summary, found, errors = finish(tmp_path, script)
    assert code == 0
    assert [row["error"] for row in found] == [None, None, None, error, error]
    assert (summary["samples"], summary["errors"], summary["ended"]) == (4, 2, ended)
    assert "2 requests without a result" in errors


def test_what_takes_too_long_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    script = "import subprocess, time\nchild = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
    script += f"print(child.pid, file=open({str(tmp_path / 'pid')!r}, 'w'), flush=True)\ntime.sleep(1000)"
    with driver(tmp_path, script, total_timeout_ns=5 * 10**9) as process:
        pid = told_pid(process)
        code, summary, found, errors = end_of(process, tmp_path)
    assert code == 0
    assert summary["ended"] == "total_timeout"
    assert {row["error"] for row in found} == {"timeout"}
    assert len(found) == 5
    assert "total timeout" in errors
    assert gone(pid)
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("how", ["stdin", "signal"])
def test_it_ends_when_it_is_not_wanted_any_more(tmp_path: Path, how: str) -> None:
    with driver(tmp_path, "import time\ntime.sleep(1000)") as process:
        pid = told_pid(process)
        if how == "stdin":
            assert process.stdin is not None
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        code, summary, found, _ = end_of(process, tmp_path)
    assert code == 0
    assert summary["ended"] == how
    assert len(found) == 5
    assert gone(pid)


def test_the_client_dies_with_a_killed_driver(tmp_path: Path) -> None:
    with driver(tmp_path, "import time\ntime.sleep(1000)") as process:
        pid = told_pid(process)
        process.kill()
        process.wait()
        assert gone(pid)


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("print('nonsense')", 1, "its output is not understood"),
        (rows(6), 1, "6 requests were reported, 5 were asked for"),
        (rows(5, colour="red"), 1, "columns that are not the adapter's: colour"),
        (rows(5, worker=3), 1, "columns that are not the adapter's: worker"),
        (rows(5, bytes_in="ten"), 1, "column bytes_in: 'ten'"),
        (rows(5, connection="first"), 1, "column connection: 'first'"),
        (rows(5, done_ns=-5), 1, "out of order"),
        (rows(5, status=None), 1, "neither an end nor a status"),
        ("@", 1, "cannot start /nowhere/at-all: No such file or directory"),
        ("!", 127, "scripted is not here; run: trifecta get scripted"),
    ],
)
def test_what_is_not_understood_is_one_line(tmp_path: Path, script: str, code: int, words: str) -> None:
    found, summary, samples, errors = finish(tmp_path, script)
    assert found == code
    assert summary == {}
    assert samples == []
    assert errors.startswith("error: ")
    assert words in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"colour": "red"}, "colour: is not a field"),
        ({"requests": 0}, "requests: a foreign client needs a number of requests"),
        ({"loop": {"kind": "open", "rate_per_s": 1, "arrivals": "constant"}}, "loop: scripted cannot do"),
        ({"duration_ns": 5}, "duration_ns: scripted cannot do 5"),
        ({"zero_rtt": True}, "zero_rtt: scripted cannot do True"),
        ({"to": "B"}, "to: scripted cannot do 'B'"),
        ({"protocol": "h3", "tls_version": "1.2"}, "tls_version: must be 1.3 with h3 (RFC 9001 4.2)"),
        ({"address": None}, "address: a foreign client is not asked to resolve the name"),
    ],
)
def test_bad_input_names_the_field(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    code, summary, _, errors = finish(tmp_path, rows(5), **changes)
    assert (code, summary) == (2, {})
    assert errors.startswith(f"error: {words}")


def test_a_refusing_disk_is_not_the_clients_fault(tmp_path: Path) -> None:
    code, _, _, errors = finish(tmp_path, rows(5), samples_file=str(tmp_path / "none" / "x.parquet"))
    assert code == 3
    assert "samples_file" in errors


def test_the_clients_own_folder_is_removed(tmp_path: Path) -> None:
    script = f"import os\nprint(os.getcwd(), file=open({str(tmp_path / 'cwd')!r}, 'w'))\n"
    script += "assert os.environ['FOR_THE_CLIENT'] == 'told'\n" + rows(5)
    code, summary, _, _ = finish(tmp_path, script)
    assert (code, summary["errors"]) == (0, 0)
    assert not Path((tmp_path / "cwd").read_text().strip()).exists()


def test_what_a_killed_driver_left_is_removed_by_the_next(tmp_path: Path) -> None:
    script = f"import os\nprint(os.getcwd(), file=open({str(tmp_path / 'cwd')!r}, 'w'), flush=True)\n"
    with driver(tmp_path, script + "import time\nprint('x', flush=True)\ntime.sleep(1000)") as process:
        told_pid(process)
        until = time.monotonic() + 20
        while not ((tmp_path / "cwd").exists() and (tmp_path / "cwd").read_text()) and time.monotonic() < until:
            time.sleep(0.05)
        left = Path((tmp_path / "cwd").read_text().strip())
        (tmp_path / "second").mkdir()
        finish(tmp_path / "second", rows(5))
        assert left.exists()  # its driver lives
        process.kill()
        process.wait()
    assert left.exists()
    finish(tmp_path / "second", rows(5))
    assert not left.exists()


def test_nothing_is_left_by_who_kills_it_after_its_last_word(tmp_path: Path) -> None:
    script = f"import os\nprint(os.getcwd(), file=open({str(tmp_path / 'cwd')!r}, 'w'))\n"
    script += "for i in range(2000): open(f'got-{i}', 'w').close()\n" + rows(5)
    with driver(tmp_path, script) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "summary" in line:
                process.kill()
                break
        process.wait()
    assert not Path((tmp_path / "cwd").read_text().strip()).exists()


def job(**changes: Any) -> Job:
    document = config(Path("/nowhere"), **changes)
    return jobs.job_of(jobs.read(json.dumps(document).encode(), CLIENTS["curl"]), Path("/nowhere/state"))


OUTPUT = Output(0, Path("out"), Path("err"), began_ns=0, began_wall_ns=0, ended_ns=10**10)


@pytest.mark.parametrize(
    ("changes", "mode", "error"),
    [
        ({}, "reused", None),
        ({"status": 404}, "reused", "status"),
        ({"bytes_in": 9}, "reused", "length"),
        ({"bytes_in": None}, "reused", "length"),
        ({"done_ns": 1000 + 10**9}, "reused", None),
        ({"done_ns": 1001 + 10**9}, "reused", "timeout"),
        ({"done_ns": 1001 + 10**9}, "new", None),
        ({"done_ns": 1001 + 2 * 10**9}, "new", "timeout"),
        ({"status": 404, "error": "reset"}, "reused", "reset"),
    ],
)
def test_answers_are_judged_as_the_engine_judges(changes: dict[str, Any], mode: str, error: str | None) -> None:
    asked = job(requests=1, warmup_requests=0, connection_mode=mode)
    assert records.complete("t", asked, OUTPUT, [ROW | changes], killed=False)[0]["error"] == error


def test_phases_must_be_in_order() -> None:
    asked = job(requests=1, warmup_requests=0)
    early = ROW | {"connect_start_ns": 500, "tcp_connected_ns": 400}
    with pytest.raises(ValueError, match="tcp_connected_ns before connect_start_ns"):
        records.complete("t", asked, OUTPUT, [early], killed=False)
    answered_while_sending = ROW | {"first_byte_ns": 5000, "request_sent_ns": 6000}
    assert records.complete("t", asked, OUTPUT, [answered_while_sending], killed=False)[0]["error"] is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loop": "open", "rate_per_s": 5.0}, "open loop"),
        ({"duration_ns": 5}, "counts requests"),
        ({"requests": 0}, "counts requests"),
        ({"warmup_ns": 5}, "warm-up in requests"),
        ({"resumption": True}, "resume"),
        ({"zero_rtt": True}, "early data"),
        ({"tcp_nodelay": False}, "Nagle"),
    ],
)
def test_what_no_foreign_client_is_asked_is_refused_beforehand(changes: dict[str, Any], words: str) -> None:
    workload = RequestsWorkload(**{"requests": 5, **changes})
    with pytest.raises(Unsupported, match=words):
        jobs.refuse(CLIENTS["curl"], workload, "h2", "reused")
    jobs.refuse(CLIENTS["curl"], RequestsWorkload(requests=5), "h2", "reused")


def test_nagles_algorithm_is_asked_of_those_that_can_leave_it_on() -> None:
    line = json.dumps(config(Path("/nowhere"), tcp_nodelay=False)).encode()
    with pytest.raises(ValueError, match="curl cannot leave Nagle's algorithm on"):
        jobs.read(line, CLIENTS["curl"])
    for name in ("python-client", "go-client"):
        asked = jobs.read(line, CLIENTS[name])
        assert jobs.job_of(asked, Path("/nowhere/state")).tcp_nodelay is False
        jobs.refuse(CLIENTS[name], RequestsWorkload(requests=5, tcp_nodelay=False), "h2", "reused")


def test_a_name_without_an_adapter_is_bad_input() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trifecta.implementations.clients.driver", "no-such-client"],
        input="{}\n", capture_output=True, text=True, check=False, timeout=60, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "error: client: no adapter 'no-such-client'; see `trifecta implementations`\n"
