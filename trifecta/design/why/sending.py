"""Causes in how data is sent: windows, pace, loss detection, records."""

from __future__ import annotations

from trifecta.design import quinn
from trifecta.design.quantity import QuantityError, parse_size_bytes
from trifecta.design.transports import over
from trifecta.design.why.cause import CERTAIN, LIKELY, POSSIBLE, UNLIKELY, UNSUSPECTED, CellEvidence, Suspect, cause

_STANDARD_WINDOW, _LARGE_WINDOW = "10", "100"
_OFF = ("off", "false", "none")
_SEGMENT_BYTES = 1460


def _window_limited(evidence: CellEvidence) -> bool:
    """Whether the difference lies in what windows and pace decide, as far as it is known where it lies."""
    return evidence.far and (not evidence.shares or evidence.share("wait", "transfer") >= 0.2)


def _octets(text: str) -> int:
    """A size in octets; 0 where none is written."""
    try:
        return parse_size_bytes(text)
    except QuantityError:
        return 0


@cause("pacing")
def pacing(evidence: CellEvidence) -> Suspect | None:
    """the pace of packets

    ## Removed by
    `pacing: off` on TCP and QUIC: a sender hands over at once what its window allows.

    ## Suspected when
    one arm is over QUIC and the other over TCP, one of them paced and the other not, on a path with a delay:
    quinn-proto paces at 1.25 windows a round trip (RFC 9002 section 7.7), Linux's TCP not without fq or BBR.

    ## Cannot
    switch the pace of a server of another project, nor BBR's, which is part of its model.
    """
    transports = (("TCP", "h2", evidence.tcp), ("QUIC", "h3", evidence.quic))
    paced = [name for name, protocol, there in transports if there and _is_paced(evidence, protocol)]
    if not paced:
        return None
    if not evidence.crosses:
        return Suspect(UNSUSPECTED, "what is paced waits", {"pacing": _OFF})
    if len(paced) != 1:
        return Suspect(POSSIBLE, "both are paced, each in its own way", {"pacing": _OFF})
    why = f"{paced[0]} is paced and {'TCP' if paced[0] == 'QUIC' else 'QUIC'} is not"
    return Suspect(LIKELY + 1 if _window_limited(evidence) else POSSIBLE, why, {"pacing": _OFF})


def _is_paced(evidence: CellEvidence, protocol: str) -> bool:
    """Whether a transport spreads its packets; BBR does over TCP whatever the study says."""
    bbr = over(evidence.value("congestion_control"), protocol) == "bbr" and protocol != "h3"
    return bbr or over(evidence.value("pacing") or "off/on", protocol) == "on"


@cause("idle-window")
def idle_window(evidence: CellEvidence) -> Suspect | None:
    """the restart of the window after idle

    ## Removed by
    `idle_window: keep`: a connection that was silent keeps its congestion window.

    ## Suspected when
    connections are reused on a path with a delay: Linux's TCP halves its window for each retransmission timeout that a
    pause lasts, down to the initial one (RFC 5681 section 4.1), quinn-proto keeps it. Surely where the study has
    `restart` for both.

    ## Cannot
    tell a restart from a window that did not grow: that is `window-validation`.
    """
    suspicion = LIKELY if _window_limited(evidence) and not evidence.new else UNSUSPECTED
    if evidence.value("idle_window") == "restart":
        suspicion = CERTAIN - 1
    return Suspect(suspicion, "after a pause a sender may begin anew", {"idle_window": ("keep",)})


@cause("initial-window")
def initial_window(evidence: CellEvidence) -> Suspect | None:
    """the initial window

    ## Removed by
    `initial_window: 10` (RFC 6928) where the study has another; where it has that, 100 packets, which hold a response
    without a second round trip.

    ## Suspected when
    the study says another window than ten packets, or every request has a new connection on a path with a delay.

    ## Cannot
    set the window of a server of another project. A hundred packets at once can overflow a short queue.
    """
    own = evidence.value("initial_window")
    if own and own != _STANDARD_WINDOW:
        return Suspect(CERTAIN, f"it is {own}, not 10 packets", {"initial_window": (_STANDARD_WINDOW, "10 packets")})
    suspicion = (
        LIKELY - 1
        if evidence.new and _window_limited(evidence)
        else UNLIKELY
        if _window_limited(evidence)
        else UNSUSPECTED
    )
    why = "a response may take more than its ten packets"
    return Suspect(suspicion, why, {"initial_window": (_LARGE_WINDOW, "64", "32")})


@cause("congestion-control")
def congestion_control(evidence: CellEvidence) -> Suspect | None:
    """the congestion control

    ## Removed by
    `congestion_control`: where both transports have their own, that of TCP for both; else BBR for both, which sets its
    window by a model instead of losses.

    ## Suspected when
    both transports have their own, or the path loses packets.

    ## Cannot
    make two implementations of one algorithm alike: Cubic of Linux and of quinn-proto stay two programs.
    """
    own = evidence.value("congestion_control")
    if evidence.apart("congestion_control"):
        return Suspect(CERTAIN, f"it is {own}", {"congestion_control": (own.partition("/")[0],)})
    if own in ("", "bbr"):
        return None
    lossy = evidence.lost or evidence.queue_dropped
    return Suspect(POSSIBLE if lossy else UNSUSPECTED, "packets are lost", {"congestion_control": ("bbr",)})


