"""The workloads that a study can name: one line each, or an entry point of the group ``trifecta.workloads``.

What a workload's fields mean: docs/services.md and the guide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from trifecta.design.errors import UserError
from trifecta.design.far import AS_IS, ELSEWHERE, FAR_FIELDS, FAR_PAGE_FIELDS, FAR_VANTAGE_FIELDS
from trifecta.design.fields import BROWSER_FIELDS, PAGE_FIELDS, REQUESTS_FIELDS, SERVICES_FIELDS, VIDEO_FIELDS
from trifecta.design.services import SERVER_LEVEL
from trifecta.design.tuning import SWITCHES
from trifecta.design.workloads.browsers import PageWorkload, VideoWorkload
from trifecta.design.workloads.far import FarWorkload
from trifecta.design.workloads.far_page import FarPageWorkload
from trifecta.design.workloads.requests import RequestsWorkload
from trifecta.design.workloads.services import ChainWorkload, FanInWorkload, RegistrationWorkload
from trifecta.entries import Registry

_REQUESTS = tuple(entry.name for entry in REQUESTS_FIELDS)
_OF_ONE_SERVER = ("zero_rtt", "client_cpu", "server_cpu", "load_balancer", *SWITCHES)  # not of services
_SHARED = tuple(name for name in _REQUESTS if name not in ("connections", "streams", *_OF_ONE_SERVER))
_PLACE = ("hosts", "place", "impaired", "conntrack")
_PROGRAM = ("alpn_mismatch", "connection_leak", "unverified", "retries", "think_time", "names")
_CROWD = ("clients", "client_processes")
_BROWSER = (
    *(entry.name for entry in BROWSER_FIELDS),
    "impaired",
    "congestion_control",
    "tcp_nodelay",
    "zero_rtt",
    "quinn",
    "ip",
    "keylog",
)
DEFAULT_BROWSER = "chromium"
_FAR = ("method", "request_timeout", "connect_timeout", "resumption", "key_exchange")
_FAR_PAGE = ("visits", "warmup_visits", "visit_timeout", "settle", "filmstrip")
_FIELDS = {
    entry.name
    for entry in (
        *REQUESTS_FIELDS,
        *SERVICES_FIELDS,
        *BROWSER_FIELDS,
        *PAGE_FIELDS,
        *VIDEO_FIELDS,
        *FAR_FIELDS,
        *FAR_VANTAGE_FIELDS,
        *FAR_PAGE_FIELDS,
    )
}


@dataclass(frozen=True)
class Kind:
    """A workload: its record, the fields it knows, and the values of those that a study leaves out.

    ``fixed`` are factors with a single level that a study cannot change. ``server`` is the level of that factor where
    a study names none, ``services`` says that it chooses from programs that are services. ``clients`` says what the
    factor ``client`` chooses from: clients, browsers (then it is in every study), or nothing. ``lengths``: a trial is
    as long as ``requests``, ``duration`` and ``warmup`` say, else as long as the workload's own fields do.
    """

    model: type[RequestsWorkload]
    fields: tuple[str, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    server: str = "origin"
    services: bool = False
    clients: Literal["client", "browser"] | None = "client"
    lengths: bool = True


_SERVICES: Mapping[str, Any] = {"server": SERVER_LEVEL, "services": True, "clients": None}
_BROWSERS: Mapping[str, Any] = {"fixed": {"connection": "browser"}, "clients": "browser", "lengths": False}


_OWN: dict[str, Kind] = {
    "requests": Kind(RequestsWorkload, _REQUESTS),
    "chain": Kind(ChainWorkload, (*_SHARED, "depth", "inside", "messages", *_PLACE, *_PROGRAM), **_SERVICES),
    "fan-in": Kind(
        FanInWorkload,
        (*(name for name in _SHARED if name != "in_flight"), *_CROWD, "messages", *_PLACE, *_PROGRAM),
        {"method": "GET", "request_bytes": 0, "response_bytes": 128, "depth": 2, "clients": 4},
        **_SERVICES,
    ),
    "sba-registration": Kind(
        RegistrationWorkload,
        (*(name for name in _SHARED if name not in ("method", "request", "response")), "inside", *_PLACE, *_PROGRAM),
        {"request_bytes": 620, "response_bytes": 0},  # the registration request that the AMF is given
        **_SERVICES,
    ),
    "page": Kind(PageWorkload, (*(entry.name for entry in PAGE_FIELDS), "place", *_BROWSER), **_BROWSERS),
    "video": Kind(VideoWorkload, (*(entry.name for entry in VIDEO_FIELDS), *_BROWSER), **_BROWSERS),
    "far": Kind(
        FarWorkload,
        (*(entry.name for entry in (*FAR_FIELDS, *FAR_VANTAGE_FIELDS)), *_FAR),
        fixed={"path": AS_IS, "server": ELSEWHERE},
        server=ELSEWHERE,
        clients=None,
    ),
    "far-page": Kind(
        FarPageWorkload,
        (*(entry.name for entry in (*FAR_FIELDS, *FAR_PAGE_FIELDS)), *_FAR_PAGE),
        fixed={"path": AS_IS, "server": ELSEWHERE, "connection": "browser"},
        server=ELSEWHERE,
        clients="browser",
        lengths=False,
    ),
}
assert all(entry.name in (*_OWN["chain"].fields, *_CROWD) for entry in SERVICES_FIELDS)
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


def _adopt(name: str, kind: Kind, _package: str) -> Kind:
    """A workload of another package: of a family that there is, and of fields that study files have."""
    if not _NAME.fullmatch(name):
        raise ValueError("has a name that is not of a-z, 0-9 and -")
    if kind.model().kind != name:
        raise ValueError(f"calls itself {kind.model().kind!r}; the class's kind and the entry point must be the same")
    unknown = [entry for entry in kind.fields if entry not in _FIELDS]
    if unknown:
        raise ValueError(f"has the fields {', '.join(unknown)}, which study files have not")
    return kind


WORKLOADS: Registry[Kind] = Registry("workload", _OWN, Kind, _adopt, error=UserError)
"""By name; entry points of the group ``trifecta.workloads`` last."""
