"""What an open loop asks for that its path and its requests in flight do not let through, whatever the server does."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trifecta.design import capacity, quantity
from trifecta.design.path_spec import PathSpec


@dataclass(frozen=True)
class OpenLoop:
    """Requests that are due at a rate per second, ``due`` of them in a trial, each of so many octets both ways.

    ``most`` may be in flight, by the field ``limit`` of the study file; each crosses the path ``crossing`` times, one
    after the other.
    """

    rate_per_s: float
    due: int
    request_bytes: int
    response_bytes: int
    crossing: int
    most: int
    limit: str

    def problem(self, path: PathSpec) -> tuple[str, str] | None:
        """The field at fault, and what is wrong with it."""
        return self._too_many_in_flight(path) or self._too_much_to_carry(path)

    def _too_many_in_flight(self, path: PathSpec) -> tuple[str, str] | None:
        """Little's law: rate times round trip are in flight in the mean."""
        least = min(self.rate_per_s * self.crossing * path.rtt_ns / 1e9, self.due)
        if least <= self.most:
            return None
        text = f"{self.rate_per_s:g} requests per second over a round trip of {quantity.format_time(path.rtt_ns)}"
        if self.crossing > 1:
            text += f" that each makes {self.crossing} times"
        text += f" are {math.ceil(least)} in flight or more, and {self.most} may be"
        return self.limit, f"{text}; allow more, or lower the rate"

    def _too_much_to_carry(self, path: PathSpec) -> tuple[str, str] | None:
        """Past what the path carries, ever more are in flight until the trial ends, as one that looks for it wants."""
        for content, way in ((self.request_bytes, path.forward), (self.response_bytes, path.backward)):
            asked, carried = self.rate_per_s * self.crossing * content * 8, capacity.bits_per_s(way)
            if carried is None or asked <= carried:
                continue
            behind = math.ceil(self.due * (1 - carried / asked))
            if behind > self.most:
                text = f"{self.rate_per_s:g} per second of {quantity.format_size(content)} are "
                text = text.replace(" are ", f", {self.crossing} times each, are ") if self.crossing > 1 else text
                text += f"{quantity.format_rate(round(asked))}, and the path carries "
                text += f"{quantity.format_rate(round(carried))}: {behind} would be in flight in the end, and "
                return "rate", f"{text}{self.most} may be; lower it, send less, or allow more in {self.limit!r}"
        return None
