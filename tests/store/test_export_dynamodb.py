"""DynamoDB holds every row of a run once with its values, whatever was there or was cut; nothing secret is said."""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
import sys
import time
import urllib.request
from collections import Counter
from decimal import Decimal
from types import SimpleNamespace

import pytest

from tests.report.synthetic import Shape, write_run
from tests.store import servers
from tests.store.between import between as passing
from trifecta.design import extras
from trifecta.design.errors import CannotError, UserError
from trifecta.store import views
from trifecta.store.exports import dynamodb, dynamodb_server, send, tables
from trifecta.store.exports.dynamodb_server import Place
from trifecta.store.exports.tables import Identity, Table

# With this seed some requests fail.
SMALL = Shape(blocks=4, samples_per_trial=20, seed=3, paths=("rough",), connections=("new",), servers=("origin",))
REGION = "eu-west-1"
SIGNED = ("AWS4-HMAC-SHA256 Credential=a/20260102/eu-west-1/dynamodb/aws4_request, "
          "SignedHeaders=host;x-amz-date;x-amz-target, Signature=a")  # fmt: skip
HIDDEN = ("wJalrXUtnFEMI/K7MDENG", "FwoGZXIvYXdzEBYaDH")
VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION",
             "AWS_DEFAULT_REGION", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_ENDPOINT_URL",
             "AWS_ENDPOINT_URL_DYNAMODB")  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("made") / "run", SMALL)


@pytest.fixture(scope="module")
def shorter(run, tmp_path_factory):
    """By name the same run without some of its trials, and without verdicts."""
    made = {}
    for name, gone in (("without the last", slice(13, None)), ("without the first", slice(0, 3))):
        made[name] = tmp_path_factory.mktemp("shorter") / run.name
        shutil.copytree(run, made[name])
        for folder in ("trials", "samples"):
            for path in sorted((made[name] / folder).iterdir())[gone]:
                path.unlink()
        (made[name] / "verdicts.parquet").unlink()
    return made


@pytest.fixture
def home(tmp_path, loader, monkeypatch):
    """A home with credentials, whose secrets are HIDDEN and in no variable."""
    monkeypatch.setattr("botocore.session.create_loader", lambda *_: loader)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(
        f"[default]\naws_access_key_id = AKIAUSER\naws_secret_access_key = {HIDDEN[0]}\n"
        f"aws_session_token = {HIDDEN[1]}\n"
    )
    return tmp_path / ".aws"


@pytest.fixture(scope="module")
def loader():
    """What boto3 knows of services, read once: each client reads it anew, for longer than it asks."""
    loaders = pytest.importorskip("botocore.loaders", reason=f"boto3 is missing; run: {extras.remedy('exports')}")
    return loaders.create_loader()


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """Of a real server of the protocol."""
    with servers.dynalite(tmp_path_factory.mktemp("dynalite")) as there:
        yield there


@pytest.fixture
def between(port, home, monkeypatch):
    """What the export asks, in front of that server. A part has the samples of two trials."""
    monkeypatch.setattr(dynamodb, "_ROWS", 50)
    monkeypatch.setattr(dynamodb_server, "_LOOK_S", 0.03)
    with passing(port) as one:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"http://127.0.0.1:{one.server_port}")
        yield one


@pytest.fixture
def everything(port):
    """Asks the server itself: by table of a prefix its items by their keys, without tables that are empty."""

    def ask(operation, **what):
        head = {"content-type": "application/x-amz-json-1.0", "x-amz-target": f"DynamoDB_20120810.{operation}",
                "x-amz-date": "20260102T030405Z", "authorization": SIGNED}  # fmt: skip
        request = urllib.request.Request(f"http://127.0.0.1:{port}/", json.dumps(what).encode(), head)
        with urllib.request.urlopen(request, timeout=servers.WAIT_S) as answer:
            return json.load(answer)

    def pages(operation, last, first, **what):
        """Each page of an answer; `last` is what a page names where another follows, which asks for it by `first`."""
        page = ask(operation, **what)
        yield page
        while last in page:
            page = ask(operation, **what, **{first: page[last]})
            yield page

    def asked(prefix):
        listed = pages("ListTables", "LastEvaluatedTableName", "ExclusiveStartTableName")
        names = [name for page in listed for name in page["TableNames"] if name.startswith(f"{prefix}-")]
        found = {}
        for name in names:
            every = pages("Scan", "LastEvaluatedKey", "ExclusiveStartKey", TableName=name, ConsistentRead=True)
            items = [item for page in every for item in page["Items"]]
            by_key = {(each["part"]["S"], int(each["row"]["N"])): each for each in items}
            found[name.removeprefix(f"{prefix}-")] = by_key
        return {name: items for name, items in found.items() if items}

    return asked


