"""What arms are called and which of them is which, while a run is told: the levels of the factor that it compares.

Names and colours are asked for by the arm alone, deep inside tables and figures; whoever tells of a run says with
:func:`arms_of` what its arms are. Without that an arm is a protocol.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from trifecta.design.arms import arm_words, factor_words
from trifecta.design.model import AA_SUFFIX, PROTOCOL_FACTOR, PROTOCOLS


@dataclass(frozen=True)
class Naming:
    """The compared factor, and its levels in the order of the study."""

    compare: str = PROTOCOL_FACTOR
    arms: tuple[str, ...] = ()


_PROTOCOLS = Naming()
_CURRENT: ContextVar[Naming] = ContextVar("naming", default=_PROTOCOLS)


@contextmanager
def arms_of(compare: str, arms: Sequence[str]) -> Iterator[None]:
    """Arms are levels of this factor until the end of the block."""
    token = _CURRENT.set(Naming(compare, tuple(arms)))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def name(arm: str) -> str:
    """``HTTP/3``, ``caddy``; the baseline's second run is ``HTTP/2 again``."""
    level, own = arm.removesuffix(AA_SUFFIX), _CURRENT.get()
    words = arm_words(own.compare if level in own.arms else PROTOCOL_FACTOR, level)
    if own.compare == "server" and words != level and [arm_words("server", arm) for arm in own.arms].count(words) > 1:
        words = level  # the ends of their paths do not distinguish two builds
    return words + (" again" if arm.endswith(AA_SUFFIX) else "")


def begins(text: str) -> bool:
    """Whether a sentence begins with the name of a level, which no capital may change."""
    own = _CURRENT.get()
    words = [name(arm) for arm in own.arms if own.compare != PROTOCOL_FACTOR]
    return any(text == word or text.startswith(f"{word} ") for word in words)


def place(arm: str) -> int | None:
    """The number of an arm among those that are no protocols; None for a protocol, and for what is no arm."""
    own = _CURRENT.get()
    known = own.compare != PROTOCOL_FACTOR and arm in own.arms
    return own.arms.index(arm) if known else None


def factor() -> str:
    """What is compared, as the heading of a column: ``protocol``, ``server``, ``congestion control``."""
    return factor_words(_CURRENT.get().compare)


def title() -> str:
    """The same at the beginning of a line: ``Congestion control``, ``TLS version``."""
    words = factor()
    return words[0].upper() + words[1:]


def compared_factor() -> str:
    """The compared factor."""
    return _CURRENT.get().compare


def order() -> list[str]:
    """The arms in the order in which tables have them."""
    return list(_CURRENT.get().arms) or list(PROTOCOLS)


def column(arm: str) -> str:
    """The beginning of a column of an arm, where a table has its arms side by side: ``h3``, ``bbr``, ``_10_kB``."""
    column_name = re.sub(r"\W", "_", arm)
    return column_name if column_name[0].isalpha() else f"_{column_name}"


def columns_sql(names: Sequence[str]) -> str:
    """The columns of each arm side by side, in SQL: ``h3_value`` and so on; ``t`` has a row an arm."""
    arms = PROTOCOLS if of_protocols() else order()
    return ",\n       ".join(
        ", ".join(
            f"any_value(t.{name}) FILTER (WHERE t.arm = '{_quoted(arm)}') AS {column(arm)}_{name}" for name in names
        )
        for arm in arms
    )


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def of_protocols() -> bool:
    """Whether protocols are compared."""
    return _CURRENT.get().compare == PROTOCOL_FACTOR


def noun(number: int = 1) -> str:
    """What is compared: ``protocol``, ``server``; of several ``protocols``, of other factors ``levels of ...``."""
    factor = factor_words(_CURRENT.get().compare)
    plain = factor in ("protocol", "server", "client", "path")
    if number == 1:
        return factor if plain else f"level of {factor}"
    return f"{factor}s" if plain else f"levels of {factor}"
