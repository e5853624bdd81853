"""What a host says of itself: kernel, processor, clock, and the limits that a result depends on."""

from __future__ import annotations

from trifecta.contract.machine import HostFacts
from trifecta.design.machine import Machine

ASK = r"""
say() { [ -r "$2" ] && read -r line <"$2" && printf '%s %s\n' "$1" "$line"; }
printf 'kernel %s\narchitecture %s\ncpus %s\n' "$(uname -sr)" "$(uname -m)" "$(nproc)"
printf 'cpu_model %s\n' "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
printf 'distribution %s\n' "$(. /etc/os-release && echo "$PRETTY_NAME")"
printf 'free_kb %s\n' "$(df -Pk "${TMPDIR:-/tmp}" | tail -n 1 | tr -s ' ' | cut -d ' ' -f 4)"
say clocksource /sys/devices/system/clocksource/clocksource0/current_clocksource
say metrics_unsaved /proc/sys/net/ipv4/tcp_no_metrics_save
say rmem_max /proc/sys/net/core/rmem_max
say wmem_max /proc/sys/net/core/wmem_max
allowed=/proc/sys/net/ipv4/tcp_allowed_congestion_control
[ "$(id -u)" != 0 ] && [ -r "$allowed" ] || allowed=/proc/sys/net/ipv4/tcp_available_congestion_control
say congestion_controls "$allowed"
exit 0
"""


def read(machine: Machine, address: str, output: str) -> HostFacts:
    """The answer to `ASK`; None is what the host does not tell."""
    lines = (line.partition(" ") for line in output.splitlines())
    fields = {name: value.strip() for name, _, value in lines if value.strip()}

    def number(name: str) -> int | None:
        text = fields.get(name, "")
        return int(text) if text.isdecimal() else None

    free_kb = number("free_kb")
    return {
        "at": machine.at,
        "address": machine.address or address,
        "kernel": fields.get("kernel"),
        "architecture": fields.get("architecture"),
        "distribution": fields.get("distribution"),
        "cpu_model": fields.get("cpu_model"),
        "cpus": number("cpus"),
        "clocksource": fields.get("clocksource"),
        "udp_receive_limit_bytes": number("rmem_max"),
        "udp_send_limit_bytes": number("wmem_max"),
        "congestion_controls": fields.get("congestion_controls", "").split(),
        "tcp_remembers": None if (unsaved := number("metrics_unsaved")) is None else not unsaved,
        "free_bytes": None if free_kb is None else free_kb * 1024,
    }
