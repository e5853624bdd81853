"""The token of Prometheus, which stands in a file that both read."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from trifecta.design.errors import UserError

LEAST = 20
"""Characters: 120 bits of base64."""


def of_file(path: Path) -> str:
    """The token in a file; a new one, which this user alone can read, where there is none. UserError otherwise."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read_token(path)
    except OSError as error:
        raise UserError(f"--metrics {path}: {error.strerror}; name a file in a folder that is yours") from None
    token = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{token}\n")
    return token


def _read_token(path: Path) -> str:
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise UserError(f"--metrics {path}: is no file; name one that holds the token, or is not there yet")
        if state.st_mode & stat.S_IRWXO:
            raise UserError(f"--metrics {path}: every user can read it; run: chmod o= {path}")
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise UserError(f"--metrics {path}: cannot be read as text; remove it, and a new token is made") from None
    if len(token) < LEAST or not token.isprintable() or " " in token:
        raise UserError(f"--metrics {path}: is no token of {LEAST} characters or more; remove it, and one is made")
    return token
