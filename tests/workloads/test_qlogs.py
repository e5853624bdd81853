"""qlog files of servers go to the trials whose connections they tell of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trifecta.store.run import RunDirectory
from trifecta.workloads.qlogs import ServerLogs, began_ns

T = 1_700_000_000_000  # ms


def of_quic_go(file: Path, begin_ms: float) -> Path:
    trace = {"vantage_point": {"type": "server"}, "common_fields": {"reference_time": begin_ms}}
    head = {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": trace}
    file.write_text(f"\x1e{json.dumps(head)}\n\x1e{json.dumps({'time': 0.5, 'name': 'x'})}\n")
    return file


def of_quic_go_0_65(file: Path, wall: Any) -> Path:
    reference = {"clock_type": "monotonic", "epoch": "unknown", "wall_clock_time": wall}
    head = {"qlog_version": "0.3", "trace": {"common_fields": {"reference_time": reference}}}
    file.write_text(f"\x1e{json.dumps(head)}\n")
    return file


def test_a_wall_clock_time_is_read_to_the_nanosecond(tmp_path: Path) -> None:
    for wall, ns in (
        ("2023-11-14T22:13:20Z", T * 1_000_000),
        ("2023-11-14T23:13:20.000250000+01:00", T * 1_000_000 + 250_000),
        ("2023-11-14T22:13:20.5Z", (T + 500) * 1_000_000),
        ("2023-13-14T22:13:20Z", None),
        ("yesterday", None),
        (T, None),
    ):
        assert began_ns(of_quic_go_0_65(tmp_path / "a.sqlog", wall)) == ns, wall


def of_aioquic(file: Path, begin_ms: float) -> Path:
    trace = {"common_fields": {"ODCID": "ab"}, "events": [{"time": begin_ms, "name": "x"}], "vantage_point": {}}
    file.write_text(json.dumps({"qlog_format": "JSON", "qlog_version": "0.3", "traces": [trace]}))
    return file


def run_of(folder: Path, *trials: str) -> RunDirectory:
    """A run in which these trials are whole, or the first two."""
    run = RunDirectory.create(folder / "run", {}, "study: s\n")
    for trial in trials or ("t00000", "t00001"):
        (run.path / "trials" / f"{trial}.parquet").write_bytes(b"")
    return run


def names(folder: Path) -> list[str]:
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())


def test_the_time_in_a_file_says_whose_it_is(tmp_path: Path) -> None:
    logs = ServerLogs(run_of(tmp_path), wanted=True)
    go, python = logs.folder("caddy-0", "caddy"), logs.folder("hypercorn-1", "hypercorn")
    assert go is not None
    assert python is not None
    of_quic_go(go / "ready.sqlog", T - 50)
    logs.begin("t00000", (T - 10) * 1_000_000)
    of_quic_go(go / "a.sqlog", T + 1)
    logs.begin("t00001", (T + 100) * 1_000_000)
    assert names(tmp_path / "run/qlog") == [".tmp-caddy-0/a.sqlog"]  # it may still be written
    of_aioquic(python / "late.qlog", T + 2)  # aioquic writes when a connection is over
    of_aioquic(python / "b.qlog", T + 101)
    logs.close()
    assert names(tmp_path / "run/qlog") == [
        "t00000/caddy/a.sqlog",
        "t00000/hypercorn/late.qlog",
        "t00001/hypercorn/b.qlog",
    ]


def test_what_servers_logged_has_its_line_when_they_are_over(tmp_path: Path) -> None:
    run = run_of(tmp_path, "t00000", "t00001", "t00003")
    logs = ServerLogs(run, wanted=True)
    go = logs.folder("caddy-0", "caddy")
    assert go is not None
    for trial in range(4):
        logs.begin(f"t{trial:05d}", (T + 100 * trial) * 1_000_000)
        of_quic_go(go / f"{trial}.sqlog", T + 100 * trial + 1)
    assert names(run.path / "qlog/t00000") == ["caddy/.tmp-0.sqlog"]
    with (run.path / "qlog/t00000/caddy/.tmp-0.sqlog").open("a") as late:
        late.write("its connection was lost, and ends after 30 s\n")
    logs.close()
    kept = [f"qlog/t0000{trial}/caddy/{trial}.sqlog" for trial in (0, 1, 3)]
    assert [f"qlog/{name}" for name in names(run.path / "qlog")] == kept  # the third trial came to nothing
    assert [name for name in run.manifest.entries() if "qlog/" in name] == kept
    assert "ends after 30 s" in (run.path / kept[0]).read_text()
    run.close()
    assert [one for one in run.manifest.faults() if "qlog/" in one.name] == []


def test_a_file_without_a_time_is_of_the_trial_in_which_it_came(tmp_path: Path) -> None:
    logs = ServerLogs(run_of(tmp_path), wanted=True)
    folder = logs.folder("origin-0", "origin")
    assert folder is not None
    head = '\x1e{"qlog_version":"0.3","qlog_format":"JSON-SEQ","trace":{"vantage_point":{"type":"unknown"}}}\n'
    logs.begin("t00000", 1)
    (folder / "origin-1-0.sqlog").write_text(head)
    logs.begin("t00001", 2)
    (folder / "origin-1-1.sqlog").write_text(head)
    logs.close()
    assert names(tmp_path / "run/qlog") == ["t00000/origin/origin-1-0.sqlog", "t00001/origin/origin-1-1.sqlog"]
    assert '"type":"server"' in (tmp_path / "run/qlog/t00000/origin/origin-1-0.sqlog").read_text()


def test_nothing_is_made_where_nothing_is_wanted_or_written(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert ServerLogs(run, wanted=False).folder("origin-0", "origin") is None
    logs = ServerLogs(run, wanted=True)
    logs.folder("nginx-0", "nginx")
    logs.begin("t00000", 1)
    logs.close()
    assert not (tmp_path / "run/qlog").exists()


@given(
    data=st.binary(max_size=200),
    kind=st.sampled_from([b"", b"\x1e", b'{"traces": [{', b'{"traces": [{"events": [1]}]}']),
)
def test_any_octets_have_a_time_or_none(tmp_path_factory, data: bytes, kind: bytes) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path_factory.getbasetemp() / "fuzzed.qlog"
    file.write_bytes(kind + data)
    assert began_ns(file) is None or began_ns(file) > 0
