"""a difference between programs taken for one between protocols

## Why
A study with one server and one client cannot separate the protocol from the program: kernel TCP against a QUIC library
of that year (quic-go of 2019, nginx with a draft-27 patch). With several programs side by side the variation of the
effect splits into protocol, server and client (docs/methodology.md, decomposition).

## Switch
`server=any`, `server=origin`.

## Experiment
Two servers, and the decomposition.
"""

from __future__ import annotations

from trifecta.threats.threat import Effect, Threat

THREAT = Threat(
    id="implementation",
    docstring=__doc__,
    studies=("bourbon2020", "baccichet2021", "milicevic2023"),
    on=("server=any",),
    off=("server=origin",),
    undetected="a trial has one program: only several programs side by side show it, in the view `decomposition`",
    experiment="implementation",
    effects=(Effect("server", "origin", "caddy", title="Caddy (Go, quic-go) instead of Trifecta's own server"),),
    quick=("blocks={at_least: 6, at_most: 6}",),
    model="decomposition",
)
