"""Are TLS, certificates, congestion control and sockets the same in every arm?

## Fails when
Any of these differs from what was requested, or between arms of a block: TLS version, cipher suite, key exchange, the
server's certificates (number, octets in DER), session resumption and early data on new connections, the client's
congestion control, [the adaptations of quinn-proto](implementations.md#what-of-quinn-proto-is-adapted), TCP_NODELAY,
a [switch of the transports](study-files.md#switches-of-the-transports) that the study sets; initial windows by more
than a quarter, except for TCP that starts with one segment over a lossy path because its SYN was lost (RFC 5681, 3.1).
By its kernel's counters, over 5 % of the packets that the client's host received are of another IP version than
requested, or over half where all services share a host. For a server elsewhere, certificates, windows and the cipher
suite only warn.

## Warns when
The congestion control of a server, or of a proxy to its backend, is not the one requested (many programs have only
one); a server sets TCP_NODELAY although the study does not; a study asks for quinn-proto without an adaptation, or has
services retry, leak connections, look up names over the path or limit responses over TCP only, or a client wait before
TLS over TCP; a client does not verify certificates; for a server elsewhere, the certificates differ between arms, or
the client's initial windows by more than a quarter (they concern what it sends, and a GET is one packet); the same
certificate chain takes another number of server flights than in another arm, on a path without loss and with an RTT of
2 ms: a QUIC server may send three times what it received until it has validated the client's address.

## Why
What differs besides the protocol is compared along with it.

## Sources
RFC 9000, 8.1 (three times); RFC 5681, 3.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from trifecta.analysis.checks import inside_handshakes, over_ip
from trifecta.analysis.checks.evidence import Evidence, Finding, worst
from trifecta.contract.codec import plain
from trifecta.contract.stored import Transport
from trifecta.design import plan, quinn, tuning
from trifecta.design.model import CheckResult, CheckStatus
from trifecta.design.transports import over

WINDOW_SPREAD = 1.25  # TCP counts ten segments, QUIC up to 14,720 octets (RFC 6928, RFC 9002 7.2): not exactly equal
# In this machine's own network the MTU of a device, and what the kernel remembers of a route, make them differ, too.
_OWN_WINDOW = "read it as what this client sends; what it receives follows the server's window, which is not observable"


@dataclass(frozen=True)
class _Trait:
    """A property of a trial: how to read it (None: not known here), and what was asked for (None: nothing)."""

    name: str
    given: Callable[[Evidence], Any]
    asked: Callable[[Evidence], Any]
    remedy: str
    applies: Callable[[Evidence], bool] = lambda evidence: True
    """Whether the client is the one to tell it."""
    depends: Callable[[Evidence], Any] | None = None
    """What must have been asked for alike in two arms for them to be compared; None: the property itself."""
    theirs: bool = False
    """Whether a server elsewhere chooses it: where arms differ in it there, that is warned of."""

    def along(self, evidence: Evidence) -> Any:
        """What was asked for of it."""
        return (self.depends or self.asked)(evidence)


def check(evidence: Evidence) -> list[CheckResult]:
    """Fail when a trial differs from what was asked, or from a trial of its block, in a trait that is not compared."""
    findings = []
    untold: list[str] = []
    for trait in _TRAITS:
        given = trait.given(evidence)
        if given is None:
            if evidence.foreign and trait.applies(evidence):
                untold.append(trait.name)
            continue
        requested = trait.asked(evidence)
        if requested is not None and given != requested:
            text = f"{trait.name} is {_worded(given)}, requested: {_worded(requested)}"
            findings.append(Finding("fail", text, remedy=trait.remedy))
            continue
        # A study may ask for other values over TCP than over QUIC: that is told below, and is no fault of the trial.
        others = [(s.trial.arm, trait.given(s)) for s in evidence.siblings if trait.along(s) == trait.along(evidence)]
        odd = [f"{_worded(value)} in {arm}" for arm, value in others if value is not None and value != given]
        if odd:
            status: CheckStatus = "warn" if trait.theirs and evidence.workload.outside else "fail"
            text = f"{trait.name} is {_worded(given)} here and {', '.join(odd)}"
            findings.append(Finding(status, text, remedy=trait.remedy))
        else:
            findings.append(Finding("pass", f"{trait.name} {_worded(given)}"))
    findings += inside_handshakes.findings(evidence)
    findings += over_ip.findings(evidence)
    findings += _separate_settings(evidence)
    findings += _quinn(evidence)
    findings += _tuned(evidence)
    findings += _windows(evidence)
    findings += _server(evidence)
    findings += _server_nodelay(evidence)
    findings += _backend(evidence)
    if untold:
        findings.append(Finding("unknown", f"{evidence.client} does not report {', '.join(untold)}"))
    if evidence.foreign:
        findings += _verification(evidence) + _switches(evidence)
    return worst(evidence, "parity", findings)


def _worded(value: Any) -> Any:
    """What is on or off in these words."""
    return ("on" if value else "off") if isinstance(value, bool) else value


def _separate_settings(evidence: Evidence) -> list[Finding]:
    """What the study itself gives TCP and QUIC apart: then the arms differ in that as well."""
    workload = plan.workload_for(evidence.study, evidence.trial)
    findings = []
    for name in workload.apart:
        tcp, quic = (over(getattr(workload, name), protocol) for protocol in ("h2", "h3"))
        what = name.replace("tls", "TLS").replace("_", " ")
        text = f"the study asks for {what} {tcp} over TCP and {quic} over QUIC"
        findings.append(Finding("warn", text, remedy=f"read it as a difference of both, or set one {what}"))
    return findings


def _quinn(evidence: Evidence) -> list[Finding]:
    """How the engine's QUIC library is adapted: what the client says it did, against what the study asks."""
    if evidence.trial.protocol != "h3":
        return []
    requested = quinn.names(evidence.workload.quinn)
    given = _transport(evidence).get("adaptations")
    if given is not None and given != requested:
        text = (
            f"{quinn.LIBRARY} has the adaptations {', '.join(given) or 'none'}, requested: "
            f"{', '.join(requested) or 'none'}"
        )
        return [Finding("fail", text, remedy="reinstall the engine: run `trifecta doctor` for the command")]
    lacking = [name for name in quinn.ADAPTATIONS if name not in requested]
    if lacking:
        text = f"the study asks for {quinn.LIBRARY} without {', '.join(lacking)}"
        return [Finding("warn", text, remedy="read it as this library's behaviour, or leave `quinn` out")]
    return []


