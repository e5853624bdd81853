"""What is said of a store that fails: one line, in which nothing is secret."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

_SECRET = re.compile(r"SECRET|TOKEN|PASSWORD|PWD|ACCESS_KEY|ACCOUNT_KEY|HEADERS|CREDENTIAL", re.IGNORECASE)
_LONG = 300


def line(error: object) -> str:
    """What a library or a server said as one line, cut short, without any secret of the environment."""
    text = " ".join(str(error).strip().split())[:_LONG] or type(error).__name__
    for name, value in os.environ.items():
        if _SECRET.search(name) and len(value) > 3:
            text = text.replace(value, "...")
    return text


def place(url: str) -> str:
    """Where a URL leads, without a user's name, query and fragment."""
    parted = urlsplit(url)
    return f"{parted.scheme}://{parted.netloc.rpartition('@')[2]}{parted.path}"
