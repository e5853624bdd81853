"""Clients that are wrong on purpose: each is a failed row with its reason, and the next client is untouched."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.implementations import outside
from tests.lab.inside import run_inside
from tests.workloads import drive
from tests.workloads.test_checks_fail import _engine_missing
from trifecta.store.run import RunDirectory

pytestmark = [pytest.mark.lab, pytest.mark.skipif(bool(_engine_missing()), reason=_engine_missing() or "built")]
REPOSITORY = Path(__file__).resolve().parents[2]
ONE = """
class {name}(Outside):
    name = {named!r}
    protocols = frozenset({protocols})

    def command(self, job):
        return Command(({program}))

    def rows(self, job, output):
        {rows}
"""
BASE = """
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.server import Command, Unsupported

class Outside(ClientAdapter):
    source = "a test"
    def find(self):
        return "1"

def answered(job, output, protocol):
    yield {"started_ns": output.began_ns, "connect_start_ns": output.began_ns, "request_sent_ns": output.began_ns,
           "done_ns": output.ended_ns, "protocol": protocol, "status": 200, "bytes_in": job.expect_body_bytes,
           "bytes_out": job.request_body_bytes}
"""
# name -> (program, rows, class of the error or None when all is well)
CLIENTS: dict[str, tuple[str, str, str | None]] = {
    "bad-silent": ('"true",', "return iter(())", "client:missing"),
    "bad-crash": ('"sh", "-c", "echo out of luck >&2; exit 9"', "return iter(())", "client:crashed"),
    "bad-liar": ('"true",', 'return answered(job, output, "h1")', "protocol"),
    "bad-rows": ('"true",', "raise ValueError('its output is not understood')", "client"),
    "bad-missing-program": ('"/nowhere/program",', "return iter(())", "client"),
    "well": ('"true",', "return answered(job, output, job.protocol)", None),
}


def spoken(name: str) -> list[str]:
    """Of who says nothing of a protocol one is as good as three."""
    return ["h1", "h2", "h3"] if name in ("bad-liar", "well") else ["h2"]


def test_bad_clients_are_rows_with_reasons_and_leave_the_next_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    names = {name: name.title().replace("-", "") for name in CLIENTS}
    code = BASE + "".join(
        ONE.format(name=names[name], named=name, program=program, rows=rows, protocols=spoken(name))
        for name, (program, rows, _) in CLIENTS.items()
    )
    entries = "[trifecta.clients]\n" + "".join(f"{name} = MODULE:{cls}\n" for name, cls in names.items())
    outside.install(package, "elsewhere", entries, code)
    monkeypatch.setenv("PYTHONPATH", f"{package}{os.pathsep}{REPOSITORY}")
    done = run_inside(
        f"""
        import dataclasses, json
        from pathlib import Path
        from trifecta.design.conformance import QUICK
        from trifecta.implementations.registry import CLIENTS
        from trifecta.lab.engine import find_engine
        from trifecta.workloads.conformance.probe import Probe, Subjects, standalone_bench
        clients = {{name: CLIENTS[name] for name in {list(CLIENTS)!r}}}
        with standalone_bench(find_engine(), Path({str(tmp_path)!r}) / "out", [], lambda: False) as bench:
            results = Probe(bench, Subjects({{}}, clients, QUICK), lambda *_: None).run()
        print(json.dumps([dataclasses.asdict(one) for one in results]))
        """,
        timeout_s=150,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    for name, (_, _, error) in CLIENTS.items():
        mine = [one for one in results if one["name"] == name and one["outcome"] != "unsupported"]
        assert [one["protocol"] for one in mine] == spoken(name), name
        if error is None:
            assert {one["outcome"] for one in mine} == {"pass"}
        elif error == "protocol":
            by_protocol = {one["protocol"]: one["error"] for one in mine}
            assert by_protocol == {"h1": None, "h2": "protocol", "h3": "protocol"}
        else:
            assert {(one["outcome"], one["error"]) for one in mine} == {("fail", error)}, name
            assert all(one["reason"] and "\n" not in one["reason"] for one in mine)
            folder = tmp_path / "out" / mine[0]["evidence"]
            assert (folder / "client.log").exists()
            assert (folder / "result.json").exists()
    said = {one["name"]: one["reason"] for one in results if one["protocol"] == "h2"}
    assert said["bad-liar"] == "HTTP/2 was requested, but it used HTTP/1.1"
    assert "its output is not understood" in said["bad-rows"]
    log = next((tmp_path / "out" / "conformance").glob("client-bad-crash-*")) / "client.log"
    assert "out of luck" in log.read_text()


OWN = """
class CutsLarge(Outside):
    name = "cuts-large"
    def command(self, errand):
        return Command(("true",))
    def rows(self, errand, output):
        for row in answered(errand, output, errand.protocol):
            yield row | {"bytes_in": row["bytes_in"] - (row["bytes_in"] > 10_000)}
"""


@pytest.mark.parametrize("depth", ["quick", pytest.param("full", marks=pytest.mark.long)])
def test_the_studys_own_requests_are_probed_of_its_clients(tmp_path: Path, depth: str) -> None:
    """1 kB came whole over every protocol, and every trial of 20 kB failed."""
    package = tmp_path / "package"
    package.mkdir()
    outside.install(package, "elsewhere", "[trifecta.clients]\ncuts-large = MODULE:CutsLarge\n", BASE + OWN)
    settings = [
        *drive.SMALL, "client=load,cuts-large", "protocol=h2,h3", "workload.response=20 kB",
        "workload.method=POST", "workload.request=5 kB", f"conformance={depth}",
        "paths.clean.trial.reused.requests=2", "paths.clean.trial.reused.warmup=1 requests",
    ]  # fmt: skip
    environment = {"PYTHONPATH": f"{package}{os.pathsep}{REPOSITORY}"}
    code, _, _, errors = drive.finish(tmp_path / "run", environment=environment, set=settings)
    assert code == 0, errors
    rows = [one for one in RunDirectory.open(tmp_path / "run").conformance() if one.name == "cuts-large"]
    found = {(one.protocol, one.object): one for one in rows}
    assert {found[protocol, "get_1000"].outcome for protocol in ("h1", "h2", "h3")} == {"pass"}
    for protocol in ("h1", "h2", "h3"):
        own = found[protocol, "own"]
        assert (own.outcome, own.label, own.peer) == ("fail", "POST 20 kB (own)", "origin")
        assert own.reason == "19999 octets of content arrived where 20000 were expected"
        assert own.evidence is not None
