"""How many processors a reader may use, on any machine."""

from __future__ import annotations

import os


def usable() -> int:
    """Processors this process may run on; all of them where the system does not say which (macOS)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
