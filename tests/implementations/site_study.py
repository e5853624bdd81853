"""A small real study of one server, for the tests of its adapter: GET and POST over all three protocols in the lab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.workloads import drive
from trifecta.store.views import connect

STUDY = """\
study: site
workload: {{kind: requests, response: 100 kB, in_flight: 4, requests: 12}}
factors:
  protocol: [HTTP/1.1, HTTP/2, HTTP/3]
  path: [clean]
  connection: [reused, new]
  server: [{name}]
  method: [GET, POST]
baseline: HTTP/2
paths: {{clean: {{}}}}
blocks: {{at_least: 1, at_most: 1}}
budget: 2 min
"""


def measure(name: str, tmp_path: Path) -> list[dict[str, Any]]:
    """Run it; a row for each trial, with what is recorded of the server under ``server``."""
    (tmp_path / "site.yaml").write_text(STUDY.format(name=name))
    code, _, outcome, errors = drive.finish(tmp_path / "run", timeout_s=240, study=str(tmp_path / "site.yaml"))
    assert code == 0, errors
    assert outcome["trials"] == 16
    trials = connect(tmp_path / "run").execute(
        "select protocol, factors_json, samples, errors, error_classes_json, server_json, checks_json from trials"
    )
    names = [column[0] for column in trials.description]
    rows = [dict(zip(names, row, strict=True)) for row in trials.fetchall()]
    return [row | {"server": json.loads(row["server_json"]), "checks": json.loads(row["checks_json"])} for row in rows]


def assert_answered(rows: list[dict[str, Any]]) -> None:
    """Every request was answered rightly, over the protocol that was asked for, with the set-up that was asked for."""
    assert {row["protocol"] for row in rows} == {"h1", "h2", "h3"}
    for row in rows:
        assert (row["samples"], row["errors"]) == (12, 0), row
        failed = {check["check"] for check in row["checks"] if check["status"] == "fail"}
        assert not failed & {"protocol", "same_work", "errors", "parity", "drops"}, row["checks"]
        assert row["server"]["restarts"] == 0
        assert row["server"]["tls_version"] == "1.3"
        assert row["server"]["tls_library"]
