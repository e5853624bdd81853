"""The check of the path: two witnesses against what the study asks for."""

import dataclasses

import pytest

from tests.analysis.checks.sound import (
    DIRECTION,
    LINK,
    LOSSY,
    PATH,
    PLAIN,
    PROBE,
    RTT_NS,
    SERVER,
    judge,
    link,
)
from trifecta.analysis.checks.path import _of_probes
from trifecta.design.model import RequestsWorkload


def test_a_link_that_is_only_late_is_to_be_given_time_and_not_another_configuration():
    late = {"lost": 0, "delay_given_ns": {"p50": RTT_NS}, "delay_scheduled_ns": {"p50": RTT_NS // 2}}
    both = LINK | dict.fromkeys(("a_to_b", "b_to_a"), DIRECTION | late)
    for realtime, remedy in ((True, "give the link a core"), (False, "allow this user real-time priority")):
        found = judge("path", path=PLAIN, link=both | {"realtime": realtime}, probe=None)
        assert (found.status, found.remedy.startswith(remedy)) == ("fail", True), found


def test_a_link_that_delays_ten_percent_more_than_asked_fails_on_both_witnesses():
    slow = {"p50": round(RTT_NS / 2 * 1.1), "p99": 0, "max": 0}
    both = LINK | {name: DIRECTION | {"lost": 0, "delay_given_ns": slow} for name in ("a_to_b", "b_to_a")}
    lossless = PROBE | {"loss_forward": 0.0, "loss_backward": 0.0}
    by_link = judge("path", path=PLAIN, link=both, probe=None)
    assert by_link.status == "fail"
    assert "to the server: median delay 27.5 ms, requested 25 ms" in by_link.evidence
    assert "configuration" in by_link.remedy
    by_probe = judge("path", path=PLAIN, link=None, probe=lossless | {"rtt_ns": {"p50": 55_100_000}})
    assert by_probe.status == "fail"
    assert "probe: median RTT 55.1 ms, requested 50 ms" in by_probe.evidence
    exact = {name: DIRECTION | {"lost": 0, "delay_given_ns": {"p50": RTT_NS // 2}} for name in ("a_to_b", "b_to_a")}
    assert judge("path", path=PLAIN, link=LINK | exact, probe=lossless).status == "pass"


@pytest.mark.parametrize(
    ("ip", "rtt_ns", "status"),
    [
        (None, 11_700_000, "pass"),  # 106 octets at 1 Mbit/s take 0.85 ms, twice
        (None, 10_000_000, "fail"),
        (None, 12_000_000, "fail"),
        ("IPv6", 12_000_000, "pass"),
    ],
)
def test_at_a_low_rate_the_probes_packet_takes_time_to_send(ip, rtt_ns, status):
    rate = ({"kind": "rate", "bits_per_s": 1_000_000, "queue_bytes": 10_000}, {"kind": "delay", "delay_ns": 5_000_000})
    slow = dataclasses.replace(PLAIN, rtt_ns=10_000_000, rate_bits_per_s=1_000_000, forward=rate, backward=rate)
    probe = PROBE | {"loss_forward": 0.0, "loss_backward": 0.0, "rtt_ns": {"p50": rtt_ns}, "rate_bits_per_s": 1e6}
    (found,) = [one for one in _of_probes(slow, RequestsWorkload(ip=ip), probe) if "median RTT" in one.text]
    assert found.status == status, found
    sending = "2.02 ms" if ip else "1.7 ms"
    assert f"requested 10 ms and {sending} to send the probe's packet at the rate" in found.text


def test_a_queue_adds_delay_but_nothing_takes_from_it():
    assert judge("path", link=link(delay_given_ns={"p50": 90_000_000})).status == "pass"
    assert judge("path", link=link(delay_given_ns={"p50": 22_000_000})).status == "fail"


@pytest.mark.parametrize(
    ("lost", "status"), [(200, "pass"), (160, "pass"), (240, "pass"), (150, "fail"), (255, "fail")]
)
def test_loss_counts_against_chance(lost, status):
    result = judge("path", link=link(lost=lost))
    assert result.status == status
    if status == "fail":
        assert f"lost {lost} of 10000 packets" in result.evidence
        assert "chance allows" in result.evidence


def test_loss_on_a_lossless_path_fails_and_probe_loss_is_seen():
    assert judge("path", path=PLAIN, link=link(lost=1), probe=None).status == "fail"
    assert judge("path", probe=PROBE | {"loss_forward": 0.2}).status == "fail"
    assert judge("path", probe={"sent": 200, "received": 0}).status == "fail"


def test_bursts_of_loss_vary_more_than_independent_ones():
    bursts = {"kind": "gilbert_elliott", "good_to_bad": 0.002, "bad_to_good": 0.1, "loss_good": 0.0, "loss_bad": 1.0}
    bursty = dataclasses.replace(PATH, forward=(bursts, *LOSSY[1:]), loss=0.0)
    assert judge("path", path=bursty, link=link(lost=280)).status == "pass"  # asked 1.96 %: 196, in bursts of ten
    assert judge("path", path=bursty, link=link(lost=700)).status == "fail"


def test_rate_lateness_drops_and_packet_size():
    assert judge("path", link=link(rate_given_bits_per_s=19.0e6)).status == "fail"
    assert judge("path", link=link(rate_given_bits_per_s=None)).status == "pass"
    assert judge("path", link=link(rate_given_bits_per_s=22.0e6, rate_busy_ns=20_000_000)).status == "pass"
    assert judge("path", probe=PROBE | {"rate_bits_per_s": 22.0e6}).status == "fail"
    assert judge("path", link=link(device_drops=2)).status == "fail"
    assert "the link itself lost 1 packet (send errors)" in judge("path", link=link(send_errors=1)).evidence
    assert judge("path", probe=PROBE | {"largest_payload_bytes": 1372}).status == "fail"


@pytest.mark.parametrize("metric", ["latency_p99_ns", "latency_mean_ns", "requests_per_s"])
def test_one_late_packet_in_a_hundred_is_allowed_where_tails_count(metric):
    late = judge("path", link=link(lateness_ns={"p90": 10_000, "p99": 4_000_000}), metric=metric)
    assert late.status == "fail"
    assert "99 % of packets left within 4 ms of schedule (limit 1 ms)" in late.evidence
    far = dataclasses.replace(PATH, rtt_ns=300_000_000)
    assert (
        judge("path", path=far, link=link(lateness_ns={"p99": 4_000_000}), probe=None, metric=metric).status == "pass"
    )


def test_a_median_allows_a_burst_of_late_packets_and_no_more():
    assert judge("path", link=link(lateness_ns={"p90": 900_000, "p99": 4_000_000})).status == "pass"
    often = judge("path", link=link(lateness_ns={"p90": 1_200_000, "p99": 4_000_000}))
    assert often.status == "fail"
    assert "90 % of packets left within 1.2 ms of schedule (limit 1 ms)" in often.evidence
    long = judge("path", link=link(lateness_ns={"p90": 10_000, "p99": 6_000_000}))
    assert long.status == "fail"
    assert "99 % of packets left within 6 ms of schedule (limit 5 ms)" in long.evidence
    far = dataclasses.replace(PATH, rtt_ns=300_000_000)
    assert judge("path", path=far, link=link(lateness_ns={"p99": 14_000_000}), probe=None).status == "pass"
    assert judge("path", path=far, link=link(lateness_ns={"p99": 16_000_000}), probe=None).status == "fail"


def test_an_impaired_path_without_its_link_fails():
    assert judge("path", link=None, probe=None).status == "fail"
    assert judge("path", link={"a_to_b": DIRECTION}).status == "fail"


@pytest.mark.parametrize(("arm", "flows"), [("h1", {"tcp": 10, "udp": 0}), ("h3", {"tcp": 0, "udp": 1})])
def test_a_load_balancer_that_no_flow_passed_fails(arm, flows):
    asked = RequestsWorkload(requests=220, warmup_requests=20, load_balancer=True)
    passed = judge("path", arm, workload=asked, server=SERVER | {"load_balancer": flows})
    assert passed.status == "pass"
    assert f"the load balancer forwarded {max(flows.values())} flows over" in passed.evidence
    other = {"tcp": flows["udp"], "udp": flows["tcp"]}
    for server in (SERVER, SERVER | {"load_balancer": other}):
        around = judge("path", arm, workload=asked, server=server)
        assert (around.status, "the load balancer forwarded 0 flows over" in around.evidence) == ("fail", True)
    assert "load balancer" not in judge("path", arm).evidence


def test_many_bursts_of_a_lossy_transfer_widen_what_is_known_of_the_rate():
    # As measured at 48 ms and 1.2 % loss: each of some 40 bursts ends when its last packet leaves, 31 us late.
    seen = {
        "wire_packets": 426, "lost": 5, "rate_busy_ns": 155_000_000,
        "lateness_ns": {"p50": 31_000, "p99": 190_000},
    }  # fmt: skip
    lossy = [{"kind": "loss", "probability": 0.012}, *LOSSY[1:]]
    here = dataclasses.replace(PATH, loss=0.012, forward=tuple(lossy))

    def status(rate, path=here, **more):
        return judge("path", path=path, link=link(rate_given_bits_per_s=rate, **seen | more), probe=None).status

    assert status(19.41e6) == "pass"
    assert status(19.2e6) == "fail"
    assert status(20.8e6) == "fail"
    clean = dataclasses.replace(PATH, loss=0.0, forward=LOSSY[1:])
    assert status(19.41e6, clean, lost=0) == "fail"


def test_the_periods_that_a_link_counted_widen_it_by_their_ends():
    # As measured where packets overtake each other: 2,623 packets in some 800 bursts, whose last leaves 19 us late.
    seen = {
        "wire_packets": 2623, "lost": 0, "rate_busy_ns": 217_000_000, "rate_busy_periods": 800,
        "lateness_ns": {"p50": 19_460, "p99": 169_952},
    }  # fmt: skip
    clean = dataclasses.replace(PATH, loss=0.0, forward=LOSSY[1:])

    def status(rate, **more):
        return judge("path", path=clean, link=link(rate_given_bits_per_s=rate, **seen | more), probe=None).status

    assert status(0.9459 * 20e6) == "pass"
    assert status(0.9459 * 20e6, rate_busy_periods=20) == "fail"
    assert status(0.88 * 20e6) == "fail"
