"""What `trifecta resume` does first: files of a run that are still in its object store are brought here.

By a process of its own (``python -m trifecta.cli.bringing RUN``): a library of object stores starts threads, which must
not be there when the lab is entered, and in the lab no store is reached.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from trifecta.design.errors import CannotError, TrifectaError


def bring(folder: Path, *, quiet: bool) -> None:
    """Bring what the runs in a folder, or the folder's own, lack; CannotError where the store does not give it."""
    from trifecta.store import facts

    own = folder / facts.FILE
    for path in [own] if own.is_file() else sorted(folder.rglob(facts.FILE)):
        url = facts.read(path.parent).get("stored")
        if url is None:
            continue
        if not quiet:
            click.echo(f"Looking for files of {path.parent} that are still in {url}", err=True)
        arguments = [sys.executable, "-P", "-m", "trifecta.cli.bringing", str(path.parent)]
        ended = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            said = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
            raise CannotError(said[-1].removeprefix("trifecta: "))


def main() -> int:
    """Bring what a run lacks."""
    from trifecta.store import away
    from trifecta.store.run import RunDirectory

    path = Path(sys.argv[1])
    try:
        if away.absent(path):
            run = RunDirectory.open(path, write=True)
            try:
                away.bring(run.path)
            finally:
                run.close()
    except TrifectaError as error:
        print(f"trifecta: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
