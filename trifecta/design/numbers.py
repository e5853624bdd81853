"""One way to write each kind of number, used by the terminal, the tables and the figures alike.

Measured values are written with three significant digits and a unit that fits; ratios with two decimals, or three
where two would hide the difference from 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from trifecta.design import naming

NO_VALUE = "–"
MARKS: dict[str, str] = {"pass": "✓", "fail": "✗", "not_offered": "–", "unsupported": "∅", "not_run": "…"}
"""A sign for each outcome of a conformance probe, so that colour is never needed to distinguish them."""
_ZEROS = re.compile(r"(\.\d*?)0+(?=\s|$)")
_DURATIONS: tuple[tuple[float, str], ...] = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_RATES: tuple[tuple[float, str], ...] = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
_SIZES: tuple[tuple[float, str], ...] = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def significant(value: float, digits: int = 3) -> str:
    """Write ``value`` with so many significant digits, thousands separated, never in exponent form below 1e15."""
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    rounded = round(value, digits - 1 - exponent)
    exponent = math.floor(math.log10(abs(rounded))) if rounded else exponent
    return f"{rounded:,.{max(0, digits - 1 - exponent)}f}"


def _scaled(value: float, units: tuple[tuple[float, str], ...], *, whole_last: bool = False) -> str:
    if value == 0:
        return f"0 {units[-1][1]}"
    for scale, unit in units:
        # 999.6 µs would be written "1,000 µs": take the larger unit as soon as three digits round up to it.
        if abs(value) >= scale * 0.9995:
            number = significant(value / scale)
            if whole_last and scale == 1.0:
                number = f"{value:.0f}"
            return f"{number} {unit}"
    return f"{significant(value)} {units[-1][1]}"


def duration(ns: float | None) -> str:
    """Write a time given in nanoseconds: ``812 ns``, ``12.3 µs``, ``80.4 ms``, ``1.20 s``."""
    return _optional(ns, lambda value: _scaled(value, _DURATIONS, whole_last=True))


def wall(ns: float) -> str:
    """Write a wall time that is only roughly known: ``40 s``, ``25 min``, ``9 h 20 min``, ``3 days 12 h``."""
    seconds = ns / 1e9
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(round(minutes / 10), 6)
    if hours < 36:
        return f"{hours} h {10 * rest} min" if rest and hours < 12 else f"{round(minutes / 60)} h"
    days, left = divmod(round(minutes / 60), 24)
    return f"{days} day{'' if days == 1 else 's'}" + (f" {left} h" if left else "")


def bit_rate(bits_per_s: float | None) -> str:
    """Write a rate given in bits per second: ``20.0 Mbit/s``."""
    return _optional(bits_per_s, lambda value: _scaled(value, _RATES))


def size(octets: float | None) -> str:
    """Write a number of octets with decimal units: ``10.0 kB``; fewer than 1000 are whole octets."""
    return _optional(octets, lambda value: _scaled(value, _SIZES, whole_last=True))


def without_zeros(text: str) -> str:
    """A number that was asked for, not measured: ``10.0 kB`` as ``10 kB``."""
    return _ZEROS.sub(lambda match: match[1].rstrip("."), text)


def count(value: float | None) -> str:
    """Write a whole number with thousands separated."""
    return _optional(value, lambda number: f"{number:,.0f}")


def number(value: float | None) -> str:
    """Write a number of things that may be a mean: ``30``, ``1.40``."""
    if value is not None and math.isfinite(value) and math.isclose(value, round(value), rel_tol=1e-9):
        return count(value)
    return _optional(value, significant)


def per_second(value: float | None) -> str:
    """Write a request rate: ``1,230/s``."""
    return _optional(value, lambda number: f"{significant(number)}/s")


def ratio(value: float | None) -> str:
    """Write a ratio: ``1.43``; ``1.004`` within one per cent of 1, ``12.3`` and ``123`` when large."""
    return _optional(value, _ratio)


def _ratio(value: float) -> str:
    if 0.99 < value < 1.01 and value != 1.0:
        return f"{value:.3f}"
    if value < 0.1:
        return significant(value, 2)
    if value < 9.995:
        return f"{value:.2f}"
    return significant(value)


def interval(ends: tuple[float | None, float | None]) -> str:
    """Write an interval of ratios with the same number of decimals at both ends: ``[1.38, 1.49]``, ``[0.990, 1.008]``.

    An end that is not bounded yet is 0 or ∞.
    """
    low, high = ends
    if low is None and high is None:
        return "[no interval]"
    known = [end for end in ends if end is not None]
    if all(0.1 <= end < 9.995 for end in known):
        decimals = 3 if any(0.99 < end < 1.01 for end in known) else 2
        written = [f"{end:.{decimals}f}" if end is not None else "" for end in ends]
    else:
        written = [_ratio(end) if end is not None and math.isfinite(end) else "" for end in ends]
    return f"[{written[0] or '0'}, {written[1] or '∞'}]"


def between(low: float | None, high: float | None, alike: str = "") -> str:
    """Write the range of a ratio: ``between 0.98 and 1.10``; ``at 0.67`` if ``alike`` is ``at`` and both read alike."""
    first, last = ratio(low), ratio(high)
    return f"between {first} and {last}" if first != last else f"{alike} {first}".strip()


def percent(share: float | None) -> str:
    """Write a share 0..1 as a percentage: ``5.0 %``, ``0.032 %``; exact 0 and 1 without decimals."""
    return _optional(share, _percent)


def _percent(share: float) -> str:
    value = share * 100
    if math.isclose(value, round(value), abs_tol=1e-12):
        return f"{value:.0f} %"
    if 99 < value < 100:
        # Rounding must not turn a failure into a clean 100 %.
        return f"{min(value, 99.9999):.2f} %" if value < 99.995 else "> 99.99 %"
    return f"{significant(value, 2)} %"


def requested_percent(share: float) -> str:
    """Write a share that was asked for, or worked out of what was, to two decimals: ``12.5 %``, ``1.22 %``, ``2 %``."""
    return without_zeros(f"{100 * share:.2f} %")


def whole_percent(share: float, ends: tuple[float, float] | None = None) -> str:
    """Write a share, with the ends of its interval: ``87 % [79 %, 96 %]``. Decimals say nothing there but below 1 %."""
    if ends is not None:
        return f"{whole_percent(share)} [{', '.join(map(whole_percent, ends))}]"
    cents = 100 * share
    if abs(cents) < 0.05:
        return "0 %"
    return f"{cents:.0f} %" if abs(cents) >= 0.95 else f"{cents:.1f} %"


def rate(share: float | None) -> str:
    """Write a success rate, of which every failure tells: ``98.97 %``, ``99.998 %``; exact 0 and 1 without decimals."""
    return _optional(
        share, lambda value: percent(value) if value > 0.9999 or value in (0, 1) else f"{100 * value:.2f} %"
    )


def p_value(value: float | None) -> str:
    """Write a p value: ``0.031``, ``< 0.0001``."""
    return _optional(value, lambda number: "< 0.0001" if number < 1e-4 else significant(number, 2))


def evidence(value: float | None) -> str:
    """Write an e-value: ``3.2``, ``1,200``, ``> 10⁶``."""
    return _optional(value, lambda number: "> 10⁶" if number > 1e6 else significant(number, 2), infinite="> 10⁶")


def protocol(arm: str) -> str:
    """Write an arm: ``HTTP/3``, ``caddy``; the baseline's second run is ``HTTP/2 again``."""
    return naming.name(arm)


