"""Which program of the engine is brought to a host: the static one, where it was built, needs no C library there."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from trifecta.contract.digest import sha256_of
from trifecta.contract.machine import BroughtEngine
from trifecta.design.errors import CannotError
from trifecta.lab.engine import engine_versions

STATIC_VARIABLE = "TRIFECTA_STATIC_ENGINE"
_BUILD = "make static"
_RELEASE, _STATIC = "release", "static"  # folders beside each other, in cargo's of what it built
_ELF64 = b"\x7fELF\x02\x01"  # little-endian, as all processors that the engine is built for
_HEADER_BYTES = 64
_INTERPRETER = 3  # elf(5), PT_INTERP


def to_bring(engine: Path) -> Path:
    """The program to bring to a host where ``engine`` is the one here: a static one, or else itself.

    The static one is what ``TRIFECTA_STATIC_ENGINE`` names, or what ``make static`` put beside ``engine``. CannotError
    for one that is not static, of other versions than ``engine``, or beside it and older: hosts would measure with
    another program.
    """
    if named := os.environ.get(STATIC_VARIABLE):
        path, remedy = Path(named).absolute(), f"name a static build of trifecta-engine, or unset {STATIC_VARIABLE}"
        if not os.access(path, os.X_OK) or not path.is_file():
            raise CannotError(f"{STATIC_VARIABLE}={named} is not a program; {remedy}")
    else:
        path, remedy = engine.parent.parent / _STATIC / engine.name, f"run `{_BUILD}` again, or remove it"
        if engine.parent.name != _RELEASE or not path.is_file():
            return engine
        if path.stat().st_mtime_ns < engine.stat().st_mtime_ns:
            raise CannotError(f"the static engine {path} is older than the engine; {remedy}")
    if not is_static(path):
        raise CannotError(f"{path} is no static program; {remedy}")
    if engine_versions(path) != engine_versions(engine):
        raise CannotError(f"the static engine {path} is not of the versions of {engine}; {remedy}")
    return path


def is_static(program: Path) -> bool:
    """Whether the kernel can start an ELF program by itself: it names no interpreter, so none loads libraries for it.

    False for what is no 64-bit ELF program. OSError when it cannot be read.
    """
    with program.open("rb") as file:
        header = file.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES or not header.startswith(_ELF64):
            return False
        (start,) = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        file.seek(start)
        table = file.read(size * count)
    if size < 4 or len(table) < size * count:
        return False
    return all(struct.unpack_from("<I", table, size * number)[0] != _INTERPRETER for number in range(count))


def facts(program: Path) -> BroughtEngine:
    """What is recorded of the program that is started on a host. OSError when it cannot be read."""
    return {
        "sha256": sha256_of(program),
        "linkage": "static" if is_static(program) else "shared",
    }
