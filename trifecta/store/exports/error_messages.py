"""What is said of a store that fails: one line, in which nothing is secret."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

_SECRET = re.compile(r"SECRET|TOKEN|PASSWORD|PWD|ACCESS_KEY|ACCOUNT_KEY|SAS|HEADERS|CREDENTIAL", re.IGNORECASE)
_PARTS = re.compile(r"[\s,;=]+")  # of a list of headers, each of whose values is secret
_NONE = ("PWD", "OLDPWD")
_LONG = 300
RUN_AGAIN = "fix it and run this again; it continues where it ended"


def line(error: object, *secrets: str) -> str:
    """What a library or a server said as one line, cut short, without these secrets and any of the environment."""
    text = " ".join(str(error).split()) or type(error).__name__
    secret_values = [value for name, value in os.environ.items() if _SECRET.search(name) and name not in _NONE]
    headers = [part for name, value in os.environ.items() if name.endswith("HEADERS") for part in _PARTS.split(value)]
    for value in sorted({*secrets, *secret_values, *headers, *map(unquote, headers)}, key=len, reverse=True):
        if len(value) > 3:
            text = text.replace(value, "...")
    return text[:_LONG]


def place(url: str) -> str:
    """Where a URL leads, without a user's name, query and fragment."""
    parted = urlsplit(url)
    return f"{parted.scheme}://{parted.netloc.rpartition('@')[2]}{parted.path}"
