"""What a failed request is called (docs/architecture.md, 1.1), what that means in a sentence, and what to do.

Checks, reports, `trifecta stat` and conformance have their words from here; ``{protocol}`` is the one asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_LOG = "look at the server's log"
CARRY = "check that the server and the path can carry this workload"
"""What to do where no request failed, and none was answered."""
_RUN_LOG = "look at its log in the run"
_MOST = 3  # classes that are put into words; others are counted


@dataclass(frozen=True, slots=True)
class Failure:
    """A class of failure in words: what happened, and the remedy; ``ask``: for a server of the user's own, if other."""

    said: str
    remedy: str = _LOG
    ask: str = ""


FAILURES: dict[str, Failure] = {
    "connect_refused": Failure(
        "nothing listens there",
        "see in the server's log whether it started, and whether it offers {protocol} on this port",
        "start a server with {protocol} there",
    ),
    "connect_timeout": Failure(
        "no connection was established in time",
        "check that the server offers {protocol} on this port; a slow path needs a longer connect_timeout",
        "{protocol} is not offered there, or a firewall drops it",
    ),
    "connect_reset": Failure("the connection was reset before it was secured"),
    "unreachable": Failure(
        "there is no route to the server", "check that the path is up", "check the address and this machine's network"
    ),
    "ports_exhausted": Failure(
        "this machine has no free port left for another connection",
        "make fewer new connections in a trial, or reuse them (connection: reused)",
        "stop what holds them, or wait a minute",
    ),
    "socket": Failure(
        "the client's machine refused the socket (descriptors, memory, permission)",
        "raise `ulimit -n`, open fewer connections, and look at the firewall's rules",
    ),
    "tls": Failure("the TLS handshake failed", f"{_LOG}; TLS version, cipher and key exchange must suit both ends"),
    "tls:certificate": Failure(
        "the server's certificate does not verify: another name, expired, or of an authority that is not trusted",
        "serve the certificate chain and key that the run gives the server (`site.certificates`)",
        "give the authority that signed it with --ca FILE, or serve a certificate for this name",
    ),
    "tls:alpn": Failure(
        "the server does not agree to {protocol} (ALPN): it chose another protocol, or none",
        "configure the server to offer {protocol} on this port",
    ),
    "tls:version": Failure(
        "the server does not speak the requested TLS version",
        "configure the server for it, or change `tls_version`",
        "give the other version with --tls",
    ),
    "tls:alert": Failure(
        "the peer aborted the TLS handshake (alert): it does not accept the certificate, cipher or key exchange",
        "see its log for which; a server must serve the certificate of the run and allow its cipher and key exchange",
        "see its log for which of them",
    ),
    "tls:malformed": Failure("what arrived is not TLS", "check that the server speaks TLS on this port"),
    "quic": Failure("the QUIC connection failed"),
    "quic:transport": Failure("the QUIC connection ended with a transport error"),
    "quic:timeout": Failure(
        "no QUIC packet arrived in time: no response, or the connection went silent",
        "check that the server offers HTTP/3 on this UDP port and that the path carries UDP",
        "HTTP/3 is not offered there, or a firewall drops UDP",
    ),
    "quic:version": Failure(
        "the server does not speak QUIC version 1 (RFC 9000)", "configure the server for it, or leave HTTP/3 out"
    ),
    "reset": Failure("the peer reset the request or its connection"),
    "closed": Failure("the connection was closed before the response was complete"),
    "timeout": Failure(
        "connected, but no complete response arrived in time",
        f"{_LOG}; a slow path or a large object needs a longer request_timeout",
        "raise --timeout, or look at the server",
    ),
    "malformed": Failure("the response violates {protocol}", "see the log of the server, which is at fault"),
    "malformed:http1": Failure("what arrived is not HTTP/1.1", "see the log of the server, which is at fault"),
    "malformed:http2": Failure("what arrived is not HTTP/2 (RFC 9113)", "see the log of the server, which is at fault"),
    "malformed:http1_over_http2": Failure(
        "HTTP/1.1 was answered although HTTP/2 had been negotiated (ALPN)",
        "let the server offer `h2` only where it speaks HTTP/2 itself; a proxy must not forward octets unchanged",
    ),
    "malformed:http3": Failure("what arrived is not HTTP/3 (RFC 9114)", "see the log of the server, which is at fault"),
    "status": Failure(
        "the status is not the one expected", f"{_LOG}: the object or the method may be missing there, or refused"
    ),
    "length": Failure(
        "the content is shorter or longer than requested",
        "check that the server serves the complete object: same size, no compression, no error page",
    ),
    "content": Failure(
        "the octets of the content are wrong, at the right length",
        "see which file or handler answers: it must serve the octets of the run (`bytes/N`), unchanged",
    ),
    "goaway": Failure("the server refused the request (GOAWAY, REFUSED_STREAM)", f"{_LOG} and its limit of streams"),
    "interrupted": Failure("the run was stopped meanwhile", "run it again"),
    "idle_timeout": Failure("the connection was idle too long and was closed", "raise the server's timeouts"),
    "closed_in_handshake": Failure("the peer closed the connection during the handshake", "look at the peer's log"),
    "accept": Failure("the system gave the server no connection (descriptors, memory)", "raise `ulimit -n`"),
    "file": Failure("the server could not read the requested file", _LOG),
    "qlog": Failure("a qlog file could not be written", "check that the disk has room"),
    "client": Failure("the client itself failed", _RUN_LOG),
    "client:missing": Failure("the client does not report this request", _RUN_LOG),
    "client:crashed": Failure("the client ended before it had made this request", _RUN_LOG),
    "client:reused": Failure("the client reused a connection where a new one was requested", _RUN_LOG),
    "client:name": Failure(
        "a name was not resolved in time, or does not exist",
        "leave `names: path` out, or use a path with less loss: a lost query is repeated after 5 s",
    ),
    "browser": Failure("the browser itself failed", _RUN_LOG),
    "browser:crashed": Failure("the browser crashed", f"{_RUN_LOG}; it may have run out of memory"),
    "browser:hung": Failure("the browser no longer answered", f"{_RUN_LOG}; it may need more CPU or memory"),
    "browser:codec": Failure("the browser cannot decode this video", "choose another codec or browser"),
    "browser:clock": Failure(
        "the wall clock was set during the visit", "stop whatever sets the clock (NTP steps) during a run"
    ),
    "browser:script": Failure("a script that times the page failed in the browser", _RUN_LOG),
    "browser:name": Failure("the browser could not look up a name", "check that the page names only hosts of the run"),
    "browser:cancelled": Failure("the page or the browser cancelled the request", _RUN_LOG),
    "browser:blocked": Failure("the browser blocked the request", f"{_RUN_LOG}; mixed content and policies do that"),
    "browser:other": Failure("the browser gave an unknown error", _RUN_LOG),
    "protocol": Failure("another protocol was used than requested", "configure the server to offer {protocol}"),
    "no_row": Failure("the client recorded nothing", _RUN_LOG),
    "server_ended": Failure("the server ended", _LOG),
    "not_ready": Failure("the server did not come up", _LOG),
    "cannot_start": Failure("it cannot be started", "look at its log, and at `trifecta implementations`"),
}
ANSWERED = frozenset({"status", "length", "content"})
"""Classes of an answer that came over the protocol asked for, and was wrong."""


def failure(error: str) -> Failure:
    """The words for a class; of one that is not in the table, those of its family (``tls:...``)."""
    known = FAILURES.get(error) or FAILURES.get(error.split(":", maxsplit=1)[0])
    return known or Failure(f"it failed ({error})")


def in_words(errors: Mapping[str, int], protocol: str = "the requested protocol") -> str:
    """Classes of failure in words, the most frequent first, each with its name and number; ``none`` without any."""
    ranked = sorted(errors.items(), key=lambda item: (-item[1], item[0]))
    words = [f"{failure(name).said.format(protocol=protocol)} ({count} × {name})" for name, count in ranked[:_MOST]]
    if rest := ranked[_MOST:]:
        words.append("others (" + ", ".join(f"{count} × {name}" for name, count in rest) + ")")
    return "; ".join(words) or "none"


def remedy(errors: Mapping[str, int], protocol: str = "the requested protocol") -> str:
    """What to do about the most frequent class."""
    if not errors:
        return _LOG
    most = min(errors, key=lambda name: (-errors[name], name))
    return failure(most).remedy.format(protocol=protocol)
