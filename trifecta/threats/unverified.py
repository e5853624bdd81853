"""certificates that nobody verifies

## Why
bourbon2020's clients set `InsecureSkipVerify` over every protocol (`services/tcp.go`, `quic.go` of its repository),
although its 4.8 installs a root certificate for them in every container. A handshake is then cheaper than in real use,
and with a new connection for every request handshakes are most of what was measured. If that saves the same on all
protocols, their difference becomes a larger share of a smaller total. ding2022's curl had `-k` over both
(`tests/closed-test.sh`, `sim-test.sh` of its repository; its 5.1).

## Switch
`unverified=true` with `go-services` instead of the engine's own; left out.

## Experiment
A chain of Go services, a new connection for every call, with certificates verified and not.
"""

from __future__ import annotations

from trifecta.threats.changes import of_go_services
from trifecta.threats.threat import Effect, Threat

THREAT = Threat(
    id="unverified",
    docstring=__doc__,
    studies=("bourbon2020", "ding2022"),
    on=of_go_services("unverified", True),
    off=of_go_services("unverified"),
    check="parity",
    evidence_words="does not verify the server's certificate",
    experiment="unverified",
    effects=(Effect("unverified", "false", "true"),),
    quick=("blocks={at_least: 6, at_most: 6}", "requests=60"),
    by_itself=("unverified",),
)
