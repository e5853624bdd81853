"""Services that call each other: who calls whom, where each runs, what it speaks, and what cannot be asked."""

import pytest

from trifecta.design import plan, services
from trifecta.design.errors import UserError
from trifecta.design.levels import Surroundings
from trifecta.design.model import PathSpec
from trifecta.design.sba import FUNCTIONS, STEPS
from trifecta.design.study import chain, fan_in, path, requests, sba_registration, study
from trifecta.design.study_file import parse_study
from trifecta.design.workloads.services import ChainWorkload

GO = ["services", "go-services"]
LAG = path("lag", delay="50 ms", jitter={"distribution": "normal", "sigma": "20 ms"}, loss="1 %")


def test_a_chain_goes_there_and_the_last_one_calls_nobody():
    graph = ChainWorkload(depth=4).graph
    assert graph.services == ("A", "B", "C", "D")
    assert [(caller, call.to, depth) for caller, call, depth in graph.walk()] == [
        ("A", "B", 0),
        ("B", "C", 1),
        ("C", "D", 2),
    ]
    assert graph.routes_of("D")[0].calls == ()
    assert graph.entry.body == "forward"


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_a_method_without_content_forwards_no_body(method):
    one = study("c", workload=chain(method=method, requests=1))
    assert one.workload.request_bytes == 0
    assert one.workload.graph.entry.body == "none"


def test_services_are_spread_over_the_hosts_and_the_last_host_takes_the_rest():
    graph = ChainWorkload(depth=5).graph
    assert services.host_of(graph, 1) == dict.fromkeys("ABCDE", "host1")
    assert services.host_of(graph, 2) == {"A": "host1", **dict.fromkeys("BCDE", "host2")}
    assert services.host_of(graph, 4) == {"A": "host1", "B": "host2", "C": "host3", "D": "host4", "E": "host4"}
    assert services.wires_of(graph, 4) == {
        ("host1", "host2"): ("A", "B"),
        ("host2", "host3"): ("B", "C"),
        ("host3", "host4"): ("C", "D"),
    }


def test_one_slow_hop_is_one_impaired_wire():
    one = study("c", workload=chain(requests=1, hosts=4, impaired="B-C"), paths=[LAG])
    assert one.workload.impaired_pairs == {("host2", "host3")}


def test_inside_says_what_the_calls_behind_the_first_speak():
    graph = ChainWorkload(depth=4).graph
    pairs = [("A", "B"), ("B", "C"), ("C", "D")]
    assert services.protocols_of(graph, "h3", "same") == dict.fromkeys(pairs, "h3")
    assert services.protocols_of(graph, "h3", "h2") == dict(zip(pairs, ["h3", "h2", "h2"], strict=True))
    assert services.protocols_of(graph, "h1", "h3+h2") == dict(zip(pairs, ["h1", "h3", "h2"], strict=True))


def test_a_registration_makes_every_call_of_the_procedure_once():
    graph = study("r", workload=sba_registration(requests=1)).workload.graph
    calls = graph.walk()
    assert len(calls) == 1 + len(STEPS)
    made = sorted((caller, call.to, call.method, call.path) for caller, call, _ in calls[1:])
    assert made == sorted((step.caller, step.callee, step.method, step.path) for step in STEPS)
    assert set(graph.services) == {"UE", *FUNCTIONS}
    within = [(caller, call.to) for caller, call, depth in calls if depth == 2]
    assert within == [("AUSF", "NRF"), ("AUSF", "UDM"), ("AUSF", "UDM")]


def test_clients_of_a_fan_in_have_a_connection_each_on_every_protocol():
    one = study("f", workload=fan_in(requests=20), factors={"clients": [4, 50]})
    workload = plan.workload_for(one, plan.treatments(one)[-1])
    assert (workload.connections, workload.streams, workload.in_flight) == (50, 1, 50)


