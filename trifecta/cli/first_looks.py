"""Looks at servers elsewhere before a run: what they share, whether requests or pages are compared."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trifecta.contract.values import JsonObject


@dataclass(frozen=True)
class LookFindings:
    """What looks found: in sentences, as a study, and what a request with its answer takes, or a visit."""

    lines: list[str]
    document: JsonObject
    octets: int
    requests: int


@dataclass(frozen=True)
class Look:
    """A look under way: the engine, whether the user wants to stop, a folder of its own, and who is told of what."""

    engine: Path
    stop: Callable[[], bool]
    folder: Path
    tell: Callable[[str], None]


def _first(pace_per_s: float, visits: int) -> str:
    """What a look is going to send before anybody is asked, at the most."""
    from trifecta.design import manners

    pages = f", robots.txt, and {visits} visits of each page" if visits else ""
    return (
        f"A look first: at most {manners.LOOK_REQUESTS} requests to each address{pages}, "
        f"{pace_per_s:g} a second on average. Then it says what is coming."
    )


@contextmanager
def first_looks(pace_per_s: float, visits: int = 0, *, quiet: bool) -> Iterator[Look]:
    """While something is looked at, pages by so many visits; KeyboardInterrupt when the user wants to stop."""
    import click
    from rich.console import Console

    from trifecta.lab.engine import Stopped, find_engine
    from trifecta.workloads.stopping import StopFlag

    engine = find_engine()
    if not quiet:
        click.echo(_first(pace_per_s, visits), err=True)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="trifecta-race-") as folder,
            StopFlag() as stop,
            Console(stderr=True, quiet=quiet).status("") as status,
        ):
            yield Look(engine, stop, Path(folder), lambda what: status.update(f"looking at {what}"))
    except Stopped:
        raise KeyboardInterrupt from None
