"""What the estimates of workloads share: what things take on a machine with two cores, and how a path slows them."""

from __future__ import annotations

import math

from trifecta.design import capacity
from trifecta.design.path_spec import PathSpec

NEW_CONNECTION_ROUND_TRIPS = 3  # TCP, TLS 1.3, the request; QUIC needs two
STALL_NS = 600_000_000  # of a lost packet: the first timeouts of TCP (RFC 6298, 1 s) and QUIC (RFC 9002), half early
CORES_BITS_PER_S = 10**9  # what two cores send
CONTAINER_NS = 1_100_000_000
CONTAINER_BESIDE_NS = 300_000_000  # of one more that is started beside others
PROCESS_NS = 12_000_000  # to start one more client of services
PROGRAM_NS = 550_000_000  # to start a client that is no part of the engine
PYTHON_NS = 3_500_000  # a round trip of a client and a server in Python
REQUEST_NS = 400_000
VISIT_NS = 1_600_000_000
PAGES = {"light": 3_500_000, "light-fonts": 3_500_000, "heavy": 7_300_000}  # octets of the bundled pages
OTHER_PAGE = 5_000_000  # octets of a page of which nothing is known
WATCH_NS = 2_300_000_000  # a browser before and after a video
OWN = frozenset({"load", "", "chromium", "firefox"})  # clients whose start costs nothing, or is counted by itself


def trip_ns(path: PathSpec) -> float:
    """A round trip, with what its losses cost; a plan of losses costs a packet here and there, which is nothing."""
    return path.rtt_ns + STALL_NS * min(1.0, path.missing)


def carrying_ns(request_octets: float, response_octets: float, path: PathSpec) -> float:
    """How long the path, or what two cores send, takes to carry that much content there and back."""
    ways = ((request_octets, path.forward), (response_octets, path.backward))
    return sum(octets * 8e9 / (capacity.bits_per_s(way) or CORES_BITS_PER_S) for octets, way in ways)


def sending_ns(octets: float, path: PathSpec) -> float:
    """How long a page's content is on its way besides the round trip, alone on connections that have just opened."""
    return max(carrying_ns(0, octets, path), ramp_ns(octets, path))


def ramp_ns(octets: float, path: PathSpec) -> float:
    """The round trips of slow start from ten packets (RFC 6928), roughly, where the path has a capacity to fill."""
    if capacity.bits_per_s((*path.forward, *path.backward)) is None:
        return 0.0
    return math.sqrt(max(0.0, octets / 14_480 - 1)) * path.rtt_ns
