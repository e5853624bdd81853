"""Nagle's algorithm against delayed acknowledgements

## Why
If a client writes the header and the content of a request in two pieces, without TCP_NODELAY, the second piece is held
back until the first is acknowledged (RFC 9293 section 3.7.4); the server's kernel delays that by 40 ms (RFC 9293
section 3.8.6.3, TCP_DELACK_MIN of Linux): 20 to 25 requests/s over HTTP/2, whatever the path and the machine.
milicevic2023 published 20 requests/s for HTTP/2 on one reused connection, against 102 to 118 for HTTP/3.

## Switch
`tcp_nodelay=false`, `true`.

## Experiment
A client that writes a request in two pieces, and one that writes it in one, with Nagle's algorithm and without.

## Notes
The kernel counts the acknowledgements that its timer sent. A client that writes a request in one piece waits once per
connection, 45 ms for its second request, likely because its SETTINGS acknowledgement is still unacknowledged by TCP
then (measured, its cause not captured). Ten warm-up requests do not count: with thirty and no warm-up that one wait was
1.6 [1.5, 1.7] of H3 : H2.
"""

from __future__ import annotations

from trifecta.threats.threat import Effect, Threat

THREAT = Threat(
    id="delayed-ack",
    docstring=__doc__,
    studies=("milicevic2023",),
    on=("tcp_nodelay=false",),
    off=("tcp_nodelay=true",),
    check="delayed_ack",
    experiment="delayed-ack",
    effects=(
        Effect("tcp_nodelay", "true", "false", "requests_per_s", where=(("client", "python-client"),)),
        Effect(
            "tcp_nodelay", "true", "false", "requests_per_s", "a client that writes a request in one piece",
            where=(("client", "load"),),
        ),
    ),
    quick=("requests=30", "blocks={at_least: 3, at_most: 3}"),
)  # fmt: skip
