"""The level ``any`` of the factors ``server`` and ``client``: all that are found where the study is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trifecta.design.document import Document, Place, parse_text

ANY = "any"
ANY_FACTORS = ("server", "client")
BROWSER_KINDS = ("page", "video", "far-page")  # workloads whose clients are browsers
SERVICE_KINDS = ("chain", "fan-in", "sba-registration")  # workloads whose servers are services
FoundLevels = Callable[[str], Sequence[str]]
"""``server``, ``client``, ``browser``, ``service`` -> names found; it looks at the machine, so it is given."""


def expand_any(document: Document, found_levels: FoundLevels | None) -> None:
    """Put the names found in the place of ``any``; one that is listed beside it stays where it stands, once.

    What a study compares must not depend on the day it is read again: the study's canonical text has the names.
    """
    factors = document.tree.get("factors")
    if not isinstance(factors, dict):
        return
    for factor in ANY_FACTORS:
        written = factors.get(factor)
        levels = written if isinstance(written, list) else [written]
        any_places = [index for index, level in enumerate(levels) if isinstance(level, str) and level == ANY]
        if not any_places:
            continue
        place: Place = ("factors", factor)
        if len(any_places) > 1:
            raise document.error((*place, any_places[1]), f"{ANY!r} is listed twice; list it once")
        if found_levels is None:
            raise document.error(
                (*place, any_places[0]) if isinstance(written, list) else place,
                f"{ANY!r} needs to look at the machine; name each {factor}, or read the study with trifecta.studies",
            )
        named = [parse_text(level) for level in levels if level != ANY]
        names = [name for name in found_levels(_level_kind(document, factor)) if name not in named]
        factors[factor] = [*levels[: any_places[0]], *names, *levels[any_places[0] + 1 :]]
        for known in [*document.lines, *document.options]:
            if known[:2] == place and len(known) > 2:  # the levels moved; the list's own line is what is known of them
                document.lines.pop(known, None)
                document.options.pop(known, None)


def _level_kind(document: Document, factor: str) -> str:
    """What a factor's levels are: the clients of some workloads are browsers, the servers of some services."""
    workload = document.tree.get("workload")
    kind = workload.get("kind") if isinstance(workload, dict) else None
    if factor == "server" and kind in SERVICE_KINDS:
        return "service"
    return "browser" if factor == "client" and kind in BROWSER_KINDS else factor
