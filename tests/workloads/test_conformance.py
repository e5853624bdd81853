"""The conformance probe: what is judged how, what may be chosen, and healthy implementations probed in the lab."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.lab.inside import run_inside
from tests.workloads import drive
from tests.workloads.test_checks_fail import _engine_missing
from trifecta import studies
from trifecta.cli import main
from trifecta.design.conformance import CASES, LARGE, QUICK, ROUGH, ConformanceCase, cases, own_cases
from trifecta.design.errors import UserError
from trifecta.design.model import PageWorkload, RequestsWorkload
from trifecta.store.run import RunDirectory
from trifecta.workloads.conformance import evidence, standalone
from trifecta.workloads.conformance.judging import judge, read_rows, result_of

lab = pytest.mark.lab
needs_engine = pytest.mark.skipif(bool(_engine_missing()), reason=_engine_missing() or "built")
GET_1000 = next(case for case in CASES if case.name == "get_1000")
POST_1000 = next(case for case in CASES if case.name == "post_1000")
GOOD = {"protocol": "h3", "status": 200, "bytes_in": 1000, "error": None, "started_ns": 5, "done_ns": 25}


def verdict(case: ConformanceCase = GET_1000, **changes: Any) -> tuple[str, str | None, str]:
    finding = judge([GOOD | changes], case, "h3")
    return finding.outcome, finding.error, finding.reason


def test_a_whole_answer_over_the_protocol_asked_for_passes() -> None:
    finding = judge([GOOD], GET_1000, "h3")
    assert (finding.outcome, finding.error, finding.duration_ns) == ("pass", None, 20)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"protocol": "h2"}, "protocol", "HTTP/3 was requested, but it used HTTP/2"),
        ({"protocol": None}, "protocol", "what the client cannot tell"),
        ({"status": 404}, "status", "it answered 404 where 200 was expected"),
        ({"bytes_in": 999}, "length", "999 octets of content arrived where 1000 were expected"),
        ({"error": "content"}, "content", "the octets of the content are wrong"),
        ({"error": "timeout", "done_ns": None}, "timeout", "no complete response within 5 s"),
        ({"error": "tls:alpn", "done_ns": None}, "tls:alpn", "does not agree to HTTP/3"),
        ({"error": "client:crashed", "done_ns": None}, "client:crashed", "the client ended before"),
        ({"error": "status", "status": 405}, "status", "it answered 405"),
    ],
)
def test_what_is_wrong_with_an_answer_is_said(changes: dict[str, Any], error: str, words: str) -> None:
    outcome, found, reason = verdict(**changes)
    assert (outcome, found) == ("fail", error)
    assert words in reason


@pytest.mark.parametrize("status", [405, 501])
def test_a_server_that_refuses_the_method_does_not_offer_it(status: int) -> None:
    assert verdict(POST_1000, status=status, error="status")[0] == "not_offered"
    assert verdict(GET_1000, status=status, error="status")[0] == "fail"


def test_a_failed_row_is_not_hidden_by_a_good_one() -> None:
    assert judge([GOOD, GOOD | {"error": "reset"}], GET_1000, "h3").error == "reset"


def test_a_client_that_records_nothing_fails(tmp_path: Path) -> None:
    finding = judge(read_rows(tmp_path / "none.parquet"), GET_1000, "h1")
    assert (finding.outcome, finding.error) == ("fail", "no_row")


def test_the_objects_are_those_of_the_book() -> None:
    clean = [(case.method, case.octets) for case in CASES if not case.path.impaired]
    assert clean == [(method, size) for method in ("GET", "POST") for size in (0, 1, 1000, 1_000_000)]
    (rough,) = [case for case in CASES if case.path.impaired]
    assert (rough.octets, rough.path.rtt_ns, rough.path.loss) == (100_000, 50_000_000, 0.02)
    assert all({"kind": "loss", "probability": 0.02} in list(way) for way in (ROUGH.forward, ROUGH.backward))
    assert LARGE.octets == 100_000_000
    assert cases("off") == ()
    assert cases("quick") == QUICK
    assert cases("full", large=True) == (*CASES, LARGE)
    assert POST_1000.workload().request_bytes == 1000


def test_the_requests_of_a_study_itself_are_probed() -> None:
    """A server may answer 1 kB right and others wrong; what is asked twice is probed once."""
    plain = RequestsWorkload(response_bytes=1_000_000)
    others = [replace(plain, in_flight=3), RequestsWorkload(), replace(plain, method="POST", request_bytes=5)]
    page = PageWorkload(response_bytes=7)
    first, second = own_cases([plain, *others, page])
    assert (first.name, first.label, first.method, first.octets) == ("own", "GET 1 MB (own)", "GET", 1_000_000)
    assert (second.name, second.workload().request_bytes, second.workload().response_bytes) == ("own_2", 5, 1_000_000)
    apart = [RequestsWorkload(response_bytes=(128, 1_000, 10_000)).for_protocol(one) for one in ("h1", "h2", "h3")]
    assert [case.octets for case in own_cases(apart)] == [128, 10_000], "1 kB is asked for anyway"
    gone, head = own_cases([replace(plain, method="DELETE", response_bytes=0), replace(plain, method="HEAD")])
    assert (gone.status, gone.content, head.status, head.content) == (204, 0, 200, 0)
    row = GOOD | {"status": 204, "bytes_in": 0}
    assert judge([row], gone, "h3").outcome == "pass"
    assert judge([GOOD | {"bytes_in": 999_999}], first, "h3").reason.startswith(
        "999999 octets of content arrived where"
    )


def test_a_study_says_how_much_is_probed_and_old_studies_keep_their_identity() -> None:
    plain = studies.load("race")
    assert plain.conformance == "quick"
    assert "conformance" not in plain.source
    full = studies.load("race", ["conformance=full"])
    assert full.conformance == "full"
    assert "conformance: full" in full.source
    with pytest.raises(UserError, match="did you mean 'quick'"):
        studies.load("race", ["conformance=quik"])


def test_what_can_be_chosen() -> None:
    everything = standalone.choose([], [])
    assert "origin" in everything.servers
    assert not everything.named
    assert standalone.choose(["caddy", "caddy"], []).servers == ("caddy",)
    assert standalone.choose(["caddy"], []).clients == ()
    assert standalone.choose(["any"], []).servers == everything.servers
    assert standalone.choose([], ["load"]) == standalone.Chosen(("origin",), (), frozenset())
    with pytest.raises(UserError, match="no server 'cady'; did you mean 'caddy'"):
        standalone.choose(["cady"], [])


def test_a_folder_that_holds_something_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main.run(["conformance", "--out", str(tmp_path)]) == 2
    assert "is not an empty folder; choose another with --out" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../../etc", "/abs", "a/b", ".hidden", "ok-1.2_x", "ü"])
def test_names_of_adapters_never_lead_out_of_a_folder(name: str, tmp_path: Path) -> None:
    made = (tmp_path / evidence.safe_name(name)).resolve()
    assert made.parent == tmp_path.resolve()
    assert not made.name.startswith(".")


def test_the_end_of_a_long_log_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * (3 * evidence.LOG_TAIL_BYTES) + b"the end")
    evidence.keep_log(log, tmp_path / "kept")
    kept = (tmp_path / "kept").read_bytes()
    assert len(kept) == evidence.LOG_TAIL_BYTES
    assert kept.endswith(b"the end")
    evidence.keep_log(log, tmp_path / "kept", start=3 * evidence.LOG_TAIL_BYTES)
    assert (tmp_path / "kept").read_bytes() == b"the end"


def test_a_configuration_is_kept_without_what_is_no_file_of_its_own(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "deep").mkdir(parents=True)
    (state / "deep" / "a.conf").write_text("listen")
    (state / "large").write_bytes(b"x" * (2 << 20))
    (state / "link").symlink_to("/etc/passwd")
    evidence.keep_configuration(state, tmp_path)
    kept = [path.relative_to(tmp_path / "configuration") for path in (tmp_path / "configuration").rglob("*")]
    assert sorted(map(str, kept)) == ["deep", "deep/a.conf"]


def test_the_summary_of_an_implementation_is_one_line() -> None:
    about: dict[str, Any] = {"depth": "full", "role": "server", "name": "caddy", "version": "2", "peer": "load"}
    results = [
        result_of(judge([GOOD], GET_1000, "h3"), GET_1000, "h3", **about),
        result_of(judge([GOOD | {"error": "reset"}], GET_1000, "h3"), GET_1000, "h3", **about),
    ]
    assert standalone.summary("server", "caddy", results) == "server caddy 2: 1 passed, 1 failed (over HTTP/3)"


@lab
@needs_engine
def test_the_command_probes_and_its_results_are_kept(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trifecta.cli.main", "conformance", "--server", "origin,caddy", "--json",
         "--out", str(tmp_path / "out")],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document == json.loads((tmp_path / "out" / "conformance.json").read_text())
    found: dict[tuple[str, str], list[str]] = {}
    for one in document["results"]:
        found.setdefault((one["name"], one["method"]), []).append(one["outcome"])
    assert set(found["origin", "GET"]) == set(found["origin", "POST"]) == set(found["caddy", "GET"]) == {"pass"}
    assert len(found["origin", "GET"]) == 15
    assert set(found["caddy", "POST"]) == {"not_offered"}
    rough = [one["duration_ns"] for one in document["results"] if one["path"] == "rough"]
    assert min(rough) > 50_000_000, "a request over the rough path takes a round trip at least"
    assert not (tmp_path / "out" / "conformance").exists(), "nothing failed, nothing is kept"
    assert not list((tmp_path / "out").glob(".tmp-*"))


@lab
@needs_engine
def test_the_rough_path_loses_packets_of_each_protocol(tmp_path: Path) -> None:
    done = run_inside(
        f"""
        from pathlib import Path
        from trifecta.contract.link import LinkSummary
        from trifecta.implementations.servers.origin import Origin
        from trifecta.lab.engine import find_engine
        from trifecta.workloads.conformance import probe
        from trifecta.workloads.conformance.bench import Bench
        from trifecta.design.conformance import CASES
        lost = []
        unlink = Bench.unlink
        def count(bench):
            if bench._link is not None and bench._link_path.name == "rough":
                summary = bench._link.finish(LinkSummary)
                lost.append(summary.a_to_b.lost + summary.b_to_a.lost)
            unlink(bench)
        Bench.unlink = count
        rough = tuple(case for case in CASES if case.path.name == "rough")
        with probe.standalone_bench(find_engine(), Path({str(tmp_path)!r}) / "out", ["origin"], lambda: False) as bench:
            results = probe.Probe(bench, probe.Subjects({{"origin": Origin()}}, {{}}, rough), lambda *_: None).run()
        print([one.outcome for one in results], [number > 0 for number in lost])
        """
    )
    assert done.stdout == "['pass', 'pass', 'pass'] [True, True, True]\n", done.stdout + done.stderr


@lab
@needs_engine
def test_a_named_implementation_that_is_missing_is_not_a_success(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trifecta.cli.main", "conformance", "--server", "quic-go",
         "--out", str(tmp_path / "out")],
        capture_output=True, text=True, check=False, timeout=120, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "TRIFECTA_CACHE": str(tmp_path / "empty"), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "trifecta get quic-go" in done.stdout


@lab
@needs_engine
@pytest.mark.parametrize(("depth", "rows"), [("off", 0), ("quick", 6), ("full", 30)])
def test_a_study_is_probed_as_deep_as_it_says(tmp_path: Path, depth: str, rows: int) -> None:
    code, _, _, errors = drive.finish(tmp_path / "run", set=[*drive.SMALL, f"conformance={depth}"])
    assert code == 0, errors
    results = RunDirectory.open(tmp_path / "run").conformance()
    assert len(results) == rows
    assert {one.outcome for one in results} <= {"pass"}
    assert {one.depth for one in results} <= {depth}
