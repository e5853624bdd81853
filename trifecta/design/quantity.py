"""Quantities with units: text such as ``80 ms``, ``2 %``, ``20 Mbit/s`` or ``10 kB`` to numbers, and back.

Numbers out are integers in the base unit (nanoseconds, bits per second, octets) or, for ratios, a float where 1 is
100 %. Decimal prefixes are powers of 1000 (SI), ``Ki`` and ``Mi`` powers of 1024 (IEC 80000-13); a ``B`` is an octet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Literal


class QuantityError(ValueError):
    """A text that is not the quantity asked for; the message names the text and the units that are accepted."""


_TIME: dict[str, Decimal] = {
    "ns": Decimal(1),
    "us": Decimal(1_000),
    "µs": Decimal(1_000),
    "μs": Decimal(1_000),
    "ms": Decimal(1_000_000),
    "s": Decimal(1_000_000_000),
    "min": Decimal(60_000_000_000),
    "h": Decimal(3_600_000_000_000),
}
_RATE: dict[str, Decimal] = {
    "bit/s": Decimal(1),
    "kbit/s": Decimal(1_000),
    "Mbit/s": Decimal(1_000_000),
    "Gbit/s": Decimal(1_000_000_000),
}
_SIZE: dict[str, Decimal] = {
    "B": Decimal(1),
    "kB": Decimal(1_000),
    "MB": Decimal(1_000_000),
    "GB": Decimal(1_000_000_000),
    "KiB": Decimal(1_024),
    "MiB": Decimal(1_048_576),
    "GiB": Decimal(1_073_741_824),
}
_RATIO: dict[str, Decimal] = {"%": Decimal("0.01"), "": Decimal(1)}
_FREQUENCY: dict[str, Decimal] = {"/s": Decimal(1), "k/s": Decimal(1_000), "/min": Decimal(1) / Decimal(60)}

TIME_UNITS = "ns, us, ms, s, min, h"
RATE_UNITS = "bit/s, kbit/s, Mbit/s, Gbit/s"
SIZE_UNITS = "B, kB, MB, GB, KiB, MiB, GiB"
QUEUE_UNITS = f"{SIZE_UNITS}, packets, bdp"

_NUMBER_AND_UNIT = re.compile(r"\s*([+-]?(?:\d[\d_]*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)\s*([^\d\s].*?)?\s*")
_LIMIT = Decimal(2**63 - 1)  # every base unit is kept in a signed 64-bit column somewhere


def _split(text: object, what: str, example: str) -> tuple[Decimal, str]:
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise QuantityError(f"{text!r} is not {what}; write for example {example!r}")
    match = _NUMBER_AND_UNIT.fullmatch(str(text))
    if match is None:
        raise QuantityError(f"{text!r} is not {what}; write for example {example!r}")
    return Decimal(match[1].replace("_", "")), match[2] or ""


def _scaled(text: object, units: dict[str, Decimal], what: str, accepted: str, example: str) -> Decimal:
    number, unit = _split(text, what, example)
    if unit not in units:
        if not unit:
            if number == 0:  # zero is zero in every unit
                return Decimal(0)
            raise QuantityError(f"{text!r} has no unit; write {what} in one of {accepted}, for example {example!r}")
        near = [name for name in units if name.lower() == unit.lower()]
        hint = f"did you mean {near[0]!r}?" if len(near) == 1 else f"write for example {example!r}"
        raise QuantityError(f"{text!r}: {unit!r} is not a unit of {what} ({accepted}); {hint}")
    value = number * units[unit]
    if value < 0:
        raise QuantityError(f"{text!r} is negative; {what} starts at 0")
    if value > _LIMIT:
        raise QuantityError(f"{text!r} is too large")
    return value


def _as_int(value: Decimal) -> int:
    return int(value.to_integral_value(ROUND_HALF_EVEN))


def parse_time_ns(text: object) -> int:
    """A time such as ``80 ms`` in nanoseconds."""
    return _as_int(_scaled(text, _TIME, "a time", TIME_UNITS, "80 ms"))


def parse_rate_bits_per_s(text: object) -> int:
    """A rate such as ``20 Mbit/s`` in bits per second."""
    return _as_int(_scaled(text, _RATE, "a rate", RATE_UNITS, "20 Mbit/s"))


def parse_size_bytes(text: object) -> int:
    """A size such as ``10 kB`` in octets."""
    return _as_int(_scaled(text, _SIZE, "a size", SIZE_UNITS, "10 kB"))


def parse_ratio(text: object) -> float:
    """A share such as ``2 %`` or ``0.02`` as a number where 1 is the whole."""
    return float(_scaled(text, _RATIO, "a share", "%", "2 %"))


def parse_probability(text: object) -> float:
    """A share between 0 and 100 %."""
    value = parse_ratio(text)
    if value > 1:
        hint = f"did you mean '{text} %'?" if isinstance(text, int | float) and value <= 100 else "give 0 % to 100 %"
        raise QuantityError(f"{text!r} is more than 100 %; {hint}")
    return value


def parse_frequency_per_s(text: object) -> float:
    """How often something happens, such as ``500/s``, per second."""
    return float(_scaled(text, _FREQUENCY, "a request rate", "/s, k/s, /min", "500/s"))


def parse_count(text: object) -> int:
    """A whole number from 0."""
    number, unit = _split(text, "a whole number", "10")
    if unit or number != number.to_integral_value():
        raise QuantityError(f"{text!r} is not a whole number; write for example '10'")
    if number < 0:
        raise QuantityError(f"{text!r} is negative; give 0 or more")
    if number > _LIMIT:
        raise QuantityError(f"{text!r} is too large")
    return int(number)


@dataclass(frozen=True)
class QueueSize:
    """How much a queue holds: octets, packets, or a number of bandwidth-delay products."""

    amount: float
    unit: Literal["bytes", "packets", "bdp"]

    def __str__(self) -> str:
        """The text that :func:`parse_queue` reads back."""
        if self.unit == "bytes":
            return format_size(int(self.amount))
        return f"{format_number(self.amount)} {self.unit}"


def parse_queue(text: object) -> QueueSize:
    """A queue's size: ``100 packets``, ``125 kB`` or ``1 bdp``."""
    number, unit = _split(text, "a queue size", "1 bdp")
    if unit in ("packets", "packet"):
        return QueueSize(_positive(parse_count(str(number)), text), "packets")
    if unit == "bdp":
        if number > 1_000:
            raise QuantityError(f"{text!r} is too large; a queue holds at most 1000 bdp")
        return QueueSize(_positive(float(number), text), "bdp")
    size = _as_int(_scaled(text, _SIZE, "a queue size", QUEUE_UNITS, "1 bdp"))
    return QueueSize(_positive(size, text), "bytes")