@pytest.mark.parametrize(
    "one",
    [
        study("c", workload=chain(requests=5, hosts=4, messages="json"), factors={"inside": ["same", "HTTP/3+h2"]}),
        study("f", workload=fan_in(requests=5, conntrack=100, hosts=2)),
        study(
            "p",
            workload=fan_in(requests=5, hosts=2, client_processes=20),
            factors={"server": GO[1:], "clients": [4, 50]},
        ),
        study("s", workload=sba_registration(duration="1 s", loop="open", rate="50/s"), factors={"hosts": [1, 7]}),
    ],
)
def test_the_canonical_text_reads_back_to_an_equal_study(one):
    assert parse_study(one.source, "x.yaml") == one


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"workload": chain(requests=1), "paths": [LAG]}, "one host has no wire"),
        ({"workload": chain(requests=1, depth=3, hosts=4)}, "4 hosts for 3 services"),
        ({"workload": chain(requests=1, depth=11)}, "give 2 to 10 services"),
        ({"workload": chain(requests=1, depth=3, inside="HTTP/2+HTTP/1.1")}, "names 2 protocols for 1 pair"),
        ({"workload": chain(requests=1, depth=2, inside="HTTP/2")}, "no call behind"),
        ({"workload": chain(requests=1, hosts=4, impaired="A-C"), "paths": [LAG]}, "choose from all, A-B, B-C, C-D"),
        ({"workload": chain(requests=1, impaired="everything")}, "names no wire"),
        ({"workload": chain(requests=1, method="GET", messages="json")}, "carries no message"),
        ({"workload": chain(requests=1, conntrack=0)}, "no connections"),
        ({"workload": chain(requests=1, conntrack="100")}, "within one host"),
        ({"workload": chain(requests=1, hosts=2, conntrack="bypass", place="docker-bridge")}, "by connection tracking"),
        ({"workload": chain(requests=1, resumption=True, zero_rtt=True)}, "zero_rtt"),
        ({"workload": requests(requests=1), "factors": {"depth": [3]}}, "not a factor of the workload 'requests'"),
        ({"workload": chain(requests=1), "factors": {"client": ["curl"]}}, "not a factor of the workload 'chain'"),
        (
            {
                "workload": chain(requests=1),
                "factors": {"server": ["caddy"]},
                "surroundings": Surroundings(services=GO),
            },
            "no server 'caddy'; choose from services, go-services",
        ),
        ({"workload": chain(requests=1, tls_version="1.2/1.3")}, "use server: go-services"),
        ({"workload": chain(requests=1, think_time="10 ms")}, "think_time: the engine's own services do not do that"),
        ({"workload": chain(requests=1, retries=True), "factors": {"server": GO}}, "retries: the engine's own"),
        ({"workload": chain(requests=1, hosts=4, names="path")}, "names: the engine's own services do not do that"),
        ({"workload": chain(requests=1, names="path"), "factors": {"server": GO[1:]}}, "no service on another one"),
        (
            {"workload": fan_in(requests=1, hosts=2, names="path"), "factors": {"server": GO[1:]}},
            "on the client's host",
        ),
        (
            {"workload": chain(requests=1, hosts=4, names="path", place="docker-bridge")},
            "names: containers behind Docker's bridge",
        ),
        ({"workload": chain(requests=1, names="far")}, "is not where names are asked for"),
        (
            {"workload": chain(requests=1, think_time="1 ms/2 ms")},
            "has 2 parts; give one time, or three for HTTP/1.1/2/3",
        ),
        (
            {"workload": fan_in(requests=1, client_processes="each")},
            "client_processes: the engine's own services do not",
        ),
        (
            {"workload": fan_in(requests=1), "factors": {"server": GO, "client_processes": ["one", "each"]}},
            "client_processes: the engine's own services do not do that; use server: go-services, or leave it out",
        ),
        (
            {"workload": fan_in(requests=1, client_processes=20), "factors": {"server": GO[1:]}},
            "20 on the client's host and the rest on another need one for the service; give hosts: 2, or 'each'",
        ),
        (
            {"workload": fan_in(requests=1, clients=201, client_processes="each"), "factors": {"server": GO[1:]}},
            "201 clients are too many programs; give at most 200 clients, or 'one'",
        ),
        ({"workload": fan_in(requests=1, client_processes="all")}, "is not how clients are processes; write 'one'"),
        ({"workload": fan_in(requests=1, client_processes=0)}, "'0' is not how clients are processes"),
        ({"workload": chain(requests=1, client_processes="each")}, "client_processes"),
        ({"workload": chain(duration="1 s"), "factors": {"server": GO[1:]}}, "counts requests, not time"),
        ({"workload": chain(requests=1, loop="open", rate="9/s"), "factors": {"server": GO[1:]}}, "no open loop's"),
        ({"workload": chain(requests=1, resumption=True), "factors": {"server": GO[1:]}}, "resumes no sessions"),
        ({"workload": chain(requests=1, quinn="stock"), "factors": {"server": GO[1:]}}, "another QUIC library"),
        ({"workload": chain(requests=1, warmup="1 s"), "factors": {"server": GO[1:]}}, "warm-up in requests only"),
        (
            {"workload": chain(requests=1, congestion_control="bbr/cubic"), "factors": {"server": GO[1:]}},
            "one value for TCP and QUIC together with server: go-services",
        ),
        (
            {"workload": chain(requests=1, connection_leak=True), "factors": {"server": GO[1:]}},
            "give connection: new",
        ),
        ({"workload": sba_registration(requests=1, method="GET")}, "method"),
    ],
)
def test_what_services_cannot_do_is_refused_in_one_line(fields, said):
    with pytest.raises(UserError) as caught:
        study("x", **fields)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_clients_are_one_process_or_one_each_where_they_fit():
    def crowd(processes, clients=50, **fields):
        own = fan_in(requests=1, clients=clients, client_processes=processes, **fields)
        return study("f", workload=own, factors={"server": GO[1:]}, paths=[LAG]).workload

    assert crowd("one", hosts=2).client_hosts == ("host1",)
    assert crowd("each", hosts=2).client_hosts == ("host1",) * 50
    two = crowd(20, hosts=2)
    assert two.client_hosts == ("host1",) * 20 + ("host3",) * 30
    assert two.wires == two.impaired_wires == ("host1-host2", "host3-host2")
    assert crowd(20, hosts=2, impaired="A-B").impaired_wires == two.impaired_wires
    few = crowd(20, clients=20, hosts=2)
    assert (few.client_hosts, few.wires) == (("host1",) * 20, ("host1-host2",))
    here = study("f", workload=fan_in(requests=1, client_processes="each"), factors={"server": GO[1:]}).workload
    assert (here.client_hosts, here.wires) == (("host1",) * 4, ())


