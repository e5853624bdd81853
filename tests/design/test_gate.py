"""What a gate asks: levels, conditions, and the study that comes of them."""

import pytest

from tests.analysis.gates import gate_of
from trifecta import studies
from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.gate import WIRE_BYTES, GatePlan, Refs, read_conditions, read_refs
from trifecta.design.study_file import parse_study
from trifecta.design.yaml_text import parse_document


@pytest.mark.parametrize(
    ("baseline", "candidate", "refs"),
    [
        ("origin", "caddy", Refs("server", "origin", "caddy")),
        ("server=origin", "caddy", Refs("server", "origin", "caddy")),
        ("tcp_nodelay=on", "tcp_nodelay=off", Refs("tcp_nodelay", "on", "off")),
        (" path = far ", "path=rough", Refs("path", "far", "rough")),
        ("nginx@./a", "nginx@./b", Refs("server", "nginx@./a", "nginx@./b")),
        ("cmd:./s --port={port}", "mine=./s.yaml", Refs("server", "cmd:./s --port={port}", "mine=./s.yaml")),
        ("server=cmd:./s --a=b", "origin", Refs("server", "cmd:./s --a=b", "origin")),
    ],
)
def test_a_ref_is_a_level_of_a_factor_or_a_server(baseline, candidate, refs):
    assert read_refs(baseline, candidate) == refs


@pytest.mark.parametrize(
    ("baseline", "candidate", "said"),
    [
        ("origin", "path=far", "options --baseline origin and --candidate path=far: levels of two factors, server and"),
        ("tcp_nodely=on", "tcp_nodelay=off", "option --baseline: no factor 'tcp_nodely'; did you mean 'tcp_nodelay'?"),
        ("origin", "server=", "option --candidate: 'server=' names no level"),
        ("", "origin", "option --baseline: '' names no level"),
    ],
)
def test_what_is_no_pair_of_levels_is_refused_in_one_line(baseline, candidate, said):
    with pytest.raises(UserError) as error:
        read_refs(baseline, candidate)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_levels_come_whole_whatever_they_hold():
    document = parse_document("study: s\nfactors: {protocol: [HTTP/3]}\n", "s.yaml")
    Refs("server", 'cmd:a "b", c=d', "ü[x]").change(document)
    assert document.tree["factors"]["server"] == ['cmd:a "b", c=d', "ü[x]"]
    assert (document.tree["compare"], document.tree["baseline"]) == ("server", 'cmd:a "b", c=d')


def race(baseline, candidate, *sets, file="race"):
    refs = read_refs(baseline, candidate)
    study = studies.load(file, sets, change=refs.change)
    return GatePlan(study, read_conditions((), study))


def test_the_two_levels_are_the_arms_and_the_rest_makes_cells():
    gate = race("caddy", "origin", "protocol=h2,h3", "path=far")
    assert plan.arms(gate.study) == ["caddy", "origin", "caddy#aa"]
    assert (gate.baseline, gate.candidate) == ("caddy", "origin")
    assert [gate.place(cell) for cell in plan.cells(gate.study)] == [
        "HTTP/2, far, new", "HTTP/2, far, reused",
        "HTTP/3, far, new", "HTTP/3, far, reused",
    ]  # fmt: skip
    assert parse_study(gate.study.source, "again.yaml") == gate.study


def test_levels_are_read_as_the_factor_reads_them():
    gate = race("tcp_nodelay=on", "tcp_nodelay=off", "protocol=h2", "path=clean")
    assert (gate.baseline, gate.candidate) == ("true", "false")
    assert (gate.name("true"), gate.name("false")) == ("TCP nodelay on", "TCP nodelay off")


@pytest.mark.parametrize("level", ["server=origin", "tcp_nodelay=off", "protocol=HTTP/3", "congestion_control=bbr"])
def test_a_level_against_itself_is_the_baseline_run_again(level):
    gate = race(level, level, "path=clean")
    first, again = plan.arms(gate.study)
    assert (gate.baseline, gate.candidate) == (first, again)
    assert again == f"{first}#aa"
    assert gate.name(again) == f"{gate.name(first)} again"
    assert parse_study(gate.study.source, "again.yaml") == gate.study


