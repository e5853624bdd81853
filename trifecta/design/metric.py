"""What a metric is: its column, label, unit and direction, and how a difference in it is said."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Unit = Literal["ns", "B", "bit/s", "1/s", "count", "ratio", "share"]
Better = Literal["less", "more", "neither"]


@dataclass(frozen=True)
class Wording:
    """How a difference in a metric is said: ``1.5× faster``, ``HTTP/3 was faster than HTTP/2``.

    ``better`` and ``worse`` follow a factor. After ``was`` (``is``) comes what an arm is or has; empty: ``better`` and
    ``worse`` themselves. ``{label}`` is the label.
    """

    better: str
    worse: str
    was: str = "was"
    is_: str = "is"
    has_better: str = ""
    has_worse: str = ""
    as_much: str = "as much"
    """What a ratio says, after ``0.70 ×``."""


TIME = Wording("faster", "slower", as_much="as long")
LESS = Wording("lower", "higher", "had", "has", "a lower {label}", "a higher {label}")
MORE = Wording("higher", "lower", "had", "has", "a higher {label}", "a lower {label}")
CPU = Wording("lower", "higher", "took", "takes", "less {label}", "more {label}")
REQUESTS = Wording("more", "fewer", "did", "does", "more {label}", "fewer {label}")


@dataclass(frozen=True)
class Metric:
    """A column that arms can be compared by.

    ``aggregate`` is how the values of a trial (requests, visits, connections) become one. ``quantile`` is set for
    percentiles: the share of requests that must have succeeded for it to exist; ``over_failures`` where failed requests
    count in it as infinitely long. ``asked`` is its name in study files, empty where no study can be judged by it.
    ``by_difference``: it can be zero (or is a share), so published claims and visits compare differences, not ratios.
    ``short`` is its name in the figure of ratios; without it it is not there. ``margin``: differences below this
    (ratio - 1) do not matter, where it is not the study's. ``phase``: the part of a request that it is of. What exactly
    is measured stands in `metrics.ABOUT`; a metric of another package says it in ``about``, and in ``sql`` how it is
    worked out: an aggregate over the view ``samples``, of the requests of one trial after its warm-up.
    """

    name: str
    label: str
    unit: Unit
    better: Better = "less"
    aggregate: str = "median"
    quantile: float | None = None
    over_failures: bool = False
    asked: str = ""
    wording: Wording = field(default=TIME)
    by_difference: bool = False
    short: str = ""
    margin: float | None = None
    phase: str = ""
    sql: str = ""
    about: str = ""

    @property
    def lower_is_better(self) -> bool:
        """Whether a smaller value is the better one, as it is of all that is neither."""
        return self.better != "more"

    def word(self, kind: str) -> str:
        """What follows the factor of a verdict: ``faster`` and ``slower`` are better and worse by the metric."""
        return {"faster": self.wording.better, "slower": self.wording.worse}.get(kind, kind)

    def has(self, kind: str) -> str:
        """What an arm is or has by a verdict: ``faster``, ``a higher mean bitrate``."""
        template = {"faster": self.wording.has_better, "slower": self.wording.has_worse}.get(kind, "")
        return template.format(label=self.label) or self.word(kind)
