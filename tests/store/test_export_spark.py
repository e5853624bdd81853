"""Spark reads what is exported: as a folder of partitions, and by the definitions that Athena takes too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.report.synthetic import Shape, write_run
from trifecta.design import extras
from trifecta.store import views
from trifecta.store.exports import send, tables

pytestmark = pytest.mark.long
SPARK = Path(__file__).parents[2] / ".cache" / "pyspark"  # where scripts/setup.sh long puts it
SMALL = Shape(blocks=4, samples_per_trial=40, paths=("clean",), connections=("new",), servers=("origin",))


@pytest.fixture
def spark(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Derby writes a log to where it is
    monkeypatch.syspath_prepend(SPARK)
    pytest.importorskip("obstore", reason=f"obstore is missing; run: {extras.remedy('exports')}")
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is missing; run: scripts/setup.sh long")
    if shutil.which("java") is None:
        pytest.skip("java is missing; run: apt-get install openjdk-17-jre-headless")
    session = (
        sql.SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path / "warehouse"))
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:;databaseName={tmp_path}/store;create=true")
        .enableHiveSupport()
        .getOrCreate()
    )
    yield session
    session.stop()


def test_spark_reads_folders_and_definitions(spark, tmp_path):
    run, place = write_run(tmp_path / "run", SMALL), tmp_path / "lake"
    send(f"file://{place}", run)
    with views.connect(run) as opened:
        expected = opened.execute("SELECT count(*), sum(latency_ns) FROM samples").fetchone()
        there = [table.name for table in tables.tables(opened)]
    who = tables.identity(run)
    samples = spark.read.parquet(f"file://{place}/samples")
    samples.createOrReplaceTempView("read")
    (row,) = spark.sql("SELECT count(*), sum(latency_ns), min(study), max(run) FROM read").collect()
    assert tuple(row) == (*expected, who.study, who.run)
    for name in there:
        text = "\n".join(
            line for line in (place / "athena" / f"{name}.sql").read_text().splitlines() if not line.startswith("--")
        )
        for statement in filter(str.strip, text.split(";\n")):
            spark.sql(statement.strip().rstrip(";"))
        with views.connect(run) as opened:
            (count,) = opened.execute(f'SELECT count(*) FROM "{name}"').fetchone()
        (row,) = spark.sql(f"SELECT count(*) FROM trifecta_{name} WHERE run = '{who.run}'").collect()
        assert tuple(row) == (count,), name
