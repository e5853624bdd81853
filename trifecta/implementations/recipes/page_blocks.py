"""The page ``blocks``, put together of pinned npm packages; no script of a package is run."""

from __future__ import annotations

import tempfile
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.implementations.recipe import Recipe, Say
from trifecta.implementations.recipes.npm import NpmFiles
from trifecta.pages import blocks
from trifecta.pages.bundled import BLOCKS
from trifecta.store.cache import digest_of, is_whole, make_whole

_PARTS = (
    NpmFiles(
        "design-blocks", "froala-design-blocks", "2.0.1",
        "sha512-obI3IDjK1E4hmTyqOzT1+jr7JZ68drznUFYADTLmPiKbBmrAgNJPm2T/siOcE6EN1p8hmF5qeSv8K6vyZ3Qedw==",
        {"dist/": ".", "LICENSE": "LICENSE"},
    ),
    NpmFiles(
        "bootstrap", "bootstrap", "4.6.2",
        "sha512-51Bbp/Uxr9aTuy6ca/8FbFloBUJZLHwnhTcnjIeRn2suQWsWzcuJhGjKDB5eppVte/8oCdOL3VuwxvZDUggwGQ==",
        {"dist/css/bootstrap.min.css": "bootstrap/bootstrap.min.css",
         "dist/js/bootstrap.min.js": "bootstrap/bootstrap.min.js"},
    ),
    NpmFiles(
        "jquery", "jquery", "3.7.1",
        "sha512-m4avr8yL8kmFN8psrbFFFmB/If14iN5o9nw/NgnnM+kybDJpRsAynV2BsfpTYrTRysYUdADVD7CkUUizgkpLfg==",
        {"dist/jquery.slim.min.js": "jquery/jquery.slim.min.js"},
    ),
    NpmFiles(
        "popper", "popper.js", "1.16.1",
        "sha512-Wb4p1J4zyFTbM+u6WuO4XstYx4Ky9Cewe4DWrel7B0w6VVICvPwdOpotjzcf6eD8TsckVnIMNONQyPIUFOUbCQ==",
        {"dist/umd/popper.min.js": "popper/popper.min.js"},
    ),
    NpmFiles(
        "fontawesome", "@fortawesome/fontawesome-free", "5.15.4",
        "sha512-eYm8vijH/hpzr/6/1CJ/V/Eb1xQFW2nnUKArb3z+yUWv7HTwj6M7SP957oMjfZjAHU6qpoNc2wQvIxBLWYa/Jg==",
        {"css/all.min.css": "awesome/css/all.min.css", "webfonts/": "awesome/webfonts"},
    ),
    NpmFiles(
        "lato", "@fontsource/lato", "5.3.0",
        "sha512-0WhF/4rhrw+ErIyneKvhHn2YAl+xf8GDtllgOgOzDmeaSlLQtjpChXaQOpWhG2BchQW0WJy2zLV12Hdg0ndOMw==",
        {"files/lato-latin-400-normal.woff2": "lato/lato-latin-400-normal.woff2",
         "files/lato-latin-700-normal.woff2": "lato/lato-latin-700-normal.woff2"},
    ),
)  # fmt: skip


class PageBlocks(Recipe):
    """The library's tarball has 122 MB, since its screenshots and drafts are in it; the page has 3 MB."""

    name = BLOCKS
    origin = "npm"

    def installed(self) -> bool:
        """Whether the page of just these packages and this version of ours is there."""
        return is_whole(self.folder(), self._digest())

    def install(self, say: Say) -> None:
        """Fetch the packages, check them, put the page together."""
        make_whole(self.folder(), self._digest(), lambda folder: self._fill(folder, say), say)
        say(f"{self.name}: {blocks.LICENCES}; see docs/pages.md")

    def _digest(self) -> str:
        return digest_of([Path(blocks.__file__)], *(part.integrity for part in _PARTS))

    def _fill(self, folder: Path, say: Say) -> None:
        with tempfile.TemporaryDirectory(prefix="trifecta-blocks-") as scratch:
            for part in _PARTS:
                part.fill(Path(scratch), say)
            try:
                page = blocks.make(Path(scratch), folder, {part.package: part.version for part in _PARTS})
            except OSError as error:
                raise CannotError(
                    f"{self.name}: the packages lack a file of the page ({error}); report this"
                ) from error
            say(f"{self.name}: {len(page.responses)} responses, {page.bytes / 1e6:.1f} MB")
