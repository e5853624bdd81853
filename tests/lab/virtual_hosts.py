"""Virtual machines with Debian's kernel as hosts: clocks of their own, netem, and this machine's programs.

qemu interprets their instructions, so a test shows what is right there, not how fast it is. Their files are this
machine's, read only; what they write is in their memory. Runs inside the sandbox, as root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.lab import three_hosts
from tests.lab.three_hosts import CLIENT, HERE, MIDDLE, PORT, REPOSITORY, SERVER
from trifecta.lab.host import Host
from trifecta.lab.host_graph import host_graph
from trifecta.lab.hosts import ip_batch

KERNEL = REPOSITORY / ".cache/vm"
"""Which `scripts/debian_kernel.sh` fills."""
EMULATOR = "qemu-system-x86_64"
ADDRESSES = {CLIENT: "10.81.0.2", SERVER: "10.81.0.3", MIDDLE: "10.81.0.4"}
_HERE_ADDRESS = "10.81.0.1"
BEHIND = {CLIENT: "10.82.0.2", SERVER: "10.82.0.3"}
"""Addresses on a network in two halves, which the host in the middle joins."""
DEVICES = ("eth1", "eth2")
_CABLES = {(CLIENT, 0): (41, 42), (MIDDLE, 0): (42, 41), (MIDDLE, 1): (43, 44), (SERVER, 0): (44, 43)}
"""Of each cable's end the port of its own and the other's: an Ethernet frame is a datagram."""
BOOT_S = 120.0


def missing(*more: str) -> str:
    """Why such machines cannot be had here; empty when they can. ``more``: programs needed besides."""
    for program in (EMULATOR, *more):
        if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            return f"needs {program} (make test-long installs it)"
    if not (KERNEL / "release").is_file():
        return f"needs a kernel in {KERNEL.relative_to(REPOSITORY)} (make test-long fetches it)"
    return "needs /dev/net/tun" if not os.access("/dev/net/tun", os.W_OK) else ""


def machine(script: Path, networks: Sequence[str] = (), *, number: int = 0, memory_mb: int = 768) -> list[str]:
    """The command of a virtual machine that starts ``script``; what it says is on standard output.

    ``number``: among several, of which no two devices may have one address.
    """
    command = [EMULATOR, "-accel", "tcg", "-nodefaults", "-no-user-config", "-M", "q35", "-cpu", "max"]
    command += ["-m", str(memory_mb), "-smp", "1", "-nographic", "-serial", "stdio", "-no-reboot", "-rtc", "base=utc"]
    command += ["-kernel", str(KERNEL / "vmlinuz"), "-initrd", str(KERNEL / "initrd.gz")]
    command += ["-append", f"console=ttyS0 quiet panic=-1 script={script}"]
    for tag, path in (("host", "/"), ("modules", str(KERNEL / "modules"))):
        command += ["-fsdev", f"local,id={tag},path={path},security_model=none,readonly=on,multidevs=remap"]
        command += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    for place, network in enumerate(networks):
        command += ["-netdev", f"{network},id=n{place}"]
        command += ["-device", f"virtio-net-pci,netdev=n{place},mac=02:00:0a:51:{number:02x}:{place:02x}"]
    return command


HEAD = """\
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
: >~/.bashrc
ip link set lo up
for each in veth tun bridge sch_netem sch_tbf sch_codel; do modprobe $each; done
"""
"""What the shell of a machine does first: its kernel has modules apart, and bash reads a developer's start file."""


