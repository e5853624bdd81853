"""Keeps to the manners of a run: every request goes through here, those of looks and bare connects too."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from trifecta.design import manners
from trifecta.design.manners import MINUTE_NS, Manners
from trifecta.lab.engine import Stopped

_TICK_NS = 100_000_000  # how often a wait asks whether the user wants to stop
OF_THIS_PROCESS: deque[tuple[int, int]] = deque()
"""When octets went, and how many: of a look before a run and of the run, which share their minutes."""


class RateLimiter:
    """When the next request may begin. Time is CLOCK_MONOTONIC's; a run that begins takes a request as just made."""

    def __init__(
        self,
        own: Manners,
        stop: Callable[[], bool] = lambda: False,
        *,
        sent: deque[tuple[int, int]] | None = None,
        now_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``stop`` is asked while waiting; ``sent`` is what went before; ``now_ns`` and ``sleep`` are the clock's."""
        self.manners = own
        self._stop = stop
        self._now_ns = now_ns
        self._sleep = sleep
        self._last_ns = now_ns()
        self._not_before_ns = 0
        self._refusals = 0
        self._sent: deque[tuple[int, int]] = deque() if sent is None else sent
        self._paid_ns = 0
        for at_ns, _ in self._sent:  # many at once are paid for as if they had been made one by one
            self._paid_ns = max(self._paid_ns, at_ns) + own.gap_ns(0)

    def wait(self, expected_bytes: int = 0) -> None:
        """Wait until the next request may begin, whose answer is expected to have so many octets; Stopped on request.

        One that alone has more octets than a minute may have waits until nothing was sent for a minute.
        """
        while (left_ns := self.due_ns(expected_bytes) - self._now_ns()) > 0:
            if self._stop():
                raise Stopped
            self._sleep(min(left_ns, _TICK_NS) / 1e9)

    def may_now(self) -> bool:
        """Whether a request without content may begin at once."""
        return self.due_ns() <= self._now_ns()

    def due_ns(self, expected_bytes: int = 0) -> int:
        """When the next request may begin."""
        by_pace = self._last_ns + self.manners.gap_ns(0)
        return max(by_pace, self._paid_ns, self._not_before_ns, self._due_by_volume_ns(expected_bytes))

    @property
    def backing_off(self) -> bool:
        """Whether the server has asked for patience, and it is not over."""
        return self._not_before_ns > self._now_ns()

    def record_requests(self, octets: int, requests: int = 1, since_ns: int | None = None) -> None:
        """Requests were made, the last one now, the first one then: so many octets went both ways."""
        self._last_ns = self._now_ns()
        first_ns = self._last_ns if since_ns is None else since_ns
        self._paid_ns = max(self._paid_ns, first_ns + self.manners.gap_ns(0, requests))
        if octets:
            for number in range(1, requests + 1):  # as they came: else a minute would seem to hold what two had
                at_ns = first_ns + (self._last_ns - first_ns) * number // requests
                self._sent.append((at_ns, octets // requests))

    def answered(self) -> None:
        """The server answered as it should: what it asked for before is over."""
        self._refusals = 0

    def turned_away(self, asked_ns: int | None) -> int:
        """The server asked for patience, of so long where it says; how long is waited now, in ns.

        Without a word of its own half a minute, and twice as long after each further one, whatever it says.
        """
        own_ns = manners.BACK_OFF_NS << self._refusals
        if asked_ns is not None:
            own_ns = max(asked_ns, own_ns if self._refusals else 0)
        self._refusals += 1
        wait_ns = min(own_ns, manners.LONGEST_BACK_OFF_NS)
        self._not_before_ns = self._now_ns() + wait_ns
        return wait_ns

    def _due_by_volume_ns(self, expected_bytes: int) -> int:
        """When the octets of the last minute, with those expected, are no more than may be."""
        while self._sent and self._sent[0][0] <= self._now_ns() - MINUTE_NS:
            self._sent.popleft()
        over = sum(octets for _, octets in self._sent) + expected_bytes - self.manners.volume_bytes
        due_ns = 0
        for at_ns, octets in self._sent:
            if over <= 0:
                break
            over -= octets
            due_ns = at_ns + MINUTE_NS
        return due_ns
