"""Servers that are wrong on purpose: each is clear rows with its reason, and the healthy one beside it is untouched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.implementations.drive_bad import drive
from tests.implementations.fake_program import IN_A_USER_NAMESPACE
from tests.workloads.test_checks_fail import _engine_missing
from trifecta.store.run import RunDirectory

pytestmark = [pytest.mark.lab, pytest.mark.skipif(bool(_engine_missing()), reason=_engine_missing() or "built")]
PROTOCOLS = ["h1", "h2", "h3"]
Rows = list[dict[str, Any]]


def probe(folder: Path, *names: str, **more: Any) -> dict[str, Rows]:
    """The rows of each server, probed in this order."""
    code, rows, errors = drive(folder / "run", probe=list(names), **more)
    assert code == 0, errors
    return {name: [row for row in rows if row["name"] == name] for name in names}


def healthy(rows: Rows) -> None:
    assert len(rows) == 27
    assert {row["outcome"] for row in rows} == {"pass"}
    assert [row for row in rows if row["error"] or row["evidence"] or row["reason"]] == []


def by_protocol(rows: Rows, protocol: str) -> dict[str, tuple[str, str | None]]:
    return {row["object"]: (row["outcome"], row["error"]) for row in rows if row["protocol"] == protocol}


ANSWER_WRONGLY = ("liar", "wrong-bytes", "wrong-length", "closes-early", "wrong-certificate")
DO_NOT_COME_UP = ("crashes-at-start", "exits-at-once", "crashes-at-request", "not-executable", "raises-in-command")


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Rows]]:
    """Those that answer, wrongly, one after the other, and a healthy one after them: the folder, and their rows."""
    folder = tmp_path_factory.mktemp("wrong")
    return folder / "run", probe(folder, *ANSWER_WRONGLY, "origin")


@pytest.fixture(scope="module")
def absent(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Rows]]:
    """The same of those that do not come up, and of one whose version cannot be told."""
    folder = tmp_path_factory.mktemp("absent")
    return folder / "run", probe(folder, *DO_NOT_COME_UP, "raises-in-find", "origin")


def test_the_healthy_one_is_untouched(
    wrong: tuple[Path, dict[str, Rows]], absent: tuple[Path, dict[str, Rows]]
) -> None:
    for _, rows in (wrong, absent):
        healthy(rows["origin"])


def test_who_says_http3_and_answers_http2_fails_over_http3_only(wrong: tuple[Path, dict[str, Rows]]) -> None:
    rows = wrong[1]["liar"]
    assert {error for _, error in by_protocol(rows, "h3").values()} == {"connect_refused"}
    for protocol in ("h1", "h2"):
        assert set(by_protocol(rows, protocol).values()) == {("pass", None)}


@pytest.mark.parametrize(
    ("name", "error", "whole"),
    [
        ("wrong-bytes", "content", {"get_0"}),  # nothing can be wrong in nothing
        ("wrong-length", "length", set()),
        ("closes-early", "length", {"get_0", "post_0"}),
        ("wrong-certificate", "tls:certificate", set()),
    ],
)
def test_a_wrong_answer_has_its_class_over_every_protocol(
    wrong: tuple[Path, dict[str, Rows]], name: str, error: str, whole: set[str]
) -> None:
    for protocol in PROTOCOLS:
        found = by_protocol(wrong[1][name], protocol)
        offered = {case: what for case, what in found.items() if what[0] != "not_offered"}
        assert {case for case, what in offered.items() if what == ("pass", None)} == whole
        assert {what for case, what in offered.items() if case not in whole} == {("fail", error)}


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("crashes-at-start", "server_ended", "cannot find the meaning of line 1"),
        ("exits-at-once", "server_ended", "ended with code 0 before it was ready"),
        ("crashes-at-request", "server_ended", "fatal: out of luck"),
        ("not-executable", "cannot_start", "Permission denied"),
        ("raises-in-command", "cannot_start", "KeyError: 'no such"),
    ],
)
def test_a_server_that_does_not_come_up_is_told_with_its_words(
    absent: tuple[Path, dict[str, Rows]], name: str, error: str, words: str
) -> None:
    run, rows = absent[0], absent[1][name]
    assert len(rows) == 27
    assert {(row["outcome"], row["error"]) for row in rows} == {("fail", error)}
    assert all(words in row["reason"] and "\n" not in row["reason"] for row in rows)
    assert json.loads((run / rows[0]["evidence"] / "result.json").read_text())["result"]["error"] == error


def test_a_version_that_cannot_be_told_is_one_row(absent: tuple[Path, dict[str, Rows]]) -> None:
    (row,) = absent[1]["raises-in-find"]
    assert row["outcome"] == "fail"
    assert row["protocol"] is None
    assert "what it prints is no version" in row["reason"]


def test_a_hanging_server_takes_a_bounded_time(tmp_path: Path) -> None:
    rows = probe(tmp_path, "hangs-at-accept", "silent", "origin", ready_s=2, ask_s=0.5)
    for name, error in (("hangs-at-accept", "connect_timeout"), ("silent", "timeout")):
        assert {(row["outcome"], row["error"]) for row in rows[name]} == {("fail", error)}
        waited = {row["protocol"]: row["reason"].partition(":")[0] for row in rows[name]}
        # The program has had its time by then.
        further = "not ready within 0.5 s"
        assert waited == {"h1": "not ready within 2 s", "h2": further, "h3": further}
        assert len({row["evidence"] for row in rows[name]}) == 3, "one folder a protocol"
    healthy(rows["origin"])


def test_a_crash_by_one_object_leaves_the_other_objects_their_results(tmp_path: Path) -> None:
    rows = probe(tmp_path, "crashes-later", "origin")
    found = by_protocol(rows["crashes-later"], "h1")
    crashed = {"get_1000000", "post_1000000"}
    assert {case for case, what in found.items() if what == ("fail", "server_ended")} == crashed
    assert {what for case, what in found.items() if case not in crashed} == {("pass", None)}
    reasons = {row["reason"] for row in rows["crashes-later"] if row["outcome"] == "fail"}
    assert all("ended with code 7: fatal: out of luck" in reason for reason in reasons)
    for protocol in ("h2", "h3"):
        assert by_protocol(rows["crashes-later"], protocol) == {None: ("unsupported", None)}
    healthy(rows["origin"])


def test_who_prints_much_passes_and_who_prints_without_end_does_not_fill_the_disk(tmp_path: Path) -> None:
    rows = probe(tmp_path, "prints-much", "prints-without-end", "origin", file_limit_bytes=30_000_000)
    healthy(rows["prints-much"])
    assert {row["error"] for row in rows["prints-without-end"]} >= {"server_ended"}
    for log in (tmp_path / "run").rglob("*.log"):
        assert log.stat().st_size <= 30_000_000
    failed = next(row for row in rows["prints-without-end"] if row["outcome"] == "fail")
    assert len(failed["reason"]) < 1000
    healthy(rows["origin"])


def test_the_evidence_of_a_failure_is_kept_for_its_owner_only(wrong: tuple[Path, dict[str, Rows]]) -> None:
    run, rows = wrong
    row = next(row for row in rows["wrong-bytes"] if row["protocol"] == "h3" and row["object"] == "get_1000")
    folder = run / row["evidence"]
    assert folder.stat().st_mode & 0o077 == 0
    second = json.loads((folder / "result.json").read_text())["second_attempt"]
    assert second["error"] == "content"
    assert "CLIENT_" in (folder / "first" / "tls.keys").read_text()
    assert list((folder / "first" / "qlog").iterdir())
    assert "pip" not in (folder / "server.log").read_text()
    assert (folder / "configuration" / "caddy.json").exists()
    assert row["capture"] == "captured in a second attempt, which failed again (content)"
    assert (folder / "second" / "capture.pcap").stat().st_size > 1000
    # what passed leaves nothing behind
    assert not (run / "conformance" / "server-wrong-bytes-h3-get_0").exists()


def test_where_captures_are_not_possible_the_row_says_so(tmp_path: Path) -> None:
    code, rows, errors = drive(tmp_path / "run", probe=["liar"], depth="quick", device="eth7", ready_more_s=0.3)
    assert code == 0, errors
    row = next(row for row in rows if row["outcome"] == "fail")
    assert row["capture"] == "no capture: No such device (eth7, capture.pcap)"


def test_an_ordinary_user_has_captures_too(tmp_path: Path) -> None:
    code, rows, errors = drive(
        tmp_path / "run", probe=["liar"], depth="quick", wrapper=IN_A_USER_NAMESPACE, ready_more_s=0.3
    )
    assert code == 0, errors
    row = next(row for row in rows if row["outcome"] == "fail")
    assert row["capture"].startswith("captured in a second attempt"), row
    assert (tmp_path / "run" / row["evidence"] / "second" / "capture.pcap").stat().st_size > 100


SMALL = [
    "path=clean", "connection=reused", "blocks.at_least=1", "blocks.at_most=1", "budget=5 min",
    "workload.request_timeout=2 s", "workload.connect_timeout=2 s",
]  # fmt: skip
MACHINE = {"gaps", "headroom", "machine", "noise_floor", "path", "steady_state"}  # other programs can upset these


def test_in_a_study_bad_servers_are_left_out_or_fail_and_the_healthy_one_has_its_results(tmp_path: Path) -> None:
    names = ["crashes-at-start", "origin", "wrong-bytes", "liar", "raises-in-command"]
    code, outcome, errors = drive(tmp_path / "run", study=names, set=SMALL, ready_timeout_s=15)
    assert code == 0, errors
    assert outcome["trials"] == 8
    run = RunDirectory.open(tmp_path / "run")
    failed = {item["level"]: item["reason"] for item in run.facts["failed"]}
    assert set(failed) == {"crashes-at-start", "liar", "raises-in-command"}
    assert "cannot find the meaning" in failed["crashes-at-start"]
    assert "h3: connect_refused" in failed["liar"]
    assert "the adapter of raises-in-command fails: KeyError" in failed["raises-in-command"]
    for row in run.rows():
        if row["server"] == "origin":
            assert (row["samples"], row["errors"], row["error"]) == (400, 0, None)
            found = {check["check"] for check in json.loads(row["checks_json"]) if check["status"] == "fail"}
            assert found <= MACHINE
        else:
            assert row["server"] == "wrong-bytes"
            assert row["valid"] is False
            assert json.loads(row["error_classes_json"]) == {"content": 400}
    matrix = {(one.name, one.protocol): (one.outcome, one.error) for one in run.conformance()}
    assert matrix["origin", "h3"] == ("pass", None)
    assert matrix["wrong-bytes", "h3"] == ("fail", "content")
    assert matrix["liar", None] == ("fail", "not_ready")
    log = next(one.evidence for one in run.conformance() if one.name == "crashes-at-start")
    assert log is not None
    assert "cannot find the meaning" in (run.path / log).read_text()


def test_the_studys_own_requests_are_probed_before_it(tmp_path: Path) -> None:
    """1 kB came whole over every protocol, and every trial of 20 kB failed."""
    wanted = [*SMALL, "workload.response=20 kB", "workload.requests=50", "workload.warmup=5 requests"]
    code, _, errors = drive(tmp_path / "run", study=["cuts-large", "origin"], set=wanted)
    assert code == 0, errors
    run = RunDirectory.open(tmp_path / "run")
    found = {(one.name, one.object): one for one in run.conformance() if one.protocol == "h2"}
    assert [found["cuts-large", name].outcome for name in ("get_1000", "own")] == ["pass", "fail"]
    assert [found["origin", name].outcome for name in ("get_1000", "own")] == ["pass", "pass"]
    own = found["cuts-large", "own"]
    assert (own.label, own.reason) == ("GET 20 kB (own)", "19999 octets of content arrived where 20000 were expected")
    failed = [json.loads(row["checks_json"]) for row in run.rows() if row["server"] == "cuts-large"]
    told = {one["check"]: one["evidence"] for checks in failed for one in checks if one["status"] == "fail"}
    assert "the content is shorter or longer than requested (50 × length)" in told["errors"]


def test_a_study_of_bad_servers_only_ends_with_one_line(tmp_path: Path) -> None:
    code, _, errors = drive(tmp_path / "run", study=["crashes-at-start", "exits-at-once"], set=SMALL)
    assert code == 3
    assert errors.count("\n") == 1
    assert "crashes-at-start ended before it was ready" in errors
    assert "exits-at-once ended before it was ready" in errors


def test_a_server_that_does_not_come_up_again_is_given_up_and_the_other_goes_on(tmp_path: Path) -> None:
    code, outcome, errors = drive(tmp_path / "run", study=["dies-for-good", "origin"], set=SMALL)
    assert code == 0, errors
    run = RunDirectory.open(tmp_path / "run")
    rows = run.rows()
    assert sum(row["server"] == "origin" for row in rows) == 4
    dead = [row for row in rows if row["server"] == "dies-for-good"]
    # It dies by the CPU it used: in the midst of a trial, which is kept as failed, between two, or under the probes.
    assert len(dead) < 4
    in_the_midst = [row for row in dead if row["error"]]
    assert len(in_the_midst) <= 1
    assert all(row["valid"] is False and "ended with code" in row["error"] for row in in_the_midst)
    assert [item["level"] for item in run.facts["failed"]] == ["dies-for-good"]
    assert outcome["kind"] == "blocks"
    early = "; 1 cell ended early: the server failed" if dead else ""
    assert run.facts["ended_because"] == f"every cell has had its 1 block, as set in advance{early}"
