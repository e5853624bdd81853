"""Content codings (RFC 9110, section 8.4.1): taken off and put on again, the same way every time."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

from trifecta.design import extras

_GZIP_LEVEL, _BROTLI_QUALITY = 6, 5  # what servers do on the fly, by their defaults


def _brotli(content: bytes) -> bytes:
    brotli = extras.load("brotli")
    return bytes(brotli.compress(content, quality=_BROTLI_QUALITY))


def _unbrotli(content: bytes) -> bytes:
    brotli = extras.load("brotli")
    try:
        return bytes(brotli.decompress(content))
    except brotli.error as error:
        raise ValueError(str(error)) from error


_CODERS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "gzip": (lambda content: gzip.compress(content, _GZIP_LEVEL, mtime=0), gzip.decompress),
    "x-gzip": (lambda content: gzip.compress(content, _GZIP_LEVEL, mtime=0), gzip.decompress),
    "deflate": (lambda content: zlib.compress(content, _GZIP_LEVEL), zlib.decompress),
    "br": (_brotli, _unbrotli),
}


def is_known_coding(coding: str) -> bool:
    """Whether content of this coding (one name, lower case) can be made here."""
    return coding in _CODERS


def encode(content: bytes, coding: str) -> bytes:
    """Content in a known coding."""
    return _CODERS[coding][0](content)


def is_encoded(content: bytes, coding: str) -> bool:
    """Whether content is in a known coding already."""
    try:
        _CODERS[coding][1](content)
    except (ValueError, OSError, EOFError, zlib.error):
        return False
    return True
