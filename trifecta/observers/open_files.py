"""Files of /proc, /sys and cgroups that stay open and are read again from their start: a reading is one system call."""

from __future__ import annotations

import os
from pathlib import Path

_CHUNK_BYTES = 16384
# A file of several records comes as many whole records at a time as fit into a page (seq_file). A piece that leaves
# half a page empty is the last one, for records below half a page.
_HALF_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") // 2


class OpenFile:
    """A file of the kernel that is opened once and read many times.

    What it names does not change when the path is given to something else later: a file of a process that ended fails
    with ProcessLookupError, a file of /proc/net goes on showing the network namespace it was opened in.
    """

    def __init__(self, path: str | Path) -> None:
        """Open ``path``; OSError when it cannot be."""
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes:
        """The whole text as of now; OSError (ProcessLookupError for an ended process) when there is none any more."""
        parts: list[bytes] = []
        offset = 0
        while part := os.pread(self._descriptor, _CHUNK_BYTES, offset):
            parts.append(part)
            offset += len(part)
            if len(part) < _HALF_PAGE_BYTES:
                break
        return b"".join(parts)

    def read_short(self) -> bytes:
        """As `read`, in one system call, of a file that is known to be one record below 16 kB."""
        return os.pread(self._descriptor, _CHUNK_BYTES, 0)

    def close(self) -> None:
        """Close the file; it cannot be read any more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def hold(path: str | Path) -> OpenFile | None:
    """The file, held open; None where there is none or it may not be read."""
    try:
        return OpenFile(path)
    except OSError:
        return None
