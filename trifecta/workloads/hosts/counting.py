"""What is told of the machines of a trial between hosts: counters before and after it, and what nobody watched."""

from __future__ import annotations

from trifecta.contract.machine import MachineFacts, TransportGrowth


def unwatched(machine: MachineFacts, transport: TransportGrowth) -> MachineFacts:
    """What is known around a trial whose programs were elsewhere: of this ``machine`` nothing matters.

    What others did on a host is not known: it is told by none of them.
    """
    return {
        "wall_ns": machine["wall_ns"],
        "steal_share": None,
        "other_cpu_share": None,
        "interrupt_share": None,
        "iowait_share": None,
        "resolution": 0.0,
        "pressure_share": {},
        "load_average_1m": None,
        "cpu_mhz": None,
        "cpus": None,
        "transport": transport,
        "sampler": machine["sampler"],
    }


def growth(before: int | None, after: int | None) -> int | None:
    """None where either was not told, and where threads with what they had used are gone."""
    return None if before is None or after is None or after < before else after - before
