"""Which runs are being written, by which process, and how it is asked to stop.

A run is locked with flock(2) by the process that writes it (`store.run`), which also in namespaces of its own is one of
this machine's: the kernel lists its lock in /proc/locks. Nothing is locked here to find that out, so no run that is
just beginning is kept from it.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from trifecta.design.errors import CannotError, UserError

LOCKS = Path("/proc/locks")
_LINE = re.compile(r"\d+: FLOCK +ADVISORY +WRITE +(\d+) +\w+:\w+:(\d+) ")


def writers(folders: Iterable[Path]) -> dict[Path, int]:
    """The process that writes each of these runs, where one does; 0 where the kernel does not say which."""
    try:
        held = {int(inode): int(pid) for pid, inode in _LINE.findall(LOCKS.read_text(encoding="ascii"))}
    except OSError:
        return {}
    counts: dict[Path, int] = {}
    for folder in folders if held else ():
        try:
            lock = (folder / ".lock").stat()
        except OSError:
            continue
        # By number alone first: overlays and btrfs show another device there than stat(2) does.
        if lock.st_ino in held and _holds(held[lock.st_ino], lock):
            counts[folder] = held[lock.st_ino]
    return counts


def writer(folder: Path) -> int | None:
    """The process that writes a run, as `writers` has it; None where none does."""
    return writers([folder]).get(folder)


def _holds(pid: int, lock: os.stat_result) -> bool:
    """Whether a process has this very file open; one that cannot be looked at is taken at the kernel's word."""
    if pid <= 0:
        return True  # of a process namespace beside this one
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                state = Path(entry.path).stat()
                if (state.st_ino, state.st_dev) == (lock.st_ino, lock.st_dev):
                    return True
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def stop(folder: Path) -> None:
    """Ask the process that writes a run to end it, as Ctrl-C does: after its trial, whose results are kept.

    UserError where nobody writes it, CannotError where it is another user's, or is not to be seen from here.
    """
    pid = writer(folder)
    if pid is None:
        raise UserError(f"{folder} is not being written: there is nothing to stop")
    if pid <= 0:
        raise CannotError(f"{folder} is written by a process that is not seen from here; stop it where it was started")
    try:
        process = os.pidfd_open(pid)  # from here on it is this process, whoever gets its number next
    except OSError as error:
        raise UserError(f"{folder} is not being written any more ({error.strerror})") from None
    try:
        owner = Path(f"/proc/{pid}").stat().st_uid
        if owner != os.geteuid():
            raise CannotError(f"{folder} is written by another user (uid {owner}), who alone may stop it")
        if writer(folder) != pid:
            raise UserError(f"{folder} is not being written any more")
        signal.pidfd_send_signal(process, signal.SIGINT)
    except OSError as error:
        raise UserError(f"{folder} is not being written any more ({error.strerror})") from None
    finally:
        os.close(process)