def url(prefix):
    return f"dynamodb://{REGION}/{prefix}"


def refusing(writes, table=""):
    """Of everything after so many batches, or those of one table, with a fault of the server."""
    counted = iter(range(sys.maxsize))

    def answer(operation, asked):
        if operation != "BatchWriteItem" or not next(iter(asked["RequestItems"])).endswith(table):
            return None
        if next(counted) < writes:
            return None
        return 500, {"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "later"}

    return answer


def typed(value):
    """What a value of a row is in DynamoDB."""
    if value is None or (isinstance(value, float) and math.isinf(value)):
        return None
    if isinstance(value, bool | str):
        return ("BOOL" if isinstance(value, bool) else "S"), value
    return "N", Decimal(repr(value))


def test_every_row_is_there_with_its_values(run, between, everything):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    told = send(url("all"), run)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    there, who = everything("all"), tables.identity(run)
    kinds = set()
    with views.connect(run) as opened:
        every = tables.tables(opened)
        assert set(there) == {"runs", *(table.name for table in every)}
        for table in every:
            columns = ", ".join(tables.portable(name, kind) for name, kind in table.columns)
            rows = opened.execute(f"SELECT {columns} {tables.rows(table.name)}").fetchall()
            counted = Counter()
            for row in rows:
                values = dict(zip(table.names, row, strict=True))
                part = f"{who.run}/{values['trial']}" if values.get("trial") else who.run
                item = there[table.name][part, counted[part]]
                counted[part] += 1
                pairs = {name: next(iter(one.items())) for name, one in item.items() if name not in ("part", "row")}
                found = {name: (kind, Decimal(one) if kind == "N" else one) for name, (kind, one) in pairs.items()}
                assert found == {name: typed(value) for name, value in values.items() if typed(value)}
                kinds |= {(type(value), typed(value) is None) for value in row}
            assert len(there[table.name]) == len(rows)
            assert f"{url('all')}-{table.name}: {len(rows)} rows, part={who.run}" in told
        about = there["runs"][who.run, 0]
        assert (about["study"]["S"], about["run"]["S"], about["whole"]["BOOL"]) == (who.study, who.run, True)
        assert {name: int(rows["N"]) for name, rows in about["rows"]["M"].items()} == {
            table.name: opened.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0] for table in every
        }
    assert {(float, True), (float, False), (bool, False), (str, False), (int, False), (type(None), True)} <= kinds
    assert not [secret for secret in HIDDEN if secret in repr(there)]


def test_twice_is_there_once_and_sends_nothing(run, between, everything):
    told = send(url("twice"), run)
    first = everything("twice")
    assert len([key for key in first["runs"] if key[0].endswith("/samples")]) > 2, "more parts than one"
    assert len(between.written()) == len(set(between.written()))
    between.asked.clear()
    assert send(url("twice"), run) == told
    assert set(between.operations()) == {"DescribeTable", "GetItem", "Query"}
    assert everything("twice") == first


@pytest.mark.parametrize("writes", [0, 20, *(pytest.param(number, marks=pytest.mark.long) for number in (1, 2, 9, 33))])
def test_what_was_cut_goes_on(run, between, everything, writes):
    send(url("uncut"), run)
    prefix = f"cut{writes}"
    between.asked.clear()
    between.answer = refusing(writes)
    with pytest.raises(CannotError, match=rf"^{url(prefix)}: .*later; fix it and run this again"):
        send(url(prefix), run)
    assert between.operations()["BatchWriteItem"] == writes + 1, "a fault is not tried again"
    between.answer = lambda *_: None
    cut = everything(prefix)
    if writes:
        about = cut["runs"].pop((tables.identity(run).run, 0))
        assert not about["whole"]["BOOL"]
    already = {
        (f"{prefix}-{part.rpartition('/')[2]}", trial)
        for (part, _), item in cut.get("runs", {}).items()
        for trial in item["rows"]["M"]
        if item["digest"]["S"] != "begun"
    }
    between.asked.clear()
    send(url(prefix), run)
    assert everything(prefix) == everything("uncut")
    again = {(table, part.partition("/")[2] or "/") for table, part, _ in between.written()}
    assert not already & again
    assert bool(already) == (writes > 9)


