"""Measures from outside what a path does to packets: the engine's probe, a reflector at its far end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trifecta.contract.probe import MeasureConfig, MeasureSummary, ReflectConfig, ReflectReady
from trifecta.design.ip import version_of
from trifecta.design.model import PathSpec
from trifecta.design.probe_packets import PAYLOAD_BYTES, least_interval_ns
from trifecta.lab.engine import EngineError, as_user_error
from trifecta.lab.place import Place

PROBE_PORT = 9
PROBE_PACKETS = 200
PROBE_LEAST_PACKETS = 20
PROBE_MOST_NS = 5_000_000_000  # for those packets, over a path that is slow to carry them
TRAIN_PACKETS = 50
PROBE_INTERVAL_NS = 1_000_000
_READY_S = 10.0


def measure_config(path: PathSpec, address: str, *, first: bool) -> MeasureConfig:
    """What the probe is asked: delays, loss and rate; at first the largest packet, which does not change, too.

    The rate does not change either, but one measurement on a busy machine must not stand for a whole run.
    """
    interval_ns = least_interval_ns(path, version_of(address), PROBE_INTERVAL_NS)
    return MeasureConfig(
        address=address,
        port=PROBE_PORT,
        packets=max(PROBE_LEAST_PACKETS, min(PROBE_PACKETS, PROBE_MOST_NS // interval_ns)),
        interval_ns=interval_ns,
        payload_bytes=PAYLOAD_BYTES,
        timeout_ns=3 * path.rtt_ns + 100_000_000,
        train_packets=TRAIN_PACKETS if path.rate_bits_per_s else 0,
        largest=first,
    )


def measure_path(
    between: tuple[Place, Place], log: Path, config: MeasureConfig, stop: Callable[[], bool], *, at: str | None = None
) -> MeasureSummary:
    """The probe's summary, from the first place to the second; CannotError when it cannot work.

    ``at``: the address of the second, where packets are sent to another one that passes them on.
    """
    near, far = between
    with far.start("probe", log, name="probe (far end)") as reflect, near.start("probe", log) as measure:
        try:
            reflect.configure(ReflectConfig(address=at or config.address, port=config.port))
            reflects = reflect.wait_ready(ReflectReady, _READY_S, stop)
            measure.configure(config)
            longest_s = (config.packets * config.interval_ns + 3 * config.timeout_ns) / 1e9
            summary = measure.wait_summary(MeasureSummary, 60 + longest_s, stop)
            summary.far_realtime_offset_ns = reflects.realtime_offset_ns
            summary.far_realtime_bound_ns = reflects.realtime_bound_ns
            if config.samples_file is not None:
                measure.get(Path(config.samples_file))
            return summary
        except EngineError as error:
            raise as_user_error(error) from error
