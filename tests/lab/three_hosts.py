"""Three hosts with links between them, an sshd on two: what a user has who sits at the third.

Runs inside the sandbox, as root. Programs that are measured are real: OpenSSH's server, the command `trifecta`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from trifecta.design.ip import endpoint
from trifecta.lab import linux
from trifecta.lab.host import Host
from trifecta.lab.host_graph import host_graph
from trifecta.lab.hosts import ip_batch, namespace_path
from trifecta.lab.topology import Topology, Wire

HERE, CLIENT, SERVER, MIDDLE = "here", "client", "server", "middle"
FAR = (CLIENT, SERVER)
WIRES = [Wire(HERE, CLIENT), Wire(HERE, SERVER), Wire(CLIENT, SERVER)]
BEHIND = {CLIENT: "10.79.0.2", SERVER: "10.79.0.3"}
"""Addresses on a network in two halves, which only a host in the middle can join."""
DEVICES = ("eth1", "eth2")
"""Of the host in the middle, towards the client and towards the server."""
PORT = 2222
ENDED_S = 20  # by then a process that was killed is gone
REPOSITORY = Path(__file__).resolve().parents[2]
_SSHD = "TRIFECTA_TEST_SSHD"


def sshd_program() -> str | None:
    """OpenSSH's server, where it is installed, or the one that is named."""
    return os.environ.get(_SSHD) or shutil.which("sshd", path="/usr/sbin:/sbin:/usr/local/sbin")


def missing() -> str:
    """Why these hosts cannot be had here; empty when they can."""
    from importlib.util import find_spec

    if os.geteuid() != 0:
        return "sshd needs root"
    if sshd_program() is None or shutil.which("ssh-keygen") is None:
        return "needs sshd and ssh-keygen (apt-get install openssh-server openssh-client)"
    return "" if find_spec("asyncssh") is not None else "needs asyncssh (pip install 'trifecta[hosts]')"


