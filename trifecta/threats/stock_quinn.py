"""quinn-proto as it comes, in Trifecta's own client and server

## Why
quinn-proto 0.11 takes each acknowledgement that comes while nothing waits to be sent for one of an underutilized
window (RFC 9002 section 7.8), also when a response had filled it: its Cubic stops growing a window short of one
response, where Linux's TCP goes on (tcp_is_cwnd_limited). It begins with packets of 1,200 octets and looks for larger
ones (RFC 9000 section 14.3). Who measures HTTP/3 with one library measures such choices; `load` and `origin` do
otherwise, and say so (`trifecta implementations`, `run.json`).

## Switch
`quinn=stock`, `adapted`.

## Experiment
100 kB over 30 ms and 100 Mbit/s, reused and new connections; and what each
[adaptation](implementations.md#what-of-quinn-proto-is-adapted) does alone.

## Notes
`load` and `origin` change quinn-proto in five ways, [named](implementations.md#what-of-quinn-proto-is-adapted) in
every run; this switches all of them off in both, and in services. quinn-proto's Cubic counts a window as
underutilized by whether data waits to be sent when an acknowledgement comes, so that it stops a window short of one
response. `stock-quinn-parts` puts them back one kind at a time.
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
        Effect("quinn", "adapted", "stock", title="client and server as the library comes"),
        Effect("quinn", "stock", "window-validation", title="window-validation alone", experiment="stock-quinn-parts"),
        Effect("quinn", "stock", "settings", title="settings alone", experiment="stock-quinn-parts"),
    ),
    quick=("blocks={at_least: 6, at_most: 6}",),
    by_itself=("stock-quinn-parts",),
)
