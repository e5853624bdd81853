"""The command line in a process that a Python program started and waits for (`trifecta.api.measuring`).

Run as a program. It ends when that program does, however it ends: a notebook's kernel that is killed leaves no run.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """As the command ``trifecta``; SIGTERM, which ends a run cleanly, when the thread ends that started it."""
    from trifecta.cli import main as command_line

    if sys.platform == "linux":  # elsewhere the command itself says that it cannot measure
        from trifecta.lab import linux

        linux.set_parent_death_signal(signal.SIGTERM)
    sys.argv[0] = "trifecta"  # kept in the run, as the command that repeats it
    command_line.main()


if __name__ == "__main__":
    main()
