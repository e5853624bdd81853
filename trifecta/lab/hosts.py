"""What every host of the lab is given: settings of the kernel that are pinned, and lines of ip(8)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from trifecta.contract.machine import NetworkFacts
from trifecta.design.errors import CannotError
from trifecta.lab.host import Host
from trifecta.lab.linux import search_path

MTU = 1500

# Settings of a network namespace that a result may depend on: pinned, because distributions and kernels differ.
SYSCTLS: dict[str, str] = {
    "net/ipv4/ip_forward": "0",  # a new namespace takes it from the machine, where containers turn it on
    "net/ipv4/tcp_no_metrics_save": "1",  # else a trial inherits ssthresh and RTT from the one before
    "net/ipv4/tcp_slow_start_after_idle": "1",
    "net/ipv4/tcp_reordering": "3",
    "net/ipv4/tcp_max_reordering": "300",
    "net/ipv4/tcp_ecn": "2",
    "net/ipv4/tcp_sack": "1",
    "net/ipv4/tcp_timestamps": "1",
    "net/ipv4/tcp_window_scaling": "1",
    "net/ipv4/tcp_fastopen": "0",
    "net/ipv4/tcp_rmem": "4096 131072 16777216",
    "net/ipv4/tcp_wmem": "4096 16384 16777216",
    # Many, for a new connection per request, and all above a server's: Wireshark asks the lower port first which
    # protocol it is, and low ports are some protocol's (4342 is LISP's).
    "net/ipv4/ip_local_port_range": "10000 65535",
    "net/ipv4/tcp_tw_reuse": "1",  # a new connection per request must not run out of ports
    "net/ipv4/tcp_fin_timeout": "5",
    "net/ipv4/tcp_max_syn_backlog": "16384",
    "net/core/somaxconn": "16384",
    "net/ipv6/conf/all/accept_ra": "0",
    "net/ipv6/conf/default/accept_ra": "0",
    "net/ipv6/conf/all/autoconf": "0",
    "net/ipv6/conf/default/autoconf": "0",
    "net/ipv6/conf/default/addr_gen_mode": "1",
    "net/ipv6/conf/default/dad_transmits": "0",
}


class KernelSettings:
    """The settings that were made in each host."""

    def __init__(self) -> None:
        """None yet."""
        self.known: dict[str, str] = {}
        """Read back from the kernel."""
        self.unknown: list[str] = []
        """What this kernel does not have."""

    def facts(self) -> NetworkFacts:
        """As they are recorded in ``run.json``."""
        return {"settings": self.known, "unknown_settings": self.unknown}

    def apply(self, host: Host) -> None:
        """Pin them in a new host; CannotError when the kernel refuses."""
        with host.inside():
            for name, value in SYSCTLS.items():
                path = Path("/proc/sys") / name
                key = name.replace("/", ".")
                try:
                    path.write_text(value, encoding="ascii")
                    self.known[key] = " ".join(path.read_text(encoding="ascii").split())
                except FileNotFoundError:
                    if key not in self.unknown:
                        self.unknown.append(key)
                except OSError as error:
                    raise CannotError(
                        f"cannot set {key} to {value!r} in the lab ({error.strerror}); "
                        "run as root, or on a kernel whose network namespaces own this setting"
                    ) from error


def namespace_path(host: Host) -> str:
    """Where ``ip`` finds the namespace of a host whose descriptor it was passed."""
    return f"/proc/self/fd/{host.descriptor}"


def ip_batch(lines: Sequence[str], hosts: Iterable[Host] = ()) -> None:
    """Carry out lines of ip(8) in one short program; ``hosts`` are those that lines name by ``namespace_path``.

    CannotError with the words of ``ip`` when it fails, or is not installed.
    """
    try:
        done = subprocess.run(
            ["ip", "-batch", "-"],
            input="\n".join(lines).encode() + b"\n",
            capture_output=True,
            pass_fds=[host.descriptor for host in hosts],
            check=False,
            timeout=20,
        )
    except FileNotFoundError as error:
        raise CannotError("`ip` is missing; install iproute2 (apt-get install iproute2)") from error
    if done.returncode != 0:
        message = " ".join(done.stderr.decode(errors="replace").split())
        raise CannotError(f"`ip` could not raise the lab: {message}; run `trifecta doctor`")


def cut_super_packets(device: str) -> None:
    """Have a device's host cut super-packets of TCP and UDP before they leave by it; CannotError with the remedy."""
    ethtool = shutil.which("ethtool", path=search_path())
    if ethtool is None:
        text = "`ethtool` is missing, which a path with 'emulator: netem' needs"
        raise CannotError(f"{text}; install it (apt-get install ethtool), or remove the emulator")
    command = [ethtool, "-K", device, "tso", "off", "gso", "off", "tx-udp-segmentation", "off"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=20)
    if done.returncode != 0:
        message = " ".join(done.stderr.decode(errors="replace").split())
        raise CannotError(f"`{' '.join(command)}`: {message}; remove 'emulator: netem' from the path")
