"""The error classes of docs/architecture.md, section 1.1, from what asyncio, ssl and aioquic tell."""

from __future__ import annotations

import errno
import ssl


class Failed(Exception):
    """A request or a connection attempt that failed, with its error class."""

    def __init__(self, error: str) -> None:
        """``error`` is the class."""
        self.error = error
        super().__init__(error)


_UNREACHABLE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EACCES, errno.EPERM)
# Alerts of RFC 8446, section 6: those of a certificate come from this side, because clients show none in the lab.
_CERTIFICATE_ALERTS = frozenset({42, 43, 44, 45, 46, 48})
_PROTOCOL_VERSION, _NO_APPLICATION_PROTOCOL = 70, 120  # the latter: RFC 7301, section 3.2
# aioquic's words for its own ends, which have no code of their own.
_AIOQUIC_ENDS = {"Idle timeout": "quic:timeout", "Could not find a common protocol version": "quic:version"}
_CRYPTO_ERROR = 0x100  # RFC 9001, section 4.8
# An application closed before the handshake was complete (RFC 9000, 10.2.3); CONNECTION_REFUSED (20.1).
_TRANSPORT_CODES = {0x0: "closed", 0xC: "closed", 0x2: "connect_refused"}
_H3_NO_ERROR, _H3_REQUEST_REJECTED = 0x100, 0x10B  # RFC 9114, section 8.1; they share numbers with QUIC's
_H3_CODES = range(0x101, 0x111)
_QPACK_CODES = range(0x200, 0x203)  # RFC 9204, section 6


def of_exception(error: BaseException, *, connecting: bool) -> str:
    """The class of what ended a TCP connection; ``connecting``: it did not stand yet, with TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "tls:certificate"
    if isinstance(error, ssl.SSLError):
        return _of_tls(error)
    if not isinstance(error, OSError) or error.errno is None:
        return "closed"  # asyncio's word for an end within a handshake is a ConnectionResetError without a number
    by_number = {
        errno.ECONNREFUSED: "connect_refused",
        errno.ETIMEDOUT: "connect_timeout" if connecting else "timeout",
        errno.ECONNRESET: "connect_reset" if connecting else "reset",
        errno.EPIPE: "connect_reset" if connecting else "reset",
        errno.EADDRNOTAVAIL: "ports_exhausted",
        **dict.fromkeys(_UNREACHABLE, "unreachable"),
    }
    return by_number.get(error.errno, "socket")


def _of_tls(error: ssl.SSLError) -> str:
    # Python does not name each of OpenSSL's reasons, but always quotes its words.
    reason = (error.reason or str(error)).upper().replace(" ", "_")
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) or "UNEXPECTED_EOF" in reason:
        return "closed"
    if "NO_APPLICATION_PROTOCOL" in reason:
        return "tls:alpn"
    if "ALERT_PROTOCOL_VERSION" in reason or reason in ("UNSUPPORTED_PROTOCOL", "WRONG_SSL_VERSION"):
        return "tls:version"
    if "ALERT" in reason:
        return "tls:alert"
    malformed = ("WRONG_VERSION_NUMBER", "RECORD", "DECODE", "UNEXPECTED", "BAD", "DECRYPTION", "LENGTH", "HTTP_")
    return "tls:malformed" if any(word in reason for word in malformed) else "tls"


def of_quic(code: int, frame_type: int | None, reason: str, *, secured: bool) -> str:
    """The class of a QUIC connection's end; no frame type when an application closed it (RFC 9000, 19.19)."""
    if reason in _AIOQUIC_ENDS:
        return _AIOQUIC_ENDS[reason]
    if frame_type is None and secured:
        return of_h3(code, reason)
    if not _CRYPTO_ERROR <= code < 2 * _CRYPTO_ERROR:
        return _TRANSPORT_CODES.get(code, "quic:transport")
    alert = code - _CRYPTO_ERROR
    if alert in _CERTIFICATE_ALERTS:
        return "tls:certificate"
    return {_PROTOCOL_VERSION: "tls:version", _NO_APPLICATION_PROTOCOL: "tls:alpn"}.get(alert, "tls:alert")


def of_h3(code: int, reason: str) -> str:
    """The class of an HTTP/3 error code of a connection; aioquic gives its own closes a reason."""
    if code in (0, _H3_NO_ERROR):
        return "closed"
    if code == _H3_REQUEST_REJECTED:
        return "goaway"
    if "content-length does not match" in reason:
        return "length"
    return "malformed:http3" if reason and (code in _H3_CODES or code in _QPACK_CODES) else "reset"


def of_h3_stream(code: int) -> str:
    """The class of a stream that the peer reset; rejected is what was not processed (RFC 9114, section 4.1.1)."""
    return "goaway" if code == _H3_REQUEST_REJECTED else "reset"
