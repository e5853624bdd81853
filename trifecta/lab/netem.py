"""Whether a kernel can carry packets as a path with ``emulator: netem`` asks. Everything is tried, here or by SSH."""

from __future__ import annotations

from dataclasses import dataclass

# A network of its own for the trial: nothing is left, and no device of the machine is touched.
ASK = r"""
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for program in ip tc ethtool unshare; do
    command -v "$program" >/dev/null || printf 'program %s\n' "$program"
done
unshare --net sh -c '
    try() {
        module=$1
        shift
        "$@" >/dev/null 2>&1 || printf "module %s\n" "$module"
    }
    try bridge ip link add tf-try type bridge
    try sch_netem tc qdisc replace dev lo root netem
    try sch_tbf tc qdisc replace dev lo root tbf rate 1mbit burst 2kb latency 10ms
    try sch_codel tc qdisc replace dev lo root codel
' 2>/dev/null || echo "user $(id -un)"
"""

_PACKAGES = {"ethtool": "ethtool", "unshare": "util-linux"}


@dataclass(frozen=True)
class Lack:
    """What is missing for it, and what mends that."""

    said: str
    remedy: str


def lack(told: str) -> Lack | None:
    """The first thing that the answer to `ASK` names; None when netem works."""
    lines = [line.partition(" ") for line in told.splitlines()]
    named = {kind: [name for each, _, name in lines if each == kind] for kind in ("program", "user", "module")}
    if programs := named["program"]:
        packages = sorted({_PACKAGES.get(name, "iproute2") for name in programs})
        return Lack(f"not installed: {', '.join(programs)}", f"sudo apt-get install -y {' '.join(packages)}")
    if users := named["user"]:
        return Lack(f"{users[0]} may not set up devices", "log in as root")
    if modules := named["module"]:
        return Lack(f"the kernel lacks {', '.join(modules)}", f"sudo modprobe -a {' '.join(modules)}")
    return None
