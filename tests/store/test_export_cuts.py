"""An export that is killed, or whose server goes, in the middle: done again, all is there as if it had not been cut."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.report.synthetic import Shape, write_run
from tests.store import servers
from tests.store.between import between
from tests.store.valve import Valve
from trifecta.design import extras

SMALL = Shape(blocks=4, samples_per_trial=20, paths=("rough",), connections=("new",), servers=("origin",))
# Parts as of a large run: of some trials each.
PROGRAM = """
import sys
from trifecta.cli import main
from trifecta.store.exports import dynamodb, dynamodb_server, line_protocol, mariadb, objects
dynamodb._ROWS = mariadb._ROWS = objects._ROWS = line_protocol._BATCH = 50
dynamodb_server._LOOK_S = 0.03
sys.exit(main.run(["export", sys.argv[1], "--to", sys.argv[2]]))
"""
KEYS = {"AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "secret-key", "AWS_REGION": "us-east-1"}
# Whatever else this machine's environment says of the clouds stays away.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MYSQL_", "INFLUX_"))}
PATIENCE_S = 180
Contents = Counter[tuple[Any, ...]]
State = dict[Path, tuple[bytes, int]]


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """An export, killed where it is still there at the end: its valve may hold it."""
    with process:
        try:
            yield process
        finally:
            process.kill()


@dataclass
class Store:
    """A real server behind a valve; a name tells one place in it from another."""

    valve: Valve
    environment: dict[str, str]
    url: str
    """Has NAME in it."""
    make: Callable[[str], object]
    """A place, empty."""
    contents: Callable[[str], Contents]
    """Everything that is in a place, and how often."""
    sends_again: bool = False
    """Whether it gets again what it has."""

    def start(self, run: Path, name: str) -> subprocess.Popen[str]:
        """An export of its own process."""
        words = [sys.executable, "-c", PROGRAM, str(run), self.url.replace("NAME", name)]
        return subprocess.Popen(words, env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def export(self, run: Path, name: str) -> tuple[int, str]:
        """How an export ended, and what it said on standard error."""
        with ended(self.start(run, name)) as exporting:
            _, said = exporting.communicate(timeout=PATIENCE_S)
        return exporting.returncode, said


def influxdb(folder: Path, held: ExitStack, environment: dict[str, str]) -> Store:
    port = held.enter_context(servers.influxdb(folder))
    valve = held.enter_context(servers.serving(Valve(port)))

    def ask(query: str, name: str = "") -> list[dict[str, Any]]:
        form = urllib.parse.urlencode({"q": query, "db": name}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/query", form, timeout=servers.WAIT_S) as answer:
            (result,) = json.load(answer)["results"]
        assert "error" not in result
        return list(result.get("series", []))

    def contents(name: str) -> Contents:
        found = ask("SELECT * FROM /.*/ GROUP BY *", name)
        return Counter(
            (one["name"], *sorted(one["tags"].items()), *zip(one["columns"], row, strict=True))
            for one in found
            for row in one["values"]
        )

    url = f"influxdb://127.0.0.1:{valve.server_address[1]}/NAME"
    return Store(valve, environment, url, lambda name: ask(f'CREATE DATABASE "{name}"'), contents, sends_again=True)


def mariadb(folder: Path, held: ExitStack, environment: dict[str, str]) -> Store:
    library = pytest.importorskip("pymysql", reason=f"pymysql is missing; run: {extras.remedy('exports')}")
    there = held.enter_context(servers.mariadb(folder))
    valve = held.enter_context(servers.serving(Valve(there, folder / "valve.sock")))

    def ask(query: str) -> list[tuple[Any, ...]]:
        with library.connect(unix_socket=str(there), user="root", autocommit=True) as opened, opened.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def contents(name: str) -> Contents:
        tables = [table for (table,) in ask(f"SHOW TABLES FROM `{name}`")]
        return Counter((table, *row) for table in tables for row in ask(f"SELECT * FROM `{name}`.`{table}`"))

    environment["MYSQL_UNIX_PORT"] = str(folder / "valve.sock")
    return Store(valve, environment, "mariadb://root@/NAME", lambda name: ask(f"CREATE DATABASE `{name}`"), contents)


def dynamodb(folder: Path, held: ExitStack, environment: dict[str, str]) -> Store:
    library = pytest.importorskip("boto3", reason=f"boto3 is missing; run: {extras.remedy('exports')}")
    port = held.enter_context(servers.dynalite(folder))
    whole = held.enter_context(between(port))  # dynalite ends when a request is cut
    valve = held.enter_context(servers.serving(Valve(whole.server_port)))
    client = library.client(
        "dynamodb", region_name="us-east-1", endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id="user", aws_secret_access_key="secret-key",
    )  # fmt: skip

    def contents(name: str) -> Contents:
        names = [each for page in client.get_paginator("list_tables").paginate() for each in page["TableNames"]]
        return Counter(
            (table.removeprefix(name), json.dumps(item, sort_keys=True))
            for table in names
            if table.startswith(f"{name}-")
            for page in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
            for item in page["Items"]
        )

    environment |= KEYS | {"AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{valve.server_address[1]}"}
    return Store(valve, environment, "dynamodb://us-east-1/NAME", lambda name: None, contents)


def s3(folder: Path, held: ExitStack, environment: dict[str, str]) -> Store:
    pytest.importorskip("obstore", reason=f"obstore is missing; run: {extras.remedy('exports')}")
    fs = pytest.importorskip("pyarrow.fs")
    port = held.enter_context(servers.versitygw(folder))
    valve = held.enter_context(servers.serving(Valve(port)))
    read = fs.S3FileSystem(access_key="user", secret_key="secret-key", region="us-east-1",
                           endpoint_override=f"127.0.0.1:{port}", scheme="http")  # fmt: skip

    def contents(name: str) -> Contents:
        found = read.get_file_info(fs.FileSelector(f"measured/{name}", recursive=True, allow_not_found=True))
        return Counter(
            (
                one.path.partition(f"/{name}/")[2],
                read.open_input_stream(one.path).read().replace(name.encode(), b"NAME"),
            )
            for one in found
            if one.type == fs.FileType.File
        )

    environment |= KEYS | {"AWS_ENDPOINT": f"http://127.0.0.1:{valve.server_address[1]}", "AWS_ALLOW_HTTP": "true"}
    return Store(valve, environment, "s3://measured/NAME", lambda name: None, contents)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("made") / "run", SMALL)


@pytest.fixture(
    scope="module",
    params=[influxdb, mariadb, dynamodb, pytest.param(s3, marks=pytest.mark.long)],  # its server takes minutes to build
    ids=lambda param: str(param.__name__),
)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp(request.param.__name__)
    (folder / "home").mkdir()
    environment = {**ENVIRONMENT, "HOME": str(folder / "home"), "AWS_EC2_METADATA_DISABLED": "true"}
    with ExitStack() as held:
        yield request.param(folder, held, environment)


@pytest.fixture(scope="module")
def uncut(store: Store, run: Path) -> tuple[Contents, int]:
    """What a whole export leaves, and how many octets it sends."""
    store.make("uncut")
    store.valve.set()
    assert store.export(run, "uncut") == (0, "")
    found = store.contents("uncut")
    assert found and max(found.values()) == 1
    return found, store.valve.passed


def state(run: Path) -> State:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.rglob("*") if path.is_file()}


def again(store: Store, run: Path, name: str, uncut: tuple[Contents, int], before: State, share: float) -> None:
    """What was cut is not whole; done again it is, and the run is what it was."""
    expected, octets = uncut
    cut = store.contents(name)
    assert cut != expected
    assert share < 0.5 or cut, "it was cut in the middle"
    store.valve.set()
    assert store.export(run, name) == (0, "")
    assert store.contents(name) == expected
    assert store.sends_again or share < 0.5 or store.valve.passed < octets, "what is there is not sent again"
    assert state(run) == before


@pytest.mark.parametrize(
    "share", [pytest.param(0.1, marks=pytest.mark.long), 0.5, pytest.param(0.9, marks=pytest.mark.long)]
)
def test_an_export_that_is_killed_goes_on(store: Store, run: Path, uncut: tuple[Contents, int], share: float) -> None:
    name, before = f"killed{share * 10:.0f}", state(run)
    store.make(name)
    store.valve.set(int(uncut[1] * share))
    with ended(store.start(run, name)) as exporting:
        assert store.valve.reached.wait(PATIENCE_S)
        exporting.send_signal(signal.SIGKILL)
        assert exporting.wait(servers.WAIT_S) == -signal.SIGKILL
    store.valve.released.set()
    again(store, run, name, uncut, before, share)


@pytest.mark.parametrize("store", [mariadb], indirect=True, ids=["mariadb"])
def test_rows_that_were_not_noted_yet_are_there_once(store: Store, run: Path, uncut: tuple[Contents, int]) -> None:
    """MariaDB has them, and what says so was not sent: both are one transaction."""
    store.make("unnoted")
    before = state(run)
    store.valve.set(before=(b"INSERT INTO parts", 4))
    with ended(store.start(run, "unnoted")) as exporting:
        assert store.valve.reached.wait(PATIENCE_S)
        exporting.send_signal(signal.SIGKILL)
        assert exporting.wait(servers.WAIT_S) == -signal.SIGKILL
    store.valve.released.set()
    again(store, run, "unnoted", uncut, before, 0.5)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_server_that_goes_is_one_line(store: Store, run: Path, uncut: tuple[Contents, int], share: float) -> None:
    name, before = f"gone{share * 10:.0f}", state(run)
    store.make(name)
    store.valve.set(int(uncut[1] * share), breaks=True)
    code, said = store.export(run, name)
    assert code == 3, said
    assert said.count("\n") == 1
    assert said.startswith(f"trifecta: {store.url.partition('://')[0]}://")
    assert "secret-key" not in said
    assert state(run) == before
    again(store, run, name, uncut, before, share)
