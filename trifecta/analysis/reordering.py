"""Paths whose jitter lets packets overtake, and the same paths without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trifecta.contract.impairments import ImpairmentDocument
from trifecta.contract.path import PathDocument


def reorders(path: PathDocument) -> bool:
    """Whether a path, given as in a study's ``paths``, has jitter or a step that puts packets out of order."""
    return any(
        (document.get("kind") == "jitter" and document.get("reorder")) or document.get("kind") == "reorder"
        for direction in (path.get("forward"), path.get("backward"))
        for document in direction or ()
    )


def variants(paths: Mapping[str, PathDocument]) -> list[tuple[str, str]]:
    """(A path that reorders, the same in all else but in order), by name."""
    in_order: dict[str, str] = {}
    for name, path in paths.items():
        if not reorders(path):
            in_order.setdefault(_but_for_order(path), name)
    names = []
    for name, path in paths.items():
        other = in_order.get(_but_for_order(path))
        if reorders(path) and other is not None:
            names.append((name, other))
    return names


def _but_for_order(path: PathDocument) -> str:
    """What a path is when nobody looks at the order of packets."""
    directions = [
        [step for one in way or () if (step := _without_reordering(one))]
        for way in (path.get("forward"), path.get("backward"))
    ]
    scalars = [path.get("rtt_ns"), path.get("rate_bits_per_s"), path.get("queue_bytes"), path.get("loss")]
    return repr((directions, scalars))


def _without_reordering(document: ImpairmentDocument) -> Sequence[tuple[str, object]]:
    if document.get("kind") == "reorder":
        return []
    others = {name: value for name, value in document.items() if name != "reorder"}
    return sorted(others.items(), key=lambda item: item[0])
