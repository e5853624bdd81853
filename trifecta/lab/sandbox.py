"""Private namespaces for a whole run: the kernel removes everything in them when the run ends, however it ends.

``enter()`` splits the running process in three: the *parent* stays outside, waits and hands signals on; *init* is
process 1 of a new process namespace and reaps orphans; the *run* returns from ``enter()`` and goes on. When any of the
three dies, even by SIGKILL, the kernel kills everything in the process namespace, and with the last process go the
network namespaces and their devices.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from trifecta.design.errors import CannotError
from trifecta.lab import linux

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_entered = False
_mark = ""


def mark() -> str:
    """A name for what this run makes outside of its namespaces, where others make theirs; empty before ``enter``."""
    return _mark


def entered() -> bool:
    """Whether this process already runs inside a sandbox."""
    return _entered


def enter(afterwards: Callable[[], object] | None = None) -> None:
    """Go on inside private network, mount and process namespaces (and a user namespace where privileges lack).

    Returns only in the run itself; the calling process becomes the waiting parent and ends with the run's exit code
    (128 + signal when the run was killed). CannotError with a remedy when the kernel refuses.

    ``afterwards`` is called outside, in a process of its own, once the run has ended, however it ended; what the kernel
    does not remove by itself belongs there. The command ends after it, unless the command was killed.

    Must be called before any thread is started: the kernel refuses namespaces to a process with several threads.
    """
    global _entered, _mark  # noqa: PLW0603
    if _entered:
        return
    linux.need()
    threads = linux.thread_count()
    if threads > 1:
        raise RuntimeError(f"the sandbox must be entered before threads are started, found {threads}")
    _mark = f"trifecta-{os.getpid()}-{os.urandom(4).hex()}"
    sys.stdout.flush()
    sys.stderr.flush()
    keeper = _keep(afterwards) if afterwards is not None else None
    _unshare()
    gate_read, gate_write = os.pipe()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    init = os.fork()
    if init:
        os.close(gate_read)
        os.write(gate_write, b"g")
        _parent(init, blocked, keeper)
    os.close(gate_write)
    # The parent may have died before the death signal was set: then the gate is closed without a word. getppid() cannot
    # tell, it is 0 in a new process namespace.
    linux.set_parent_death_signal(signal.SIGKILL)
    if os.read(gate_read, 1) != b"g":
        os._exit(137)
    os.close(gate_read)
    os.setsid()  # the terminal's Ctrl-C reaches the parent only, which hands it on once
    run = os.fork()
    if run:
        _init(run, blocked)
    linux.set_parent_death_signal(signal.SIGKILL)
    for number in FORWARDED:
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    _mounts()
    linux.bring_up("lo")  # programs that are asked about themselves may want to talk to themselves
    _entered = True


def refusal(error: OSError, user_namespace: bool) -> CannotError:
    """The sentence for a kernel that refuses namespaces, with the remedy that fits this machine."""
    what = "user namespace" if user_namespace else "namespaces"
    remedy = "run as root"
    if user_namespace:
        settings = (
            ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "=0"),
            ("/proc/sys/kernel/unprivileged_userns_clone", "0", "=1"),
            ("/proc/sys/user/max_user_namespaces", "0", "=10000"),
        )
        for name, refusing, value in settings:
            path = Path(name)
            if path.exists() and path.read_text(encoding="ascii").strip() == refusing:
                key = name.removeprefix("/proc/sys/").replace("/", ".")
                remedy = f"run as root, or `sudo sysctl -w {key}{value}`"
    else:
        remedy = "give this container CAP_SYS_ADMIN (docker run --privileged) or run on the host"
    return CannotError(f"the kernel refuses a {what} for the lab ({error.strerror}); {remedy}")


def _unshare() -> None:
    private = linux.CLONE_NEWNET | linux.CLONE_NEWNS | linux.CLONE_NEWPID
    user_namespace = not linux.has_capability(linux.CAP_SYS_ADMIN)
    uid, gid = os.geteuid(), os.getegid()
    try:
        linux.unshare(private | (linux.CLONE_NEWUSER if user_namespace else 0))
        if user_namespace:
            # user_namespaces(7): setgroups must be denied before an unprivileged process may write gid_map.
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"0 {uid} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"0 {gid} 1", encoding="ascii")
    except OSError as error:
        raise refusal(error, user_namespace) from error


def _mounts() -> None:
    """Make mounts private and show the new process namespace under /proc."""
    try:
        linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
        linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES):
            raise CannotError(
                "the kernel refuses to mount /proc for the lab (a container that masks /proc?); run on the host, "
                "or start the container with --security-opt systempaths=unconfined --security-opt apparmor=unconfined"
            ) from error
        raise


def _wait(child: int) -> int:
    """Wait for one child while reaping every other; its exit code, 128 + signal when it was killed."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _hand_on_signals(child: int, blocked: set[signal.Signals | int]) -> None:
    def forward(number: int, _frame: FrameType | None) -> None:
        try:
            os.kill(child, number)
        except ProcessLookupError:
            return

    for number in FORWARDED:
        signal.signal(number, forward)
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # a measurement cannot be suspended half-way
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _keep(afterwards: Callable[[], object]) -> tuple[int, int]:
    """Start who stays outside until the run has ended; its process id, and a pipe that tells it as long as it is open.

    All processes of this module hold the pipe, programs they start do not: it closes with the last of them.
    """
    read, write = os.pipe()
    keeper = os.fork()
    if keeper:
        os.close(read)
        return keeper, write
    os.close(write)
    try:
        os.setsid()
        for number in FORWARDED:
            signal.signal(number, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # a reader of the command's output must see its end
            os.dup2(null, stream)
        os.read(read, 1)
        afterwards()
    finally:
        os._exit(0)


def _parent(init: int, blocked: set[signal.Signals | int], keeper: tuple[int, int] | None) -> NoReturn:
    _hand_on_signals(init, blocked)
    code = _wait(init)
    if keeper:
        os.close(keeper[1])
        with suppress(ChildProcessError):  # it was killed, and reaped while init was waited for
            os.waitpid(keeper[0], 0)
    if code == 128 + signal.SIGKILL:
        sys.stderr.write("trifecta: the run was killed; finished trials are kept, `trifecta resume` continues\n")
        sys.stderr.flush()
    os._exit(code)


def _init(run: int, blocked: set[signal.Signals | int]) -> NoReturn:
    _hand_on_signals(run, blocked)
    os._exit(_wait(run))
