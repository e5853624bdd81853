"""The axes of a map: a field of the path or of the workload, from one value to another, and its places.

``rtt=5ms..200ms``, ``loss=0..3%``, ``in_flight=1..64``. Steps are even on a scale: logarithmic over a factor of 5 or
more, the square root where a share starts at 0 (what TCP carries over a path with loss goes with its square root:
Mathis et al. 1997), else linear. ``rate=1Mbit/s..50Mbit/s:linear`` asks for another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from trifecta.design import quantity
from trifecta.design.document import did_you_mean
from trifecta.design.errors import UserError
from trifecta.design.factors import KNOWN_FACTORS
from trifecta.design.quantity import QuantityError

Scale = Literal["log", "sqrt", "linear"]
Where = Literal["path", "workload"]

LEAST_PLACES, MOST_PLACES = 4, 31  # 31 x 31 is just below the cells that a study may have
LOG_FROM = 5.0  # factor between the ends


@dataclass(frozen=True)
class Kind:
    """What an axis can be of: how its values are read and written. ``words``: how a value is said in a sentence."""

    name: str
    where: Where
    parse: Callable[[Any], float]
    format: Callable[[float], str]
    words: str
    digits: int = 3
    whole: bool = False
    default: str = ""


def _bdp(text: Any) -> float:
    size = quantity.parse_queue(text)
    if size.unit != "bdp":
        raise QuantityError(f"{text!r} is not a queue in bdp; write for example '1 bdp'")
    return size.amount


def _time(value: float) -> str:
    return quantity.format_time(round(value))


def _size(value: float) -> str:
    return quantity.format_size(round(value))


def _count(value: float) -> str:
    return str(round(value))


def _share(value: float) -> str:
    return quantity.format_ratio(float(f"{value:.12g}"))


def _number_of(name: str, words: str) -> Kind:
    return Kind(name, "workload", quantity.parse_count, _count, words, whole=True)


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("rtt", "path", quantity.parse_time_ns, _time, "{}", default="5 ms..200 ms"),
        Kind("loss", "path", quantity.parse_probability, _share, "{} loss", digits=2, default="0 %..3 %"),
        Kind("rate", "path", quantity.parse_rate_bits_per_s, lambda v: quantity.format_rate(round(v)), "{}"),
        Kind("queue", "path", _bdp, lambda v: f"{quantity.format_number(float(f'{v:.6g}'))} bdp", "a queue of {}"),
        Kind("duplicate", "path", quantity.parse_probability, _share, "{} duplicated", digits=2),
        Kind("corrupt", "path", quantity.parse_probability, _share, "{} corrupted", digits=2),
        Kind("response", "workload", quantity.parse_size_bytes, _size, "responses of {}", whole=True),
        Kind("request", "workload", quantity.parse_size_bytes, _size, "requests of {}", whole=True),
        _number_of("in_flight", "{} in flight"),
        _number_of("connections", "{} connections"),
        _number_of("streams", "{} streams"),
        _number_of("depth", "a chain of {}"),
        _number_of("clients", "{} clients"),
        _number_of("hosts", "{} hosts"),
    )
}
"""By name: one line each."""


@dataclass(frozen=True)
class Axis:
    """One axis with its places, rising; ``texts`` are the values as a study file has them."""

    kind: Kind
    scale: Scale
    values: tuple[float, ...]
    texts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The field."""
        return self.kind.name

    @property
    def low(self) -> float:
        """The first value, in the base unit."""
        return self.values[0]

    @property
    def high(self) -> float:
        """The last value."""
        return self.values[-1]

    def share(self, value: float) -> float:
        """Where a value lies between the ends, 0 to 1, on the axis' scale."""
        low, high = _bend(self.low, self.scale), _bend(self.high, self.scale)
        return (_bend(value, self.scale) - low) / (high - low)

    def at(self, share: float) -> float:
        """The value that lies there."""
        low, high = _bend(self.low, self.scale), _bend(self.high, self.scale)
        return _unbend(low + share * (high - low), self.scale)

    def shares(self) -> tuple[float, ...]:
        """Where the places lie."""
        return tuple(self.share(value) for value in self.values)

    def text(self) -> str:
        """The axis as :func:`parse_axis` reads it back."""
        return f"{self.name}={self.texts[0]}..{self.texts[-1]}:{self.scale}"

    def words(self, value: float) -> str:
        """A value as a sentence has it: ``0.5 % loss``."""
        return self.kind.words.format(self.kind.format(value))


