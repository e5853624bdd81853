"""The workloads that a study can name: one line each. What a workload's fields mean: docs/services.md and the guide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trifecta.design.fields import REQUESTS_FIELDS, SERVICES_FIELDS
from trifecta.design.model import RequestsWorkload, ServicesWorkload

_REQUESTS = tuple(entry.name for entry in REQUESTS_FIELDS)
_SHARED = tuple(name for name in _REQUESTS if name not in ("connections", "streams", "zero_rtt"))
_PLACE = ("hosts", "place", "impaired", "conntrack")


@dataclass(frozen=True)
class Kind:
    """A workload: its record, the fields it knows, and the values of those that a study leaves out."""

    model: type[RequestsWorkload]
    fields: tuple[str, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)


WORKLOADS: dict[str, Kind] = {
    "requests": Kind(RequestsWorkload, _REQUESTS),
    "chain": Kind(ServicesWorkload, (*_SHARED, "depth", "inside", "messages", *_PLACE)),
    "fan-in": Kind(
        ServicesWorkload,
        (*(name for name in _SHARED if name != "in_flight"), "clients", "messages", *_PLACE),
        {"method": "GET", "request_bytes": 0, "response_bytes": 128, "depth": 2, "clients": 4},
    ),
    "sba-registration": Kind(
        ServicesWorkload,
        (*(name for name in _SHARED if name not in ("method", "request", "response")), "inside", *_PLACE),
        {"request_bytes": 620, "response_bytes": 0},  # the registration request that the AMF is given
    ),
}
assert all(entry.name in WORKLOADS["chain"].fields or entry.name == "clients" for entry in SERVICES_FIELDS)
KINDS = tuple(WORKLOADS)
