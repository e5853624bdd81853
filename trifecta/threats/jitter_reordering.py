"""jitter that lets packets overtake each other

## Why
tc-netem(8)'s 'delay 50ms 20ms distribution normal' draws a delay for every packet, so packets overtake. A stack that
takes three later packets for a sign of loss (RFC 9002 section 6.1.1) sends again and slows down for nothing; Linux
TCP learns how far packets overtake (RFC 8985, RACK).

## Switch
`reorder` of every jitter true, false.

## Experiment
The lag of bourbon2020, overtaking and in order.
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
