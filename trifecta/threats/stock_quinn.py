"""unmodified quinn-proto in Trifecta's own client and server

## Why
quinn-proto 0.11 treats the window as underutilized (RFC 9002 section 7.8) at each acknowledgement that arrives while
nothing waits to be sent, even when a response had filled it: its Cubic stops growing at a window below one response,
where Linux TCP goes on (tcp_is_cwnd_limited). It starts with packets of 1,200 octets and probes for larger ones (RFC
9000 section 14.3). Measuring HTTP/3 with one library measures such choices; `load` and `origin` behave differently, and
declare it (`trifecta implementations`, `run.json`).

## Switch
`quinn=stock`, `adapted`.

## Experiment
100 kB over 30 ms and 100 Mbit/s, reused and new connections; and the effect of each
[adaptation](implementations.md#what-of-quinn-proto-is-adapted) alone.

## Notes
`load` and `origin` change quinn-proto in five ways, [named](implementations.md#what-of-quinn-proto-is-adapted) in every
run; this switches all of them off in both, and in services. `stock-quinn-parts` puts them back one kind at a time.
"""

from __future__ import annotations

from trifecta.threats.threat import Effect, Threat

THREAT = Threat(
    id="stock-quinn",
    docstring=__doc__,
    studies=(),  # it is one of this instrument: none of them ran quinn-proto
    on=("quinn=stock",),
    off=("quinn=adapted",),
    check="parity",
    evidence_words="quinn-proto",
    experiment="stock-quinn",
    # One table each, over reused and new connections: more tables are more chances to call noise an effect.
    effects=(
        Effect("quinn", "adapted", "stock", title="client and server with the unmodified library"),
        Effect("quinn", "stock", "window-validation", title="window-validation alone", experiment="stock-quinn-parts"),
        Effect("quinn", "stock", "settings", title="settings alone", experiment="stock-quinn-parts"),
    ),
    quick=("requests=5", "blocks={at_least: 5, at_most: 5}"),
    by_itself=("stock-quinn-parts",),
)
