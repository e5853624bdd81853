"""a different think time between requests for each protocol

## Why
bourbon2020's clients of suite B slept between two requests: in `scripts/single02/xrun_tsB.sh` of its repository 10 ms
over HTTP/1.1 and HTTP/2 and 20 ms over HTTP/3, in `distributed02` 20 ms over each, in containers not at all
(`delay=1s`, to which the program appends "ms": not a duration). A client that waits leaves the service to the others:
in figure 18 HTTP/3 met a less loaded one than HTTP/2 did, and native programs a less loaded one than containers, from
which 6.2.1 concludes "lower transaction times in scenarios without containers". Its text has the option (4.7.2, with
`DELAY=1s`; annex II), not its value for each protocol. In suite A, where one client sends requests at a time,
`distributed02` has 10 ms over each.

## Switch
`think_time=10ms/10ms/20ms` with `go-services` instead of the engine's own; left out.

## Experiment
Four clients of one Go service, with the pauses of `single02` and without.
"""

from __future__ import annotations

from trifecta.threats.changes import of_go_services
from trifecta.threats.threat import Effect, Threat

PAUSES = "10 ms/10 ms/20 ms"
THREAT = Threat(
    id="think-time",
    docstring=__doc__,
    studies=("bourbon2020",),
    on=of_go_services("think_time", PAUSES),
    off=of_go_services("think_time"),
    undetected="the study decides how long a client waits before a request, and no measured time includes it",
    experiment="think-time",
    effects=(Effect("think_time", "none", PAUSES),),
    quick=("blocks={at_least: 6, at_most: 6}", "requests=25"),
    by_itself=("think-time",),
)
