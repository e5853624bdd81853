"""What answers say of places and caches, and what silence says of UDP."""

import pytest

from trifecta.analysis import far


def seen(**fields):
    return {name.replace("_", "-"): {"values": dict(values), "others": 0} for name, values in fields.items()}


@pytest.mark.parametrize(
    ("fields", "states"),
    [
        ({"x_cache": {"HIT": 3, "MISS": 1}}, {"HIT": 3, "MISS": 1}),
        ({"x_cache": {"Hit from cloudfront": 2}}, {"HIT": 2}),
        ({"x_cache": {"TCP_HIT from a": 1, "TCP_MISS from b": 1}}, {"HIT": 1, "MISS": 1}),
        ({"cf_cache_status": {"DYNAMIC": 4}}, {"DYNAMIC": 4}),
        ({"cache_status": {"ExampleCache; fwd=stale; fwd-status=304": 1}}, {"STALE": 1}),
        ({"x_cache": {"from a": 1}}, {"OTHER": 1}),
        ({"age": {"0": 1, "17": 2}}, {"AGED": 2}),
        ({"x_cache": {}, "age": {"3": 1}}, {"AGED": 1}),
        ({}, {}),
    ],
)
def test_states_of_caches(fields, states):
    assert far.cache_states(seen(**fields)) == states


@pytest.mark.parametrize(
    ("fields", "places"),
    [
        ({"cf_ray": {"8f1e2d3c4b5a6978-FRA": 1, "8f1e2d3c4b5a6979-FRA": 1}}, ("FRA",)),
        ({"cf_ray": {"8f1e-FRA": 1, "8f1f-AMS": 1}}, ("AMS", "FRA")),
        ({"x_amz_cf_pop": {"FRA56-P8": 2}}, ("FRA56",)),
        ({"x_served_by": {"cache-iad-kiad7000111-IAD, cache-fra-eddf8230047-FRA": 1}}, ("FRA",)),
        ({"x_vercel_id": {"fra1::abc": 1}}, ("FRA1",)),
        ({"server": {"nginx": 1}}, ()),
    ],
)
def test_places(fields, places):
    assert far.places(seen(**fields)) == places


def test_via_is_without_the_protocol_of_the_arm_and_random_names():
    assert far.hops(seen(via={"1.1 varnish, 2 3f9a8b7c6d.cloudfront.net (CloudFront)": 1})) == (
        "*.cloudfront.net",
        "varnish",
    )
    assert far.hops(seen(via={"3 varnish": 1})) == far.hops(seen(via={"1.1 varnish": 4}))


def test_servers_and_timings_are_without_versions_and_durations():
    assert far.programs(seen(server={"nginx/1.27.1": 1, "nginx/1.26": 1, "LiteSpeed": 1})) == ("litespeed", "nginx")
    said = {"cdn-cache; desc=HIT, edge; dur=1": 1, "cdn-cache; desc=HIT, edge; dur=9": 1}
    assert far.timings(seen(server_timing=said)) == ("cdn-cache hit", "edge")


def answered(protocol, error=None, size=1000, transfer_ns=1_000_000, handshake_ns=None):
    return {
        "protocol": protocol, "error": error, "status": None if error else 200, "content_bytes": size,
        "wire_bytes": size, "connect_ns": None, "handshake_ns": handshake_ns, "wait_ns": None,
        "transfer_ns": transfer_ns, "min_rtt_ns": None, "lost": 0, "udp_payload_bytes": None, "fields": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("h3", "announced", "state"),
    [
        (answered("h3"), [], "open"),
        (answered("h3", "connect_timeout"), ["Alt-Svc"], "blocked"),
        (answered("h3", "quic:timeout"), ["HTTPS record"], "blocked"),
        (answered("h3", "connect_timeout"), [], "silent"),
        (answered("h3", "socket:EPERM"), ["Alt-Svc"], "blocked"),
        (answered("h3", "socket:EPERM"), [], "silent"),
        (answered("h3", "connect_refused"), ["Alt-Svc"], "closed"),
        (answered("h3", "tls:certificate"), [], "other"),
        (answered("h3", "quic:timeout", handshake_ns=1_000_000), ["Alt-Svc"], "other"),
        (answered("h3", "timeout", handshake_ns=1_000_000), ["Alt-Svc"], "other"),
        (answered("h3", None, 200_000, 900_000_000), [], "slow"),
        (answered("h3", None, 200_000, 110_000_000), [], "open"),
        (answered("h3", None, 9_000, 900_000_000), [], "open"),
    ],
)
def test_udp(h3, announced, state):
    tcp = [answered(protocol, None, h3["content_bytes"], 100_000_000) for protocol in ("h1", "h2")]
    assert far.udp_of([*tcp, h3], announced) == state


def test_the_last_word_over_udp_counts():
    answers = [answered("h2"), answered("h3", "connect_timeout"), answered("h3")]
    assert far.udp_of(answers, ["Alt-Svc"]) == "open"
    assert far.udp_of([answered("h2")], []) is None


@pytest.mark.parametrize(
    ("field", "alpn", "announcements"),
    [
        ('h3=":443"; ma=86400', [], ["Alt-Svc"]),
        ('h2=":443", h3=":443"', ["h3", "h2"], ["Alt-Svc", "HTTPS record"]),
        ('h3-29=":443"', ["h3"], ["HTTPS record"]),
        ("clear", ["h2"], []),
    ],
)
def test_how_http3_is_announced(field, alpn, announcements):
    assert far.announced({"alt-svc": field}, alpn) == announcements
