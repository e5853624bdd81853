"""The QUIC library of the engine's own client and server as it comes."""

from __future__ import annotations

from trifecta.threats.threat import Effect, Threat

_REUSED = (("connection", "reused"),)
_NEW = (("connection", "new"),)

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
    studies=("bourbon2020", "baccichet2021", "milicevic2023"),
    on=("quinn=stock",),
    off=("quinn=adapted",),
    check="parity",
    experiment="stock-quinn",
    effects=(
        Effect("quinn", "adapted", "stock", title="reused connections", where=_REUSED),
        Effect("quinn", "adapted", "stock", title="a new connection for every request", where=_NEW),
        *(
            Effect("quinn", "stock", name, title=f"{name} alone, {words}", where=where, experiment="stock-quinn-parts")
            for name in ("window-validation", "settings", "padding-cut+parameters-in-order+no-ecn")
            for words, where in (("reused", _REUSED), ("new", _NEW))
        ),
    ),
    quick=("blocks={at_least: 6, at_most: 6}",),
    by_itself=("stock-quinn-parts",),
)