def _positive(value: float, text: object) -> float:
    if value <= 0:
        raise QuantityError(f"{text!r} holds nothing; give more than 0")
    return value


def format_number(value: float | Decimal) -> str:
    """The shortest plain text of a number, without an exponent."""
    text = format(Decimal(str(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _format_scaled(value: int, units: dict[str, Decimal], names: tuple[str, ...]) -> str:
    """The text in the largest unit that needs at most three decimals, so that reading it gives the value back."""
    if value == 0:
        return f"0 {names[0]}"
    for name in reversed(names):
        scaled = Decimal(value) / units[name]
        if scaled >= 1 and scaled * 1_000 == (scaled * 1_000).to_integral_value():
            return f"{format_number(scaled)} {name}"
    return f"{value} {names[0]}"


def format_time(value_ns: int) -> str:
    """A time in its natural unit, exactly: ``80 ms``."""
    return _format_scaled(value_ns, _TIME, ("ns", "us", "ms", "s", "min"))


def format_rate(bits_per_s: int) -> str:
    """A rate in its natural unit, exactly: ``20 Mbit/s``."""
    return _format_scaled(bits_per_s, _RATE, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s"))


def format_size(size_bytes: int) -> str:
    """A size in its natural decimal unit, exactly: ``10 kB``."""
    return _format_scaled(size_bytes, _SIZE, ("B", "kB", "MB", "GB"))


def format_ratio(value: float) -> str:
    """A share in per cent, exactly: ``2 %``."""
    return f"{format_number(Decimal(str(value)) * 100)} %"


def format_frequency(per_s: float) -> str:
    """A request rate: ``500/s``."""
    return f"{format_number(per_s)}/s"
