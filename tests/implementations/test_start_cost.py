"""What a start of a foreign client costs is measured, and not known is not zero."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.implementations.test_curl import job
from trifecta.implementations.client import ClientAdapter, Job, Output, Row
from trifecta.implementations.clients.start_cost import start_cpu_ns
from trifecta.implementations.registry import CLIENTS
from trifecta.implementations.server import Command, Unsupported
from trifecta.lab.certificates import make_certificates

BURN = "import time\nwhile time.process_time() < 0.2: pass\n"


class Started(ClientAdapter):
    name, source = "started", "a test"

    def __init__(self, start: Command | None) -> None:
        self.start = start

    def find(self) -> str:
        return "1"

    def command(self, job: Job) -> Command:
        raise NotImplementedError

    def rows(self, job: Job, output: Output) -> Iterator[Row]:
        raise NotImplementedError

    def start_only(self, job: Job) -> Command | None:
        return self.start


def test_the_cpu_time_of_a_start_counts_all_it_runs_and_no_waiting(tmp_path: Path) -> None:
    inner = (
        f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {BURN!r}], check=True); time.sleep(0.3)"
    )
    used = start_cpu_ns(Started(Command((sys.executable, "-c", inner))), job(tmp_path))
    assert used is not None
    assert used >= 0.2e9


@pytest.mark.parametrize(
    "start",
    [None, Command(("/nowhere/at-all",)), Command((sys.executable, "-c", "raise SystemExit(3)"))],
    ids=["none", "not there", "fails"],
)
def test_what_cannot_be_measured_is_not_known(tmp_path: Path, start: Command | None) -> None:
    assert start_cpu_ns(Started(start), job(tmp_path)) is None


@pytest.mark.parametrize("name", [name for name in CLIENTS if CLIENTS.package(name) == "trifecta"])
@pytest.mark.parametrize("protocol", ["h1", "h2", "h3"])
def test_every_client_of_ours_can_be_started_alone(tmp_path: Path, name: str, protocol: str) -> None:
    adapter = CLIENTS[name]
    try:
        adapter.find()
    except Unsupported as error:
        pytest.skip(str(error))
    authority = make_certificates(tmp_path / "pki", ["origin.lab"], ["10.77.0.2"]).authority
    asked = job(tmp_path, protocol=protocol, streams=1, ca_file=authority)
    used = start_cpu_ns(adapter, asked)
    assert used is not None
    assert used > 0