class ThreeHosts:
    """What a test does with them."""

    def __init__(self, folder: Path, lab: Topology, far: Sequence[str] = FAR, *, over_ipv6: bool = False) -> None:
        self.folder = folder
        self.lab = lab
        self.far = far
        self.over_ipv6 = over_ipv6
        self.home = folder / "home"
        self.listeners: dict[str, subprocess.Popen[bytes]] = {}

    def address(self, name: str) -> str:
        return self.lab.address_6(name) if self.over_ipv6 else self.lab.address(name)

    def url(self, name: str) -> str:
        return f"ssh://root@{endpoint(self.address(name), PORT)}"

    def room(self, name: str) -> Path:
        """Where working folders are made on a host."""
        return self.folder / name / "tmp"

    def engines(self, name: str, role: str = "") -> list[int]:
        """The engine's programs at work on a host, those of a role where it is named, the oldest first."""
        told = {pid: _command(pid) for pid in self.processes(name)}
        # And not `--version`, which each connection asks for.
        roles = [role] if role else ["load", "origin", "probe", "link"]
        return [pid for pid, words in told.items() if "trifecta-engine" in words[0] and words[1] in roles]

    def wait_trial(self, run: Path, within_s: float = 60) -> None:
        """Wait until a run has a trial, or the time is over."""
        until = time.monotonic() + within_s
        while not list((run / "trials").glob("t*.parquet")) and time.monotonic() < until:
            time.sleep(0.05)

    def at_work(self, run: Path, name: str, role: str, within_s: float = 60) -> list[int]:
        """The programs of a role at work on a host, once a trial is over; between two trials there is none."""
        until = time.monotonic() + within_s
        self.wait_trial(run, within_s)
        while not (found := self.engines(name, role)) and time.monotonic() < until:
            time.sleep(0.05)
        return found

    def processes(self, name: str) -> list[int]:
        """Every process on a host but its sshd that listens."""
        return [pid for pid in _in_network(self.lab.host(name)) if pid != self.listeners[name].pid]

    def sessions(self, name: str) -> list[int]:
        """The processes of sshd that serve a connection."""
        return [pid for pid in self.processes(name) if _command(pid)[0].startswith("sshd")]

    def left(self) -> dict[str, list[str]]:
        """What is left on the hosts: working folders, and processes."""
        return {
            name: [
                *(path.name for path in self.room(name).iterdir()),
                *(" ".join(_command(pid)) for pid in self.processes(name)),
            ]
            for name in self.far
        }

    def wait_clean(self, within_s: float) -> dict[str, list[str]]:
        """What is left when nothing is, or the time is over."""
        until = time.monotonic() + within_s
        while any((left := self.left()).values()) and time.monotonic() < until:
            time.sleep(0.1)
        return left

    def cut(self, a: str, b: str, *, mend: bool = False) -> None:
        """Take a wire down, or up again."""
        with self.lab.host(a).inside():
            ip_batch([f"link set to-{b} {'up' if mend else 'down'}"])
        if mend:  # the kernel forgets routes and neighbours of a device that was down
            for end, peer in ((a, b), (b, a)):
                with self.lab.host(end).inside():
                    ip_batch(_again(self.lab, end, peer))

    def start(self, *arguments: str, given: str = "", **more: object) -> subprocess.Popen[bytes]:
        """Start the command `trifecta` where the user sits; ``given``: Python that its process runs before it."""
        program = ["-c", f"{given}\nfrom trifecta.cli.main import main\nmain()"] if given else ["-m", "trifecta"]
        return self.lab.host(HERE).popen(
            [sys.executable, *program, *arguments],
            environment={"HOME": str(self.home), "PYTHONPATH": str(REPOSITORY), "SSH_AUTH_SOCK": ""},
            stdin=subprocess.DEVNULL,
            **more,  # type: ignore[arg-type]
        )

    def run(self, *arguments: str, given: str = "", timeout_s: float = 240) -> tuple[int, str, str]:
        """Run the command to its end, as `start` does: exit code, and what it said."""
        process = self.start(*arguments, given=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, errors = process.communicate(timeout=ENDED_S)
            raise AssertionError(f"no end within {timeout_s:g} s: {out.decode()}{errors.decode()}") from None
        return process.returncode, out.decode(), errors.decode()

    def serve(self, name: str, wrapper: Sequence[str] = ()) -> None:
        """Start the sshd of a host, and wait until it listens."""
        own = self.folder / name
        program = sshd_program()
        assert program is not None
        command = [*wrapper, program, "-D", "-e", "-f", str(own / "sshd_config")]
        with (own / "sshd.log").open("ab") as log:
            self.listeners[name] = self.lab.host(name).popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, yielding=False
            )
        until = time.monotonic() + 10
        while b"Server listening" not in (own / "sshd.log").read_bytes():
            assert time.monotonic() < until and self.listeners[name].poll() is None, (own / "sshd.log").read_text()
            time.sleep(0.02)

    def close(self) -> None:
        """End all that is left, who would start more of it first; a process that outlives SIGKILL is an error."""
        for name, listener in self.listeners.items():
            listener.kill()
            listener.wait(ENDED_S)
            until = time.monotonic() + ENDED_S
            while left := self.processes(name):
                assert time.monotonic() < until, [_command(pid) for pid in left]
                for pid in left:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.02)


def _again(lab: Topology, end: str, peer: str) -> list[str]:
    spec = lab._specs[end]
    device = spec.devices[peer].name
    routes = [route.line("cubic") for route in spec.routes if route.device == device]
    return [f"link set {device} up", *routes, *(line for line in lab._routes(spec) if f"dev {device} nud" in line)]


def _command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return [""]


def _in_network(host: Host) -> list[int]:
    """The living processes in a host's network."""
    own = os.fstat(host.descriptor).st_ino
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z" and (entry / "ns" / "net").stat().st_ino == own:
                    found.append(int(entry.name))
    return sorted(found)