class VirtualHosts(three_hosts.ThreeHosts):
    """What a test does with client, server and the host in the middle."""

    machines: dict[str, subprocess.Popen[bytes]]
    here: Host

    def address(self, name: str) -> str:
        return ADDRESSES[name]

    def ask(self, name: str, command: str, timeout_s: float = 60) -> str:
        """What a command says on a host; AssertionError where it fails."""
        options = ["-o", f"UserKnownHostsFile={self.home}/.ssh/known_hosts", "-o", "BatchMode=yes"]
        words = ["ssh", "-F", "none", *options, "-i", str(self.folder / "user"), "-p", str(PORT)]
        process = self.here.popen(
            [*words, f"root@{ADDRESSES[name]}", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            yielding=False,
        )
        out, errors = process.communicate(timeout=timeout_s)
        assert process.returncode == 0, (name, command, errors.decode())
        return out.decode()

    def left(self) -> dict[str, list[str]]:
        """What is left on the hosts: working folders, the engine's programs, and what netem was set up with."""
        asked = (
            "ls {}; pgrep -a trifecta-engine; pgrep -af trifecta-netem; ls /sys/class/net | grep tf-; "
            "tc qdisc show | grep -E 'netem|tbf'; :"
        )
        return {
            name: [line for line in self.ask(name, asked.format(self.room(name))).splitlines() if "pgrep" not in line]
            for name in self.far
        }

    def close(self) -> None:
        """End the machines."""
        for process in self.machines.values():
            process.kill()
            process.wait(three_hosts.ENDED_S)


def _script(hosts: VirtualHosts, name: str, more: str) -> Path:
    own = hosts.folder / name
    lines = [HEAD, f"ip addr add {ADDRESSES[name]}/24 dev eth0 && ip link set eth0 up"]
    lines += [f"ip link set {device} up" for device in (DEVICES if name == MIDDLE else DEVICES[:1])]
    if name in BEHIND:
        lines.append(f"ip addr add {BEHIND[name]}/24 dev eth1")
    lines += ["grep -q ^sshd: /etc/passwd || echo 'sshd:x:998:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd"]
    lines += [f"mkdir -p /run/sshd {own}/tmp {own}/cache", more]
    lines += [f"{three_hosts.sshd_program()} -D -e -f {own}/sshd_config &", "while :; do wait; sleep 1; done"]
    file = own / "start.sh"
    file.write_text("\n".join(lines) + "\n")
    return file


@contextmanager
def virtual_hosts(folder: Path, more: dict[str, str] | None = None) -> Iterator[VirtualHosts]:
    """The machines, with an sshd on each; ``more``: what a machine's shell does before that."""
    three_hosts.surroundings()
    with ExitStack() as stack:
        lab = stack.enter_context(host_graph([HERE], []))
        hosts = VirtualHosts(folder, lab, tuple(ADDRESSES))
        hosts.here, hosts.machines = lab.host(HERE), {}
        three_hosts._keys(folder)
        taps = {name: f"tap-{name}" for name in ADDRESSES}
        with hosts.here.inside():
            ip_batch(
                [
                    "link add rack type bridge stp_state 0 forward_delay 0",
                    f"addr add {_HERE_ADDRESS}/24 dev rack",
                    "link set rack up",
                    *(f"tuntap add {tap} mode tap" for tap in taps.values()),
                    *(f"link set {tap} master rack up" for tap in taps.values()),
                ]
            )
        three_hosts._user(hosts)
        stack.callback(hosts.close)
        for number, name in enumerate(ADDRESSES, 1):
            three_hosts._configure(hosts, name)
            ends = [pair for (whose, _), pair in _CABLES.items() if whose == name]
            networks = [f"tap,ifname={taps[name]},script=no,downscript=no"]
            networks += [f"socket,udp=127.0.0.1:{80 + far},localaddr=127.0.0.1:{80 + near}" for near, far in ends]
            with (folder / name / "console.log").open("wb") as log:
                hosts.machines[name] = hosts.here.popen(
                    machine(_script(hosts, name, (more or {}).get(name, "")), networks, number=number),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    yielding=False,
                )
        _await(hosts)
        yield hosts


def _await(hosts: VirtualHosts) -> None:
    until = time.monotonic() + BOOT_S
    for name in hosts.far:
        while True:
            console = (hosts.folder / name / "console.log").read_text(errors="replace")
            assert hosts.machines[name].poll() is None and time.monotonic() < until, (name, console[-2000:])
            if "Server listening" in console:
                break
            time.sleep(0.2)


def run_alone(script: Path, *, within_s: float) -> str:
    """What a machine without a network says until it has powered itself off; AssertionError where it does not."""
    done = subprocess.run(
        machine(script, memory_mb=2048),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=within_s,
        check=False,
    )
    return done.stdout.decode(errors="replace")


OFF = "sync; echo o >/proc/sysrq-trigger; while :; do :; done\n"
"""The last line of a script that ends its machine."""
