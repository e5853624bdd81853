"""Object stores of runs on clusters, as commands need them.

By a process of its own (``python -m trifecta.cli.object_stores``): a library of object stores starts threads, which
must not be there when the lab is entered or programs are looked for, and in the lab no store is reached.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from trifecta.design.errors import CannotError, TrifectaError

_REACH = "--reach"


def bring(folder: Path, *, quiet: bool) -> None:
    """Bring what the runs in a folder, or the folder's own, lack, and put into the store what that lacks.

    CannotError where the store does not do it.
    """
    from trifecta.store import facts

    own = folder / facts.FILE
    for path in [own] if own.is_file() else sorted(folder.rglob(facts.FILE)):
        url = facts.read(path.parent).get("stored")
        if url is None:
            continue
        if not quiet:
            click.echo(f"Looking for files of {path.parent} that are still in {url}", err=True)
        for line in _run_in_process(str(path.parent)):
            click.echo(line, err=True)


def reach(url: str) -> None:
    """CannotError where a store does not do all that is asked of it."""
    _run_in_process(_REACH, url)


def _run_in_process(*arguments: str) -> list[str]:
    """What the process said, line by line; CannotError where it could not do it."""
    command = [sys.executable, "-P", "-m", "trifecta.cli.object_stores", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    sentences = ended.stderr.strip().splitlines()
    if ended.returncode != 0:
        raise CannotError(sentences[-1].removeprefix("trifecta: ") if sentences else f"exit code {ended.returncode}")
    return sentences


def _do(path: Path) -> None:
    from trifecta.store import manifest, node_blocks, remote_files
    from trifecta.store.run import RunDirectory

    # A block that is staged has no lines in the manifest yet: whoever opens the run for writing commits it.
    lacks = bool(manifest.absent(path)) or (path / node_blocks.FOLDER).is_dir()
    try:
        if not lacks and remote_files.is_complete(path):
            return
        run = RunDirectory.open(path, write=True)
        try:
            remote_files.bring(run.path)
            remote_files.complete(run.path)
        finally:
            run.close()
    except CannotError as error:
        if lacks:
            raise
        print(f"Note: {error}; all of the run is here", file=sys.stderr)  # which needs no store to go on


def main() -> int:
    """Bring what a run lacks, or try a store."""
    try:
        if sys.argv[1] == _REACH:
            from trifecta.store.exports import object_store

            object_store.reach(sys.argv[2])
        else:
            _do(Path(sys.argv[1]))
    except TrifectaError as error:
        print(f"trifecta: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
