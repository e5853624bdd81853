"""What was seen from here of servers elsewhere, before and after the blocks of a run: ``elsewhere`` of ``run.json``."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

Udp = Literal["open", "slow", "closed", "blocked", "silent", "other"]
"""``slow``: content comes, and much slower than over TCP; ``closed``: somebody says that nobody listens; ``blocked``:
no word, although HTTP/3 is announced; ``silent``: no word, and no announcement; ``other``: packets pass, HTTP/3
fails."""


class RequestOutcome(TypedDict):
    """What became of one request over one protocol, on a connection of its own. None is what did not happen."""

    protocol: str
    error: str | None
    status: int | None
    content_bytes: int
    wire_bytes: int
    """Both ways, transport payload."""
    connect_ns: int | None
    """Of TCP: a round trip."""
    handshake_ns: int | None
    wait_ns: int | None
    transfer_ns: int | None
    min_rtt_ns: int | None
    lost: int | None
    """Of the packets that were sent from here: retransmissions of TCP, lost packets of QUIC."""
    udp_payload_bytes: int | None
    """The largest that was sent; None over TCP."""
    fields: dict[str, str]
    """Of the answer, those that are looked for."""


class HttpsRecord(TypedDict):
    """The HTTPS record of a name (RFC 9460); ``found`` None: nobody answered, with the reason in ``error``."""

    found: bool | None
    alpn: list[str]
    error: str | None


class AddressObservation(TypedDict):
    """One address of one URL; ``level`` is that of the factor ``address`` for which it stands."""

    url: str
    vantage: NotRequired[str]
    """The host by SSH from which it was looked at; not there where that was this machine."""
    level: str
    address: str
    resolved: list[str]
    """All addresses of the name at that time."""
    dns_ns: int | None
    https_record: HttpsRecord | None
    announced: list[str]
    """How HTTP/3 is announced: ``Alt-Svc``, ``HTTPS record``."""
    answers: list[RequestOutcome]
    idle_rtt_ns: int | None
    """The least time that TCP took to connect."""
    loaded_rtt_ns: int | None
    """The median of the same while content came; None where too little came to ask meanwhile."""
    udp: Udp | None
    """None where HTTP/3 was not asked for."""


class PageObservation(TypedDict):
    """One visit of a page by a browser that looks: what a visit takes, and whom it asks. Requests over the network."""

    url: str
    address: str
    browser: str
    protocol: str
    error: str | None
    """Why the visit failed, as a class of `contract.errors`."""
    requests: int
    """To all hosts."""
    octets: int
    """Both ways, with an estimate of what the browser does not tell."""
    load_ns: int | None
    third_parties: dict[str, int]
    """Hosts beside that of the URL, with the requests that they were asked."""
    unnamed: dict[str, int]
    """Hosts that were asked for and did not exist for the browser, with how often."""
    impatient: list[str]
    """Hosts that answered 429 or 503."""


class RobotsObservation(TypedDict):
    """What the robots.txt of a host says of a URL (RFC 9309)."""

    url: str
    robots: str
    """Where it was read."""
    status: int
    rule: str | None
    """The rule that decides, as it is written; None where none is about the URL."""


class Look(TypedDict):
    """All places at one time."""

    when: Literal["before", "again", "after"]
    utc: str
    places: list[AddressObservation]
    pages: NotRequired[list[PageObservation]]
    robots: NotRequired[list[RobotsObservation]]
