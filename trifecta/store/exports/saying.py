"""What is said of a store that fails: one line, in which nothing is secret."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

_SECRET = re.compile(r"SECRET|TOKEN|PASSWORD|PWD|ACCESS_KEY|ACCOUNT_KEY|HEADERS|CREDENTIAL", re.IGNORECASE)
_NONE = ("PWD", "OLDPWD")
_LONG = 300


def line(error: object, *secrets: str) -> str:
    """What a library or a server said as one line, cut short, without these secrets and any of the environment."""
    text = " ".join(str(error).split()) or type(error).__name__
    of_environment = (value for name, value in os.environ.items() if _SECRET.search(name) and name not in _NONE)
    for value in (*secrets, *of_environment):
        if len(value) > 3:
            text = text.replace(value, "...")
    return text[:_LONG]


def place(url: str) -> str:
    """Where a URL leads, without a user's name, query and fragment."""
    parted = urlsplit(url)
    return f"{parted.scheme}://{parted.netloc.rpartition('@')[2]}{parted.path}"
