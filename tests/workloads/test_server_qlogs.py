"""Servers that write qlog: each trial over HTTP/3 has theirs, and qvis opens it, unless its draft is too new for it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.engine.netns import ENGINE, can_make_namespaces
from tests.trace import qvis
from tests.workloads import drive
from trifecta.implementations.registry import SERVERS
from trifecta.implementations.server import Unsupported
from trifecta.store.run import RunDirectory

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.skipif(not ENGINE.exists(), reason="the engine is not built"),
    pytest.mark.skipif(not can_make_namespaces(), reason="network namespaces are not allowed here"),
]


@pytest.mark.parametrize("server", ["caddy", "hypercorn", "quic-go", "quiche"])
def test_the_logs_of_a_server_are_with_the_trials_they_are_of(tmp_path: Path, server: str) -> None:
    try:
        SERVERS[server].find()
    except Unsupported as missing:
        pytest.skip(str(missing))
    folder = tmp_path / "run"
    settings = [
        "path=clean", f"server={server}", "connection=reused", "capture=true", "budget=none",
        "blocks={at_least: 2, at_most: 2}", "conformance=off", "workload.requests=20", "workload.warmup=2 requests",
    ]  # fmt: skip
    code, _, _, errors = drive.finish(folder, set=settings)
    assert code == 0, errors
    rows = RunDirectory.open(folder).rows()
    trials = [row["trial"] for row in rows if row["protocol"] == "h3"]
    assert len(trials) >= 2
    assert sorted(one.name for one in (folder / "qlog").iterdir()) == sorted(trials)
    for trial in trials:
        (file,) = (folder / "qlog" / trial / server).iterdir()
        head, events = qvis.load(file)
        later = ["qlog_format None", "qlog_version None"] if "file_schema" in head else []
        assert qvis.complaints(file) == later, file
        assert bool(later) == (server == "quiche")
        assert head["trace"]["vantage_point"]["type"] == "server"
        # One connection with its requests, and nothing of what another trial or the check of the server asked.
        streams = {
            frame["stream_id"]
            for one in events
            if one["name"] in ("transport:packet_received", "quic:packet_received")
            for frame in one["data"].get("frames", [])
            if frame.get("frame_type") == "stream" and frame["stream_id"] % 4 == 0
        }
        assert len(streams) == pq.read_metadata(folder / "samples" / f"{trial}.parquet").num_rows
