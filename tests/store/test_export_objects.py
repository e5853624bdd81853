"""Runs in object stores: Parquet by study and run, whole once however often it is exported, and nothing secret said."""

from __future__ import annotations

import re
import shutil
import socket
import threading
import time
from pathlib import Path

import duckdb
import pytest

from tests.report.synthetic import Shape, write_run
from tests.store import servers
from trifecta.design import extras
from trifecta.design.errors import CannotError, UserError
from trifecta.store import views
from trifecta.store.exports import athena, aws_files, error_messages, object_store, objects, send, tables
from trifecta.store.exports.tables import Table

SMALL = Shape(blocks=4, samples_per_trial=40, paths=("clean",), connections=("new",), servers=("origin",))
EVERY = "SELECT count(*), count(DISTINCT (run, trial, request)) FROM read_parquet('{}', hive_partitioning = true)"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("made") / "run", SMALL)


@pytest.fixture
def library():
    pytest.importorskip("obstore", reason=f"obstore is missing; run: {extras.remedy('exports')}")


def objects_of(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("library")
def test_a_run_is_there_once_however_often_it_is_exported(run, tmp_path):
    place = tmp_path / "lake"
    told = send(f"file://{place}", run)
    first = objects_of(place)
    assert send(f"file://{place}", run) == told
    second = objects_of(place)
    assert set(second) == set(first)
    parts = [name for name in first if name.endswith(".parquet")]
    assert {name: first[name] for name in parts} == {name: second[name] for name in parts}, "nothing is sent again"
    who = tables.identity(run)
    path = rf"\w+/study={who.study}/run={who.run}/part-\d+-[0-9a-f]{{16}}\.parquet"
    assert all(re.fullmatch(path, name) for name in parts)
    with views.connect(run) as opened, duckdb.connect() as reader:
        expected = opened.execute("SELECT count(*) FROM samples").fetchone()[0]
        assert reader.execute(EVERY.format(place / "samples/*/*/*.parquet")).fetchone() == (expected, expected)
        where = f"read_parquet('{place}/samples/*/*/*.parquet', hive_partitioning = true)"
        kinds = {kind for _, kind, *_ in reader.execute(f"DESCRIBE SELECT * FROM {where}").fetchall()}
    assert kinds <= {"BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "VARCHAR"}


@pytest.mark.usefixtures("library")
def test_what_was_cut_goes_on_and_what_a_run_no_longer_has_is_removed(run, tmp_path, monkeypatch):
    place, sent = tmp_path / "lake", []
    put = objects.Place.put

    def cut(self, name, content):
        if name.startswith("samples/"):
            raise KeyboardInterrupt
        sent.append(name)
        put(self, name, content)

    monkeypatch.setattr(objects.Place, "put", cut)
    with pytest.raises(KeyboardInterrupt):
        send(f"file://{place}", run)
    already = {name for name in sent if name.endswith(".parquet")}
    assert already
    monkeypatch.setattr(objects.Place, "put", lambda self, name, content: (sent.append(name), put(self, name, content)))
    sent.clear()
    send(f"file://{place}", run)
    assert not already & set(sent)
    fewer = tmp_path / run.name
    shutil.copytree(run, fewer)
    for folder in ("trials", "samples"):
        sorted((fewer / folder).iterdir())[-1].unlink()
    (fewer / "verdicts.parquet").unlink()
    assert list(place.glob("verdicts/*/*/*.parquet"))
    send(f"file://{place}", fewer)
    assert not list(place.glob("verdicts/*/*/*.parquet")), "a table that has no rows any more"
    with views.connect(fewer) as opened, duckdb.connect() as reader:
        expected = opened.execute("SELECT count(*) FROM samples").fetchone()[0]
        assert reader.execute(EVERY.format(place / "samples/*/*/*.parquet")).fetchone() == (expected, expected)


@pytest.mark.usefixtures("library")
def test_a_table_is_there_once_though_a_later_one_was_cut(run, tmp_path, monkeypatch):
    place, put = tmp_path / "lake", objects.Place.put
    fewer = tmp_path / run.name
    shutil.copytree(run, fewer)
    for folder in ("trials", "samples"):
        sorted((fewer / folder).iterdir())[-1].unlink()
    send(f"file://{place}", fewer)
    old = set(place.glob("samples/*/*/*.parquet"))

    def cut(self, name, content):
        if name.startswith("trials/"):
            assert settled.wait(60), "the samples of before stay until all tables are there"
            raise KeyboardInterrupt
        put(self, name, content)

    def removed(self, names):
        delete(self, names)
        if any(name.startswith("samples/") for name in names):
            settled.set()

    settled, delete = threading.Event(), objects.Place.delete
    monkeypatch.setattr(objects.Place, "delete", removed)
    monkeypatch.setattr(objects.Place, "put", cut)
    with pytest.raises(KeyboardInterrupt):
        send(f"file://{place}", run)
    assert old and not old & set(place.glob("samples/*/*/*.parquet"))


def test_a_column_named_as_a_partition_is_called_otherwise():
    table = Table("published", (("study", "VARCHAR"), ("n", "UBIGINT"), ("sums", "HUGEINT"), ("list", "VARCHAR[]")))
    assert athena.selected(table) == (
        '"study" AS "study_told", "n"::BIGINT AS "n", "sums"::BIGINT AS "sums", to_json("list")::VARCHAR AS "list"'
    )
    text = athena.definition(table, "s3://bucket/published/")
    assert "`study_told` string COMMENT" in text
    assert "PARTITIONED BY (`study` string, `run` string)" in text
    assert "LOCATION 's3://bucket/published/'" in text


KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION",
        "AWS_DEFAULT_REGION", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE")  # fmt: skip


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".aws").mkdir()
    return tmp_path / ".aws"


def test_credentials_come_from_the_files_of_aws_where_the_environment_has_none(home, monkeypatch):
    assert aws_files.credentials() == {}
    (home / "credentials").write_text(
        "[default]\naws_access_key_id = A\naws_secret_access_key = B%\n[lab]\n"
        "aws_access_key_id = C\naws_secret_access_key = D\naws_session_token = E\n"
    )
    (home / "config").write_text("[profile lab]\nregion = eu-west-1\n")
    assert aws_files.credentials() == {"access_key_id": "A", "secret_access_key": "B%"}
    monkeypatch.setenv("AWS_PROFILE", "lab")
    lab = {"access_key_id": "C", "secret_access_key": "D", "session_token": "E", "region": "eu-west-1"}
    assert aws_files.credentials() == lab
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "F")
    assert aws_files.credentials() == {"region": "eu-west-1"}
    monkeypatch.setenv("AWS_PROFILE", "none")
    with pytest.raises(UserError, match="no profile 'none'"):
        aws_files.credentials()


