"""``results.sha256``: what commands worked out of a run and left in its folder, beside the run's own manifest.

Tables of a report, what a dissection found, a map, a reproduction. Each is what the command wrote, or it is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from trifecta.design.errors import UserError
from trifecta.store import files
from trifecta.store.derived import DERIVED
from trifecta.store.digest_cache import digest
from trifecta.store.manifest import LINE, Manifest

FILE = "results.sha256"


def note(folder: Path, names: Iterable[str]) -> None:
    """Keep the digests of files that a command left in ``folder``, beside those kept before that are still there."""
    noted = known(folder) or {}
    noted |= {name: digest(folder / name) for name in names}
    present = sorted(name for name in noted if (folder / name).exists())
    files.write_text(folder / FILE, "".join(f"{noted[name]}  {name}\n" for name in present))


def check(folder: Path, names: Iterable[str], remedy: str) -> None:
    """UserError for the first of these files that is not what the command left that wrote it, or is gone.

    Folders of earlier versions have no ``results.sha256`` and pass, unless they are runs that have a manifest.
    """
    noted = known(folder)
    for name in names:
        path = folder / name
        if not path.exists():
            if name in (noted or {}):
                raise UserError(f"{path}: is missing, and {FILE} lists it; {remedy}")
        elif noted is None:
            if Manifest(folder).exists():
                raise UserError(f"{path}: {_UNLIKE}; {remedy}")
        elif not path.is_file() or noted.get(name) != digest(path):
            raise UserError(f"{path}: {_UNLIKE}; {remedy}")


def check_derived(folder: Path, run: str | os.PathLike[str]) -> None:
    """The same of the tables that a report left in a run's folder; ``run`` is what the user calls it."""
    check(folder, [f"{name}.parquet" for name in DERIVED], f"`trifecta report {run}` writes it again")


def known(folder: Path) -> dict[str, str] | None:
    """The digests by name; None where there is no file of them."""
    path = folder / FILE
    if not path.is_file():
        return None
    digests = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        matched = LINE.fullmatch(line)
        if matched is not None:
            digests[matched[2]] = matched[1]
    return digests


_UNLIKE = f"is not what {FILE} says that was written there"
