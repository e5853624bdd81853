"""Where ticks go, and what they say."""

from __future__ import annotations

import math
from collections.abc import Callable

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def clamp(value: float, low: float, high: float) -> float:
    """The value, or the end of the axis that it lies beyond; NaN stays NaN."""
    return min(max(value, low), high)


def tick_label(value: float) -> str:
    """Write a tick without needless zeros: ``0.5``, ``2``, ``1,000``."""
    text = f"{value:,.6f}".rstrip("0").rstrip(".")
    return text or "0"


def time_label(ns: float) -> str:
    """Write a tick on a time axis: ``0``, ``20 ms``, ``1.5 s``."""
    if ns == 0:
        return "0"
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if ns >= scale * 0.9999), _UNITS[-1])
    return f"{tick_label(ns / scale)} {unit}"


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round values between ``low`` and ``high`` for a logarithmic axis, at most ``most`` of them, evenly picked."""
    if high / low < 3:
        # Less than half a decade: even steps tell more than the few round values of a logarithmic scale.
        return _even(low, high, most)
    for steps in ((1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = _between(steps, low, high)
        if len(ticks) <= most:
            return ticks
    decades = _between((1,), low, high)
    return decades[:: math.ceil(len(decades) / most)]


def _even(low: float, high: float, most: int) -> list[float]:
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.9999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * i for i in range(first, last + 1) if i > 0]


def _between(steps: tuple[float, ...], low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    values = (step * 10.0**power for power in range(first, last + 1) for step in steps)
    return [value for value in values if low <= value <= high]


def linear_ticks(high: float, most: int = 5) -> list[float]:
    """Round values from 0 to ``high``, at most ``most`` + 1 of them."""
    if high <= 0:
        return [0.0]
    raw = high / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.9999)
    return [step * i for i in range(int(high / step + 1e-9) + 1)]


def ratio_limits(values: list[float], margin: float) -> tuple[float, float]:
    """Limits of a logarithmic ratio axis that hold every value, 1 and the margin, with a little air."""
    known = [value for value in values if value > 0 and math.isfinite(value)]
    reach = (1 + margin) * 1.04
    low, high = min([*known, 1 / reach]), max([*known, reach])
    air = (high / low) ** 0.05
    return low / air, high * air


def ratio_ticks(low: float, high: float, most: int = 6) -> tuple[list[float], list[str]]:
    """Ticks of a ratio axis, always with 1."""
    chosen = _even(low, high, most) if high / low < 5 else log_ticks(low, high, most)
    if not any(math.isclose(value, 1.0) for value in chosen):
        chosen = sorted([value for value in chosen if abs(math.log(value)) > 0.08], key=float)
        chosen = sorted([*chosen, 1.0])
    return chosen, [tick_label(round(value, 4)) for value in chosen]


def labelled(positions: list[float], write: Callable[[float], str] = time_label) -> tuple[list[float], list[str]]:
    """Pair positions with their labels."""
    return positions, [write(value) for value in positions]


def rate_label(value: float) -> str:
    """Write a tick of a request rate."""
    return "0" if value == 0 else tick_label(value) if value < 10_000 else f"{tick_label(value / 1000)}k"