def protocols(arms: str | None) -> str:
    """Write protocols of several hops: ``HTTP/3``, ``HTTP/3 then HTTP/2``; nothing without any."""
    return " then ".join(protocol(arm) for arm in arms.split("+")) if arms else ""


def text(value: Any) -> str:
    """Write anything else."""
    return NO_VALUE if value is None else str(value)


def _optional(value: float | None, write: Callable[[float], str], infinite: str = "∞") -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NO_VALUE
    if math.isinf(value):
        return infinite if value > 0 else f"-{infinite}"
    return write(float(value))


def _write_interval(write: Callable[[float | None], str]) -> Callable[[tuple[float | None, float | None]], str]:
    """Write an interval whose ends are written so, each with its unit; nothing without both ends."""
    return lambda ends: NO_VALUE if None in ends else f"[{write(ends[0])}, {write(ends[1])}]"


def mark(value: str | None) -> str:
    """The sign of a conformance outcome with the class of its error: ``✓``, ``✗ timeout``."""
    if value is None:
        return ""  # not asked for; a dash is an outcome
    outcome, _, error = value.partition(" ")
    return f"{MARKS[outcome]} {error}".rstrip()


FORMATS: dict[str, Callable[[Any], str]] = {
    "duration": duration,
    "bit_rate": bit_rate,
    "size": size,
    "count": count,
    "per_second": per_second,
    "ratio": ratio,
    "interval": interval,
    "percent": percent,
    "duration_interval": _write_interval(duration),
    "per_second_interval": _write_interval(per_second),
    "percent_interval": _write_interval(percent),
    "ratio_interval": _write_interval(ratio),
    "size_interval": _write_interval(size),
    "rate": rate,
    "rate_interval": _write_interval(rate),
    "known_interval": lambda ends: NO_VALUE if ends == (None, None) else interval(ends),
    "bit_rate_interval": _write_interval(bit_rate),
    "number": number,
    "number_interval": _write_interval(number),
    "p_value": p_value,
    "evidence": evidence,
    "protocol": protocol,
    "protocols": protocols,
    "text": text,
    "mark": mark,
}
"""Names of the formats, as the report's ``data-format`` attributes carry them."""
FORM_OF_UNIT = {
    "ns": "duration", "B": "size", "bit/s": "bit_rate", "1/s": "per_second", "count": "number", "ratio": "number",
    "share": "percent",
}  # fmt: skip
"""The format of a metric's values, by its unit (`trifecta.design.metrics`)."""


def in_unit(value: float | None, unit: str) -> str:
    """Write a value of a metric."""
    return str(FORMATS[FORM_OF_UNIT[unit]](value))
