"""The layout of servers and clients: which pairs were measured, and the quadratic forms that split their means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PROTOCOL = "protocol"
SERVER = "server"
CLIENT = "client"
CROSSED = "server × client"
PROGRAM = "program"


@dataclass(frozen=True)
class Term:
    """A part of the effect.

    ``form`` splits the sum of squares of the cells' means; the forms of all terms add up to it. Where pairs are
    missing, a form is the mean of both orders in which server and client can be taken out (Lindeman, Merenda and Gold
    1980). ``adjusted`` is the form with all others taken out first, which holds no trace of them (Henderson's method
    3); ``weight`` is how many times its variance stands in its mean square, ``mean_weight`` in that of the grand mean.
    """

    name: str
    form: Floats
    adjusted: Floats
    weight: float = 1.0
    mean_weight: float = 1.0
    crossed: bool = False

    NAMES: ClassVar[tuple[str, ...]] = (PROGRAM, SERVER, CLIENT, CROSSED)


@dataclass(frozen=True)
class Layout:
    """The terms that the measured pairs of server and client can distinguish; the first is the protocol's."""

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> Layout:
        """The layout of these pairs, each of which was measured once."""
        size = len(pairs)
        everywhere = np.full((size, size), 1.0 / size)
        first = Term(PROTOCOL, everywhere, everywhere)
        servers, clients = (_indicators([pair[side] for pair in pairs]) for side in (0, 1))
        by_server, by_client = _projection(servers), _projection(clients)
        additive = _projection(np.hstack([servers, clients]))
        connected = _rank(additive) == servers.shape[1] + clients.shape[1] - 1
        if not connected:
            # Some servers were never measured with a client of the others: then the two cannot be distinguished.
            rest = np.eye(size) - everywhere
            return cls((first, Term(PROGRAM, rest, rest, 1.0, 1.0 / size)))
        terms = [first]
        for name, indicators, alone, other in (
            (SERVER, servers, by_server, by_client),
            (CLIENT, clients, by_client, by_server),
        ):
            if indicators.shape[1] > 1:
                adjusted = additive - other
                form = (alone - everywhere + adjusted) / 2
                terms.append(_term(name, form, adjusted, indicators))
        rest = np.eye(size) - additive
        if _rank(rest) > 0:
            terms.append(Term(CROSSED, rest, rest, 1.0, 1.0 / size, crossed=True))
        return cls(tuple(terms))


def _term(name: str, form: Floats, adjusted: Floats, indicators: Floats) -> Term:
    same = indicators @ indicators.T
    weight = float(np.trace(adjusted @ same) / np.trace(adjusted))
    return Term(name, form, adjusted, weight, float(same.sum()) / len(form) ** 2)


def _indicators(levels: Sequence[str]) -> Floats:
    names = list(dict.fromkeys(levels))
    return np.array([[float(level == name) for name in names] for level in levels])


def _projection(columns: Floats) -> Floats:
    result: Floats = columns @ np.linalg.pinv(columns)
    return result


def _rank(projection: Floats) -> int:
    """Rank of a projection: its trace."""
    return round(float(np.trace(projection)))
