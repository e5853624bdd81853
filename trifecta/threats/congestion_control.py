"""One congestion control over TCP and another over QUIC."""

from __future__ import annotations

from trifecta.threats.threat import Effect, Threat

THREAT = Threat(
    id="congestion-control",
    title="one congestion control over TCP and another over QUIC",
    fact=(
        "TCP takes the kernel's default, cubic or bbr; a QUIC library brings its own: quic-go Reno, nginx CUBIC since "
        "1.27.5, quinn CUBIC (their sources; `trifecta implementations --json`, declared). On a path with losses CUBIC "
        "(RFC 9438) slows down at each and BBR (draft-ietf-ccwg-bbr) does not, whatever HTTP is on top."
    ),
    studies=("bourbon2020", "milicevic2023", "baccichet2021", "ding2022"),
    on=("congestion_control=bbr/cubic",),
    off=("congestion_control=cubic",),
    check="parity",
    experiment="congestion-control",
    effects=(
        Effect("congestion_control", "cubic", "bbr/cubic", title="BBR over TCP, CUBIC over QUIC"),
        Effect("congestion_control", "cubic", "cubic/bbr", title="CUBIC over TCP, BBR over QUIC"),
    ),
    quick=("blocks={at_least: 6, at_most: 6}",),
)
