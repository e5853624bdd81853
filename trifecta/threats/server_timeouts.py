"""Timeouts of a server that turn slow responses into failures, over TCP only."""

from __future__ import annotations

from trifecta.threats.threat import Effect, Threat

THREAT = Threat(
    id="server-timeouts",
    title="timeouts of a server that end slow responses, over one transport only",
    fact=(
        "Go's http.Server with WriteTimeout 1 s and ReadTimeout 5 s, as bourbon2020 had it, ends a connection or a "
        "stream whose response is not out in time (net/http, type Server). quic-go's http3.Server has neither. On a "
        "slow path HTTP/1.1 and HTTP/2 then fail where HTTP/3 only takes longer: a success rate below 100 % over TCP "
        "alone is what that study published."
    ),
    studies=("bourbon2020",),
    on=("write_timeout=1s", "read_timeout=5s"),
    off=("write_timeout=none", "read_timeout=none"),
    check="errors",
    experiment="server-timeouts",
    effects=(Effect("write_timeout", "none", "1 s", metric="success_rate", title="requests that succeed"),),
    quick=("blocks={at_least: 3, at_most: 3}", "requests=1"),
)
