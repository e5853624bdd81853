"""Switches of the transports: how they are written, what they become, what cannot be."""

from __future__ import annotations

import pytest

from trifecta.contract.codec import plain
from trifecta.contract.common import Tuning
from trifecta.design import plan, tuning
from trifecta.design.errors import UserError
from trifecta.design.factors import WORKLOAD_FIELDS
from trifecta.design.model import RequestsWorkload
from trifecta.design.study_file import parse_study
from trifecta.design.tuning import SWITCHES, TcpSettings
from trifecta.design.why.table import CAUSES
from trifecta.workloads.requests.session import options_for

LEVELS = {
    "initial_window": "2",
    "pacing": "off",
    "stream_window": "16 kB",
    "connection_window": "1 MB",
    "idle_window": "keep",
    "packet_threshold": "100",
    "segmentation_offload": "off",
    "ack_delay": "5 ms",
    "ack_packets": "10",
    "tls_record": "1.2 kB",
    "tls_wait": "220 ms",
    "mtu": "1280",
    "udp_buffer": "16 MB",
}
"""Of each switch one that is not as it is by itself."""
MINE = "study: mine\nworkload: {{requests: 10{}}}\n{}"


def read(fields="", rest=""):
    return parse_study(MINE.format(fields and f", {fields}", rest), "mine.yaml")


def over(protocol, fields):
    return read(fields).workload.for_protocol(protocol)


@pytest.mark.parametrize("name", SWITCHES)
def test_how_it_is_by_itself_leaves_no_trace(name):
    default = SWITCHES[name].default
    study = read(f"{name}: {default}")
    assert study.source == read().source
    assert getattr(study.workload, name) is None
    assert WORKLOAD_FIELDS[name].without == default


@pytest.mark.parametrize("name", SWITCHES)
def test_a_study_that_sets_it_reads_back_the_same(name):
    level = LEVELS[name]
    study = read(f"{name}: {level}")
    assert getattr(study.workload, name) == level
    assert parse_study(study.source, "again.yaml") == study
    study = read(rest=f"factors: {{{name}: [{SWITCHES[name].default}, {level}]}}")
    assert study.factors[name] == (SWITCHES[name].default, level)
    values = [getattr(plan.workload_for(study, one), name) for one in plan.treatments(study)]
    assert values == [None] * 3 + [level] * 3
    assert parse_study(study.source, "again.yaml") == study


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("initial_window: 1", "initial_window: '1' is not a number of packets of a window; give 2 to 1000"),
        ("initial_window: 10/2/3", "has 3 parts; give one value for both transports, or TCP/QUIC"),
        ("stream_window: 900 B", "stream_window: '900 B' is out of range; give 1 kB to 1 GB, or 'none'"),
        ("stream_window: 16", "stream_window: '16' has no unit"),
        ("connection_window: 64 kB", "(HTTP/2 begins with 65,535 octets, RFC 9113 section 6.9.2), or 'none'"),
        ("tls_record: 20 kB", "tls_record: '20 kB' is out of range; give 64 B to 16.384 kB of plaintext, or 'none'"),
        ("tls_record: 1 kB/none", "tls_record: '1 kB/none' has 2 parts; give one value alone"),
        ("mtu: 1200", "mtu: '1200' is not a number of octets of a packet; give 1280 to 1500"),
        ("mtu: 1280/1500", "mtu: '1280/1500' has 2 parts; give one value alone"),
        ("udp_buffer: 1 kB", "udp_buffer: '1 kB' is out of range; give 4.096 kB to 1 GB, or 'none'"),
        ("tls_wait: 0 ms", "tls_wait: '0 ms' is out of range; give 1 ms to 10 s, or 'none'"),
        ("tls_wait: 10 ms/none", "tls_wait: '10 ms/none' has 2 parts; give one value alone"),
        (
            "idle_window: restart, congestion_control: bbr",
            "idle_window: BBR keeps its window after a rest; use another",
        ),
        ("idle_window: restart, quinn: stock", "idle_window: QUIC's window restarts with window-validation only;"),
        ("idle_window: halve", "idle_window: 'halve' is not what a window does"),
        ("segmentation_offload: on/off", "has 2 parts; give one value alone"),
        ("ack_delay: 0 ms", "'0 ms' is no delay of acknowledgements that can be asked for; give 1 ms to 1 s"),
        ("ack_delay: 30 ms", "ack_delay: quinn-proto asks for no more than 25 ms or the path's round trip, whichever"),
        ("ack_packets: 0", "ack_packets: '0' is not a number of packets; give 1 to 1000"),
        ("pacing: of", "pacing: 'of' is not a pace; did you mean 'off'?"),
        ("pacing: off, congestion_control: bbr", "pacing: BBR over TCP has a pace of its own; use another"),
        ("kind: chain, initial_window: 2", "initial_window: is not a field of the workload 'chain'; remove it"),
        ("kind: page, initial_window: 2", "initial_window: is not a field of the workload 'page'; remove it"),
    ],
)
def test_what_cannot_be_is_refused(fields, said):
    with pytest.raises(UserError) as error:
        read(fields)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("fields", "protocol", "told", "kernel"),
    [
        ("", "h2", {}, TcpSettings()),
        ("initial_window: 2", "h2", {"initial_window_packets": 2}, TcpSettings(initial_window=2)),
        ("initial_window: 10/32", "h3", {"initial_window_packets": 32}, TcpSettings(initial_window=32)),
        ("pacing: off", "h2", {"pacing": False}, TcpSettings()),
        ("pacing: on/off", "h1", {"pacing": True}, TcpSettings()),
        ("pacing: on/off", "h3", {"pacing": False}, TcpSettings()),
        ("stream_window: 16 kB", "h2", {"stream_window_bytes": 16_000}, TcpSettings()),
        ("connection_window: 1 MB/none", "h2", {"connection_window_bytes": 1_000_000}, TcpSettings()),
        ("connection_window: 1 MB/none", "h3", {}, TcpSettings()),
        ("tls_record: 1200 B", "h1", {"tls_record_bytes": 1200}, TcpSettings()),
        ("tls_wait: 220 ms", "h2", {"tls_wait_ns": 220_000_000}, TcpSettings()),
        ("mtu: 1280", "h2", {"udp_payload_bytes": 1232}, TcpSettings(mtu=1280)),
        ("mtu: 1280", "h3", {"udp_payload_bytes": 1232}, TcpSettings(mtu=1280)),
        ("udp_buffer: 16 MB", "h3", {"udp_buffer_bytes": 16_000_000}, TcpSettings()),
        ("idle_window: keep", "h2", {"idle_window_restarts": False}, TcpSettings(idle_restarts=False)),
        ("idle_window: restart", "h3", {"idle_window_restarts": True}, TcpSettings()),
        ("segmentation_offload: off", "h3", {"segmentation_offload": False}, TcpSettings()),
        ("ack_delay: 5 ms, ack_packets: 1", "h3", {"ack_delay_ns": 5_000_000, "ack_packets": 1}, TcpSettings()),
        ("packet_threshold: 300", "h2", {"packet_threshold": 300}, TcpSettings(reordering=300)),
        ("packet_threshold: 3/300", "h3", {"packet_threshold": 300}, TcpSettings(reordering=300)),
        ("initial_window: 10/32", "h1", {"initial_window_packets": 10}, TcpSettings(initial_window=10)),
    ],
)
def test_engine_and_kernel_are_told_their_part(fields, protocol, told, kernel):
    workload = over(protocol, fields)
    assert plain(tuning.engine(workload)) == told
    assert tuning.kernel(workload) == kernel
    options = options_for(workload)
    assert (plain(options.tuning), options.tcp) == (told, kernel)


