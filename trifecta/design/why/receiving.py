"""Causes in how data is received: acknowledgements, flow control, buffers, merged frames."""

from __future__ import annotations

from trifecta.design.quantity import QuantityError, parse_size_bytes, parse_time_ns
from trifecta.design.why.cause import CERTAIN, POSSIBLE, UNLIKELY, UNSUSPECTED, CellEvidence, Suspect, cause

_SMALL_BYTES = 1_000_000
_USUAL_DELAY_NS = 25_000_000  # RFC 9000 section 18.2
_USUAL_ACK_PACKETS = "2"
_LARGE = ("16 MB", "8 MB", "none")


def _halves(text: str) -> list[str]:
    return [half.strip() for half in text.split("/") if half.strip()]


def _least_bytes(text: str) -> int | None:
    """The smaller of one or two sizes; None where none is written."""
    sizes = []
    for half in _halves(text):
        try:
            sizes.append(parse_size_bytes(half))
        except QuantityError:
            continue
    return min(sizes, default=None)


def _window(evidence: CellEvidence, name: str) -> Suspect:
    least = _least_bytes(evidence.value(name))
    if least is not None and least < _SMALL_BYTES:
        return Suspect(CERTAIN, f"it is {evidence.value(name)}", {name: _LARGE})
    suspicion = UNLIKELY if evidence.far and evidence.share("transfer", "wait") >= 0.2 else UNSUSPECTED
    return Suspect(suspicion, "a receiver's window may end a flight", {name: _LARGE})


@cause("stream-window")
def stream_window(evidence: CellEvidence) -> Suspect | None:
    """flow control of a stream

    ## Removed by
    a `stream_window` of 16 MB, more than is ever under way here.

    ## Suspected when
    the study has one of less than 1 MB.

    ## Cannot
    tell a stream's window from the connection's where both are small: see their interaction.
    """
    return _window(evidence, "stream_window")


@cause("connection-window")
def connection_window(evidence: CellEvidence) -> Suspect | None:
    """flow control of a connection

    ## Removed by
    a `connection_window` of 16 MB, more than is ever under way here.

    ## Suspected when
    the study has one of less than 1 MB.

    ## Cannot
    say more than `stream-window` where both are small: see their interaction.
    """
    return _window(evidence, "connection_window")


@cause("ack-delay")
def ack_delay(evidence: CellEvidence) -> Suspect | None:
    """the delay of acknowledgements

    ## Removed by
    the smallest `ack_delay` that the programs take, over QUIC.

    ## Suspected when
    the study has one above 25 ms, QUIC's default (RFC 9000 section 18.2).

    ## Cannot
    change the delay of TCP, which is the kernel's own.
    """
    if not evidence.quic:
        return None
    suspicion, why = UNSUSPECTED, "a sender may wait for acknowledgements"
    own = evidence.value("ack_delay")
    if own and parse_time_ns(own) > _USUAL_DELAY_NS:
        suspicion, why = CERTAIN, f"it is {own}"
    return Suspect(suspicion, why, {"ack_delay": ("0 ms", "0", "1 ms", "5 ms", "none")})


@cause("ack-frequency")
def ack_frequency(evidence: CellEvidence) -> Suspect | None:
    """how many packets are acknowledged at once

    ## Removed by
    `ack_packets: 2` over QUIC where the study has another number; where it has that, 10.

    ## Suspected when
    the study has another number than two (RFC 9000 section 13.2.2), or the difference may be computing: arms over both
    transports, on a path without a delay or where the check headroom warned.

    ## Cannot
    change how often TCP acknowledges, which is the kernel's own.
    """
    if not evidence.quic:
        return None
    own = evidence.value("ack_packets")
    if own and own != _USUAL_ACK_PACKETS:
        return Suspect(CERTAIN - 1, f"it is {own}, not {_USUAL_ACK_PACKETS}", {"ack_packets": (_USUAL_ACK_PACKETS,)})
    busy = not evidence.far or evidence.struck.get("headroom", 0) > 0
    suspicion = UNLIKELY if busy and evidence.crosses else UNSUSPECTED
    return Suspect(suspicion, "every second packet is acknowledged", {"ack_packets": ("10",)})


@cause("merged-frames", check="frames")
def merged_frames(evidence: CellEvidence) -> Suspect | None:
    """frames merged by the path (GRO)

    ## Removed by
    `frames: wire` of the path: hosts receive every frame at a wire's size.

    ## Suspected when
    the check frames warns, or the path has no delay, so that computing counts.

    ## Cannot
    keep a host's own kernel from merging what its device gave it one by one.
    """
    if evidence.path.get("frames", "merged") == "wire":
        return None
    loud = evidence.struck.get("frames", 0) > 0
    suspicion = POSSIBLE if loud else UNLIKELY if evidence.crosses and not evidence.far else UNSUSPECTED
    return Suspect(suspicion, "super-packets cost TCP less", path={"frames": "wire"})


@cause("header-compression")
def header_compression(evidence: CellEvidence) -> Suspect | None:
    """header compression (HPACK, QPACK)

    ## Removed by
    `header_compression: off`: fields are sent as they are.

    ## Suspected when
    never by itself: the engine's own client and server use no dynamic table over HTTP/3.

    ## Cannot
    be switched in this version.
    """
    return Suspect(UNSUSPECTED, "fields are compressed in two ways", {"header_compression": ("off",)})


@cause("udp-buffers")
def udp_buffers(evidence: CellEvidence) -> Suspect | None:
    """socket buffers: the kernel's of TCP, the program's of QUIC

    ## Removed by
    `udp_buffer` of 16 MB, as the kernel's own for TCP grow to at most.

    ## Suspected when
    the study has one of less than 1 MB, or the check drops failed: packets were dropped before a program read them.

    ## Cannot
    give a socket more than `net.core.rmem_max` without CAP_NET_ADMIN, nor change that of a program of another project.
    """
    if not evidence.quic:
        return None
    least = _least_bytes(evidence.value("udp_buffer"))
    if least is not None and least < _SMALL_BYTES:
        return Suspect(CERTAIN, f"it is {evidence.value('udp_buffer')}", {"udp_buffer": _LARGE})
    if evidence.struck.get("drops", 0):
        return Suspect(POSSIBLE, "a host dropped packets", {"udp_buffer": _LARGE})
    return Suspect(UNSUSPECTED, "a program may read too late what came", {"udp_buffer": _LARGE})
