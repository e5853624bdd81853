"""Private files over those of the machine, in a mount namespace of one's own, with which they end."""

from __future__ import annotations

from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.lab import linux

ORDER = "/etc/nsswitch.conf"
"""In which order programs ask for names (nsswitch.conf(5))."""
NAMESERVER = "127.0.0.53"
"""Where they ask in a lab that has a name server (`trifecta.lab.names`)."""
# One of these is always there (Filesystem Hierarchy Standard) and hidden for a moment, in our mount namespace only.
_SCRATCH = ("/mnt", "/media", "/srv", "/tmp")  # noqa: S108


def cover(file: str, text: str) -> None:
    """Lay a private file over ``file``: on a file system in memory that only its mount keeps alive.

    CannotError where that is refused, or there is no such file.
    """
    scratch = next(folder for folder in _SCRATCH if Path(folder).is_dir())
    try:
        linux.mount(
            "trifecta", scratch, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC, "size=64k,mode=755"
        )
        try:
            private = Path(scratch) / "private"
            private.write_text(text, encoding="utf-8")
            linux.bind(str(private), file)
        finally:
            linux.unmount(scratch)
    except FileNotFoundError as error:
        raise CannotError(f"{file} is missing, so names cannot be looked up; run: sudo touch {file}") from error
    except OSError as error:
        raise CannotError(f"{file} cannot be covered in the lab: {error.strerror}; run `trifecta doctor`") from error


def cover_names() -> None:
    """Have programs of this mount namespace find no host by name, but those of /etc/hosts.

    CannotError as `cover`. Those that ask a name server themselves, or a cache through its socket, still do.
    """
    try:
        lines = Path(ORDER).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise CannotError(f"{ORDER} cannot be read: {error.strerror}; run: sudo touch {ORDER}") from error
    cover(ORDER, "\n".join([*(line for line in lines if not line.startswith("hosts:")), "hosts: files", ""]))
