"""Documentation that stands with what it is of: a docstring with fixed headings; pages of ``docs/`` are made of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Documentation:
    """A title, and a text by heading."""

    title: str
    sections: Mapping[str, str]

    def __getitem__(self, heading: str) -> str:
        """The text under a heading; empty where there is none."""
        return self.sections.get(heading, "")


def read(docstring: str | None, needed: Sequence[str], allowed: Sequence[str] = ()) -> Documentation:
    """The first line, and the text under each heading ``## NAME``.

    ValueError with one line where a heading is missing, empty, unknown or out of order.
    """
    order = f"its docstring needs one line of title, then the headings {', '.join(f'## {name}' for name in needed)}"
    if allowed:
        order += f" (and, after them, may have {', '.join(f'## {name}' for name in allowed)})"
    title, _, rest = (docstring or "").strip().partition("\n")
    if not title:
        raise ValueError(f"is not documented: {order}")
    lead, *parts = _HEADING.split(rest)
    if lead.strip():
        raise ValueError(f"has text before its first heading: {order}")
    names, texts = parts[::2], [text.strip() for text in parts[1::2]]
    known = [*needed, *allowed]
    for name, text in zip(names, texts, strict=True):
        if name not in known:
            raise ValueError(f"has the heading {name!r}: {order}")
        if not text:
            raise ValueError(f"says nothing under {name!r}")
    missing = [name for name in needed if name not in names]
    if missing:
        raise ValueError(f"lacks the heading {missing[0]!r}: {order}")
    if names != [name for name in known if name in names]:
        raise ValueError(f"has its headings in another order: {order}")
    return Documentation(title.strip(), dict(zip(names, texts, strict=True)))
