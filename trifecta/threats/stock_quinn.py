"""The QUIC library of the engine's own client and server as it comes."""

from __future__ import annotations

from trifecta.threats.threat import Effect, Threat

THREAT = Threat(
    id="stock-quinn",
    title="quinn-proto as it comes, in Trifecta's own client and server",
    fact=(
        "quinn-proto 0.11 takes each acknowledgement that comes while nothing waits to be sent for one of an "
        "underutilized window (RFC 9002 section 7.8), also when a response had filled it: its Cubic stops growing a "
        "window short of one response, where Linux's TCP goes on (tcp_is_cwnd_limited). It begins with packets of "
        "1,200 octets and looks for larger ones (RFC 9000 section 14.3). Who measures HTTP/3 with one library measures "
        "such choices; `load` and `origin` do otherwise, and say so (`trifecta implementations`, `run.json`)."
    ),
    studies=(),  # it is one of this instrument: none of them ran quinn-proto
    on=("quinn=stock",),
    off=("quinn=adapted",),
    check="parity",
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
