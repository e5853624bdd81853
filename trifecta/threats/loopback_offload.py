"""64 KB frames on loopback taken for packets on a wire

## Why
Loopback has an MTU of 65,536 octets: TCP sends segments of 64 KB there, and QUIC datagrams stay below 1,500. ding2022
captured on it: HTTP/2's frames were up to 65,539 B and HTTP/3's at most 1,476 B, so it counted 2,308 frames against
31,995 for the same 30 MB. Segmentation offload (GSO, GRO) does the same between hosts. None of that is a property of
HTTP.

## Switch
Services share a host; `frames: wire` on every path and separate hosts.

## Experiment
1 MB over loopback, with merged frames, with wire-size frames.

## Notes
The check `frames` warns of loopback alone. Devices with segmentation offload also forward merged frames, which is the
rule and no fault; the link counts them (`super_packets`). `frames: wire` on a path makes the link deliver every
frame at a wire's size, so that receivers count and acknowledge what a wire would deliver.
"""

from __future__ import annotations

from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.design.machine import MIDDLE
from trifecta.threats.changes import SERVICES, in_a_lab, kind, workload
from trifecta.threats.threat import Effect, Threat

_WHERE = "how many hosts its services share"


def _on(document: Document) -> None:
    """Services share one host, so that they speak over its loopback."""
    if kind(document) not in SERVICES:
        what = f"the workload {kind(document)!r} has client and server on separate hosts"
        raise UserError(
            f"{what}; only services can share one, for example `trifecta run chain --with loopback-offload`"
        )
    in_a_lab(document, _WHERE)
    workload(document)["hosts"] = 1


def _off(document: Document) -> None:
    """Every path carries frames of a wire's size one by one, between hosts of their own."""
    named = document.tree.get("hosts")
    if kind(document) in SERVICES:
        in_a_lab(document, _WHERE)
        if str(workload(document).get("hosts", 1)) == "1":
            workload(document)["hosts"] = 2
    elif not (isinstance(named, dict) and MIDDLE in named):
        in_a_lab(document, "the frames of its path")
    section = document.tree.setdefault("paths", {})
    if not section:
        section["clean"] = {}
    for path in section.values():
        path["frames"] = "wire"


THREAT = Threat(
    id="loopback-offload",
    docstring=__doc__,
    studies=("ding2022",),
    on=_on,
    off=_off,
    check="frames",
    experiment="loopback-offload",
    effects=(
        Effect("hosts", "2", "1", title="loopback instead of a wire", where=(("path", "wire"),)),
        Effect("path", "wire", "merged", title="frames merged by offloads on a wire", where=(("hosts", "2"),)),
    ),
    quick=("blocks={at_least: 4, at_most: 4}",),
)