def _join_behind(lab: Topology) -> None:
    """The second network of client and server, without a neighbour that is known beforehand."""
    there = namespace_path(lab.host(MIDDLE))
    pairs = [
        f"link add behind netns {namespace_path(lab.host(name))} type veth peer name {device} netns {there}"
        for name, device in zip(BEHIND, DEVICES, strict=True)
    ]
    ip_batch(pairs, [lab.host(name) for name in (CLIENT, SERVER, MIDDLE)])
    for name, address in BEHIND.items():
        with lab.host(name).inside():
            ip_batch([f"address add {address}/24 dev behind", "link set behind up"])
    with lab.host(MIDDLE).inside():
        ip_batch([f"link set {device} up" for device in DEVICES])


def _keys(folder: Path) -> None:
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def _configure(hosts: ThreeHosts, name: str) -> None:
    own = hosts.folder / name
    for each in (own, own / "tmp", own / "cache"):
        each.mkdir(parents=True)
    shutil.copy(hosts.folder / "user.pub", own / "authorized_keys")
    everywhere = "::" if hosts.over_ipv6 else "0.0.0.0"
    (own / "sshd_config").write_text(
        f"Port {PORT}\nListenAddress {everywhere}\nHostKey {hosts.folder}/host\n"
        "PidFile none\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {own}/authorized_keys\nPermitRootLogin yes\nPasswordAuthentication no\n"
        f"KbdInteractiveAuthentication no\nLogLevel INFO\nSetEnv TMPDIR={own}/tmp XDG_CACHE_HOME={own}/cache "
        f"PATH={own}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin\n"
    )


def _user(hosts: ThreeHosts) -> None:
    own = hosts.home / ".ssh"
    own.mkdir(parents=True, mode=0o700)
    (own / "config").write_text(f"Host *\n  IdentityFile {hosts.folder}/user\n")
    key = (hosts.folder / "host.pub").read_text()
    (own / "known_hosts").write_text("".join(f"[{hosts.address(name)}]:{PORT} {key}" for name in hosts.far))


def surroundings() -> None:
    """What sshd wants of a machine: a folder of its own, and a user; both are this mount namespace's alone."""
    linux.mount("none", "/run", "tmpfs", linux.MS_NOSUID, "mode=755")
    Path("/run/sshd").mkdir()
    users = Path("/etc/passwd").read_text()
    if "\nsshd:" not in users:
        Path("/run/passwd").write_text(users + "sshd:x:998:65534::/run/sshd:/usr/sbin/nologin\n")
        linux.bind("/run/passwd", "/etc/passwd")
    begun_with = Path(pwd.getpwuid(0).pw_dir) / ".bashrc"  # bash reads it for sshd; a developer's may take long
    if begun_with.exists():
        Path("/run/nothing").touch()
        linux.bind("/run/nothing", str(begun_with))


@contextmanager
def three_hosts(
    folder: Path, *, ahead_s: int = 0, middle: bool = False, over_ipv6: bool = False
) -> Iterator[ThreeHosts]:
    """The hosts, with everything that sshd and a user need. The server's clock may be ahead of the others'.

    ``middle``: a fourth one, between two halves of a network behind client and server. ``over_ipv6``: sshd listens on
    IPv6 alone, and what hosts are called are those addresses.
    """
    far = (*FAR, MIDDLE) if middle else FAR
    surroundings()
    with ExitStack() as stack:
        wires = [*WIRES, Wire(HERE, MIDDLE)] if middle else WIRES
        lab = stack.enter_context(host_graph([HERE, *far], wires))
        hosts = ThreeHosts(folder, lab, far, over_ipv6=over_ipv6)
        if middle:
            _join_behind(lab)
        clock = ["unshare", "--time", "--monotonic", str(ahead_s), "--boottime", str(ahead_s)]
        stand(stack, hosts, {SERVER: clock} if ahead_s else {})
        yield hosts


def stand(stack: ExitStack, hosts: ThreeHosts, wrappers: Mapping[str, Sequence[str]]) -> None:
    """Start an sshd on every far host, behind the command that wraps it if there is one; ``stack`` ends them."""
    _keys(hosts.folder)
    _user(hosts)
    stack.callback(hosts.close)
    for name in hosts.far:
        _configure(hosts, name)
        hosts.serve(name, wrappers.get(name, ()))
