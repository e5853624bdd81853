"""Causes in how a connection is opened: round trips, certificates, versions, keys."""

from __future__ import annotations

from trifecta.design.why.cause import CERTAIN, LIKELY, POSSIBLE, UNLIKELY, UNSUSPECTED, CellEvidence, Suspect, cause


@cause("handshake")
def handshake(evidence: CellEvidence) -> Suspect | None:
    """the round trips of the handshake

    ## Removed by
    `connection: reused`: requests find their connection open.

    ## Suspected when
    every request has a new connection, the more so where set-up has a share of the difference.

    ## Cannot
    tell round trips from computing in the handshake; and a reused connection has a grown window.
    """
    if not evidence.new:
        return None
    suspicion = CERTAIN if evidence.share("set-up") >= 0.2 else LIKELY
    return Suspect(suspicion, "every request opens a connection", {"connection": ("reused",)})


@cause("certificate")
def certificate(evidence: CellEvidence) -> Suspect | None:
    """the certificate in the first flight

    ## Removed by
    `resumption: true`: a resumed handshake carries no certificate (RFC 8446 section 2.2), so it fits the three times
    that a QUIC server may send before an address is validated (RFC 9000 section 8.1).

    ## Suspected when
    every request has a new connection that is not resumed.

    ## Cannot
    take the certificate's size from the computing of its signature.
    """
    if not evidence.new or evidence.value("resumption") != "false":
        return None
    suspicion = POSSIBLE if evidence.share("set-up") >= 0.2 or not evidence.shares else UNLIKELY
    return Suspect(suspicion, "every handshake carries it", {"resumption": ("true",)})


@cause("mtu")
def mtu(evidence: CellEvidence) -> Suspect | None:
    """the size of packets (MTU)

    ## Removed by
    `mtu: 1500` on TCP and QUIC: segments and datagrams are as large as the wire lets them be.

    ## Suspected when
    the study has less: a flight of as many packets then holds fewer octets of a certificate or a response.

    ## Cannot
    change the largest QUIC packet of a program of another project.
    """
    own = evidence.value("mtu")
    if own in ("", "1500"):
        return None
    return Suspect(CERTAIN if evidence.new and evidence.far else LIKELY, f"it is {own}", {"mtu": ("1500",)})


@cause("tls-version")
def tls_version(evidence: CellEvidence) -> Suspect | None:
    """the version of TLS

    ## Removed by
    `tls_version: 1.3` on both transports.

    ## Suspected when
    the study has TLS 1.2 over TCP, whose handshake takes a round trip more.

    ## Cannot
    say anything of QUIC, which has TLS 1.3 alone.
    """
    own = evidence.value("tls_version")
    if own in ("", "1.3"):
        return None
    return Suspect(CERTAIN if evidence.new else UNLIKELY, f"it is {own}", {"tls_version": ("1.3",)})


@cause("key-exchange")
def key_exchange(evidence: CellEvidence) -> Suspect | None:
    """the key exchange

    ## Removed by
    `key_exchange: X25519`, whose ClientHello fits one packet.

    ## Suspected when
    the study has another: X25519MLKEM768 needs two packets (draft-ietf-tls-ecdhe-mlkem).

    ## Cannot
    tell the size of keys from the computing with them.
    """
    own = evidence.value("key_exchange")
    if own in ("", "X25519"):
        return None
    suspicion = LIKELY if evidence.new else UNSUSPECTED
    return Suspect(suspicion, f"it is {own}", {"key_exchange": ("X25519",)})
