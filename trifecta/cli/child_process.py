"""The command line in a process that a Python program started and waits for (`trifecta.api.measuring`).

``python -m trifecta.cli.child_process TOLD ARGUMENT...``; TOLD stands for the last argument in what the run keeps of
its command, where it is not empty: a study that was made in Python is in a file that is gone afterwards.

It ends when that program does, however it ends: a notebook's kernel that is killed leaves no run.
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
    display_name, *arguments = sys.argv[1:]
    sys.argv = ["trifecta", *arguments[:-1], display_name] if display_name else ["trifecta", *arguments]
    sys.exit(command_line.run(arguments))


if __name__ == "__main__":
    main()