def test_a_broken_file_of_aws_is_named_without_what_is_in_it(home):
    (home / "credentials").write_text("aws_secret_access_key = hidden\n")
    with pytest.raises(UserError, match=r"~/\.aws/credentials is not in the format") as error:
        aws_files.credentials()
    assert "hidden" not in str(error.value)


def test_what_is_secret_is_not_said(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    assert (
        error_messages.line("denied for wJalrXUtnFEMI\n at once and pass1", "pass1") == "denied for ... at once and ..."
    )
    assert error_messages.line("x" * 290 + " wJalrXUtnFEMI").endswith(" ...")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=hidden-1,authorization=Basic%20aGk=")
    assert error_messages.line("no hidden-1 and no Basic aGk") == "no ... and no ..."
    assert error_messages.place("mariadb://me@host:1/db?x=y") == "mariadb://host:1/db"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3:///prefix", "it is s3://BUCKET/PREFIX"),
        ("az:///prefix", "it is az://CONTAINER/PREFIX"),
        ("s3://key@bucket", "nothing but a place stands in the URL"),
        ("file://host/folder", "a folder is file:///PATH"),
    ],
)
def test_a_url_that_names_no_place_is_refused(run, url, said):
    with pytest.raises(UserError, match=re.escape(said)):
        send(url, run)


def test_a_folder_of_the_run_is_left_alone(run):
    with pytest.raises(UserError, match="is in the run's folder, which an export leaves alone"):
        send(f"file://{run}/lake", run)
    assert not (run / "lake").exists()


@pytest.fixture
def gateway(tmp_path):
    """A server of S3's protocol over a folder: that, and its port."""
    with servers.versitygw(tmp_path) as port:
        yield tmp_path / "buckets", port


