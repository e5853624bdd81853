"""From a path of a study to the configuration of the engine's link."""

from __future__ import annotations

from pathlib import Path

from trifecta.contract.codec import convert
from trifecta.contract.impairments import Impairment
from trifecta.contract.link import LinkConfig
from trifecta.design.model import PathSpec
from trifecta.lab.topology import LINK_DEVICES

SPIN_NS = 60_000  # the last stretch before a packet is due is waited for awake: timers wake up tens of us late


def link_config(
    path: PathSpec,
    seed: int,
    *,
    cpu: int | None = None,
    log_file: Path | None = None,
    devices: tuple[str, str] = LINK_DEVICES,
    bridge: bool = False,
) -> LinkConfig:
    """The link's configuration for a path under a seed: the same seed gives every packet the same fate.

    ``devices`` lead to the client's side and to the server's; as a ``bridge`` it stands between two networks.
    """
    left, right = devices
    return LinkConfig(
        a_device=left,
        b_device=right,
        seed=seed,
        split="real" if path.frames == "wire" else "merge",
        a_to_b=convert(tuple[Impairment, ...], path.forward),
        b_to_a=convert(tuple[Impairment, ...], path.backward),
        log_file=None if log_file is None else str(log_file),
        realtime=True,
        spin_ns=SPIN_NS,
        cpu=cpu,
        bridge=bridge,
        emulator=path.emulator,
    )
