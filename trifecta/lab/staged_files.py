"""Files at the other end: what was put there lies below the working folder, and configurations are told where."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from trifecta.contract.link import LinkConfig
from trifecta.contract.load import LoadConfig, Message
from trifecta.contract.origin import OriginConfig, RelayConfig
from trifecta.contract.probe import MeasureConfig, ReflectConfig

Config = TypeVar("Config", bound=msgspec.Struct)
_FIELDS: Mapping[type[msgspec.Struct], tuple[str, ...]] = {
    LoadConfig: ("ca_file", "samples_file", "spans_file", "keylog_file", "qlog_dir", "message"),
    OriginConfig: ("certificate_file", "key_file", "folder", "replay", "live", "keylog_file", "qlog_dir", "relay"),
    LinkConfig: ("log_file", "capture_file"),
    MeasureConfig: ("samples_file",),
    ReflectConfig: (),
}
"""The fields that name files, of the configurations of the programs that can run on a host."""


def below(path: Path) -> str:
    """Where a file of this machine lies at the other end, from the folder of files: its own path below that."""
    return f".{os.path.normpath(path.absolute())}"  # without "..", which would lead out of that folder


def relocated(config: Config, folder: str, given: Mapping[Path, bool]) -> Config:
    """A configuration with the paths of the other end, whose files are in ``folder``.

    ValueError for one that names a file which was not put there: that is a fault of ours, and of no user's.
    """
    fields = _FIELDS.get(type(config))
    if fields is None:
        raise ValueError(f"it is not known which files {type(config).__name__} names")
    named = {name: value for name in fields if (value := getattr(config, name)) is not None}
    return replace(config, **{name: _staged_path(value, folder, given) for name, value in named.items()})


def _staged_path(value: object, folder: str, given: Mapping[Path, bool]) -> object:
    if isinstance(value, Message):
        return value if value.folder is None else replace(value, folder=_staged_path(value.folder, folder, given))
    if isinstance(value, RelayConfig):
        return value if value.ca_file is None else replace(value, ca_file=_staged_path(value.ca_file, folder, given))
    if not isinstance(value, str):
        raise ValueError(f"{type(value).__name__} cannot be used on a host")
    path = Path(value).absolute()
    if not any(path == one or one in path.parents for one in given):
        raise ValueError(f"{path} was not put on the host")
    return f"{folder}/{PurePosixPath(below(path))}"


def pack(path: Path, at: Path | None = None) -> bytes:
    """A file or folder as an archive that lays it below ``path``; it is read from ``at`` where that is another place.

    OSError when it cannot be read.
    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(at or path, arcname=below(path))
    return archive.getvalue()


def unpack(archive: bytes, path: Path, at: Path | None = None) -> None:
    """Lay the files of an archive where they belong: ``path`` (``at``, where that lies elsewhere), or what is below it.

    ValueError for anything else: the other end is not trusted with names, modes or links.
    """
    try:
        _unpack_into(archive, PurePosixPath(below(path)), at or path)
    except tarfile.TarError as error:
        raise ValueError(f"it is no archive: {error}") from error


def _unpack_into(archive: bytes, root: PurePosixPath, at: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
        for member in tar:
            name = PurePosixPath(member.name)
            if ".." in name.parts or (name != root and root not in name.parents):
                raise ValueError(f"{member.name!r} is not what was asked for")
            target = at / name.relative_to(root)
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
            elif (content := tar.extractfile(member) if member.isreg() else None) is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
            else:
                raise ValueError(f"{member.name!r} is neither a file nor a folder")
