"""Whether a kernel can carry packets as a path with ``emulator: netem`` asks; what that needs is tried."""

from __future__ import annotations

from dataclasses import dataclass

# A network of its own for the trial: nothing is left, and no device of the machine is touched.
ASK = r"""
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for program in ip tc ethtool unshare; do
    command -v "$program" >/dev/null || printf 'program %s\n' "$program"
done
for firewall in arptables ip6tables iptables; do
    setting=net.bridge.bridge-nf-call-$firewall
    [ "$(cat "/proc/sys/net/bridge/${setting##*.}" 2>/dev/null)" = 1 ] && printf 'filter %s\n' "$setting"
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
class MissingSupport:
    """What is missing for it, and what mends that."""

    problem: str
    remedy: str


def missing_support(output: str, *, own_network: bool = False) -> MissingSupport | None:
    """The first thing that the answer to `ASK` names; None when netem works.

    ``own_network``: of a lab, where no firewall of the machine is asked.
    """
    lines = [line.partition(" ") for line in output.splitlines()]
    kinds = ("program", "user", "module", "filter")
    named = {kind: [name for each, _, name in lines if each == kind] for kind in kinds}
    if programs := named["program"]:
        packages = sorted({_PACKAGES.get(name, "iproute2") for name in programs})
        return MissingSupport(f"not installed: {', '.join(programs)}", f"sudo apt-get install -y {' '.join(packages)}")
    if users := named["user"]:
        remedy = "give it CAP_SYS_ADMIN and CAP_NET_ADMIN" if users[0] == "root" else "log in as root"
        return MissingSupport(f"{users[0]} may not set up networks", remedy)
    if modules := named["module"]:
        return MissingSupport(f"the kernel lacks {', '.join(modules)}", f"sudo modprobe -a {' '.join(modules)}")
    if filters := [] if own_network else named["filter"]:
        sentence = "bridges there ask its firewall, which a run refuses"
        return MissingSupport(sentence, f"sudo sysctl -w {' '.join(f'{each}=0' for each in filters)}")
    return None
