"""one congestion control over TCP and another over QUIC

## Why
TCP uses the kernel's default, cubic or bbr; a QUIC library brings its own: quic-go Reno, nginx CUBIC since 1.27.5,
quinn CUBIC (their sources; `trifecta implementations --json`, declared). On a lossy path CUBIC (RFC 9438) slows down at
each loss and BBR (draft-ietf-ccwg-bbr) does not, whichever HTTP runs on top.

## Switch
`congestion_control=bbr/cubic`, `cubic`.

## Experiment
1 MB with 2 % loss: cubic over both, bbr over TCP, bbr over QUIC.

## Notes
`bbr/cubic` is BBR over TCP and CUBIC over QUIC, on both sides; a server then runs once for each transport. `parity`
warns of a study that asks for it, and fails when it was not asked for. Chance decides how long a transfer with few
losses takes: 500 kB over 40 ms left it open, 1 MB over 15 ms has twice as many losses in less time.
"""

from __future__ import annotations

from trifecta.threats.threat import Effect, Threat

THREAT = Threat(
    id="congestion-control",
    docstring=__doc__,
    studies=("bourbon2020", "milicevic2023", "baccichet2021", "ding2022"),
    on=("congestion_control=bbr/cubic",),
    off=("congestion_control=cubic",),
    check="parity",
    evidence_words="congestion control",
    experiment="congestion-control",
    effects=(
        Effect("congestion_control", "cubic", "bbr/cubic", title="BBR over TCP, CUBIC over QUIC"),
        Effect("congestion_control", "cubic", "cubic/bbr", title="CUBIC over TCP, BBR over QUIC"),
    ),
    quick=("blocks={at_least: 6, at_most: 6}",),
)