def test_switches_that_are_off_are_no_part_of_a_study():
    off = study("c", workload=chain(requests=1))
    assert "think_time" not in off.source and "retries" not in off.source
    switched = {"tls_version": "1.2/1.3", "alpn_mismatch": True, "think_time": "10 ms/10 ms/20 ms"}
    on = study("c", workload=chain(requests=1, **switched), factors={"server": GO[1:], "unverified": [False, True]})
    assert parse_study(on.source, "x.yaml") == on
    found = [plan.workload_for(on, one) for one in plan.treatments(on)]
    assert {one.unverified for one in found} == {False, True}
    assert {one.think_time_ns for one in found} == {(10_000_000, 10_000_000, 20_000_000)}


def test_whoever_asks_for_names_over_the_path_has_a_wire_to_the_name_server():
    def wires(names, **fields):
        own = chain(requests=1, names=names, **fields)
        return study("c", workload=own, factors={"server": GO[1:]}, paths=[LAG]).workload

    asked_once = ("host1-host2", "host2-host3", "host3-host4")
    assert wires("local", hosts=4).wires == wires("local", hosts=4).impaired_wires == asked_once
    far = wires("path", hosts=4)
    assert far.wires == far.impaired_wires == (*asked_once, "host1-host3"), "D asks for nobody, A on its own host"
    assert wires("path", hosts=2).wires == ("host1-host2",)
    assert wires("path", hosts=4, impaired="B-C").impaired_wires == ("host2-host3",)
    slow, once = PathSpec("slow", rtt_ns=100_000_000), wires("local", hosts=4)
    assert far.work_ns(slow, "new", "") - once.work_ns(slow, "new", "") == 300_000_000
    assert far.work_ns(slow, "reused", "") == once.work_ns(slow, "reused", "")
    assert "names" not in study("c", workload=chain(requests=1, names="local")).source


def test_the_places_of_a_study_are_those_of_its_cells():
    both = study("c", workload=chain(requests=1), factors={"place": ["native", "docker-bridge"]})
    assert plan.places(both) == {"native", "docker-bridge"}
    assert plan.places(study("c", workload=chain(requests=1, place="docker-host"))) == {"docker-host"}
    assert plan.places(study("c", workload=requests(requests=1))) == set()
