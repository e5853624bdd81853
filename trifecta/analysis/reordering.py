"""Paths whose jitter lets packets overtake, and the same paths without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def reorders(path: Mapping[str, Any]) -> bool:
    """Whether a path, given as in a study's ``paths``, has jitter or a step that puts packets out of order."""
    return any(
        (document.get("kind") == "jitter" and document.get("reorder")) or document.get("kind") == "reorder"
        for direction in ("forward", "backward")
        for document in path.get(direction) or ()
    )


def variants(paths: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """(A path that reorders, the same in all else but in order), by name."""
    in_order: dict[str, str] = {}
    for name, path in paths.items():
        if not reorders(path):
            in_order.setdefault(_but_for_order(path), name)
    found = []
    for name, path in paths.items():
        other = in_order.get(_but_for_order(path))
        if reorders(path) and other is not None:
            found.append((name, other))
    return found


def _but_for_order(path: Mapping[str, Any]) -> str:
    """What a path is when nobody looks at the order of packets."""
    ways = [[step for one in path.get(way) or () if (step := _plain(one))] for way in ("forward", "backward")]
    scalars = [path.get(name) for name in ("rtt_ns", "rate_bits_per_s", "queue_bytes", "loss")]
    return repr((ways, scalars))


def _plain(document: Mapping[str, Any]) -> Sequence[tuple[str, Any]]:
    if document.get("kind") == "reorder":
        return []
    kept = {name: value for name, value in document.items() if name != "reorder"}
    return sorted(kept.items(), key=lambda item: item[0])
