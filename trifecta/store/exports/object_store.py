"""Places in object stores (S3, Google Cloud, Azure, a folder), for exports and for the nodes of a cluster.

Credentials come from the environment of the process or the provider's own files (`trifecta.store.exports.aws_files`);
nothing of them is kept, or said.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from trifecta.design.errors import CannotError, TrifectaError, UserError
from trifecta.design.extras import LazyModule
from trifecta.store.exports import aws_files, error_messages

obstore: Any = LazyModule("obstore")
stores: Any = LazyModule("obstore.store")
exceptions: Any = LazyModule("obstore.exceptions")

SCHEMES = ("s3", "gs", "az", "file")
_TRIED = "trifecta-tried-this"
_TOLD = re.compile(r"<Code>([^<]*)</Code>\s*<Message>([^<]*)</Message>")
_INSTANCE = "http://169.254.169.254/"  # what Amazon's machines ask for their credentials
_BACKOFF = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=1), "base": 2}
# Of an export nothing is tried twice: whoever asks again goes on where it ended.
_ONCE = {"max_retries": 0, "retry_timeout": timedelta(seconds=30), "backoff": _BACKOFF}
# What was measured is not given up for a store that is busy for a moment.
_PATIENT = {"max_retries": 1000, "retry_timeout": timedelta(seconds=60), "backoff": _BACKOFF}


@dataclass(frozen=True)
class Place:
    """A part of an object store: the store of one bucket, and the names below a prefix of it."""

    store: Any
    url: str
    """Of the prefix, without a slash at its end."""
    prefix: str
    """Empty, or with a slash at its end."""

    def names(self, folder: str) -> set[str]:
        """The objects below a folder of the prefix, as names from the prefix."""
        paths: set[str] = set()
        for chunk in obstore.list(self.store, prefix=f"{self.prefix}{folder}"):
            paths |= {str(each["path"]).removeprefix(self.prefix) for each in chunk}
        return paths

    def put(self, name: str, content: Path | bytes) -> None:
        """Whole or not at all."""
        obstore.put(self.store, f"{self.prefix}{name}", content)

    def delete(self, names: list[str]) -> None:
        """Remove objects."""
        if names:
            obstore.delete(self.store, [f"{self.prefix}{name}" for name in names])

    def get(self, name: str) -> bytes:
        """What an object holds; `obstore`'s NotFoundError, a FileNotFoundError, where there is none."""
        return bytes(obstore.get(self.store, f"{self.prefix}{name}").bytes())


def check(url: str, option: str = "--to") -> None:
    """UserError where a URL names no place of an object store; ``option`` is where it was given."""
    parted = urlsplit(url)
    if parted.scheme not in SCHEMES:
        schemes = ", ".join(f"{scheme}://..." for scheme in SCHEMES)
        raise UserError(
            f"option {option} {error_messages.place(url)}: that is no URL of an object store; write one of {schemes}"
        )
    if parted.query or parted.fragment or parted.username is not None:
        schemes = (
            "nothing but a place stands in the URL; credentials are looked for where `trifecta export --help` says"
        )
        raise UserError(f"{option} {parted.scheme}://: {schemes}")
    if parted.scheme == "file":
        if parted.netloc or not unquote(parted.path).strip("/"):
            raise UserError(f"{option} file://: a folder is file:///PATH, in full")
    elif not parted.netloc:
        form = "CONTAINER" if parted.scheme == "az" else "BUCKET"
        raise UserError(f"{option} {parted.scheme}://: the URL lacks a place; it is {parted.scheme}://{form}/PREFIX")


def opened(url: str, *, patient: bool = False, make: bool = True) -> Place:
    """The store of a URL; a folder is made (``make``), nothing else is tried. UserError where the URL names no place.

    ``patient``: what is asked of it is asked again for a minute, while it is busy or away. Otherwise nothing is.
    """
    check(url)
    parted = urlsplit(url)
    path = unquote(parted.path).strip("/")
    if parted.scheme == "file":
        try:
            store = stores.LocalStore(prefix=Path("/") / path, mkdir=make)
        except (OSError, exceptions.BaseError) as error:  # FileNotFoundError and PermissionError too
            sentence = f"there can be no folder ({_error_message(error)}); name another"
            if not make:
                sentence = "there is no folder; mount it, or put it back"
            raise CannotError(f"file:///{path}: {sentence}") from None
        return Place(store, f"file:///{path}", "")
    base = f"{parted.scheme}://{parted.netloc}"
    config = aws_files.credentials() if parted.scheme == "s3" else {}
    options = {"client_options": {"allow_http": True}} if _without_tls(parted.scheme) else {}
    store = stores.from_url(base, retry_config=_PATIENT if patient else _ONCE, **options, **config)
    return Place(store, f"{base}/{path}".rstrip("/"), f"{path}/" if path else "")


def reach(url: str) -> None:
    """CannotError where a place does not do all that is asked of it; what is tried leaves nothing there."""
    with clear(url, "see that it is reached from here, with credentials that may read, list, write and delete there"):
        place = opened(url)
        place.put(_TRIED, b"")
        place.get(_TRIED)
        place.names(_TRIED)
        place.delete([_TRIED])


@contextmanager
def clear(url: str, remedy: str) -> Iterator[None]:
    """One line for whatever the store raises, without what is secret."""
    try:
        yield
    except TrifectaError:
        raise
    except FileNotFoundError as error:
        raise CannotError(
            f"{error_messages.place(url)}: there is no such bucket or container ({_error_message(error)})"
        ) from None
    except PermissionError as error:
        raise CannotError(f"{error_messages.place(url)}: {_error_message(error)}; {remedy}") from None
    except Exception as error:
        if not isinstance(error, exceptions.BaseError):
            raise
        raise CannotError(f"{error_messages.place(url)}: {_error_message(error)}; {remedy}") from None


def _error_message(error: Exception) -> str:
    """The library says what happened, with the whole answer in XML, then how its own structures look."""
    text = str(error).partition("Debug source")[0].strip() or str(error)
    if match := _TOLD.search(text):
        return error_messages.line(f"{match[1]}: {match[2]}".rstrip(":. "))
    if _INSTANCE in text:
        message = error_messages.line(text[text.index(_INSTANCE) :])
        return f"no credentials were found, nor a role of an instance ({message})"
    if "builder error" in text and os.environ.get("AWS_ENDPOINT", "").startswith("http://"):
        return "AWS_ENDPOINT is without TLS, which AWS_ALLOW_HTTP=true allows"
    return error_messages.line(text)


def _without_tls(scheme: str) -> bool:
    """Whether the environment allows a server of S3's protocol without TLS; the library forgets it beside options."""
    return scheme == "s3" and os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")