def parse_axis(option: str, text: str, places: int) -> Axis:
    """The axis that an option asks for; UserError in one line."""
    name, equals, span = text.partition("=")
    kind = _kind(option, name.strip())
    span, _, scale = span.rpartition(":") if span.rpartition(":")[2] in ("log", "sqrt", "linear") else (span, "", "")
    if not equals:
        span = kind.default
    low_text, dots, high_text = (part.strip() for part in span.partition(".."))
    if not (dots and low_text and high_text):
        raise UserError(f"option {option} {text}: write NAME=FROM..TO, for example {_example(kind)}")
    high = _value(option, kind, high_text)
    low = _value(option, kind, low_text, high_text)
    if not low < high:
        raise UserError(f"option {option} {text}: the first value is not below the second; swap them")
    chosen = _scale(low, high, kind, scale)
    if chosen == "log" and low <= 0:
        raise UserError(f"option {option} {text}: a logarithmic scale has no 0; begin above it, or write ':sqrt'")
    if not LEAST_PLACES <= places <= MOST_PLACES:
        raise UserError(f"option --resolution: {places} places on an axis; give {LEAST_PLACES} to {MOST_PLACES}")
    return _axis(kind, chosen, low, high, places)


def place_text(option: str, axis: Axis, text: str) -> float:
    """A value on an axis; UserError when it is none, or lies outside of what was measured: nothing is known there."""
    value = _value(option, axis.kind, text)
    if not axis.low <= value <= axis.high:
        # 0.5 is a half: whoever leaves out the sign of a loss is told so.
        meant = axis.kind.digits == 2 and text.replace(".", "", 1).isdigit() and value / 100 <= axis.high
        remedy = f"did you mean {text} %?" if meant else "ask within, or make a map that reaches there"
        raise UserError(
            f"option {option}: {axis.name} {text} lies outside of what the map covers "
            f"({axis.texts[0]} to {axis.texts[-1]}); {remedy}"
        )
    return value


def _kind(option: str, name: str) -> Kind:
    where, dot, last = name.rpartition(".")
    kind = KINDS.get(last if dot else name)
    if kind is None and (last if dot else name) in KNOWN_FACTORS:
        raise UserError(
            f"option {option}: {name} has levels, not values between two ends; a map has one of them "
            f"(--set {last}=LEVEL), and axes of {', '.join(KINDS)}"
        )
    if kind is None or (dot and where != kind.where):
        raise UserError(f"option {option}: no axis {name!r}; {did_you_mean(name, KINDS)}")
    return kind


def _example(kind: Kind) -> str:
    return f"{kind.name}={kind.default or f'{kind.format(1000 if kind.whole else 0.5)}..{kind.format(64000)}'}"


def _value(option: str, kind: Kind, text: str, like: str = "") -> float:
    """A value; one without a unit takes that of ``like``: ``1..3%``."""
    unit = like.lstrip("0123456789._eE+- ")
    if unit and text.replace(".", "", 1).isdigit():
        text = f"{text} {unit}"
    try:
        return float(kind.parse(text))
    except QuantityError as error:
        raise UserError(f"option {option}: {error}") from None


def _scale(low: float, high: float, kind: Kind, requested: str) -> Scale:
    if requested:
        return requested  # type: ignore[return-value]
    if low > 0 and high / low >= LOG_FROM:
        return "log"
    return "sqrt" if low == 0 and not kind.whole else "linear"


def _axis(kind: Kind, scale: Scale, low: float, high: float, places: int) -> Axis:
    """Places at even steps, rounded to a few digits, none twice; the ends stay what they are."""
    first, last = _bend(low, scale), _bend(high, scale)
    inner = (_unbend(first + (last - first) * i / (places - 1), scale) for i in range(1, places - 1))
    rounded = [low, *(_rounded(value, kind) for value in inner), high]
    values = [value for value in dict.fromkeys(rounded) if low <= value <= high]
    texts = {kind.format(value): float(kind.parse(kind.format(value))) for value in sorted(values)}
    return Axis(kind, scale, tuple(texts.values()), tuple(texts))


def _rounded(value: float, kind: Kind) -> float:
    rounded = float(f"{Decimal(value):.{kind.digits - 1}e}")
    return round(rounded) if kind.whole else rounded


def _bend(value: float, scale: Scale) -> float:
    return math.log(value) if scale == "log" else math.sqrt(value) if scale == "sqrt" else value


def _unbend(value: float, scale: Scale) -> float:
    return math.exp(value) if scale == "log" else value**2 if scale == "sqrt" else value
