"""What grew on a host between two readings of its counters."""

from __future__ import annotations


def growth(before: int | None, after: int | None) -> int | None:
    """None where either was not told, and where threads with what they had used are gone."""
    return None if before is None or after is None or after < before else after - before
