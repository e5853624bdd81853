"""jitter that lets packets overtake each other

## Why
tc-netem(8)'s 'delay 50ms 20ms distribution normal' draws a delay for every packet, so packets overtake each other. A
stack that declares loss after three later packets (RFC 9002 section 6.1.1) retransmits and slows down for nothing;
Linux TCP adapts to how far packets overtake (RFC 8985, RACK).

## Switch
`reorder: true`, `reorder: false` in every jitter.

## Experiment
bourbon2020's lag, with packets overtaking and in order.
"""

from __future__ import annotations

from trifecta.threats.changes import set_jitter
from trifecta.threats.threat import Effect, Threat

THREAT = Threat(
    id="jitter-reordering",
    docstring=__doc__,
    studies=("bourbon2020",),
    on=set_jitter("reorder", True),
    off=set_jitter("reorder", False),
    check="reordering",
    experiment="jitter-reordering",
    effects=(Effect("path", "in-order", "overtaking"),),
    quick=("blocks={at_least: 6, at_most: 6}", "requests=1"),
)