def test_what_is_given_apart_is_a_difference_of_the_arms():
    workload = read("initial_window: 10/32").workload
    assert workload.apart == ["initial_window"]
    assert read("initial_window: 32/32").workload == read("initial_window: 32").workload
    assert RequestsWorkload().apart == []


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ("initial_window: 2", {"h3": ["initial_window"]}),
        ("pacing: off", {"h3": ["pacing"]}),
        ("stream_window: 16 kB", {"h2": ["stream_window"], "h3": ["stream_window"]}),
        ("connection_window: none/1 MB", {"h3": ["connection_window"]}),
        ("tls_record: 16 KiB", {"h1": ["tls_record"], "h2": ["tls_record"]}),
        ("tls_wait: 220 ms", {"h1": ["tls_wait"], "h2": ["tls_wait"]}),
        ("mtu: 1280", {"h3": ["mtu"]}),
        ("udp_buffer: 16 MB", {"h3": ["udp_buffer"]}),
        ("idle_window: keep", {}),
        ("idle_window: restart", {"h3": ["idle_window"]}),
        ("segmentation_offload: off", {"h3": ["segmentation_offload"]}),
        ("ack_delay: 5 ms, ack_packets: 1", {"h3": ["ack_delay", "ack_packets"]}),
        ("packet_threshold: 300", {"h3": ["packet_threshold"]}),
        ("pacing: on", {"h1": ["pacing"], "h2": ["pacing"]}),
    ],
)
def test_programs_are_told_what_the_kernel_does_not_set(fields, names):
    for protocol in ("h1", "h2", "h3"):
        told = [one.name for one in tuning.of_programs(over(protocol, fields), protocol)]
        assert told == names.get(protocol, [])


def test_every_setting_of_the_engine_is_some_switchs():
    assert len(Tuning.__struct_fields__) == len(SWITCHES)


@pytest.mark.parametrize("name", [name for name in SWITCHES if name not in ("ack_packets", "tls_wait")])
def test_a_cause_is_removed_by_it(name):
    cause = CAUSES[{"tls_record": "tls-records", "udp_buffer": "udp-buffers"}.get(name, name.replace("_", "-"))]
    assert f"`{name}" in cause.documentation.sections["Removed by"]


def test_true_and_false_are_on_and_off():
    assert SWITCHES["pacing"].parse(False) == "off"
    assert SWITCHES["pacing"].parse(True) == "on"


def test_bbr_has_its_pace_only_over_tcp():
    assert read("pacing: on/off, congestion_control: cubic/bbr").workload.pacing == "on/off"
    study = read("pacing: off, congestion_control: bbr", "factors: {protocol: [HTTP/3]}")
    assert study.workload.pacing == "off"


def test_a_long_delay_of_acknowledgements_needs_a_long_path():
    assert read("ack_delay: 30 ms", "paths: {far: {rtt: 30 ms}}").workload.ack_delay == "30 ms"
    over_tcp = "paths: {near: {rtt: 10 ms}}\nfactors: {protocol: [HTTP/2]}"
    assert read("ack_delay: 30 ms", over_tcp).workload.ack_delay == "30 ms"
