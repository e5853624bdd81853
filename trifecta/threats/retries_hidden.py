"""failed requests retried inside the timed span

## Why
bourbon2020's client tries a failed request again with back-off and takes the time until one succeeds: a protocol that
fails looks slow, and the failure is in no table. Which back-off is not published; 500 ms, 1.5 times as long each
time, each drawn within half of it, are the defaults of Go's most used library (cenkalti/backoff). The experiment does
that with the requests that fail on a path that loses a tenth of its packets; `trifecta explain` does it with the
failures of any run, 200 times.

## Switch
None: nothing is tried again here.

## Experiment
Requests of at most 1 s over a path that loses 10 %: some fail, and are tried again on paper.
"""

from __future__ import annotations

from trifecta.threats.threat import Effect, Threat

THREAT = Threat(
    id="retries-hidden",
    docstring=__doc__,
    studies=("bourbon2020",),
    no_switch="nothing is retried here: a request that failed is a failure, and counts as infinitely long",
    undetected="a client that tries again by itself says nothing of it; those that run here are told not to",
    experiment="retries-hidden",
    effects=(Effect("retries", "counted", "hidden", metric="success_rate", title="requests that succeed"),),
    quick=("blocks={at_least: 4, at_most: 4}", "requests=40"),
    procedure=True,
)
