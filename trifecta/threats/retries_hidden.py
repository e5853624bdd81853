"""failed requests retried inside the timed span

## Why
bourbon2020's programs try a failed request again and take the time until one succeeds: a protocol that fails looks
slow, and the failure is in no table. Their back-off is avast/retry-go's without options (`services/tcp.go` of its
repository): 100 ms, twice as long each time, ten attempts. The experiment and `trifecta explain` try again on paper,
with the same back-off and the failures that there were; `explain` does it 200 times.

## Switch
Of services `retries=true`, with `go-services` in the place of the engine's own: they do as the study's did. Nothing
else is tried again here.

## Experiment
Requests of at most 1 s over a path that loses 10 %: some fail, and are tried again on paper.
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
    undetected="a client that tries again by itself says nothing of it; those that run here are told not to",
    experiment="retries-hidden",
    effects=(Effect("retries", "counted", "hidden", metric="success_rate", title="requests that succeed"),),
    quick=("blocks={at_least: 4, at_most: 4}", "requests=40"),
    procedure=True,
)
