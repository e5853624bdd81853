"""The text format of OpenMetrics 1.0, which Prometheus reads.

https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

MEDIA_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
END = "# EOF"
Labels = Mapping[str, str | None]
"""By name; one that is None is left out."""


def family(name: str, kind: str, about: str, unit: str = "") -> Iterator[str]:
    """The lines that announce a family, once, before its samples."""
    yield f"# TYPE {name} {kind}"
    if unit:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {_escaped(about)}"


def labelled(labels: Labels) -> str:
    """Labels as they follow a name."""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items() if value is not None)
    return "{" + ",".join(pairs) + "}"


def number(value: float) -> str:
    """A value of a sample."""
    return {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(repr(float(value)), repr(float(value)))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@dataclass
class Durations:
    """What a histogram holds: ``counts`` has those up to each bound, and above the one before, then those above all."""

    bounds_s: Sequence[float]
    counts: Sequence[int]
    sum_s: float = 0.0


def histogram(name: str, labels: Labels, held: Durations, at: str = "") -> Iterator[str]:
    """The samples of a histogram; ``at`` follows each of them."""
    sofar = 0
    for bound, count in zip((*held.bounds_s, None), held.counts, strict=True):
        sofar += count
        le = "+Inf" if bound is None else repr(bound)
        yield f"{name}_bucket{labelled({**labels, 'le': le})} {sofar}{at}"
    yield f"{name}_count{labelled(labels)} {sofar}{at}"
    yield f"{name}_sum{labelled(labels)} {held.sum_s!r}{at}"


class Families:
    """Samples as they stand now, without times, of several runs: those of a family have to lie together."""

    def __init__(self) -> None:
        """None yet."""
        self._lines: dict[str, list[str]] = {}

    def gauge(self, name: str, about: str, labels: Labels, value: float, unit: str = "") -> None:
        """A value."""
        self._of(name, "gauge", about, unit).append(f"{name}{labelled(labels)} {number(value)}")

    def histogram(self, name: str, about: str, labels: Labels, held: Durations) -> None:
        """Durations in s."""
        self._of(name, "histogram", about, "seconds").extend(histogram(name, labels, held))

    def text(self) -> str:
        """All of it."""
        return "".join(f"{line}\n" for lines in (*self._lines.values(), [END]) for line in lines)

    def _of(self, name: str, kind: str, about: str, unit: str) -> list[str]:
        if name not in self._lines:
            self._lines[name] = list(family(name, kind, about, unit))
        return self._lines[name]
