"""Caddy of 2022: its adapter, and the program itself where it was built (``trifecta get caddy-2022``)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.workloads import drive
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.registry import ONLY_BY_NAME, SERVERS
from trifecta.implementations.server import ServerOptions, Site, Unsupported
from trifecta.implementations.servers.caddy_2022 import RECIPE, Caddy2022
from trifecta.lab.certificates import make_certificates
from trifecta.store.views import connect

built = pytest.mark.skipif(not RECIPE.installed(), reason=RECIPE.missing())

STUDY = """\
study: old
workload: {kind: requests, response: 100 kB, in_flight: 4, requests: 12}
factors:
  protocol: [HTTP/1.1, HTTP/2, HTTP/3]
  path: [clean]
  connection: [reused, new]
  server: [caddy-2022]
baseline: HTTP/2
paths: {clean: {}}
blocks: {at_least: 1, at_most: 1}
budget: 2 min
"""


def test_without_the_program_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path))
    with pytest.raises(Unsupported, match=r"run: trifecta get caddy-2022$"):
        Caddy2022().find()


def test_a_program_that_does_not_run_says_how_to_get_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RECIPE, "program", lambda: tmp_path / "none")
    with pytest.raises(Unsupported, match=r"caddy-2022 does not run .*trifecta get caddy-2022 --force$"):
        Caddy2022().find()


def test_any_never_means_a_program_of_another_year() -> None:
    assert "caddy-2022" in SERVERS
    assert {"caddy-2022", "hypercorn-2023", "python-client-2023"} <= ONLY_BY_NAME


def test_modules_are_those_of_the_release_that_was_current_in_december_2022() -> None:
    text = (PROGRAMS / "caddy-2022" / "go.mod").read_text(encoding="utf-8")
    assert "github.com/caddyserver/caddy/v2 v2.6.2\n" in text
    assert "github.com/lucas-clemente/quic-go v0.29.2 " in text
    assert RECIPE.needs() == "1.19"


@built
def test_it_is_the_release_and_takes_its_configuration(tmp_path: Path) -> None:
    adapter = Caddy2022()
    assert adapter.find() == "2.6.2"
    (tmp_path / "state").mkdir()
    certificates = make_certificates(tmp_path / "pki", ["caddy-2022.lab"], [])
    site = Site(tmp_path / "site", certificates, "127.0.0.1", 9443, tmp_path / "state")
    command = adapter.command(site, ServerOptions(read_timeout_ns=1_000_000_000))
    done = subprocess.run(
        [command.arguments[0], "validate", "--config", site.state / "caddy.json"],
        capture_output=True, text=True, check=False, env={**command.environment, "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@built
@pytest.mark.lab
def test_a_study_measures_it_over_every_protocol(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text(STUDY, encoding="utf-8")
    code, _, outcome, errors = drive.finish(tmp_path / "run", timeout_s=240, study=str(tmp_path / "old.yaml"))
    assert (code, outcome["trials"]) == (0, 8), errors
    rows = connect(tmp_path / "run").execute("select protocol, samples, errors, checks_json from trials").fetchall()
    assert {row[0] for row in rows} == {"h1", "h2", "h3"}
    for protocol, samples, failures, checks in rows:
        assert (samples, failures) == (12, 0), protocol
        failed = {check["check"] for check in json.loads(checks) if check["status"] == "fail"}
        assert not failed & {"protocol", "same_work", "errors", "parity"}, checks
