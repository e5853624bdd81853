"""DuckDB reads what is exported from S3 itself, by its extension `httpfs`, which comes as a package for DuckDB 1.5."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.synthetic import Shape, write_run
from tests.store import servers
from trifecta.design import extras
from trifecta.store import views
from trifecta.store.exports import send, tables

pytestmark = pytest.mark.long
OTHER = Path(__file__).parents[2] / ".cache" / "duckdb-httpfs"  # where scripts/setup.sh long puts it
SMALL = Shape(blocks=4, samples_per_trial=40, paths=("clean",), connections=("new",), servers=("origin",))
ASKED = """
import json, sys
import duckdb, duckdb_extensions
opened = duckdb.connect()
duckdb_extensions.import_extension("httpfs", con=opened)
opened.load_extension("httpfs")
endpoint, *asked = sys.argv[1:]
opened.execute(f"CREATE SECRET (TYPE s3, KEY_ID 'user', SECRET 'secret-key', REGION 'us-east-1', "
               f"ENDPOINT '{endpoint}', USE_SSL false, URL_STYLE 'path')")
print(json.dumps([opened.execute(one).fetchone() for one in asked]))
"""


def test_duckdb_reads_s3_itself(tmp_path, monkeypatch):
    pytest.importorskip("obstore", reason=f"obstore is missing; run: {extras.remedy('exports')}")
    if not OTHER.is_dir():
        pytest.skip("DuckDB's extension httpfs is missing; run: scripts/setup.sh long")
    run = write_run(tmp_path / "run", SMALL)
    with views.connect(run) as opened:
        counts = {
            one.name: opened.execute(f'SELECT count(*) FROM "{one.name}"').fetchone()[0]
            for one in tables.tables(opened)
        }
        latency = opened.execute("SELECT sum(latency_ns)::BIGINT FROM samples").fetchone()[0]
    who = tables.identity(run)
    # Grouped: DuckDB 1.5.5 has an internal error where it asks files' statistics for the least name of a partition.
    asked = [f"SELECT count(*), study, run FROM {_read(name)} GROUP BY ALL" for name in counts]
    asked.append(f"SELECT sum(latency_ns)::BIGINT FROM {_read('samples')} WHERE run = '{who.run}'")
    (tmp_path / "server").mkdir()
    with servers.versitygw(tmp_path / "server") as port:
        for name, value in servers.s3_environment(port).items():
            monkeypatch.setenv(name, value)
        send("s3://measured/lake", run)
        done = subprocess.run(
            [sys.executable, "-c", ASKED, f"127.0.0.1:{port}", *asked], capture_output=True, text=True, check=False,
            env=os.environ | {"PYTHONPATH": str(OTHER), "HOME": str(tmp_path)},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [*([count, who.study, who.run] for count in counts.values()), [latency]]


def _read(table: str) -> str:
    return f"read_parquet('s3://measured/lake/{table}/**/*.parquet', hive_partitioning = true)"