@cause("slow-start-exit")
def slow_start_exit(evidence: CellEvidence) -> Suspect | None:
    """the early exit from slow start (HyStart)

    ## Removed by
    `congestion_control: reno` on both: Linux leaves slow start by HyStart with Cubic alone (tcp_cubic.c), quinn-proto
    never does.

    ## Suspected when
    a new connection under Cubic sends over a path with a delay, and one arm is over TCP.

    ## Cannot
    take HyStart away alone: Reno also grows more slowly after a loss.
    """
    if evidence.value("congestion_control") != "cubic" or not evidence.tcp:
        return None
    suspicion = POSSIBLE - 1 if evidence.crosses and evidence.new and _window_limited(evidence) else UNSUSPECTED
    return Suspect(suspicion, "Linux's Cubic may leave slow start early", {"congestion_control": ("reno",)})


@cause("window-validation")
def window_validation(evidence: CellEvidence) -> Suspect | None:
    """the rule by which quinn-proto's window grows

    ## Removed by
    `quinn` with the adaptation `window-validation` where the study has it without, else without it; the other
    adaptations stay.

    ## Suspected when
    an arm is over QUIC and the study lacks it: quinn-proto then stops a window short of one response
    ([stock-quinn](threats.md)).

    ## Cannot
    change the QUIC of a server of another project, nor BBR, which has no such rule.
    """
    own = evidence.value("quinn")
    if not own or not evidence.quic or over(evidence.value("congestion_control"), "h3") == "bbr":
        return None
    if _lacks_adaptation(own, "window-validation"):
        return Suspect(CERTAIN, f"quinn-proto is {own}", _switched(own, "window-validation"))
    why = "the tool's own rule for quinn-proto's window may matter"
    return Suspect(UNLIKELY, why, _switched(own, "window-validation"))


@cause("quinn-settings")
def quinn_settings(evidence: CellEvidence) -> Suspect | None:
    """the settings of quinn-proto

    ## Removed by
    `quinn` with the adaptation [`settings`](implementations.md#what-of-quinn-proto-is-adapted) where the study has it
    without, else without it: size of the first packets, initial window, receive windows, identifiers.

    ## Suspected when
    an arm is over QUIC and the study lacks it, the more so where every request has a new connection.

    ## Cannot
    change the QUIC of a server of another project. Without it the initial window may be another than TCP's, which
    excludes no trial then.
    """
    own = evidence.value("quinn")
    if not own or not evidence.quic:
        return None
    if _lacks_adaptation(own, "settings"):
        return Suspect(LIKELY if evidence.new else POSSIBLE, f"quinn-proto is {own}", _switched(own, "settings"))
    why = "the tool's own settings of quinn-proto may matter"
    return Suspect(UNLIKELY if evidence.new else UNSUSPECTED, why, _switched(own, "settings"))


def _lacks_adaptation(own: str, adaptation: str) -> bool:
    return adaptation not in quinn.names(own)


def _switched(own: str, adaptation: str) -> dict[str, tuple[str, ...]]:
    return {"quinn": (quinn.switched(own, adaptation),)}


@cause("packet-threshold", check="reordering")
def packet_threshold(evidence: CellEvidence) -> Suspect | None:
    """the packet threshold of loss detection

    ## Removed by
    a `packet_threshold` that no reordering reaches: packets that were overtaken are not taken for lost.

    ## Suspected when
    packets overtake each other on the path: QUIC takes one for lost when three later ones are acknowledged (RFC 9002
    section 6.1.1), Linux's TCP adapts its own number.

    ## Cannot
    keep a sender from losses found by time (RFC 9002 section 6.1.2).
    """
    apart = evidence.apart("packet_threshold")
    suspicion = CERTAIN if evidence.overtaken else LIKELY if apart else UNSUSPECTED
    return Suspect(suspicion, "packets overtake each other", {"packet_threshold": ("1000", "300", "100")})


@cause("nagle", check="delayed_ack")
def nagle(evidence: CellEvidence) -> Suspect | None:
    """Nagle's algorithm

    ## Removed by
    `tcp_nodelay: true`.

    ## Suspected when
    the study has it on (`tcp_nodelay: false`) and an arm is over TCP.

    ## Cannot
    change what is sent over QUIC, which has no such algorithm.
    """
    if evidence.value("tcp_nodelay") != "false" or not evidence.tcp:
        return None
    return Suspect(CERTAIN, "small writes wait for an acknowledgement", {"tcp_nodelay": ("true",)})


@cause("tls-records")
def tls_records(evidence: CellEvidence) -> Suspect | None:
    """the size of TLS records

    ## Removed by
    `tls_record` of less than a packet: what arrived can be decrypted without waiting for the rest.

    ## Suspected when
    the study sets it to more than a segment, or a new connection over TCP waits for a response larger than a packet.

    ## Cannot
    be set in a server of another project (nginx: `ssl_buffer_size`); QUIC has no such records.
    """
    if not evidence.tcp:
        return None
    own = evidence.value("tls_record")
    set_ = _octets(own) > _SEGMENT_BYTES
    suspicion = CERTAIN - 1 if set_ else POSSIBLE - 1 if evidence.new and _window_limited(evidence) else UNSUSPECTED
    why = f"a record of {own} does not fit a small window" if set_ else "a record is read when all of it is there"
    return Suspect(suspicion, why, {"tls_record": ("1200 B", "1 kB", "1400 B", "segment")})


@cause("segmentation-offload")
def segmentation_offload(evidence: CellEvidence) -> Suspect | None:
    """segmentation by the kernel (GSO)

    ## Removed by
    `segmentation_offload: off`: every QUIC packet is handed over by itself.

    ## Suspected when
    the difference is computing: on a path without a delay, or where the check headroom warned.

    ## Cannot
    switch what the kernel does in the lab's own devices.
    """
    if not evidence.quic:
        return None
    busy = not evidence.far or evidence.struck.get("headroom", 0) > 0
    return Suspect(POSSIBLE if busy and evidence.crosses else UNSUSPECTED, "the difference may be computing",
                   {"segmentation_offload": _OFF})  # fmt: skip
