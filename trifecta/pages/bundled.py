"""The pages that have names: where they are in the cache, and how they come there."""

from __future__ import annotations

from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.pages import generate
from trifecta.pages.archive import PAGE_FILE
from trifecta.store.cache import cache_folder, locked

BLOCKS = "page-blocks"
TITLES = {
    **{name: recipe.title for name, recipe in generate.RECIPES.items()},
    "blocks": "Blocks: a page of Froala Design Blocks, the library of the study baccichet2021",
}


def folder_of(name: str, *, make: bool = True) -> Path:
    """Where the page is, made now when it can be; CannotError with the remedy when it must be got first."""
    if name in generate.RECIPES:
        return _generated(generate.RECIPES[name], make)
    folder = cache_folder() / BLOCKS
    if not (folder / PAGE_FILE).is_file():
        raise CannotError(f"page {name!r} is not in the cache; run: trifecta get {BLOCKS}")
    return folder


def _generated(recipe: generate.Recipe, make: bool) -> Path:
    folder = cache_folder() / "pages" / f"{recipe.name}-{generate.VERSION}"
    if not folder.is_dir() and not make:
        raise CannotError(f"page {recipe.name!r} is made from a seed on first use: trifecta page show {recipe.name}")
    if not folder.is_dir():  # a folder of an archive is there whole or not at all
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with locked(folder, lambda _: None):
                if not folder.is_dir():
                    generate.make(recipe, folder)
        except OSError as error:
            raise CannotError(f"cannot make {folder} ({error}); name another cache with TRIFECTA_CACHE") from error
    return folder
