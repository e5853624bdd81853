"""Credentials and region of AWS's own files, which the library of object stores does not read.

The format: https://docs.aws.amazon.com/cli/latest/userguide/cli-configure-files.html. Nothing of it is kept.
"""

from __future__ import annotations

import configparser
import os
from pathlib import Path

from trifecta.design.errors import UserError

_OF_ENVIRONMENT = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}


def credentials() -> dict[str, str]:
    """What the files say beside the environment, in the words of the library; empty where they say nothing.

    UserError where AWS_PROFILE names a profile that is in none of them, or a file cannot be read.
    """
    profile = os.environ.get("AWS_PROFILE") or "default"
    from_file = _section("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile)
    config = _section("AWS_CONFIG_FILE", "config", profile if profile == "default" else f"profile {profile}")
    if from_file is None and config is None and os.environ.get("AWS_PROFILE"):
        raise UserError(f"AWS_PROFILE: no profile {profile!r} in ~/.aws/credentials or ~/.aws/config")
    of_files = {**(config or {}), **(from_file or {})}
    settings: dict[str, str] = {}
    if not any(os.environ.get(name) for name in _OF_ENVIRONMENT):
        settings = {ours: of_files[theirs] for theirs, ours in _KEYS.items() if theirs in of_files}
    if "region" in of_files and not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
        settings["region"] = of_files["region"]
    return settings


def _section(variable: str, name: str, section: str) -> dict[str, str] | None:
    given = os.environ.get(variable)
    try:
        path = Path(given) if given else Path.home() / ".aws" / name
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, RuntimeError) as error:
        raise UserError(
            f"~/.aws/{name} cannot be read ({type(error).__name__}); correct it, or set {variable}"
        ) from None
    read = configparser.RawConfigParser()
    try:
        read.read_string(text)
    except configparser.Error:  # it would quote the line, in which the key may stand
        raise UserError(f"~/.aws/{name} is not in the format of AWS's files; `aws configure` writes it") from None
    return dict(read[section]) if read.has_section(section) else None
