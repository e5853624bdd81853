"""Azure's object store, by Azurite, Microsoft's own emulator: twice is there once, and Arrow reads what is there."""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import urllib.request
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.report.synthetic import Shape, write_run
from tests.store import servers
from trifecta.design import extras
from trifecta.design.errors import CannotError
from trifecta.store import views
from trifecta.store.exports import object_store, send, tables

pytestmark = pytest.mark.long  # for the server, which is 100 MB
SMALL = Shape(blocks=4, samples_per_trial=40, paths=("clean",), connections=("new",), servers=("origin",))
ACCOUNT = "devstoreaccount1"  # of every Azurite, as its key is (its README)
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
VERSION = "2021-08-06"


@pytest.fixture
def azure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment of a user of the container `measured`."""
    pytest.importorskip("obstore", reason=f"obstore is missing; run: {extras.remedy('exports')}")
    (tmp_path / "azurite").mkdir()
    with servers.azurite(tmp_path / "azurite") as port:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
        monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
        monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", f"http://127.0.0.1:{port}")
        _make_container(port)
        yield


def _make_container(port: int) -> None:
    """Signed as Microsoft's "Authorize with Shared Key" says; no client of theirs is needed for one request."""
    date = formatdate(usegmt=True)
    told = f"x-ms-date:{date}\nx-ms-version:{VERSION}\n/{ACCOUNT}/{ACCOUNT}/measured\nrestype:container"
    signed = hmac.new(base64.b64decode(KEY), ("PUT" + "\n" * 12 + told).encode(), hashlib.sha256).digest()
    fields = {"x-ms-date": date, "x-ms-version": VERSION, "Content-Length": "0",
              "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(signed).decode()}"}  # fmt: skip
    where = f"http://127.0.0.1:{port}/{ACCOUNT}/measured?restype=container"
    urllib.request.urlopen(urllib.request.Request(where, method="PUT", headers=fields), timeout=servers.WAIT_S).close()


@pytest.mark.usefixtures("azure")
def test_twice_is_there_once_and_is_read(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    run = write_run(tmp_path / "run", SMALL)
    who = tables.identity(run)
    with views.connect(run) as opened:
        filled = {table.name for table in tables.tables(opened)}
        expected = opened.execute("SELECT count(*), sum(latency_ns)::BIGINT FROM samples").fetchone()
    assert {line.split("/")[4] for line in send("az://measured/lake", run)} == filled
    place = object_store.opened("az://measured/lake")
    there = place.names("")
    assert {name.split("/")[0] for name in there} == {*filled, "athena"}
    send("az://measured/lake", run)
    assert place.names("") == there
    (part,) = (name for name in there if name.startswith(f"samples/study={who.study}/run={who.run}/"))
    read = parquet.read_table(io.BytesIO(place.get(part)))
    assert (read.num_rows, sum(each.as_py() or 0 for each in read["latency_ns"])) == expected


@pytest.mark.usefixtures("azure")
def test_what_azure_refuses_is_one_line_without_the_key(tmp_path, monkeypatch):
    run = write_run(tmp_path / "run", SMALL)
    with pytest.raises(CannotError, match=r"^az://elsewhere/lake: ") as error:
        send("az://elsewhere/lake", run)
    assert "ContainerNotFound" in str(error.value)
    wrong = base64.b64encode(b"another key").decode()
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", wrong)
    with pytest.raises(CannotError, match=r"^az://measured/lake: ") as error:
        send("az://measured/lake", run)
    assert "\n" not in str(error.value) and wrong not in str(error.value)