def _tuned(evidence: Evidence) -> list[Finding]:
    """What is set of the client's transports: what it says, against what the study asks."""
    if evidence.foreign or evidence.load is None:
        return []
    given, requested = dict(evidence.load.get("tuning") or {}), plain(tuning.engine(evidence.workload))
    if given == requested:
        settings = [Finding("pass", f"transport settings: {_settings_in_words(given)}")] if requested else []
        return settings + _tls_wait(evidence)
    text = (
        f"the client's transport settings are {_settings_in_words(given)}, requested: {_settings_in_words(requested)}"
    )
    return [Finding("fail", text, remedy="reinstall the engine: run `trifecta doctor` for the command")]


def _tls_wait(evidence: Evidence) -> list[Finding]:
    """A client that is made to wait where TCP has a gap before TLS, and QUIC none."""
    wait = evidence.workload.tls_wait
    if wait is None or evidence.trial.protocol == "h3":
        return []
    text = f"the study makes the client wait {wait} before TLS over TCP, but not over QUIC"
    return [Finding("warn", text, remedy="read times over TCP as including the wait, or leave `tls_wait` out")]


def _settings_in_words(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "nothing"


def _verification(evidence: Evidence) -> list[Finding]:
    """A client that does not verify the certificate does less work in every handshake, on all protocols alike."""
    if ((evidence.load or {}).get("declared") or {}).get("certificate_verified", True):
        return []
    text = f"{evidence.client} does not verify the server's certificate, so its handshakes cost it less"
    return [Finding("warn", text, remedy="compare its handshakes only with its own")]


def _switches(evidence: Evidence) -> list[Finding]:
    """What the study has a program of services do wrong on purpose, or wait for."""
    findings = []
    for name, what, remedy in _SWITCHES if evidence.workload.family == "services" else ():
        if getattr(evidence.workload, name, None):
            field = name.removesuffix("_ns")
            findings.append(Finding("warn", f"{evidence.client} {what}", remedy=f"{remedy}, or leave `{field}` out"))
    return findings


_SWITCHES = (
    ("connection_leak", "does not close its connections over TCP", "read CPU and memory as those of a leak"),
    (
        "names",
        "queries a name server over the path before every connection",
        "read its times as including the look-ups",
    ),
    ("retries", "retries failed requests within the timed span", "read its times as including the failures"),
    (
        "write_timeout_ns",
        "cuts off responses over TCP that exceed its limit, none over QUIC",
        "read its failures as those of this limit",
    ),
)


def _windows(evidence: Evidence) -> list[Finding]:
    own = _transport(evidence).get("initial_window_bytes")
    if not own:
        return []
    if _lost_its_first_packet(evidence):
        return [Finding("pass", f"initial congestion window {own} B, because a packet of the handshake was lost")]
    if (odd := _other_window(evidence, own)) is not None:
        return [odd]
    for sibling in evidence.siblings:
        if sibling.workload.initial_window != evidence.workload.initial_window:
            continue
        other = _transport(sibling).get("initial_window_bytes")
        if other and not _lost_its_first_packet(sibling) and max(own, other) / min(own, other) > WINDOW_SPREAD:
            text = f"initial congestion window {own} B here, {other} B in {sibling.trial.arm}"
            spread = max(own, other) / min(own, other)
            if evidence.workload.outside:
                return [Finding("warn", text, spread, WINDOW_SPREAD, _OWN_WINDOW)]
            return [Finding("fail", text, spread, WINDOW_SPREAD, "give every arm the same initial window")]
    return [Finding("pass", f"initial congestion window {own} B")]


def _other_window(evidence: Evidence, own: int) -> Finding | None:
    """What is wrong with the client's initial window, where the study says how many packets it has."""
    requested, used = evidence.workload.initial_window, _transport(evidence)
    segment = used.get("mss_bytes") or used.get("mtu_bytes")
    if (
        requested is None
        or not segment
        or (evidence.trial.protocol == "h3" and "settings" not in _adaptations(evidence))
    ):
        return None  # quinn-proto as it comes looks for the size of its packets
    given = own // segment
    if given == int(requested):
        return None
    text = f"the initial congestion window has {given} packets, requested: {requested}"
    return Finding(
        "fail", text, given, int(requested), "run `trifecta doctor`: this kernel accepts no initial window for a route"
    )


def _adaptations(evidence: Evidence) -> list[str]:
    return quinn.names(evidence.workload.quinn)


def _lost_its_first_packet(evidence: Evidence) -> bool:
    """Whether TCP begins with one segment because its SYN or the answer was lost (RFC 5681, 3.1).

    That is what the path did, and part of what TCP is over such a path: without these trials TCP would look better.
    """
    tcp = (evidence.load or {}).get("tcp") or {}
    one_segment = int(tcp.get("initial_window_bytes") or 0) <= int(tcp.get("mss_bytes") or 0)
    return bool(one_segment and tcp.get("retransmits") and evidence.lossy)


def _server(evidence: Evidence) -> list[Finding]:
    """The server sends the responses, so its congestion control matters most; not every server says which it uses."""
    if evidence.server is None:
        return []
    given = _server_congestion_control(evidence)
    if given is None:
        what = "the server's congestion control"
        unseen = f"{what}: not observable" if evidence.workload.outside else f"{what} for this protocol is not known"
        return [Finding("unknown", unseen)]
    requested = evidence.workload.congestion_control
    if given != requested:
        # A program that has one congestion control only is compared as it is: the difference is named, not left out.
        text = f"the server's congestion control is {given}, requested: {requested}"
        return [Finding("warn", text, remedy=f"read it as a property of this server, or ask for {given}")]
    return [Finding("pass", f"server's congestion control {given}")]


def _backend(evidence: Evidence) -> list[Finding]:
    """The hop from a proxy to the server behind it: the kernel's answer for a new connection there."""
    given = (evidence.server or {}).get("backend_congestion_control")
    if given is None:
        return []
    requested = evidence.workload.congestion_control
    if given != requested:
        text = f"the proxy's connections to its backend have congestion control {given}, requested: {requested}"
        return [Finding("warn", text, remedy="run `trifecta doctor`: this kernel accepts none for the loopback route")]
    return [Finding("pass", f"congestion control {given} between proxy and backend")]


def _server_congestion_control(evidence: Evidence) -> str | None:
    declared = (evidence.server or {}).get("congestion_control")
    if isinstance(declared, dict):
        protocol = evidence.trial.protocol
        declared = declared.get(protocol) or declared.get("quic" if protocol == "h3" else "tcp")
    return str(declared).lower() if declared else None


def _transport(evidence: Evidence) -> Transport:
    load = evidence.load or {}
    return load.get("tcp") or load.get("quic") or {}


def _single_value(values: Collection[str]) -> str | None:
    """The one value that all requests had; all of them where they differ."""
    return "+".join(sorted(values)) or None


def _tls_version(evidence: Evidence) -> str | None:
    given = _single_value(evidence.samples.tls_versions) if evidence.samples else None
    return given.replace("TLSv", "").replace("TLS", "").strip() if given else None


def _cipher(evidence: Evidence) -> str | None:
    """The AEAD, which is all that DevTools tells of a suite: AES_128_GCM of TLS_AES_128_GCM_SHA256 or TLS13_AES_...

    In TLS 1.3 it names the suite (RFC 8446, B.4); key exchange and certificates are traits of their own.
    """
    return _single_value({_NOT_AEAD.sub("", name) for name in evidence.samples.ciphers}) if evidence.samples else None


_NOT_AEAD = re.compile(r"^TLS(13)?_(.*_WITH_)?|_SHA\d+$")


def _resumption(evidence: Evidence) -> str | None:
    return _session(evidence, ("resumed", "early")) if evidence.workload.resumption else None


def _early_data(evidence: Evidence) -> str | None:
    return _session(evidence, ("early",)) if evidence.workload.zero_rtt else None


def _session(evidence: Evidence, kinds: tuple[str, ...]) -> str | None:
    """Whether a server that could resume sessions did; None where no connection had a session to resume."""
    samples = evidence.samples
    if samples is None or evidence.trial.connection != "new":
        return None
    if any(samples.handshakes.get(kind) for kind in kinds):
        return "taken"
    # The first request of every place in flight has no session yet.
    workload = evidence.workload
    places = max(workload.in_flight, (workload.connections or 1) * (workload.streams or 1))
    return "refused" if sum(samples.handshakes.values()) + samples.warmup_samples > places else None


def _nodelay(evidence: Evidence) -> Any:
    if evidence.trial.protocol == "h3":
        return None  # QUIC has no Nagle
    declared = (evidence.load or {}).get("declared") or {}  # of a client that does as it is asked
    return _transport(evidence).get("nodelay", declared.get("tcp_nodelay"))


def _server_nodelay(evidence: Evidence) -> list[Finding]:
    given = None if evidence.trial.protocol == "h3" else (evidence.server or {}).get("tcp_nodelay")
    if given is None:
        return []
    workload = evidence.workload.tcp_nodelay
    text = f"the server's TCP_NODELAY is {given}, requested: {workload}"
    if given and not workload:
        # Many programs have it on whatever is asked: then Nagle's algorithm is the client's alone.
        return [Finding("warn", text, remedy="read it as the client's alone, or set server: origin, nginx or quic-go")]
    if given != workload:
        return [Finding("fail", text, remedy="set TCP_NODELAY alike in every arm")]
    return [Finding("pass", f"the server's TCP_NODELAY {given}")]


def _congestion_control(evidence: Evidence) -> str | None:
    given = _transport(evidence).get("congestion_control")
    return str(given).lower() if given else None


_TRAITS = (
    _Trait(
        "session resumption",
        _resumption,
        lambda e: "taken" if e.workload.resumption else None,
        "leave out 'resumption', or the server that does not offer it over every protocol",
        lambda e: False,
    ),
    _Trait(
        "early data",
        _early_data,
        lambda e: "taken" if e.workload.zero_rtt else None,
        "leave out 'zero_rtt', or the server that does not take it over every protocol",
        lambda e: False,
    ),
    _Trait(
        "TLS version", _tls_version, lambda e: e.workload.tls_version, "configure the same TLS version for every arm"
    ),
    _Trait(
        "cipher suite",
        _cipher,
        lambda e: None,
        "offer one cipher suite only",
        depends=lambda e: e.workload.tls_version,
        theirs=True,
    ),
    _Trait(
        "key exchange",
        lambda e: (e.load or {}).get("key_exchange"),
        lambda e: e.workload.key_exchange,
        "offer one key exchange group only: its size changes the handshake",
    ),
    _Trait(
        "the client's congestion control",
        _congestion_control,
        lambda e: e.workload.congestion_control,
        "add it to net.ipv4.tcp_allowed_congestion_control",
    ),
    _Trait(
        "the kernel's pacing",
        lambda e: None if e.trial.protocol == "h3" else _transport(e).get("paced"),
        lambda e: e.workload.pacing == "on",
        "leave out 'pacing': this kernel lacks 64-bit SO_MAX_PACING_RATE (Linux 4.20)",
        lambda e: False,
    ),
    _Trait(
        "the kernel's packet threshold of loss detection",
        lambda e: None if e.trial.protocol == "h3" else _transport(e).get("packet_threshold"),
        lambda e: None if e.workload.outside else int(e.workload.packet_threshold or 3),
        "run `trifecta doctor`: this kernel does not let a network namespace set net.ipv4.tcp_reordering",
        lambda e: False,
    ),
    _Trait(
        "TCP_NODELAY",
        _nodelay,
        lambda e: e.workload.tcp_nodelay,
        "set TCP_NODELAY alike in every arm",
        lambda e: e.trial.protocol != "h3",
    ),
)
