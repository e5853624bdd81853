"""Images of other programs: what identifies one before it is there, and how a Docker Engine gets it."""

from __future__ import annotations

import hashlib
import stat
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trifecta.contract.codec import Misfit, decode
from trifecta.contract.digest import sha256_of
from trifecta.design.errors import CannotError
from trifecta.lab.container_spec import ImageSource

if TYPE_CHECKING:
    from docker import APIClient

_BUILT = "trifecta/built:lab"  # each is known by its id, so the next one may have the name


class _Saved(msgspec.Struct, rename="pascal"):
    """An image in ``manifest.json`` of an archive (Docker image specification 1.2)."""

    config: str
    repo_tags: list[str] | None = None


def image_digest(source: ImageSource) -> str:
    """SHA-256 that identifies an image: of its configuration, which names its layers; of one that is to be built, of
    all that it is built of but its arguments.

    CannotError when there is no such image, or nothing to build it of. Needs the package docker for one to build.
    """
    saved: dict[str, str] = {} if source.archive is None else _saved(source.archive)
    if source.context is None:
        name = _tagged(source.name)
        if name not in saved:
            held = " ".join(", ".join(saved).split()) or "none with a name"
            raise CannotError(f"{source.archive} has no image {name}, but {held}; correct the name, or write it again")
        return saved[name]
    image_hash = hashlib.sha256()
    for name, digest in sorted(saved.items()):
        image_hash.update(f"{name} {digest}\n".encode())
    image_hash.update(tree_digest(source.context, _sent(source.context, source.dockerfile)).encode())
    return image_hash.hexdigest()


def tree_digest(root: Path, names: Iterable[str]) -> str:
    """SHA-256 of files and folders below ``root`` (``""``: itself): names, modes and contents; links as they are."""
    digest = hashlib.sha256()
    for name in sorted(names):
        path = root / name
        mode = path.lstat().st_mode
        digest.update(f"{name}\0{mode:o}\0".encode(errors="surrogateescape"))
        if stat.S_ISLNK(mode):
            digest.update(str(path.readlink()).encode(errors="surrogateescape"))
        elif stat.S_ISREG(mode):
            digest.update(bytes.fromhex(sha256_of(path)))
        digest.update(b"\0")
    return digest.hexdigest()


def bring(client: APIClient, source: ImageSource) -> str:
    """Load or build an image; its id. DockerException, RequestException or OSError when it fails."""
    engine: Any = client  # whose stubs leave out the types of these calls
    name = source.name
    if source.archive is not None:
        with source.archive.open("rb") as file:
            _heed(engine.load_image(file))
    if source.context is not None:
        name = _BUILT
        events = engine.build(
            path=str(source.context),
            dockerfile=source.dockerfile,
            tag=name,
            buildargs=dict(source.arguments),
            target=source.target or None,
            network_mode="none",  # the lab has no way out, and the Docker Engine no bridge for builds
            use_config_proxy=False,
            forcerm=True,
            decode=True,
        )
        _heed(events)
    return str(engine.inspect_image(name)["Id"])


def _heed(events: Iterable[Mapping[str, object]]) -> None:
    """Hear all that a Docker Engine says of a work; DockerException where it says that it failed."""
    from docker.errors import DockerException

    for line in events:
        if "error" in line:
            raise DockerException(str(line["error"]))


def _saved(archive: Path) -> dict[str, str]:
    """The images of an archive by their names: the digests of their configurations."""
    try:
        with tarfile.open(archive, "r:") as tar:
            images = decode(list[_Saved], _member(tar, "manifest.json"))
            return {
                name: hashlib.sha256(_member(tar, image.config)).hexdigest()
                for image in images
                for name in image.repo_tags or ()
            }
    except (OSError, KeyError, tarfile.TarError, Misfit) as error:
        why = " ".join(str(error).split())
        raise CannotError(f"{archive} holds no images ({why}); write it with: docker save NAME -o FILE") from error


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    if file is None:
        raise KeyError(f"{name} is no file")
    return file.read()


def _sent(context: Path, dockerfile: str) -> list[str]:
    """The names of what is sent to build an image: all that ``.dockerignore`` leaves, as the package docker does it."""
    from docker.utils.build import exclude_paths

    if not (context / dockerfile).is_file():
        raise CannotError(
            f"{context} has no {dockerfile}, from which the image would be built; write it, or correct the name"
        )
    ignoring = context / ".dockerignore"
    lines = ignoring.read_text(encoding="utf-8").splitlines() if ignoring.is_file() else []
    patterns = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    return sorted(exclude_paths(str(context), patterns, dockerfile))


def _tagged(name: str) -> str:
    """A name as an archive has it: with the tag that is meant where there is none."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"
