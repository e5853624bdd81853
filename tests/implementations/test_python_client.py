"""h11, h2 and aioquic as a client: its adapter, and, where its packages are in the cache, the program itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.implementations.check_client import CheckClient  # which has a test with pytest.mark.lab
from tests.implementations.jobs import job, output
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.clients import python_client, python_client_2023
from trifecta.implementations.clients.python_client import PythonClient
from trifecta.implementations.clients.python_client_2023 import PythonClient2023
from trifecta.implementations.registry import CLIENTS, RECIPES
from trifecta.implementations.server import Unsupported
from trifecta.store.schema import SAMPLES

# As the program wrote it, over HTTP/2.
RECORDED = """\
{"columns": ["connection", "started_ns", "connect_start_ns", "tcp_connected_ns", "secured_ns", "request_sent_ns", \
"first_byte_ns", "done_ns", "protocol", "tls_version", "cipher", "resumed", "zero_rtt", "stream", "status", \
"bytes_out", "bytes_in", "error"]}
[0,116043876,100000000,104224417,113845134,116527181,118543034,119497606,"h2","1.3","TLS_AES_128_GCM_SHA256",false,false,1,200,0,1000,null]
[0,119600000,null,null,null,119700000,null,null,"h2","1.3","TLS_AES_128_GCM_SHA256",false,false,3,null,0,0,"reset"]
{"end": {"rows": 2, "ended": "requests", "connections_opened": 1, "connections_lost_idle": 0, "cpu_ns": 35499000}}
"""


def test_it_is_in_the_tables() -> None:
    assert isinstance(CLIENTS["python-client"], PythonClient)
    assert RECIPES["python-client"] is python_client.RECIPE
    assert isinstance(CLIENTS["python-client-2023"], PythonClient2023)
    assert RECIPES["python-client-2023"] is python_client_2023.RECIPE


def test_recorded_output_becomes_rows(tmp_path: Path) -> None:
    rows = list(PythonClient().rows(job(tmp_path, requests=2), output(tmp_path, RECORDED)))
    assert [(row["stream"], row["status"], row["error"]) for row in rows] == [(1, 200, None), (3, None, "reset")]
    assert rows[0]["tcp_connected_ns"] == 104224417
    assert set(rows[0]) <= set(SAMPLES.names)


def test_packages_that_are_not_there_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path))
    for client in (PythonClient(), PythonClient2023()):
        for asked in (client.find, lambda client=client: client.command(job(tmp_path))):
            with pytest.raises(Unsupported, match=f"trifecta get {client.name}$"):
                asked()


def test_every_package_of_the_lock_has_a_checksum() -> None:
    lock = python_client.RECIPE.lock.read_text(encoding="utf-8")
    names = [line for line in lock.splitlines() if "==" in line and not line.startswith(("#", " "))]
    assert {"aioquic", "h2", "h11"} <= {name.split("==")[0] for name in names}
    assert lock.count("--hash=sha256:") >= len(names)
    assert all(name.endswith("\\") for name in names)


def test_a_group_that_aioquic_does_not_know_is_unsupported() -> None:
    PythonClient().check_workload(RequestsWorkload(), "h3", "new")
    with pytest.raises(Unsupported, match="X25519MLKEM768"):
        PythonClient().check_workload(RequestsWorkload(key_exchange="X25519MLKEM768"), "h2", "new")


@pytest.mark.parametrize(
    ("version", "asks"),
    [("1.3", ["Groups = X25519", "Ciphersuites = TLS_AES_128_GCM_SHA256"]), ("1.2", ["Groups = X25519:P-256", ""])],
)
def test_openssl_is_told_what_ssl_has_no_words_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, asks: list[str]
) -> None:
    monkeypatch.setattr(python_client.RECIPE, "python", lambda: tmp_path / "python")
    asked = job(tmp_path, tls_version=version)
    command = PythonClient().command(asked)
    config = Path(command.environment["OPENSSL_CONF"])
    assert config.parent == asked.state
    assert config.read_text().splitlines()[-2:] == asks
    assert json.loads(Path(command.arguments[-1]).read_text())["tls_version"] == version


class TestPythonClient(CheckClient):
    adapter = PythonClient()


@pytest.mark.skipif(not python_client_2023.RECIPE.installed(), reason=python_client_2023.RECIPE.missing())
class TestPythonClient2023(CheckClient):
    adapter = PythonClient2023()

    def test_a_group_without_a_key_share_is_refused_over_quic_alone(self) -> None:
        asked = RequestsWorkload(key_exchange="secp384r1")
        self.adapter.check_workload(asked, "h2", "new")
        with pytest.raises(Unsupported, match="secp384r1"):
            self.adapter.check_workload(asked, "h3", "new")

    def test_it_has_the_libraries_of_its_spring(self) -> None:
        assert self.adapter.find() == "aioquic 0.9.21, h2 4.1.0, h11 0.14.0"
