"""means compared without a repeated identical treatment, an interval or a test

## Why
bourbon2020 compares what figures show of one series of requests per protocol (in suite B averages, 6.2.1),
milicevic2023 means, minima and maxima. Thousands of requests of one series share a moment and a path: their mean is
precise, but another series would have another. Here the baseline runs twice in every block, which shows how different.
`trifecta explain` takes the mean of one trial of each protocol, 200 times, and counts how often it names the wrong one.

## Switch
None: the baseline always runs twice.

## Experiment
None: [explain](explain.md).
"""

from __future__ import annotations

from trifecta.threats.threat import Threat

THREAT = Threat(
    id="no-noise-floor",
    docstring=__doc__,
    studies=("bourbon2020", "milicevic2023"),
    no_switch="the baseline runs twice in every block, always",
    check="noise_floor",
    elsewhere="it needs no traffic of its own: trifecta explain RUN --full applies it to the samples of any run",
)
