"""What is known of the machine around a trial whose client ran on another one."""

from __future__ import annotations

from trifecta.contract.machine import MachineFacts, TransportGrowth


def without_client(here: MachineFacts, grown: TransportGrowth) -> MachineFacts:
    """Of this machine nothing matters. What others did on a host is not known: it is told by none of them.

    ``grown`` is what counters of the hosts' kernels grew by, where they were read.
    """
    return {
        "wall_ns": here["wall_ns"],
        "steal_share": None,
        "other_cpu_share": None,
        "interrupt_share": None,
        "iowait_share": None,
        "resolution": 0.0,
        "pressure_share": {},
        "load_average_1m": None,
        "cpu_mhz": None,
        "cpus": None,
        "transport": grown,
        "sampler": here["sampler"],
    }