@pytest.mark.long  # for the server, which takes minutes to build
@pytest.mark.usefixtures("library")
def test_a_real_server_of_s3_holds_a_run(run, gateway, home, monkeypatch):
    folder, port = gateway
    monkeypatch.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    (home / "credentials").write_text("[default]\naws_access_key_id = user\naws_secret_access_key = secret-key\n")
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    for _ in range(2):
        send("s3://measured/by/us", run)
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    with views.connect(run) as opened, duckdb.connect() as reader:
        expected = opened.execute("SELECT count(*) FROM samples").fetchone()[0]
        found = reader.execute(EVERY.format(folder / "measured/by/us/samples/*/*/*.parquet")).fetchone()
    assert found == (expected, expected)
    with pytest.raises(CannotError, match="s3://absent"):
        send("s3://absent", run)


@pytest.mark.long
@pytest.mark.usefixtures("library", "home")
def test_another_library_reads_a_run_over_the_protocol(run, gateway, monkeypatch):
    """Arrow's client of S3 (Amazon's C++ SDK), with the environment's credentials; it finds the partitions itself."""
    fs, dataset = pytest.importorskip("pyarrow.fs"), pytest.importorskip("pyarrow.dataset")
    _, port = gateway
    for name, value in (servers.s3_environment(port) | {"AWS_EC2_METADATA_DISABLED": "true"}).items():
        monkeypatch.setenv(name, value)
    send("s3://measured/by/us", run)
    read = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1")
    who = tables.identity(run)
    with views.connect(run) as opened:
        counts = {table.name: opened.execute(f'SELECT count(*) FROM "{table.name}"').fetchone()[0]
                  for table in tables.tables(opened)}  # fmt: skip
        (total,) = opened.execute("SELECT sum(latency_ns) FROM samples").fetchone()
    there = {one.base_name for one in read.get_file_info(fs.FileSelector("measured/by/us"))}
    assert there == {*counts, "athena"}
    found = {name: dataset.dataset(f"measured/by/us/{name}", filesystem=read, partitioning="hive") for name in counts}
    mine = (dataset.field("study") == who.study) & (dataset.field("run") == who.run)
    assert {name: one.count_rows() for name, one in found.items()} == counts
    assert {name: one.count_rows(filter=mine) for name, one in found.items()} == counts
    assert found["samples"].count_rows(filter=dataset.field("run") == "another") == 0
    assert sum(found["samples"].to_table(columns=["latency_ns"])["latency_ns"].drop_null().to_pylist()) == total
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    other = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1")
    with pytest.raises(OSError, match=r"SignatureDoesNotMatch|signature|ACCESS_DENIED|AccessDenied|403"):
        other.get_file_info(fs.FileSelector("measured/by/us"))


@pytest.mark.long
@pytest.mark.usefixtures("library", "home")
@pytest.mark.parametrize(
    ("place", "changed", "said"),
    [
        ("absent", {}, "NoSuchBucket: The specified bucket does not exist; "),
        ("measured", {"AWS_SECRET_ACCESS_KEY": "wrong"}, "SignatureDoesNotMatch: The request signature we calculated "),
        ("measured", {"AWS_ACCESS_KEY_ID": "nobody"}, "XAdminUserNotFound: No user exists with the provided access "),
        ("measured", {"AWS_ALLOW_HTTP": "false"}, "AWS_ENDPOINT is without TLS, which AWS_ALLOW_HTTP=true allows; "),
    ],
)
def test_what_a_server_of_s3_refuses_is_said_in_words(run, gateway, monkeypatch, place, changed, said):
    for name, value in (servers.s3_environment(gateway[1]) | changed).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CannotError, match=f"^s3://{place}/lake: {said}") as error:
        send(f"s3://{place}/lake", run)
    assert "fix it and run this again" in str(error.value)
    assert "<" not in str(error.value)


@pytest.mark.usefixtures("library")
def test_credentials_that_are_nowhere_are_named_so():
    asked = "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 2 s - HTTP error"
    said = r"^s3://b: no credentials were found, nor a role of an instance .*; set them$"
    with pytest.raises(CannotError, match=said), object_store.clear("s3://b", "set them"):
        raise object_store.exceptions.GenericError(asked)


@pytest.mark.usefixtures("library", "home")
def test_a_server_that_is_away_is_one_line(run, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    for name, value in servers.s3_environment(port).items():
        monkeypatch.setenv(name, value)
    began = time.monotonic()
    with pytest.raises(CannotError, match=r"^s3://measured: ") as error:
        send("s3://measured", run)
    assert "\n" not in str(error.value)
    assert "secret-key" not in str(error.value)
    assert error.value.exit_code == 3
    assert time.monotonic() - began < 30
