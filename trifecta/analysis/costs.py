"""What a trial cost each of its programs, by 1,000 requests and by MB: from what it used and the trial's row.

Readings of resources begin before the first request of the warm-up and end after the last request, so the warm-up's
requests and octets are counted too. A failed request counts: it cost something. MB are 10^6 octets of content that the
client sent and received (RFC 9110, 6.4); what a service passes on to others is not added again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from trifecta.contract.trial import TrialRow

_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Work:
    """What was done in a trial, warm-up included. ``content_bytes`` is None where it is not known."""

    requests: int
    content_bytes: int | None

    def per_1000_requests(self, used: int | None) -> float | None:
        """What was used, by 1,000 requests of the client; None where that is not known, or there was none."""
        return _by(used, self.requests / 1000)

    def per_mb(self, used: int | None) -> float | None:
        """What was used, by MB of content; None where that is not known, or there was none."""
        return _by(used, (self.content_bytes or 0) / _MEGABYTE)


def _by(used: int | None, work: float) -> float | None:
    return used / work if used is not None and work else None


def work(trial: TrialRow) -> Work:
    """Requests of the client in a trial, and octets of content, warm-up included.

    A trial's row counts octets after the warm-up only; those of the warm-up are taken to be as many a request. None:
    requests were made, but none after the warm-up.
    """
    measured = int(trial.get("samples") or 0)
    load = json.loads(trial.get("load_json") or "null") or {}
    requests = int(load.get("samples") or measured)
    octets = int(trial.get("bytes_in") or 0) + int(trial.get("bytes_out") or 0)
    if not measured:
        return Work(requests, None if requests else 0)
    return Work(requests, round(octets * requests / measured))