def test_a_field_of_the_workload_is_taken_from_there(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("study: mine\nworkload: {requests: 10, tcp_nodelay: true}\nfactors: {protocol: [HTTP/2]}\n")
    assert race("tcp_nodelay=on", "tcp_nodelay=on", file=str(file)).candidate == "true#aa"


@pytest.mark.parametrize(
    ("refs", "sets", "said"),
    [
        (
            ("origin", "apache"),
            [],
            "--baseline origin --candidate apache: factors.server[1]: no server 'apache'",
        ),
        (("origin", "caddy"), ["server=nginx"], "option --baseline origin --candidate caddy: --set server=nginx sets"),
        (("origin", "caddy"), ["compare=path"], "--set compare=path sets compare too; leave one out"),
        (("page=light", "page=heavy"), [], "compare: 'page' is no factor of the workload 'requests'"),
        (("path=clean", "path=far"), [], "trials of clean and of far would not do the same"),
    ],
)
def test_what_the_study_cannot_have_is_refused_in_one_line(refs, sets, said):
    with pytest.raises(UserError) as error:
        asked = read_refs(*refs)
        studies.load("race", sets, studies.known_servers(), change=asked.change)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_conditions_are_metrics_with_limits():
    asked = read_conditions(["slower:3%", "more-cpu:10 %", "more-bytes:2.5%", "latency_p95:5%"], gate_of().study)
    assert [(one.text, one.metric.name) for one in asked] == [
        ("slower:3 %", "latency_p50_ns"),
        ("more-cpu:10 %", "server_cpu_ns_per_request"),
        ("more-bytes:2.5 %", WIRE_BYTES.name),
        ("latency_p95:5 %", "latency_p95_ns"),
    ]
    assert [one.limit for one in asked] == [0.03, 0.1, 0.025, 0.05]
    assert [one.text for one in read_conditions((), gate_of().study)] == ["slower:3 %"]


def test_slower_is_of_the_metric_of_the_study_and_cpu_of_what_is_compared():
    gate = gate_of(sets=["metric=ttfb_p50"])
    assert gate.conditions[0].metric.name == "ttfb_p50_ns"
    clients = race("client=load", "client=curl", "protocol=h2", "path=clean")
    (cpu,) = read_conditions(["more-cpu:3%"], clients.study)
    assert cpu.metric.name == "client_cpu_ns_per_request"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["slower"], "option --fail-on: 'slower' has no limit; write for example slower:3%"),
        (["slower:3"], "option --fail-on slower:3: '3' is no limit; give more than 0% and at most 100%"),
        (["slower:x%"], "option --fail-on slower:x%: "),
        (["slower:0%"], "option --fail-on slower:0%: '0%' is no limit"),
        (["slower:300%"], "option --fail-on slower:300%: '300%' is no limit"),
        (["slowr:3%"], "option --fail-on slowr:3%: nothing is called 'slowr'; did you mean 'slower'?"),
        (["slower:3%", "slower:5%"], "option --fail-on slower:5%: slower has a limit already, slower:3 %"),
        (["success_rate:3%"], "option --fail-on success_rate:3%: a ratio of success rate says nothing"),
    ],
)
def test_what_is_no_condition_is_refused_in_one_line(asked, said):
    with pytest.raises(UserError) as error:
        read_conditions(asked, gate_of().study)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("study", "sets", "refs", "asked", "said"),
    [
        (
            "race", ("requests=20",), ("origin", "caddy"), "latency_p99:5%",
            "the 99th percentile of latency needs 100 requests a trial, protocol=h2,path=far,connection=reused has "
            "20; ask for more (--set requests=100) or for another metric",
        ),
        ("race", ("client=curl",), ("origin", "caddy"), "more-bytes:2%", "curl does not count octets on the wire per"),
        ("race", (), ("client=load", "client=curl"), "more-bytes:2%", "curl does not count octets on the wire per"),
        ("race", (), ("origin", "caddy"), "lcp_p50:5%", "is of visits, and the workload requests has none; give"),
        ("page", (), ("origin", "caddy"), "bitrate_mean:5%", "is of videos, and the workload page plays none"),
        ("page", ("filmstrip=false",), ("origin", "caddy"), "speed_index_p50:5%", "and these visits are not filmed"),
        ("page", (), ("origin", "caddy"), "more-bytes:2%", "chromium does not count octets on the wire per request"),
        ("page", ("visits=3",), ("origin", "caddy"), "latency_p95:5%", "needs 20 visits a trial"),
        ("chain", (), ("services", "go-services"), "more-bytes:2%", "go-services does not count octets on the wire"),
        ("video", ("mode=on-demand",), ("origin", "caddy"), "live_latency_p50:5%", "and this one is on demand"),
    ],
)  # fmt: skip
def test_what_no_trial_will_have_a_value_of_is_refused_before_anything_runs(study, sets, refs, asked, said):
    narrowed = ("path=far", "connection=reused") if study == "race" else ()
    made = studies.load(study, ("protocol=h2", *narrowed, *sets), change=read_refs(*refs).change)
    with pytest.raises(UserError) as error:
        read_conditions([asked], made)
    assert str(error.value).startswith(f"option --fail-on {asked}: ")
    assert said in str(error.value)


def test_what_a_trial_may_have_a_value_of_is_asked():
    timed = "study: s\nworkload: {duration: 1 s}\nfactors: {protocol: [h2], path: [clean]}\n"
    made = parse_study(timed, "s.yaml", change=read_refs("origin", "caddy").change)
    asked = read_conditions(["latency_p99:5%", "more-bytes:2%"], made)
    assert [one.name for one in asked] == ["latency_p99", "more-bytes"]
    page = studies.load("page", ("protocol=h2",), change=read_refs("origin", "caddy").change)
    assert len(read_conditions(["lcp_p50:5%", "speed_index_p50:5%", "slower:5%"], page)) == 3
