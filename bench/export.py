"""Rows of samples a second that each export takes, and its peak memory.

    python -m bench.export [--samples 10000000] [--keep FOLDER] [TARGET ...]

The run is invented (tests/report/synthetic.py), 432 trials. Each export is a fresh process; its rate is samples by the
time of the whole export, all other tables included, imports not. Object stores are measured with versitygw, where it is
there, and with a folder; InfluxDB and MariaDB are Debian's; DynamoDB is dynalite, with a thousandth of the run, and
says nothing of the real one, which takes 1,000 writes a second of each trial at most. To reach on two
cores: CSV and S3 a million rows a second, InfluxDB and MariaDB 100,000, each below 1 GB. What is missing is named and
left out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.store import servers

TRIALS = 12 * 4 * 9
Prepare = Callable[[Path], AbstractContextManager[tuple[str, dict[str, str]]]]
LIMIT_BYTES = 1_000_000_000
LEAST = 1000


def measure(run: Path, target: str) -> dict[str, float]:
    """Export in this process: samples, seconds, and peak memory in octets."""
    from trifecta.store import views
    from trifecta.store.exports import to

    with views.connect(run) as connection:
        ((samples,),) = connection.execute("SELECT count(*) FROM samples").fetchall()
    began = time.perf_counter()
    to(target, run)
    took = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"samples": samples, "seconds": took, "peak_bytes": peak}


@contextmanager
def _format(name: str, folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    yield f"{name}:{folder / 'out'}", {}


@contextmanager
def _folder(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    yield f"file://{folder / 'lake'}", {}


@contextmanager
def _s3(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with servers.versitygw(folder) as port:
        yield "s3://measured", servers.s3_environment(port)


@contextmanager
def _influxdb(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with servers.influxdb(folder) as port:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/query", b"q=CREATE+DATABASE+measured").close()
        yield f"influxdb://127.0.0.1:{port}/measured", {}


@contextmanager
def _mariadb(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    import pymysql

    with servers.mariadb(folder) as there:
        with pymysql.connect(unix_socket=str(there), user="root") as opened, opened.cursor() as cursor:
            cursor.execute("CREATE DATABASE measured")
        yield "mariadb://root@/measured", {"MYSQL_UNIX_PORT": str(there)}


@contextmanager
def _dynamodb(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with servers.dynalite(folder) as port:
        yield "dynamodb://us-east-1/measured", {
            "AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "user",
            "AWS_SECRET_ACCESS_KEY": "secret-key",
        }  # fmt: skip


WAYS: dict[str, tuple[Prepare, float, int]] = {
    "csv": (lambda folder: _format("csv", folder), 1e6, 1),
    "s3": (_s3, 1e6, 1),
    "file": (_folder, 1e6, 1),
    "jsonl": (lambda folder: _format("jsonl", folder), 0, 1),
    "lines": (lambda folder: _format("lines", folder), 1e5, 1),
    "influxdb": (_influxdb, 1e5, 1),
    "mariadb": (_mariadb, 1e5, 1),
    "dynamodb": (_dynamodb, 0, LEAST),
    "openmetrics": (lambda folder: _format("openmetrics", folder), 0, 1),
}
"""By name: what prepares a folder and says target and environment, rows a second to reach, of what part of the run."""


def main() -> int:
    """Make the runs, measure, print; 1 where a figure is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", choices=[[], *WAYS], metavar="TARGET")
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--keep", type=Path, help="make the runs here and keep them; existing ones are used again")
    parser.add_argument("--measure", nargs=2, metavar=("RUN", "TO"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(Path(options.measure[0]), options.measure[1])))
        return 0
    missed = False
    print("| target | rows/s | to reach | s | peak MB |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        kept = options.keep or Path(temporary)
        for name in options.targets or WAYS:
            prepare, wanted, part = WAYS[name]
            run = _made(kept / f"part-{part}", options.samples // part)
            folder = Path(temporary) / name
            folder.mkdir()
            try:
                found = _of(run, prepare, folder)
            except pytest.skip.Exception as skipped:
                print(f"| {name} | {skipped} | | | |")
                continue
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            rate = found["samples"] / found["seconds"]
            missed |= rate < wanted or found["peak_bytes"] > LIMIT_BYTES
            told = f"{rate:,.0f} | {wanted:,.0f} | {found['seconds']:.1f} | {found['peak_bytes'] / 1e6:,.0f}"
            print(f"| {name} | {told} |", flush=True)
    return int(missed)


def _made(run: Path, samples: int) -> Path:
    if not (run / "run.json").exists():
        from tests.report.synthetic import Shape, write_run

        write_run(run, Shape(blocks=9, samples_per_trial=-(-samples // TRIALS)))
    return run


def _of(run: Path, prepare: Prepare, folder: Path) -> dict[str, float]:
    with prepare(folder) as (target, environment):
        done = subprocess.run(
            [sys.executable, "-m", "bench.export", "--measure", str(run), target],
            check=True, stdout=subprocess.PIPE, env={**os.environ, **environment},
        )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
