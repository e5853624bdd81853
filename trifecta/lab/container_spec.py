"""What a container of another program than the engine's is made of (`trifecta.lab.containers` makes it)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ImageSource:
    """Where the lab's own Docker Engine gets an image: of an archive, or built. There is no registry in the lab."""

    name: str = ""
    """Of the image in the archive; of one that is built it means nothing."""
    archive: Path | None = None
    """What ``docker save`` wrote; loaded before anything is built, which may begin with an image in it."""
    context: Path | None = None
    """The folder of which the image is built; None: it is not built."""
    dockerfile: str = "Dockerfile"
    """Below the context."""
    arguments: tuple[tuple[str, str], ...] = ()
    target: str = ""
    """The stage to build; empty: the last one."""


@dataclass(frozen=True)
class ContainerSpec:
    """A program of an image, beside the files that every program of a place finds."""

    image: ImageSource
    starts: bool = False
    """Whether a command begins with the program; else the image's own entry point does, and has it as arguments."""
    mounts: tuple[tuple[Path, str], ...] = ()
    """Files and folders of this machine, and where it finds them; it cannot write there."""
    working_dir: str = ""
    """The image's own where it is empty."""
