"""The table of threats: one file each, and one line here."""

from __future__ import annotations

from trifecta.threats import jitter_reordering
from trifecta.threats.threat import Threat

THREATS: dict[str, Threat] = {
    threat.id: threat
    for threat in (
        jitter_reordering.THREAT,
    )
}  # fmt: skip
