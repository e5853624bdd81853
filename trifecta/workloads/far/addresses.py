"""What looks tell of the addresses of a URL: whether it can be measured there, and why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trifecta.contract.far import AddressObservation, RequestOutcome
from trifecta.design import numbers
from trifecta.design.machine import from_where
from trifecta.design.manners import PATIENCE, Manners
from trifecta.design.model import PROTOCOL_NAMES
from trifecta.workloads.load_configs import MAX_UDP_PAYLOAD_BYTES


@dataclass(frozen=True)
class AddressFacts:
    """What is known of one address of a URL: what a right answer's status is, how large it is, and what passes."""

    address: str
    status: int
    answer_bytes: int
    udp_payload_bytes: int = MAX_UDP_PAYLOAD_BYTES


def no_room(answer_bytes: int, requests: int, own: Manners) -> str:
    """Why one block, of so many requests, is more than is asked for in all; empty where it fits."""
    if answer_bytes * requests <= own.most_bytes:
        return ""
    most = numbers.without_zeros(numbers.size(own.most_bytes))
    what = f"a response took {numbers.size(answer_bytes)}, and the {requests} of a block would be more than {most}"
    return f"{what}, the most in all; request something smaller"


def spot_of(place: AddressObservation, protocols: Sequence[str]) -> AddressFacts | None:
    """What is known of an address; None where a protocol was not answered with success."""
    last = {one["protocol"]: one for one in place["answers"]}
    good = [last[protocol] for protocol in protocols if protocol in last and is_right(last[protocol])]
    if len(good) < len(protocols) or len({one["status"] for one in good}) > 1:
        return None
    payload = next((one["udp_payload_bytes"] for one in good if one["udp_payload_bytes"]), None)
    return AddressFacts(
        place["address"],
        int(good[0]["status"] or 0),
        max(one["wire_bytes"] for one in good),
        payload or MAX_UDP_PAYLOAD_BYTES,
    )


def is_right(outcome: RequestOutcome) -> bool:
    """Whether it was answered, with success (RFC 9110, 15.3)."""
    return outcome["error"] is None and 200 <= (outcome["status"] or 0) < 300


def why_not(place: AddressObservation, protocols: Sequence[str]) -> str:
    """Why a place cannot be measured over these protocols, in one sentence with what helps."""
    last = {one["protocol"]: one for one in place["answers"]}
    answers = [last[protocol] for protocol in protocols if protocol in last]
    where = f"{place['url']} at {place['address']}{from_where(place.get('vantage'))}"
    for one in answers:
        name = PROTOCOL_NAMES[one["protocol"]]
        if one["status"] in PATIENCE:
            return f"{where}: {name} was answered {one['status']}, which asks to slow down; try another day"
        if one["status"] is not None and 300 <= one["status"] < 400:
            there = one["fields"].get("location", "another URL")
            return f"{where}: {name} was answered {one['status']}; give {there} instead"
        if not is_right(one):
            udp = f" (UDP: {place['udp']})" if one["protocol"] == "h3" and place["udp"] else ""
            what = one["error"] or f"status {one['status']}"
            return f"{where}: {name} failed with {what}{udp}; leave it out (--set protocol=...)"
    statuses = ", ".join(f"{PROTOCOL_NAMES[one['protocol']]} {one['status']}" for one in answers)
    return f"{where}: protocols were answered differently ({statuses}); choose a URL that every protocol answers alike"
