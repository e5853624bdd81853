"""The document in a HAR file, however it is wrapped: plain, gzip, or zip as Playwright writes it.

Playwright may have content "attached": `content._file` names a file in the same zip or folder.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

from trifecta.design.errors import UserError

MAX_HAR_BYTES = 2 * 2**30
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_ENDINGS = (".zip", ".gz", ".har", ".json")


def stem(path: Path) -> str:
    """The name of a HAR file without what says that it is one."""
    name = path.name
    for ending in _ENDINGS:
        name = name[: -len(ending)] if name.lower().endswith(ending) and len(name) > len(ending) else name
    return name


class HarFile:
    """A HAR file on disk; never trusted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None

    def document(self) -> Any:
        """The JSON in it; UserError naming the file."""
        try:
            data = self._limited(self.path.open("rb"), "the file")
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read ({error.strerror}); name a HAR file") from error
        try:
            if data[:2] == _GZIP:
                data = self._limited(gzip.GzipFile(fileobj=io.BytesIO(data)), "what it unpacks to")
            elif data[:4] == _ZIP:
                data = self._of_zip(data)
        except (
            OSError,
            EOFError,
            ValueError,
            zlib.error,
            zipfile.BadZipFile,
            NotImplementedError,
            RuntimeError,
        ) as error:
            raise UserError(f"{self.path}: cannot be unpacked ({error}); save the HAR again") from error
        try:
            return json.loads(data.removeprefix(b"\xef\xbb\xbf"))
        except (ValueError, RecursionError) as error:
            empty = "is empty" if not data.strip() else f"is not JSON ({error})"
            raise UserError(f"{self.path}: {empty}; save the HAR again") from error

    def attached(self, name: str) -> bytes | None:
        """The content that an entry says is in a file of its own; None where it is not there."""
        if not name or "/" in name or "\\" in name or name.startswith("."):
            return None
        try:
            if self._zip is not None:
                return self._limited(self._zip.open(name), name)
            beside = self.path.parent / name
            return None if beside.is_symlink() else self._limited(beside.open("rb"), name)
        except (OSError, KeyError, ValueError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError):
            return None

    def _of_zip(self, data: bytes) -> bytes:
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        names = [name for name in self._zip.namelist() if name.lower().endswith(".har")]
        if len(names) != 1:
            raise UserError(f"{self.path}: is a zip with {len(names)} HAR files; name a HAR file, or a zip with one")
        return self._limited(self._zip.open(names[0]), names[0])

    def _limited(self, file: Any, what: str) -> bytes:
        with file:
            data = bytes(file.read(MAX_HAR_BYTES + 1))
        if len(data) > MAX_HAR_BYTES:
            raise UserError(f"{self.path}: {what} is larger than {MAX_HAR_BYTES} octets; save fewer pages in one HAR")
        return data
