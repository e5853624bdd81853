"""What every launcher has to do with programs of the engine, whichever it is."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from trifecta.contract.probe import (
    MeasureConfig,
    MeasureReady,
    MeasureSummary,
    ReflectConfig,
    ReflectReady,
    ReflectSummary,
)
from trifecta.lab.engine import EngineError
from trifecta.lab.launcher import Launcher

PACKETS = 40
_LONG_S = 30.0


def programs_work(launcher: Launcher, key: str, folder: Path, port: int = 47_113) -> None:
    """Two programs of one place measure its loopback; files come back, words go to the log, ends are told."""
    assert key in launcher.places()
    place = launcher.place(key)
    written = folder / "written"
    written.mkdir()
    place.put(written, writable=True)
    samples, log = written / "samples.parquet", folder / "log"
    with place.start("probe", log, name="reflector") as far, place.start("probe", log) as near:
        far.configure(ReflectConfig(address="127.0.0.1", port=port))
        assert far.wait_ready(ReflectReady, _LONG_S).port == port
        near.configure(
            MeasureConfig(address="127.0.0.1", port=port, packets=PACKETS, samples_file=str(samples)),
        )
        near.wait_ready(MeasureReady, _LONG_S)
        summary = near.wait_summary(MeasureSummary, _LONG_S)
        assert (summary.sent, summary.received) == (PACKETS, PACKETS)
        near.wait_end(_LONG_S)
        assert not near.running()
        near.get(samples)
        assert pq.read_metadata(samples).num_rows == PACKETS
        assert far.running()
        assert far.finish(ReflectSummary, _LONG_S).replied >= PACKETS
    assert log.read_bytes() == b""
    with place.start("probe", log, name="wrong") as wrong:
        wrong.configure(ReflectConfig(address="nowhere", port=port))
        with pytest.raises(EngineError, match="invalid IP address syntax") as caught:
            wrong.wait_ready(ReflectReady, _LONG_S)
        assert caught.value.code == 2
    with place.start("probe", log) as killed:
        assert killed.running()
        killed.close()
        assert not killed.running()
