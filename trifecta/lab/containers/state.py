"""Whether containers can run here, and if not, why and what mends it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trifecta.design import extras
from trifecta.lab import cgroups, linux
from trifecta.lab.linux import search_path

Network = Literal["host", "bridge"]

_PROGRAMS = {
    "dockerd": "docker.io",
    "containerd": "docker.io",
    "unshare": "util-linux",
    "mount": "util-linux",
}


@dataclass(frozen=True)
class DockerState:
    """What ``docker_state`` found."""

    version: str | None
    """Of the Docker Engine; None when it is not installed."""
    reason: str = ""
    """Why containers cannot run here; empty when they can, as far as can be told without starting one."""
    remedy: str = ""
    """What mends it, as a command where there is one."""

    @property
    def usable(self) -> bool:
        """Whether containers can run here."""
        return not self.reason


def docker_state(network: Network = "host") -> DockerState:
    """Whether containers on that network can run here. Nothing is started but ``dockerd --version``."""
    dockerd = _find("dockerd")
    version = _version(dockerd) if dockerd else None
    programs = dict(_PROGRAMS)
    if network == "bridge":
        programs["iptables"] = "iptables"
    for program, package in programs.items():
        if not _find(program):
            return DockerState(version, f"{program} is not installed", f"sudo apt-get install -y {package}")
    if extras.missing("containers"):
        return DockerState(version, "the package docker is not installed", extras.remedy("containers"))
    if not _is_real_root():
        return DockerState(
            version, "the Docker Engine makes control groups and mounts, which only root may", "run as root (sudo)"
        )
    if not cgroups.mounted():
        return DockerState(version, "no control groups are mounted", "sudo mount -t cgroup2 none /sys/fs/cgroup")
    if "overlay" not in Path("/proc/filesystems").read_text(encoding="ascii").split():
        return DockerState(version, "the kernel has no overlay file system loaded", "sudo modprobe overlay")
    return DockerState(version)


def _find(program: str) -> str | None:
    return shutil.which(program, path=search_path())


def _is_real_root() -> bool:
    """Root of the machine: in a user namespace everything is mapped, but not everybody (user_namespaces(7))."""
    everybody = Path("/proc/self/uid_map").read_text(encoding="ascii").split() == ["0", "0", "4294967295"]
    return everybody and os.geteuid() == 0 and linux.has_capability(linux.CAP_SYS_ADMIN)


def _version(dockerd: str) -> str:
    try:
        done = subprocess.run([dockerd, "--version"], capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "version not said"
    match = re.search(r"version ([^\s,]+)", done.stdout)
    return match[1] if match else "version not said"
