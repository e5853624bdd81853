"""The image of the engine, made from scratch: the binary, what the loader needs to run it, and how names are found."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.lab.engine import rebuild

PROGRAM = "/trifecta-engine"
# glibc before 2.34 loads these when a name is looked up; later ones have them inside.
_LOADED_LATE = ("libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2")
_FILES = {
    "etc/nsswitch.conf": b"hosts: files dns\n",
    "etc/passwd": b"root:x:0:0:root:/:/\n",
    "etc/group": b"root:x:0:\n",
}


def image_archive(engine: Path) -> bytes:
    """The root of the image's file system as a tar archive; CannotError when the binary lacks a library."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        _add(tar, PROGRAM.lstrip("/"), engine.read_bytes(), 0o755)
        for library in _libraries(engine):
            _add(tar, str(library).lstrip("/"), library.read_bytes(), 0o755)
        for name, content in _FILES.items():
            _add(tar, name, content, 0o644)
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(folder)
    return archive.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)  # owner root, time 0: the same content gives the same image
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def _libraries(engine: Path) -> Iterator[Path]:
    """The loader and the shared libraries, each under the name by which it is asked for."""
    try:
        done = subprocess.run(["ldd", engine], capture_output=True, text=True, check=False, timeout=20)
    except FileNotFoundError as error:
        raise CannotError("`ldd` is missing, which lists what the image must contain; install libc-bin") from error
    missing = re.findall(r"(\S+) => not found", done.stdout)
    if missing:
        raise CannotError(f"{engine} lacks {', '.join(missing)}; run `{rebuild()}`")
    paths = [Path(name) for name in re.findall(r"(/\S+) \(0x[0-9a-f]+\)", done.stdout)]  # none: statically linked
    yield from paths
    for library in paths:
        if library.name.startswith("libc.so"):
            late = (library.parent / name for name in _LOADED_LATE)
            yield from (path for path in late if path.exists() and path not in paths)
