"""Templates compiled once and kept in Trifecta's cache: to compile those of a report takes a fifth of a second."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, FileSystemBytecodeCache

from trifecta.store.cache import cache_folder


class CompiledTemplates(FileSystemBytecodeCache):
    """Jinja's own cache by the content of the template, in a folder that may be missing, full or read-only."""

    def __init__(self, *, trim: bool) -> None:
        """For templates read with ``trim_blocks``, or without: Jinja tells neither that nor its version apart."""
        folder = cache_folder() / "templates" / f"jinja-{jinja2.__version__}-{'trimmed' if trim else 'whole'}"
        super().__init__(str(folder))

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take a template from the cache; what is damaged is compiled again."""
        try:
            super().load_bytecode(bucket)
        except Exception:  # pickle's and marshal's are of many kinds
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template; without the room or the right to, it is compiled each time."""
        with suppress(OSError):
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)
