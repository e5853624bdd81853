"""Phrases of a sentence: lists, counts and plurals in words."""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.design import naming, numbers


def listed(parts: Sequence[str], joined: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {joined} {parts[-1]}" if parts else ""


def sentence(text: str) -> str:
    """A phrase with a capital and a full stop; empty stays empty. The name of a level stays as it is written."""
    phrase = text.strip().rstrip(".")
    return f"{phrase if naming.begins(phrase) else phrase[0].upper() + phrase[1:]}." if phrase else ""


def counted(number: int, noun: str) -> str:
    """``1 cell``, ``3,060 cells``, ``3 watches``."""
    return f"{numbers.count(number)} {_in_number(number, noun)}"


def numbered(number: int, noun: str) -> str:
    """As `counted`, its digits not grouped: ``1 packet``, ``3060 packets``."""
    return f"{number} {_in_number(number, noun)}"


def plural(noun: str) -> str:
    """``cells``, ``watches``."""
    return f"{noun}{'es' if noun.endswith('ch') else 's'}"


def _in_number(number: int, noun: str) -> str:
    return noun if number == 1 else plural(noun)
