"""From a trial to the load's configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from trifecta.contract.load import OpenLoop
from trifecta.design.model import Cell, PathSpec, RequestsWorkload, Trial
from trifecta.design.study import path
from trifecta.lab.certificates import Certificates
from trifecta.workloads.faults import Faults
from trifecta.workloads.load_configs import load_config, right_answer, streams_of, total_timeout_ns

CERTIFICATES = Certificates(Path("ca.pem"), Path("server.pem"), Path("server.key"))


@pytest.mark.parametrize(
    ("workload", "protocol", "connection", "expected"),
    [
        (RequestsWorkload(in_flight=10), "h1", "reused", (10, 1)),
        (RequestsWorkload(in_flight=10), "h2", "reused", (1, 10)),
        (RequestsWorkload(in_flight=10), "h3", "reused", (1, 10)),
        (RequestsWorkload(in_flight=10), "h1", "new", (10, 1)),
        (RequestsWorkload(in_flight=10), "h3", "new", (10, 1)),
        (RequestsWorkload(connections=2, streams=5), "h2", "reused", (2, 5)),
        (RequestsWorkload(connections=2, streams=5), "h1", "reused", (10, 1)),
        (RequestsWorkload(connections=4), "h3", "reused", (4, 1)),
    ],
)
def test_requests_in_flight_become_connections_and_streams(
    workload: RequestsWorkload, protocol: str, connection: str, expected: tuple[int, int]
) -> None:
    assert streams_of(workload, protocol, connection) == expected


def test_every_arm_has_the_same_requests_in_flight() -> None:
    for workload in (RequestsWorkload(in_flight=7), RequestsWorkload(connections=3, streams=4)):
        for connection in ("new", "reused"):
            in_flight = {c * s for c, s in (streams_of(workload, p, connection) for p in ("h1", "h2", "h3"))}
            assert len(in_flight) == 1


@pytest.mark.parametrize(
    ("method", "status", "octets"), [("GET", 200, 500), ("HEAD", 200, 0), ("POST", 200, 500), ("DELETE", 204, 0)]
)
def test_what_a_right_answer_is(method: str, status: int, octets: int) -> None:
    right = right_answer(RequestsWorkload(method=method, response_bytes=500))
    assert (right.status, right.body_bytes) == (status, octets)


def test_a_trial_is_given_up_only_after_its_requests_had_time() -> None:
    far = PathSpec("far", rtt_ns=80_000_000, rate_bits_per_s=1_000_000)
    workload = RequestsWorkload(requests=100, response_bytes=100_000)
    assert total_timeout_ns(workload, far) > 100 * 100_000 * 8 * 1000
    assert total_timeout_ns(RequestsWorkload(duration_ns=10**12), far) > 10**12
    slow = path("slow", rtt="40 ms", trace={"opportunities": [0, 20, 40, 60]}).spec()  # 0.8 Mbit/s
    assert total_timeout_ns(RequestsWorkload(requests=100, response_bytes=50_000), slow) > 2 * 52_000_000_000
    bursts = PathSpec("bursts", rtt_ns=20_000_000, missing=0.4)
    # 60 new connections, each of which waits for timeouts: 110 to 190 s measured.
    assert total_timeout_ns(RequestsWorkload(requests=60, in_flight=1), bursts) > 190_000_000_000


def test_the_configuration_names_what_is_asked() -> None:
    trial = Trial("t00003", 1, Cell("c", {"connection": "new"}), "h2#aa", 2, 99)
    workload = RequestsWorkload(loop="open", rate_per_s=500.0, arrivals="poisson", requests=10, tls_version="1.2")
    config = load_config(
        trial, workload, PathSpec("p"), address="10.77.0.2", port=1, server_name="origin.lab",
        certificates=CERTIFICATES, samples_file=Path("s.parquet"),
    )  # fmt: skip
    assert config.protocol == "h2"
    assert config.seed == 99
    assert config.loop == OpenLoop(rate_per_s=500.0, arrivals="poisson")
    assert config.cipher.startswith("TLS_ECDHE")
    assert config.keylog_file is None


def test_faults_hit_the_arm_they_name() -> None:
    faults = Faults(load={"*": {"seed": 3}, "h3": {"seed": 4}})
    assert faults.load_changes("h1") == {"seed": 3}
    assert faults.load_changes("h3") == {"seed": 4}
    assert Faults().describe() == {}
    assert faults.describe() == {"load": {"*": {"seed": 3}, "h3": {"seed": 4}}}
