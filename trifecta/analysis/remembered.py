"""What was computed of an array is remembered: a run judges every block again, of which one is new."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rest = ParamSpec("Rest")
Found = TypeVar("Found")

_KEPT = 4096  # results a function


def remembered(compute: Callable[Concatenate[Floats, Rest], Found]) -> Callable[Concatenate[Floats, Rest], Found]:
    """The function of an array of float64 and of arguments that can be hashed; it must not change what it is given."""

    @functools.lru_cache(maxsize=_KEPT)
    def known(data: bytes, shape: tuple[int, ...], *args: Rest.args, **kwargs: Rest.kwargs) -> Found:
        return compute(np.frombuffer(data).reshape(shape), *args, **kwargs)

    @functools.wraps(compute)
    def asked(array: Floats, *args: Rest.args, **kwargs: Rest.kwargs) -> Found:
        return known(array.tobytes(), array.shape, *args, **kwargs)

    return asked
