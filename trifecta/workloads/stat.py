"""One URL over every protocol: a single request each by the engine's load, from here, outside of any lab.

It goes to a server of the user's over the user's network. What it brings are phases of single requests, no comparison:
nothing is emulated, nothing repeated under equal losses, so there is no verdict.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlsplit

from trifecta.contract.common import Protocol
from trifecta.contract.load import ClosedLoop, LoadConfig, LoadReady, LoadSummary
from trifecta.design.errors import CannotError, UserError
from trifecta.design.stat import Attempt, RequestOptions, Target
from trifecta.lab.engine import EXIT_BAD_INPUT, EXIT_CANNOT, EXIT_UNSUPPORTED, EngineError
from trifecta.lab.host import LocalHost
from trifecta.lab.place import LocalPlace

_HTTPS_PORT = 443
_KEPT = "/%:@!$&'()*+,;=~-._?"  # of a path with query, besides letters and digits: RFC 3986, 3.3 and 3.4
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
_GRACE_S = 30.0  # getaddrinfo(3) has a time limit of its own, 5 s and two attempts for each of its servers


def read_url(text: str) -> Target:
    """Take an https URL apart; UserError naming what cannot be asked for."""
    url = text if "://" in text else f"https://{text}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _HTTPS_PORT
    except ValueError as error:
        raise UserError(f"URL {text!r}: {error}; give it as https://HOST[:PORT]/PATH") from None
    if parts.scheme != "https":
        raise UserError(f"URL {text!r}: {parts.scheme} is not measured, all three protocols go over TLS; give https://")
    if parts.username is not None or parts.password is not None:
        raise UserError(f"URL {text!r}: names and passwords are not sent; leave out the part before the @")
    try:
        name = host if ":" in host else host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise UserError(f"URL {text!r}: the host is no name ({error}); correct it") from None
    if not name or not all(letter.isalnum() or letter in ".-_:" for letter in name):
        raise UserError(f"URL {text!r}: has no host; give it as https://HOST[:PORT]/PATH")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(url, name, port, quote(path, safe=_KEPT))


def system_roots() -> Path:
    """The bundle of certificate authorities that this system trusts; CannotError without one."""
    named = os.environ.get("SSL_CERT_FILE")
    for bundle in (named, ssl.get_default_verify_paths().cafile, *_BUNDLES):
        if bundle and Path(bundle).is_file():
            return Path(bundle)
    raise CannotError(
        "no certificate authorities found on this system; install the package ca-certificates, or give --ca FILE"
    )


def ask_once(
    engine: Path, target: Target, protocol: str, request_options: RequestOptions, authorities: Path
) -> Attempt:
    """Make one request over one protocol. UserError and CannotError for what would fail on every protocol."""
    with tempfile.TemporaryDirectory(prefix="trifecta-stat-") as folder:
        samples = Path(folder) / "samples.parquet"
        limit_s = 3 * request_options.timeout_ns / 1e9 + _GRACE_S
        deadline = time.monotonic() + limit_s
        with LocalPlace(LocalHost(), engine).start("load", Path(folder) / "log") as load:
            try:
                load.configure(_config(target, protocol, request_options, authorities, samples))
                ready = load.wait_ready(LoadReady, limit_s)
                summary = load.wait_summary(LoadSummary, deadline - time.monotonic())
            except EngineError as error:
                if error.code is None and time.monotonic() >= deadline:
                    late = f"the load did not end within {limit_s:g} s; look at the machine's resolver"
                    raise CannotError(late) from None
                raise _as_error(error, target, authorities) from None
            load.get(samples)
        return _attempt(protocol, ready, summary, _last_row(samples))


def ask(
    engine: Path,
    target: Target,
    protocols: Sequence[str],
    request_options: RequestOptions,
    authorities: Path,
    *,
    count: int = 1,
    tell: Callable[[str, int], None] = lambda _protocol, _round: None,
) -> dict[str, list[Attempt]]:
    """``count`` requests over each protocol in turns, a new connection for each; ``tell`` is called before each."""
    attempts: dict[str, list[Attempt]] = {protocol: [] for protocol in protocols}
    for number in range(count):
        # Each protocol comes first in turn: what the first one warms (a resolver's cache, a route) helps the others.
        for place in range(len(protocols)):
            protocol = protocols[(number + place) % len(protocols)]
            tell(protocol, number)
            attempts[protocol].append(ask_once(engine, target, protocol, request_options, authorities))
    return attempts


def _config(
    target: Target, protocol: str, request_options: RequestOptions, authorities: Path, samples: Path
) -> LoadConfig:
    return LoadConfig(
        trial="stat",
        protocol=cast(Protocol, protocol),
        address=request_options.address,
        port=target.port,
        server_name=target.host,
        ca_file=str(authorities.resolve()),
        connection_mode="new",
        loop=ClosedLoop(),
        requests=1,
        # The first one fetches the session ticket that the measured one resumes with.
        warmup_requests=1 if request_options.resume else 0,
        resumption=request_options.resume,
        method=request_options.method,
        path=target.path,
        verify_content=False,
        connect_timeout_ns=request_options.timeout_ns,
        request_timeout_ns=request_options.timeout_ns,
        total_timeout_ns=3 * request_options.timeout_ns + 1_000_000_000,
        tls_version="1.3" if protocol == "h3" else request_options.tls_version,
        # As the kernel has it: setting one may be refused to an ordinary user (tcp_allowed_congestion_control).
        congestion_control=None,
        samples_file=str(samples),
    )


def _as_error(error: EngineError, target: Target, authorities: Path) -> UserError | CannotError:
    """What the load said of its end, for the user."""
    message = error.message.removeprefix("error: ")
    if message.startswith("server_name:") and error.code == EXIT_CANNOT:
        return CannotError(
            f"URL {target.url!r}: {message.removeprefix('server_name: ')}; check the name and the resolver"
        )
    if message.startswith("ca_file:"):
        return UserError(f"certificate authorities {authorities}: {message.removeprefix('ca_file: ')}; give --ca FILE")
    if error.code == EXIT_BAD_INPUT:
        return UserError(f"URL {target.url!r}: {message}")
    if error.code in (EXIT_CANNOT, EXIT_UNSUPPORTED):
        return CannotError(message)
    return CannotError(f"the load failed: {message}")


def _last_row(samples: Path) -> dict[str, Any] | None:
    """The measured request; None when the time was over before it was made."""
    from trifecta.store import parquet

    rows = [row for row in parquet.read(samples) if not row["warmup"]]
    return rows[-1] if rows else None


def _attempt(protocol: str, ready: LoadReady, summary: LoadSummary, row: dict[str, Any] | None) -> Attempt:
    dns_ns = summary.dns_ns
    if row is None:
        return Attempt(protocol, None, ready.address, {}, None, None, 0, 0, None, None, False, "timeout")
    phases = _phases(row) if dns_ns is None else {"dns": int(dns_ns), **_phases(row)}
    complete = row["error"] is None and row["done_ns"] is not None
    return Attempt(
        protocol=protocol,
        spoken=row["protocol"],
        address=ready.address,
        phases_ns=phases,
        total_ns=int(row["done_ns"] - row["started_ns"]) + int(dns_ns or 0) if complete else None,
        status=row["status"],
        bytes_in=row["bytes_in"],
        header_bytes_in=row["header_bytes_in"],
        tls_version=row["tls_version"],
        cipher=row["cipher"],
        resumed=row["resumed"],
        error=row["error"],
    )


def _phases(row: dict[str, Any]) -> dict[str, int]:
    """The phases that have both their ends, in order. They follow one another without a gap."""
    tcp, secured = row["tcp_connected_ns"], row["secured_ns"]
    ends = {
        "tcp": (row["connect_start_ns"], tcp),
        "tls": (tcp, secured),
        "quic": (None if tcp is not None else row["connect_start_ns"], secured),
        "send": (secured, row["request_sent_ns"]),
        "wait": (row["request_sent_ns"], row["first_byte_ns"]),
        "transfer": (row["first_byte_ns"], row["done_ns"]),
    }
    return {name: int(end - start) for name, (start, end) in ends.items() if start is not None and end is not None}
