"""What stands as code in a report: a command as it is typed, and words between backticks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup


def command_line(argv: Sequence[str]) -> str:
    """A command as anybody would type it: without where the program lies on this machine."""
    ours = bool(argv) and PurePath(argv[0]).name in ("trifecta", "__main__.py", "main.py")
    return shlex.join(["trifecta", *argv[1:]] if ours else argv)


def code(text: str) -> Markup:
    """What stands between backticks as code, everything else escaped."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before
