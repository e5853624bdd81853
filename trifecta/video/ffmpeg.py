"""ffmpeg and ffprobe (https://ffmpeg.org) of this machine: found, asked, run with a limit."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from trifecta.design.errors import CannotError, UserError
from trifecta.implementations.server import Unsupported

_TIMEOUT_S = 1800
_QUIET = ("-nostdin", "-hide_banner", "-loglevel", "error", "-y")
# What a file given by the user may make ffmpeg open: a playlist in disguise must not reach a network.
LOCAL_ONLY = ("-protocol_whitelist", "file")
# Without the encoder's name and dates in the file: the same input gives the same octets.
BIT_EXACT = ("-fflags", "+bitexact", "-flags", "+bitexact", "-map_metadata", "-1")


def program(name: str = "ffmpeg") -> str:
    """The path of ffmpeg or ffprobe; Unsupported with the remedy when it is missing."""
    path = shutil.which(name)
    if path is None:
        raise Unsupported(f"{name} is not installed, and video needs it; run: apt-get install ffmpeg")
    return path


@cache
def version() -> str:
    """Version of ffmpeg."""
    output = _output([program(), "-hide_banner", "-version"])
    match = re.match(r"ffmpeg version (\S+)", output)
    return match[1] if match else "unknown"


@cache
def _encoders() -> frozenset[str]:
    listed = _output([program(), "-hide_banner", "-encoders"])
    return frozenset(re.findall(r"^ [VA][\w.]{5} (\S+)", listed, re.MULTILINE))


def need_encoders(*names: str) -> None:
    """Unsupported when this ffmpeg lacks one of them."""
    for name in names:
        if name not in _encoders():
            raise Unsupported(
                f"this ffmpeg {version()} cannot encode with {name}; install one that can (Debian's does)"
            )


def command(*arguments: str | Path) -> list[str]:
    """A command of ffmpeg that says nothing but errors and asks nothing."""
    return [program(), *_QUIET, *(str(argument) for argument in arguments)]


def run(*arguments: str | Path, what: str) -> None:
    """Run ffmpeg to its end; CannotError with what it said."""
    done = _run(command(*arguments))
    if done.returncode != 0:
        raise CannotError(f"ffmpeg cannot {what}: {_words(done.stderr)}")


def probe(path: Path, *entries: str) -> dict[str, Any]:
    """What ffprobe tells of a file of the user's; UserError when it is no media file."""
    arguments = [program("ffprobe"), "-v", "error", *LOCAL_ONLY, "-of", "json", *entries, "-i", str(path)]
    done = _run(arguments)
    try:
        document = json.loads(done.stdout) if done.returncode == 0 else None
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise UserError(f"{path}: ffmpeg cannot read it as video ({_words(done.stderr)}); give another file")
    return document


def _output(arguments: Sequence[str]) -> str:
    done = _run(arguments)
    if done.returncode != 0:
        raise Unsupported(f"{arguments[0]} does not run ({_words(done.stderr)}); install it again")
    return done.stdout


def _run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            arguments, capture_output=True, text=True, errors="replace", check=False, timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise CannotError(f"{arguments[0]} did not end within {_TIMEOUT_S} s; take a shorter clip") from error
    except OSError as error:
        raise CannotError(f"{arguments[0]} cannot be run ({error.strerror}); install it again") from error


def _words(stderr: str) -> str:
    return " ".join(stderr.split())[-400:] or "it said nothing"
