"""A study with another client than the engine's own, in the lab; the engine is a stand-in, the driver is not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.implementations import outside
from tests.workloads import drive
from tests.workloads.fake_engine import stand_in
from trifecta.store.run import RunDirectory
from trifecta.store.views import connect

pytestmark = pytest.mark.lab
SETTINGS = [
    "path=clean", "server=origin", "connection=reused", "client=load,outside", "blocks.at_least=1",
    "blocks.at_most=1", "budget=2 min", "paths.clean.trial.reused.requests=20",
    "paths.clean.trial.reused.warmup=2 requests",
]  # fmt: skip
# It sends nothing, and says over which protocol it was asked to speak; over HTTP/3 it leaves two requests out.
CODE = """
import json, sys
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.server import Command

SCRIPT = "import sys, time; time.sleep(0.5); print(*sys.argv[1:]); sys.exit(sys.argv[1] == 'h1')"

class Outside(ClientAdapter):
    name = "outside"
    source = "a test"

    def find(self):
        return "7.1"

    def command(self, job):
        count = job.requests - 2 * (job.protocol == "h3")
        return Command((sys.executable, "-c", SCRIPT, job.protocol, str(count), str(job.expect_body_bytes)))

    def start_only(self, job):
        return Command((sys.executable, "-c", "import time\\nwhile time.process_time() < 0.1: pass"))

    def rows(self, job, output):
        protocol, count, octets = output.stdout.read_text().split()
        for number in range(int(count)):
            start = output.began_ns + 1000 * number
            yield {"started_ns": start, "done_ns": start + 500, "status": 200, "bytes_in": int(octets),
                   "protocol": protocol, "connection": 0}
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    package = tmp_path / "package"
    package.mkdir()
    outside.install(package, "elsewhere", "[trifecta.clients]\noutside = MODULE:Outside\n", CODE)
    path = stand_in(tmp_path / "engine")
    return {"TRIFECTA_ENGINE": str(path), "PYTHONPATH": f"{package}{os.pathsep}{drive.REPOSITORY}"}


def test_the_driver_takes_the_place_of_the_load(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "run"
    code, _, outcome, errors = drive.finish(folder, environment=environment, set=SETTINGS)
    assert code == 0, errors
    assert outcome["trials"] == 8
    run = RunDirectory.open(folder)
    assert run.facts["clients"]["outside"]["version"] == "7.1"
    found = {(row["client"], row["arm"]): row for row in run.rows()}
    assert {client for client, _ in found} == {"load", "outside"}
    for (client, _), row in found.items():
        assert row["cell"].endswith(f",client={client}")
        assert row["samples"] == (20 if client == "outside" else 18)  # the stand-in counts the warm-up in
        assert row["error"] is None
    assert found["outside", "h2"]["errors"] == 0
    assert json.loads(found["outside", "h3"]["error_classes_json"]) == {"client:missing": 2}
    load: dict[str, Any] = json.loads(found["outside", "h2"]["load_json"])
    assert load["client"] == "outside"
    assert load["run_delay_ns"] >= 0
    # Its start is measured apart and taken off.
    assert load["start_cpu_ns"] >= 0.1e9
    requests = 20 + 2  # with the warm-up
    rest_ns = max(0, load["cpu_user_ns"] + load["cpu_system_ns"] - load["start_cpu_ns"])
    assert found["outside", "h2"]["client_cpu_ns_per_request"] == rest_ns / requests
    assert "start_cpu_ns" not in json.loads(found["load", "h2"]["load_json"])
    failed = {(scope, check) for scope, check, _ in outcome["failed"]}
    # It sent nothing, which only the kernel's counters tell.
    assert (found["outside", "h2"]["trial"], "protocol") in failed
    assert (found["outside", "h3"]["trial"], "errors") in failed
    assert not any((found["load", arm]["trial"], "protocol") in failed for arm in ("h1", "h2", "h3", "h2#aa"))
    views = connect(folder)
    assert views.execute("SELECT client, count(*) FROM trials GROUP BY 1 ORDER BY 1").fetchall() == [
        ("load", 4), ("outside", 4),
    ]  # fmt: skip
    followed = views.execute(
        "SELECT DISTINCT process FROM resources WHERE trial = ?", [found["outside", "h2"]["trial"]]
    )
    assert {"client", "driver", "link", "server"} <= {name for (name,) in followed.fetchall()}
    assert "outside ended with code 1" in (folder / "logs" / "client-outside.log").read_text()
    assert not list(folder.rglob(".tmp-*"))
