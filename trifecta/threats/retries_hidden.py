"""failed requests retried inside the timed span

## Why
bourbon2020's programs retry a failed request and measure the time until one succeeds: a protocol that fails looks slow,
and the failure is in no table. Their back-off is avast/retry-go's default (`services/tcp.go` of its repository):
100 ms, doubled each time, ten attempts. The experiment and `trifecta explain` retry on paper, with the same back-off
and the failures that occurred; `explain` does it 200 times.

## Switch
For services `retries=true`, with `go-services` instead of the engine's own: they retry like the study's. Nothing else
is retried here.

## Experiment
Requests of at most 1 s over a path with 10 % loss: some fail, and are retried on paper.
"""

from __future__ import annotations

from trifecta.threats.changes import of_go_services
from trifecta.threats.threat import Effect, Threat

THREAT = Threat(
    id="retries-hidden",
    docstring=__doc__,
    studies=("bourbon2020",),
    on=of_go_services("retries", True),
    off=of_go_services("retries"),
    undetected="a client that retries by itself does not report it; those that run here are told not to",
    experiment="retries-hidden",
    effects=(Effect("retries", "counted", "hidden", metric="success_rate", title="requests that succeed"),),
    quick=("blocks={at_least: 4, at_most: 4}", "requests=40"),
    procedure=True,
)