@pytest.mark.parametrize(
    ("name", "writes", "table"),
    [
        ("without the last", 2, ""),
        ("without the first", 5, "-samples"),
        ("without the last", None, ""),
        *(
            pytest.param(name, *cut, marks=pytest.mark.long)
            for name, *cut in (
                ("without the first", 2, ""),
                ("without the last", 1, "-samples"),
                ("without the first", 1, "-samples"),
                ("without the last", 5, "-samples"),
                ("without the first", None, ""),
            )
        ),
    ],
)
def test_what_an_earlier_longer_state_left_is_removed(run, shorter, between, everything, name, writes, table):
    """It was whole, or cut itself, even in the rows of a trial; and it comes back."""
    prefix, wanted = f"left{writes}{table}{name.rpartition(' ')[2]}", f"less{name.rpartition(' ')[2]}"
    send(url(wanted), shorter[name])
    if writes is not None:
        between.answer = refusing(writes, table)
        with pytest.raises(CannotError):
            send(url(prefix), run)
        between.answer = lambda *_: None
    else:
        send(url(prefix), run)
    assert everything(prefix) != everything(wanted)
    between.answer = refusing(3)
    with pytest.raises(CannotError):  # what goes is cut, too
        send(url(prefix), shorter[name])
    between.answer = lambda *_: None
    send(url(prefix), shorter[name])
    between.asked.clear()
    send(url(prefix), shorter[name])
    assert "BatchWriteItem" not in between.operations()
    there, expected = everything(prefix), everything(wanted)
    assert there.pop("runs")[tables.identity(run).run, 0] == expected.pop("runs")[tables.identity(run).run, 0]
    assert there == expected
    send(url(prefix), run)
    send(url("uncut"), run)
    there, expected = everything(prefix), everything("uncut")
    assert there.pop("runs").keys() == expected.pop("runs").keys()
    assert there == expected


def test_what_is_left_over_is_sent_again_with_growing_pauses(run, between, everything, monkeypatch):
    send(url("uncut"), run)
    pauses, calls = [], iter(range(sys.maxsize))
    monkeypatch.setattr(dynamodb_server, "time", SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic))

    def some(operation, asked):
        """Ten of each batch are taken; of others nothing, with an error that says so."""
        if operation != "BatchWriteItem":
            return None
        ((table, requests),) = asked["RequestItems"].items()
        if next(calls) % 3 == 0:
            return 400, {"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
                         "message": "slower"}  # fmt: skip
        between.forward({"RequestItems": {table: requests[:10]}})
        return 200, {"UnprocessedItems": {table: requests[10:]} if requests[10:] else {}}

    between.answer = some
    send(url("slow"), run)
    assert everything("slow") == everything("uncut")
    between.answer = lambda *_: None
    asked = [pause for pause in pauses if pause != dynamodb_server._LOOK_S]
    assert {0.05, 0.1, 0.2} <= set(asked)
    for before, after in itertools.pairwise(asked):
        assert after in (0.05, 2 * before)
    pauses.clear()
    between.asked.clear()
    between.answer = lambda operation, asked: (
        (200, {"UnprocessedItems": asked["RequestItems"]}) if operation == "BatchWriteItem" else None
    )
    with pytest.raises(CannotError, match=r"never-runs is asked for more than it lets through, for 51 s") as error:
        send(url("never"), run)
    assert "\n" not in str(error.value)
    waited = [pause for pause in pauses if pause != dynamodb_server._LOOK_S]
    assert waited == [0.05 * 2**n for n in range(10)]
    assert between.operations()["BatchWriteItem"] == 11


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("UnrecognizedClientException", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("AccessDeniedException", "the user needs DescribeTable, CreateTable"),
        ("InternalServerError", "fix it and run this again"),
    ],
)
def test_who_is_not_let_in_is_one_line_without_a_secret(run, between, code, remedy):
    between.answer = lambda *_: (
        400, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": f"not\n{HIDDEN[0]}, {HIDDEN[1]}"}
    )  # fmt: skip
    with pytest.raises(CannotError, match=rf"^{url('closed')}: .*{code}.* not \.\.\., \.\.\.; {remedy}") as error:
        send(url("closed"), run)
    assert "\n" not in str(error.value)
    assert not [secret for secret in HIDDEN if secret in str(error.value)]
    assert error.value.exit_code == 3
    assert len(between.asked) == 1, "nothing is tried again"


