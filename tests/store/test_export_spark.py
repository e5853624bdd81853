"""Spark reads what is exported: a folder of partitions, S3 by its protocol, and the definitions that Athena takes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.report.synthetic import Shape, write_run
from tests.store import servers
from trifecta.design import extras
from trifecta.store import views
from trifecta.store.exports import send, tables

pytestmark = pytest.mark.long
CACHE = Path(__file__).parents[2] / ".cache"  # where scripts/setup.sh long puts Spark, and what it needs for S3
SMALL = Shape(blocks=4, samples_per_trial=40, paths=("clean",), connections=("new",), servers=("origin",))


@pytest.fixture
def spark(tmp_path, monkeypatch):
    """Given settings, a session of Spark."""
    monkeypatch.chdir(tmp_path)  # Derby writes a log to where it is
    monkeypatch.syspath_prepend(CACHE / "pyspark")
    monkeypatch.setenv("SPARK_DIST_CLASSPATH", str(CACHE / "s3a" / "*"))  # behind Spark's own
    pytest.importorskip("obstore", reason=f"obstore is missing; run: {extras.remedy('exports')}")
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is missing; run: scripts/setup.sh long")
    if shutil.which("java") is None:
        pytest.skip("java is missing; run: apt-get install openjdk-17-jre-headless")
    opened = []

    def session(**settings: str):
        builder = (
            sql.SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.warehouse.dir", str(tmp_path / "warehouse"))
            .config(
                "spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:;databaseName={tmp_path}/store;create=true"
            )
        )
        for name, value in settings.items():
            builder = builder.config(f"spark.hadoop.fs.{name.replace('_', '.')}", value)
        opened.append(builder.enableHiveSupport().getOrCreate())
        return opened[-1]

    yield session
    for one in opened:
        one.stop()


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "run", SMALL)


def test_spark_reads_folders_and_definitions(spark, run, tmp_path):
    place = tmp_path / "lake"
    send(f"file://{place}", run)
    _is_read(spark(), f"file://{place}", place, run)


def test_spark_reads_s3_itself_and_definitions_as_they_are(spark, run, tmp_path, monkeypatch):
    if not (CACHE / "s3a").is_dir():
        pytest.skip("what Spark needs to read S3 is missing; run: scripts/setup.sh long (needs Maven)")
    (tmp_path / "server").mkdir()
    with servers.versitygw(tmp_path / "server") as port:
        for name, value in servers.s3_environment(port).items():
            monkeypatch.setenv(name, value)
        send("s3://measured/lake", run)
        place = tmp_path / "server" / "buckets" / "measured" / "lake"
        keys = {
            "s3a_access_key": os.environ["AWS_ACCESS_KEY_ID"],
            "s3a_secret_key": os.environ["AWS_SECRET_ACCESS_KEY"],
        }
        where = {"s3a_endpoint": f"http://127.0.0.1:{port}", "s3a_endpoint_region": "us-east-1"}
        # Athena's s3:// is Hadoop's s3a:// (Hadoop: Integration with Amazon Web Services).
        kind = {"s3_impl": "org.apache.hadoop.fs.s3a.S3AFileSystem", "s3a_path_style_access": "true"}
        _is_read(spark(**keys, **where, **kind), "s3a://measured/lake", place, run)


def _is_read(spark, url: str, place: Path, run: Path) -> None:
    """Every table: as files, and by its definition."""
    with views.connect(run) as opened:
        expected = opened.execute("SELECT count(*), sum(latency_ns) FROM samples").fetchone()
        there = [table.name for table in tables.tables(opened)]
    who = tables.identity(run)
    samples = spark.read.parquet(f"{url}/samples")
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
