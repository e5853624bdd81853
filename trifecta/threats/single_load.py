"""one load per protocol, and the shorter one is called faster

## Why
baccichet2021 has one value per page and protocol, ding2022 ran each test once, with three requests. Two loads of the
same page over the same protocol differ, too: load times of a page of 30 resources vary by 23 to 35 % on loopback.
`trifecta explain` draws one of a run's samples per protocol, 200 times, and counts how often the shorter one is not the
one that all blocks call faster.

## Switch
One block; six or more.

## Experiment
None: [explain](explain.md).
"""

from __future__ import annotations

from trifecta.threats.threat import Threat

THREAT = Threat(
    id="single-load",
    docstring=__doc__,
    studies=("baccichet2021", "ding2022"),
    on=("blocks={at_least: 1, at_most: 1}", "budget=none"),
    off=("blocks={at_least: 6, at_most: 200}",),
    check="blocks",
    elsewhere="it needs no traffic of its own: trifecta explain RUN --full applies it to the samples of any run",
)
