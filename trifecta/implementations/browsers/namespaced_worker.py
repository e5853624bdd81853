"""A worker in process and mount namespaces of its own: with it goes everything it started, however it ends.

A browser is a dozen processes that start each other, put themselves into sessions of their own and leave folders. Here
the kernel ends them: the worker is process 1 of a namespace, so they are killed with it, stopped ones too, and its
folder is in a private file system in memory. The worker is killed when the driver ends, also by SIGKILL.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from trifecta.design.errors import CannotError
from trifecta.lab import linux
from trifecta.lab.sandbox import refusal

_SHORT = (Path("/media"), Path("/mnt"), Path("/srv"))  # places for what others mount (FHS 3.0)
_REFUSED = 3  # exit code of a worker that got no namespaces; its words are in the pipe


class NamespacedWorker:
    """The driver's side: a worker, and the pipes to and from it."""

    def __init__(self, work: Callable[[int, int], None]) -> None:
        """Start it: ``work`` is called there with descriptors to read from and to write to. No thread may run yet."""
        there_read, self.to = os.pipe()
        self.said, there_write = os.pipe()
        gate_read, gate_write = os.pipe()
        self.pid = os.fork()
        """Of a process that waits for the worker, which is its only child."""
        if not self.pid:
            for ours in (self.to, self.said, gate_write):
                os.close(ours)
            _keep(work, there_read, there_write, gate_read)
        for theirs in (there_read, there_write, gate_read):
            os.close(theirs)
        self._gate = gate_write  # closes when this process ends, before the death signal was set as well

    def inside(self, pid: int) -> int | None:
        """The process that has the id ``pid`` in the worker's namespace, as this process sees it."""
        waiting = [self.pid]
        while waiting:
            one = waiting.pop()
            with suppress(OSError, ValueError):
                for line in Path(f"/proc/{one}/status").read_text(encoding="ascii", errors="replace").splitlines():
                    if line.startswith("NSpid:") and one != self.pid and int(line.split()[-1]) == pid:
                        return one
                for task in Path(f"/proc/{one}/task").iterdir():
                    waiting += map(int, (task / "children").read_text(encoding="ascii").split())
        return None

    def close(self) -> int:
        """End the worker and all that it started; the exit code of the one that waited for it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        for descriptor in (self.to, self.said, self._gate):
            os.close(descriptor)
        # The worker was handed to this process (it is a subreaper), or to init, with its namespace.
        with suppress(ChildProcessError):
            while True:
                os.wait()
        return os.waitstatus_to_exitcode(status)


def _keep(work: Callable[[int, int], None], read: int, write: int, gate: int) -> NoReturn:
    """Between driver and worker: a process is never itself in the process namespace it makes."""
    code = 1
    try:
        linux.set_parent_death_signal(signal.SIGKILL)
        os.set_blocking(gate, False)
        with suppress(BlockingIOError):
            if not os.read(gate, 1):
                os._exit(137)  # the driver died before the line above
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(2, 1)  # what the driver says on standard output is its own
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # the driver decides
        try:
            _unshare()
        except CannotError as error:
            os.write(write, b'{"failed":{"code":3,"message":"%s"}}\n' % str(error).replace('"', "'").encode())
            os._exit(_REFUSED)
        worker = os.fork()
        if not worker:
            _work(work, read, write)
        os.close(read)
        os.close(write)
        _, status = os.waitpid(worker, 0)
        code = max(0, os.waitstatus_to_exitcode(status))
    finally:
        os._exit(code)


def _work(work: Callable[[int, int], None], read: int, write: int) -> NoReturn:
    code = 1
    try:
        linux.set_parent_death_signal(signal.SIGKILL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
        linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        work(read, write)
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _unshare() -> None:
    user_namespace = not linux.has_capability(linux.CAP_SYS_ADMIN)
    uid, gid = os.geteuid(), os.getegid()
    try:
        linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWPID | (linux.CLONE_NEWUSER if user_namespace else 0))
        if user_namespace:  # as themselves: a browser needs no root, and keeps its own sandbox
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")
    except OSError as error:
        raise refusal(error, user_namespace) from error


def private_folder(folder: Path, used: Iterable[Path]) -> Path:
    """A folder in memory, seen by this worker and what it starts only, that goes with them.

    Browsers put sockets into it, whose names have 107 octets at most (unix(7)), so it is laid over a folder with a
    short name that nobody needs here, else over ``folder``. Nobody outside sees it. ``used``: files that stay seen.
    """
    needed = [each.resolve() for each in (*used, Path.cwd(), Path.home(), Path(sys.prefix), Path(__file__))]
    for short in _SHORT:
        if short.is_dir() and not short.is_symlink() and not any(each.is_relative_to(short) for each in needed):
            folder = short
            break
    else:
        folder.mkdir(parents=True, exist_ok=True)
    linux.mount("tmpfs", str(folder), "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=0700")
    return folder


def cpu_ns(without: frozenset[int]) -> tuple[int, int]:
    """CPU time (user, system) of all processes of this namespace but this one and ``without``, with ended children."""
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    user = system = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) in without | {os.getpid()}:
            continue
        with suppress(OSError):
            after_name = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            times = [int(each) * tick_ns for each in after_name[11:15]]  # proc(5): utime, stime, cutime, cstime
            user += times[0] + times[2]
            system += times[1] + times[3]
    return user, system
