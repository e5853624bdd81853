"""What was computed of an array is remembered: a run judges every block again, of which one is new."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rest = ParamSpec("Rest")
Found = TypeVar("Found")
OfArray = Callable[Concatenate[Floats, Rest], Found]

_KEPT = 4096  # results a function


def memoized(compute: OfArray[Rest, Found]) -> OfArray[Rest, Found]:
    """The function of an array of float64 and of arguments that can be hashed; it must not change what it is given."""

    @functools.lru_cache(maxsize=_KEPT)
    def known(data: bytes, shape: tuple[int, ...], *rest: object) -> Found:
        return cast(Callable[..., Found], compute)(np.frombuffer(data).reshape(shape), *rest)

    @functools.wraps(compute)
    def asked(array: Floats, *rest: object) -> Found:
        return known(array.tobytes(), array.shape, *rest)

    return cast(OfArray[Rest, Found], asked)
