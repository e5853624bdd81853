"""Web pages as folders: generated, made of an asset library, or recorded, to be replayed in the lab."""

from __future__ import annotations

from pathlib import Path

from trifecta.design.document import did_you_mean
from trifecta.design.errors import UserError

BUNDLED = ("light", "light-fonts", "heavy", "blocks")
"""Names that stand for pages in the cache; ``blocks`` has a recipe (``trifecta get page-blocks``)."""


def find(name_or_path: str, *, make: bool = True) -> Path:
    """The folder of a page: a bundled name, which is generated on first use, or a path; UserError when there is none.

    With ``make`` false nothing is generated: CannotError where that would be needed. A path has a slash in it or is a
    folder that is there; what is in it is for ``archive.read_page`` to say.
    """
    from trifecta.pages import bundled

    if name_or_path in BUNDLED:
        return bundled.folder_of(name_or_path, make=make)
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        return path.absolute()
    if "/" in name_or_path:
        raise UserError(f"{name_or_path}: no such folder; record a page with `trifecta page record`")
    raise UserError(f"no page {name_or_path!r}; {did_you_mean(name_or_path, BUNDLED)}, or name a folder")
