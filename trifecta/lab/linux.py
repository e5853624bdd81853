"""What Python's library lacks of Linux: namespaces, mounts, death signals, process clocks, administrators' programs."""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trifecta.design.errors import CannotError

# linux/sched.h
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
# linux/mount.h
MNT_DETACH = 0x2
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
# linux/prctl.h
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# linux/sched.h, in the flags of proc_pid_stat(5)
PF_EXITING = 0x00000004
# linux/sockios.h and linux/if.h
_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
_IFF_RUNNING = 0x40
# linux/capability.h
CAP_SYS_ADMIN = 21

FIFO_PRIORITY = 10  # of the link, engine/crates/link/src/realtime.rs

# Where distributions put what only root needs: an ordinary user's PATH may lack it, and sudo's too.
_SYSTEM_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def need() -> None:
    """CannotError where this is no Linux: nothing is measured there, and runs are read."""
    if sys.platform != "linux":
        raise CannotError("this system is not Linux: runs are read here, and measured on Linux")


def search_path() -> str:
    """The PATH on which programs of administration are looked for."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *_SYSTEM_PATH])


def may_run_in_real_time() -> bool:
    """Whether this process may have SCHED_FIFO with the priority that the link asks for: root, or RLIMIT_RTPRIO.

    Tried out, because limits, cgroups and seccomp may all refuse it.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO_PRIORITY))
    except OSError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


def unshare(flags: int) -> None:
    """Leave the shared namespaces named by ``flags`` (unshare(2)); OSError on refusal."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(descriptor: int, kind: int = 0) -> None:
    """Move the calling thread into the namespace behind ``descriptor`` (setns(2))."""
    _check(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(kind)), "setns")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount a file system (mount(2))."""
    _check(
        _libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode() or None),
        f"mount {target}",
    )


def bind(source: str, target: str) -> None:
    """Show the file or folder ``source`` at ``target`` too (mount(2), MS_BIND)."""
    mount(source, target, "", MS_BIND)


def unmount(target: str) -> None:
    """Take the topmost mount at ``target`` away; it lives on where it is in use (umount2(2), MNT_DETACH)."""
    _check(_libc.umount2(target.encode(), ctypes.c_int(MNT_DETACH)), f"unmount {target}")


def set_parent_death_signal(number: int) -> None:
    """Have the kernel send ``number`` to this process when its parent thread ends (prctl(2))."""
    _check(
        _libc.prctl(ctypes.c_int(PR_SET_PDEATHSIG), ctypes.c_ulong(number), 0, 0, 0),
        "prctl PR_SET_PDEATHSIG",
    )


def become_subreaper() -> None:
    """Have orphaned descendants handed to this process, so that it can end and count them (prctl(2))."""
    _check(
        _libc.prctl(ctypes.c_int(PR_SET_CHILD_SUBREAPER), ctypes.c_ulong(1), 0, 0, 0), "prctl PR_SET_CHILD_SUBREAPER"
    )


def thread_count() -> int:
    """Threads of this process: some namespace calls are refused to a process with more than one."""
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208


def has_capability(number: int) -> bool:
    """Whether this process holds an effective capability (capabilities(7))."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False


def bring_up(device: str) -> None:
    """Set a network device of this namespace up (netdevice(7)); OSError when the kernel refuses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as any_socket:
        _set_flags(any_socket, device, _flags(any_socket, device) | _IFF_UP)


def await_running(device: str, timeout_s: float) -> None:
    """Wait until packets can cross a device of the calling thread's network; TimeoutError when they cannot by then.

    A worker of the kernel sees to that after a device was set up (net/core/link_watch.c): it starts the device's queue
    and opens its port of a bridge. What is sent before is lost, and nothing says so.
    """
    deadline = time.monotonic() + timeout_s
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as any_socket:
        while not (flags := _flags(any_socket, device)) & _IFF_RUNNING:
            if time.monotonic() > deadline:
                raise TimeoutError(device)
            time.sleep(0.001)
        # The worker calls a device running before it opens the port: flags can be set when it has let go of the device.
        _set_flags(any_socket, device, flags)


def _flags(any_socket: socket.socket, device: str) -> int:
    request = struct.pack("16sH14x", device.encode(), 0)
    (flags,) = struct.unpack_from("16xH", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))
    return int(flags)


def _set_flags(any_socket: socket.socket, device: str, flags: int) -> None:
    fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", device.encode(), flags))


def wait_for_end(pid: int, timeout_s: float) -> None:
    """Wait until a child has ended, for so long at most, and no longer: Popen.wait with a limit looks every few ms."""
    descriptor = os.pidfd_open(pid)
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        ended.poll(timeout_s * 1000)
    finally:
        os.close(descriptor)


EXIT_S = 5.0  # for the kernel to take down a process that is ending


def runs(process: subprocess.Popen[bytes]) -> bool:
    """Whether a child still runs. One that is ending is waited for, or the next that is asked of it would be blamed."""
    if process.poll() is None and exiting(process.pid):
        wait_for_end(process.pid, EXIT_S)
    return process.poll() is None


def exiting(pid: int) -> bool:
    """Whether a process is ending: its connections are closed some time before it can be waited for.

    So it is when every thread has begun to exit: of a process that goes on, the first one alone may have ended. Of one
    that is not seen nothing is known, and it is not.
    """
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/stat"))
    except OSError:  # it went between two looks
        return False
    return bool(tasks) and all(map(_task_exiting, tasks))


def _task_exiting(task: Path) -> bool:
    try:
        line = task.read_text(encoding="ascii", errors="replace")
    except OSError:  # it has ended meanwhile
        return True
    # The name, in parentheses, may have spaces; the flags are the seventh value behind it.
    return bool(int(line.rpartition(")")[2].split()[6]) & PF_EXITING)


def process_cpu_ns(pid: int) -> int:
    """CPU time (user and system, all threads, ended ones too) of a process in ns; ProcessLookupError when it is gone.

    The clock id of another process's CPU clock is built as in clock_getcpuclockid(3): ``~pid << 3 | CPUCLOCK_SCHED``.
    """
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError as error:
        raise ProcessLookupError(error.errno, f"no CPU clock of process {pid}") from error


def tree_cpu_ns(pid: int) -> int:
    """CPU time so far of a process and all its descendants that are there, in ns; 0 for one that is gone."""
    used, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        with suppress(OSError, ProcessLookupError):
            used += process_cpu_ns(one)
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (task / "children").read_text(encoding="ascii").split())
    return used


@contextmanager
def network_namespace(descriptor: int, own: int) -> Iterator[None]:
    """Work in the network namespace behind ``descriptor``, then return to ``own``.

    Only the calling thread moves; what it starts meanwhile is born inside, without a preexec hook, so that starting a
    program stays a vfork whatever the size of this process.
    """
    setns(descriptor, CLONE_NEWNET)
    try:
        yield
    finally:
        setns(own, CLONE_NEWNET)
