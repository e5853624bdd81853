"""Certificate authorities for a browser's store: certutil takes one certificate of a file, and a file may have more."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trifecta.implementations.browser import Job

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def split(text: str) -> list[str]:
    """The certificates of a text in PEM, each with its marks."""
    return _CERTIFICATE.findall(text)


def files_of(job: Job) -> list[tuple[str, Path]]:
    """A name in the store and a file for each certificate to trust; OSError where the job's file cannot be read.

    A file of one stays where it is, and so does one that is not PEM: certutil says what is wrong with it.
    """
    if job.ca_file is None:
        return []
    every = split(job.ca_file.read_text(encoding="ascii", errors="replace"))
    if len(every) < 2:
        return [("lab", job.ca_file)]
    files = []
    for number, certificate in enumerate(every):
        file = job.state / f"authority-{number}.pem"
        file.write_text(f"{certificate}\n", encoding="ascii")
        files.append((f"lab {number}", file))
    return files