def test_a_server_that_is_away_is_one_line(run, home, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://me:very-hidden@127.0.0.1:{servers.free_port()}")
    with pytest.raises(CannotError, match=rf"^{url('away')}: Could not connect .*; fix it") as error:
        send(url("away"), run)
    assert "\n" not in str(error.value)
    assert "very-hidden" not in str(error.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "very-hidden")
    with pytest.raises(UserError, match="AWS_ENDPOINT_URL is no URL") as error:
        send(url("away"), run)
    assert "very-hidden" not in str(error.value)


def test_who_has_no_credentials_is_told_so(run, home, monkeypatch):
    (home / "credentials").unlink()
    with pytest.raises(CannotError, match=rf"^{url('x')}: no credentials are found; set AWS_ACCESS_KEY_ID"):
        send(url("x"), run)
    monkeypatch.setenv("AWS_PROFILE", "none")
    with pytest.raises(CannotError, match=rf"^{url('x')}: The config profile \(none\) could not be found"):
        send(url("x"), run)


def test_without_the_library_the_extra_is_named(run, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] in ("boto3", "botocore")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(CannotError, match=r"the package boto3 .*; run: pip install 'trifecta\[exports\]'"):
        send(url("x"), run)


def test_a_table_with_other_keys_is_left_alone(run, between, port):
    import boto3

    client = boto3.client("dynamodb", region_name=REGION, endpoint_url=f"http://127.0.0.1:{port}")
    client.create_table(
        TableName="taken-runs", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "part", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "part", "AttributeType": "S"}],
    )  # fmt: skip
    with pytest.raises(CannotError, match="taken-runs has other keys than part and row; choose another prefix"):
        send(url("taken"), run)
    assert "BatchWriteItem" not in between.operations()


@pytest.mark.parametrize(
    "where", ["eu-west-1", "eu-west-1/", "/x", "eu-west-1/a/b", "key@eu-west-1/a", "eu-west-1:80/a", "eu-west-1/a?b=c",
              "eu-west-1/a b", f"eu-west-1/{'a' * 201}"]
)  # fmt: skip
def test_a_url_of_another_form_is_refused(run, where):
    with pytest.raises(UserError, match=re.escape("the URL has the form dynamodb://REGION/PREFIX")):
        send(f"dynamodb://{where}", run)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, {"BOOL": True}), (-(2**63), {"N": "-9223372036854775808"}), (0.1, {"N": "0.1"}), (0.0, {"N": "0.0"}),
        (1e-7, {"N": "1E-7"}), (1 / 3, {"N": "0.3333333333333333"}), (-1.5e125, {"N": "-1.5E+125"}), (None, None),
        (math.inf, None), (-math.inf, None), (math.nan, None), (1e126, {"S": "1e+126"}), (-1e-131, {"S": "-1e-131"}),
        ("", {"S": ""}), ("é", {"S": "é"}),
    ],
)  # fmt: skip
def test_a_value_is_exact_or_left_out(value, expected):
    assert dynamodb.attribute(value) == expected


def test_a_column_named_as_a_key_is_called_otherwise():
    filling = dynamodb.Filling(Place(None, "", "p"), Identity("s", "r"))
    (request,) = filling._items(Table("t", (("part", "VARCHAR"), ("row", "BIGINT"))), [("a", 7)])
    item = {"part": {"S": "r"}, "row": {"N": "0"}, "part_told": {"S": "a"}, "row_told": {"N": "7"}}
    assert request == {"PutRequest": {"Item": item}}
