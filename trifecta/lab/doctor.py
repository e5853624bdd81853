"""What this machine can do for a lab, what is missing, and the one command that mends each.

Everything is tried, not guessed: namespaces are made, devices added, sockets opened, in a child process that the
sandbox takes down again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from trifecta.contract.codec import plain
from trifecta.contract.values import JsonObject
from trifecta.design import extras
from trifecta.design.errors import CannotError
from trifecta.lab.containers.state import docker_state
from trifecta.lab.engine import engine_versions, find_engine, rebuild
from trifecta.lab.linux import need, search_path

Status = Literal["ok", "warn", "missing"]

UDP_BUFFER_BYTES = 4_194_304  # what the engine's load asks for
DISK_BYTES = 1_000_000_000
PRIORITY = "priority"
_TIMEOUT_S = 60
_VERSION = r"(\d+\.\d+\.\d+)"


@dataclass(frozen=True)
class Finding:
    """One thing a lab may need: whether it is there, how we know, and what mends it."""

    name: str
    status: Status
    evidence: str
    remedy: str = ""
    required: bool = False  # without it no study runs


def examine(folder: Path) -> list[Finding]:
    """Everything about this machine; ``folder`` is where runs would be written."""
    try:
        need()
    except CannotError as error:  # most of the rest could not even be asked
        system = Finding("system", "missing", str(error), "measure on a machine with Linux", required=True)
        return [system, *_extras(), _disk(folder)]
    return [*_system(), *_lab(), *_engine(), *_tools(), *_extras(), _disk(folder)]


def able(findings: Sequence[Finding]) -> bool:
    """Whether a study can run here."""
    return not any(finding.required and finding.status == "missing" for finding in findings)


def as_dicts(findings: Sequence[Finding]) -> list[JsonObject]:
    """The findings for a program to read."""
    return [asdict(finding) for finding in findings]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _priority() -> Finding:
    """A warning where programs would give way to others for good; root can take it back, and nodes do."""
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if nice <= 0 or os.geteuid() == 0:
        return Finding(PRIORITY, "ok", f"niceness {nice}")
    sentence = f"niceness {nice}, which an ordinary user cannot lower: programs yield to others"
    return Finding(
        PRIORITY, "warn", sentence, "start it without nice; Ray with RAY_worker_niceness=0 in its environment"
    )


def _system() -> Iterator[Finding]:
    yield _priority()
    cores = len(os.sched_getaffinity(0))
    yield Finding(
        "cores",
        "ok" if cores >= 2 else "warn",
        f"{cores} usable",
        "" if cores >= 2 else "use a machine with 2 cores or more: client and server share one here",
    )
    clock = _read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    slow_clock = clock in ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
    yield Finding(
        "clock source",
        "warn" if slow_clock else "ok",
        clock or "not visible",
        "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource" if slow_clock else "",
    )
    unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    kind = "version 2" if unified else "version 1" if Path("/sys/fs/cgroup/cpu").exists() else "not mounted"
    yield Finding("cgroup", "ok", kind)
    controls = _read("/proc/sys/net/ipv4/tcp_available_congestion_control").split()
    for name, needed in (("cubic", True), ("bbr", False)):
        there = name in controls
        yield Finding(
            f"TCP {name}",
            "ok" if there else "missing",
            "available" if there else f"not among {', '.join(controls) or 'none'}",
            "" if there else f"sudo modprobe tcp_{name}",
            required=needed,
        )


# What Trifecta does without, and why.
_SPARE = {
    "netem": "the engine carries the paths itself",
    "fq": "TCP paces itself",
    "ifb": "the link has two ends of its own",
}


def _lab() -> Iterator[Finding]:
    """What only shows inside a sandbox: a child makes one, tries everything in it and reports."""
    child = subprocess.run(
        [sys.executable, "-m", "trifecta.lab.doctor_sandbox"],
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )
    if child.returncode != 0:
        reason = (child.stderr.strip().splitlines() or ["no reason given"])[-1]
        remedy = reason.rpartition("; ")[2] if "; " in reason else "run as root"
        yield Finding("namespaces", "missing", reason, remedy, required=True)
        return
    facts: dict[str, str] = json.loads(child.stdout)
    as_whom = "as root" if os.geteuid() == 0 else "in a user namespace of an ordinary user"
    yield Finding("namespaces", "ok", f"network, mount and process namespaces, {as_whom}", required=True)
    for name, needed, remedy in (
        ("veth", True, "sudo modprobe veth"),
        ("AF_PACKET with vnet headers", True, "sudo modprobe af_packet"),
        ("super-packets (TSO)", False, "use a kernel whose veth has TSO (any since 3.14)"),
        ("UDP segmentation offload", False, "use Linux 4.18 or newer"),
        ("UDP receive offload", False, "use Linux 5.0 or newer"),
        ("netem", False, "sudo modprobe -a sch_netem sch_tbf sch_codel"),
        ("fq", False, "sudo modprobe sch_fq"),
        ("ifb", False, "sudo modprobe ifb"),
        ("SCHED_FIFO", False, 'echo "$USER - rtprio 10" | sudo tee /etc/security/limits.d/trifecta.conf'),
        (
            "UDP buffers",
            False,
            f"sudo sysctl -w net.core.rmem_max={UDP_BUFFER_BYTES} net.core.wmem_max={UDP_BUFFER_BYTES}",
        ),
    ):
        problem, _, own_remedy = facts[name].partition("; ")
        spare = _SPARE.get(name)
        status: Status = "ok" if not problem else "missing" if needed or spare else "warn"
        evidence = f"{problem}; not needed, {spare}" if problem and spare else problem or "works"
        yield Finding(name, status, evidence, (own_remedy or remedy) if problem else "", required=needed)
    yield _docker(facts["Docker"])


def _engine() -> Iterator[Finding]:
    try:
        versions = engine_versions(find_engine())
    except CannotError as error:
        yield Finding("engine", "missing", str(error), rebuild(), required=True)
    else:
        text = ", ".join(f"{name} {version}" for name, version in sorted(plain(versions).items()) if version)
        yield Finding("engine", "ok", text, required=True)
    there = shutil.which("ip")
    yield Finding(
        "ip",
        "ok" if there else "missing",
        _output(["ip", "-V"]) if there else "not found",
        "" if there else "sudo apt-get install -y iproute2",
        required=True,
    )


@dataclass(frozen=True)
class _Tool:
    name: str
    version_argument: str
    version: str  # pattern with one group
    needed_by: str
    remedy: str


_TOOLS = (
    _Tool("tshark", "-v", _VERSION, "`trifecta trace` and packets in reports", "sudo apt-get install -y tshark"),
    _Tool("ffmpeg", "-version", r"version (\S+)", "videos", "sudo apt-get install -y ffmpeg"),
    _Tool("nft", "-v", _VERSION, "studies with `conntrack` or `load_balancer`", "sudo apt-get install -y nftables"),
    _Tool("ethtool", "--version", r"version (\S+)", "paths with `emulator: netem`", "sudo apt-get install -y ethtool"),
    _Tool("wrk", "-v", r"wrk (\S+)", "benchmarks of Trifecta itself", "sudo apt-get install -y wrk"),
    _Tool("oha", "--version", r"oha (\S+)", "benchmarks of Trifecta itself", "cargo install --locked oha"),
)


def _tools() -> Iterator[Finding]:
    """Programs that some of Trifecta needs, and most studies do not. Servers, clients: ``implementations``."""
    for tool in _TOOLS:
        path = _program(tool.name)
        if path is None:
            yield Finding(tool.name, "missing", f"not found; needed by {tool.needed_by} only", tool.remedy)
            continue
        match = re.search(tool.version, _output([path, tool.version_argument]))
        version = match[1] if match else "version not said"
        yield Finding(tool.name, "ok", f"{version} ({path})")


def _extras() -> Iterator[Finding]:
    """Packages that a plain install leaves out, and the commands that want them."""
    for name, extra in extras.EXTRAS.items():
        if lacking := extras.missing(name):
            evidence = f"without {', '.join(lacking)}; wanted by {extra.wanted_by} only"
            yield Finding(f"extra {name}", "missing", evidence, extras.remedy(name))
        else:
            yield Finding(f"extra {name}", "ok", f"{', '.join(extra.modules)}, for {extra.wanted_by}")


def _docker(problem: str) -> Finding:
    """Services in containers: a Docker Engine of our own was tried in the sandbox; the machine's is not used."""
    state = docker_state("bridge")
    if not state.usable:
        return Finding("Docker", "missing", f"{state.reason}; needed by services in containers only", state.remedy)
    if problem:
        return Finding("Docker", "warn", problem, 'see docs/containers.md, "When it does not work"')
    return Finding("Docker", "ok", f"{state.version}, its engine starts in the lab")


def _program(name: str) -> str | None:
    """A program beside this Python (in the virtual environment), else on the PATH."""
    beside = Path(sys.executable).parent / name
    if beside.is_file() and os.access(beside, os.X_OK):
        return str(beside)
    return shutil.which(name, path=search_path())


def _output(command: list[str]) -> str:
    """What a program prints, on either stream; some exit with an error after their version."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot be run: {error}"
    return (done.stdout + done.stderr).strip()


def _disk(folder: Path) -> Finding:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    enough = free >= DISK_BYTES and os.access(folder, os.W_OK)
    what = f"{free / 1e9:.1f} GB free in {folder}"
    if not os.access(folder, os.W_OK):
        return Finding("disk", "missing", f"{folder} cannot be written", f"sudo chown $USER {folder}", required=True)
    return Finding(
        "disk", "ok" if enough else "warn", what, "" if enough else "free some space, or use --out elsewhere"
    )
