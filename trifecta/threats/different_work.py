"""page loads compared although they requested different things

## Why
The heavy page of baccichet2021 took 120 requests over HTTP/1.1, 123 over HTTP/2 and 134 over HTTP/3: 9 % more than
HTTP/2, where its load took 11 % longer. `trifecta explain` scales single loads of a page by one of these counts each,
redrawn 200 times; a load's time grows at most in proportion to its requests.

## Switch
None: every protocol gets the same page.

## Experiment
None: [explain](explain.md).
"""

from __future__ import annotations

from trifecta.threats.threat import Threat

THREAT = Threat(
    id="different-work",
    docstring=__doc__,
    studies=("baccichet2021",),
    no_switch="every protocol of a block gets the same recorded page, octet for octet",
    check="same_page",
    elsewhere="it needs no traffic of its own: trifecta explain RUN --full applies it to runs of the workload page",
)
