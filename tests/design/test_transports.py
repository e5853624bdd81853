"""Settings given apart for TCP and QUIC, timeouts of a server, frames of a wire."""

import pytest

from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.study_file import parse_study
from trifecta.design.transports import over
from trifecta.lab.paths import link_config
from trifecta.workloads.requests.session import options_for

MINE = "study: mine\nworkload: {{requests: 10, {}}}\n{}"


def read(fields="", rest=""):
    return parse_study(MINE.format(fields, rest), "mine.yaml")


def test_each_transport_has_its_part():
    workload = read("congestion_control: bbr/cubic, tls_version: 1.2/1.3").workload
    assert workload.apart == ["congestion_control", "tls_version"]
    found = {name: workload.for_protocol(name) for name in ("h1", "h2", "h3")}
    assert {name: one.congestion_control for name, one in found.items()} == {"h1": "bbr", "h2": "bbr", "h3": "cubic"}
    assert {name: one.tls_version for name, one in found.items()} == {"h1": "1.2", "h2": "1.2", "h3": "1.3"}
    assert options_for(found["h2"]) != options_for(found["h3"]), "a server each"


def test_two_equal_parts_are_one():
    workload = read("congestion_control: bbr/bbr").workload
    assert workload.congestion_control == "bbr"
    assert workload.apart == []
    assert workload.for_protocol("h3") is workload
    assert over("cubic", "h3") == over("cubic", "h2") == "cubic"


def test_they_can_be_levels():
    study = read(rest="factors: {congestion_control: [cubic, bbr/cubic], tls_version: [1.3, 1.2/1.3]}")
    values = {plan.workload_for(study, one).congestion_control for one in plan.treatments(study)}
    assert values == {"cubic", "bbr/cubic"}
    assert parse_study(study.source, "again.yaml") == study


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("congestion_control: bbr/cubic/reno", "has 3 parts"),
        ("congestion_control: bbr/fast", "'fast' is not a congestion control"),
        ("tls_version: 1.3/1.2", "or give '1.2/1.3' (TCP/QUIC)"),
        ("tls_version: 1.2", "HTTP/3 needs TLS 1.3"),
        ("kind: chain, congestion_control: bbr/cubic", "one value for TCP and QUIC together"),
        ("write_timeout: 0 s", "is zero"),
        ("client_cpu: 0.5 %", "of a core is too little to run a program; give 1 % to 100 %, or 'none'"),
        ("server_cpu: 25", "is more than 100 %"),
        ("kind: chain, server_cpu: 25 %", "server_cpu: is not a field of the workload 'chain'; remove it"),
        ("kind: fan-in, load_balancer: true", "load_balancer: is not a field of the workload 'fan-in'; remove it"),
        ("kind: page, load_balancer: true", "load_balancer: is not a field of the workload 'page'; remove it"),
        ("load_balancer: nginx", "load_balancer: 'nginx' is neither true nor false; write true or false"),
    ],
)
def test_what_cannot_be_is_refused(fields, said):
    with pytest.raises(UserError) as error:
        read(fields)
    assert said in str(error.value)


def test_timeouts_of_a_server_are_levels_and_none_by_default():
    study = read("read_timeout: 5 s", "factors: {write_timeout: [none, 1 s]}")
    options = [options_for(plan.workload_for(study, one)) for one in plan.treatments(study) if one.protocol == "h2"]
    assert [(one.read_timeout_ns, one.write_timeout_ns) for one in options] == [(5 * 10**9, None), (5 * 10**9, 10**9)]
    assert parse_study(study.source, "again.yaml") == study
    assert "timeout: none" not in read().source


def test_a_load_balancer_is_a_level_and_leaves_no_trace_where_there_is_none():
    study = read(rest="factors: {load_balancer: [false, true]}")
    found = {one.cell.levels["load_balancer"]: plan.workload_for(study, one) for one in plan.treatments(study)}
    assert {level: one.load_balancer for level, one in found.items()} == {False: None, True: True}
    assert options_for(found[False]) == options_for(found[True]), "one server, which knows nothing of it"
    assert parse_study(study.source, "again.yaml") == study
    assert read("load_balancer: false").source == read().source
    asked = read("load_balancer: true")
    assert parse_study(asked.source, "again.yaml") == asked
    with pytest.raises(UserError, match="load_balancer: is not a factor of the workload 'chain'; remove it"):
        read("kind: chain", "factors: {load_balancer: [true]}")


def test_netem_is_a_paths_choice_which_packets_cannot_be_captured_on():
    study = read(rest="paths: {a: {rtt: 10 ms, emulator: netem}, b: {rtt: 10 ms}}\nfactors: {path: [a, b]}")
    assert [link_config(study.paths[name], 1).emulator for name in "ab"] == ["netem", "engine"]
    assert parse_study(study.source, "again.yaml") == study
    assert "emulator" not in study.source.split("b:")[1]
    with pytest.raises(UserError, match="capture: netem, which the path 'a' asks for, shows no packets; leave it out"):
        read(rest="paths: {a: {rtt: 10 ms, emulator: netem}}\ncapture: true")
    with pytest.raises(UserError, match=r"paths\.a\.duplicate: netem does not do it, or does not count it"):
        read(rest="paths: {a: {rtt: 10 ms, emulator: netem, duplicate: 1 %}}")


def test_frames_of_a_wire_are_the_links_work():
    study = read(rest="paths: {a: {frames: wire}, b: {rtt: 10 ms}}")
    assert link_config(study.paths["a"], 1).split == "real"
    assert link_config(study.paths["b"], 1).split == "merge"
    assert (study.paths["a"].impaired, study.paths["a"].linked) == (False, True)
    assert parse_study(study.source, "again.yaml") == study
    assert "frames" not in study.source.split("b:")[1]
