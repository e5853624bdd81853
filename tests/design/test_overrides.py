"""--set: every factor and field, and errors that name the option."""

import pytest

from trifecta import studies
from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.factors import LENGTH_FIELDS, WORKLOAD_FIELDS
from trifecta.design.fields import REQUESTS_FIELDS
from trifecta.design.resolve import STUDY_FIELDS


def test_factors_and_fields_by_their_bare_names_and_by_place():
    study = studies.load(
        "race",
        [
            "path=rough",
            "factors.connection=new",
            "response=1 kB",
            "workload.in_flight=5",
            "paths.rough.loss=5 %",
            "paths.rough.jitter={distribution: normal, sigma: 2 ms}",
            "budget=10 min",
            "blocks.at_most=9",
            "seed=9",
        ],
    )
    assert study.factors["path"] == ("rough",)
    assert study.factors["connection"] == ("new",)
    assert (study.workload.response_bytes, study.workload.in_flight) == (1_000, 5)
    assert study.paths["rough"].loss == 0.05
    assert study.paths["rough"].forward[-1]["kind"] == "jitter"
    assert (study.budget_ns, study.max_blocks, study.seed) == (600_000_000_000, 9, 9)


def test_a_list_of_levels_and_a_factor_that_the_file_does_not_have():
    study = studies.load("race", ["connection=reused,new", "factors.congestion_control=[cubic, bbr]"])
    assert study.factors["connection"] == ("reused", "new")
    assert study.factors["congestion_control"] == ("cubic", "bbr")


def test_several_levels_make_a_factor_of_a_field_of_the_workload():
    study = studies.load("race", ["response=1 kB,100 kB", "budget=none"])
    assert study.factors["response"] == ("1 kB", "100 kB")
    assert "response" not in study.source.split("factors:")[0].split("workload:")[1]


def test_later_options_win():
    assert studies.load("race", ["seed=1", "seed=2"]).seed == 2


@pytest.mark.parametrize("factor", [field.name for field in REQUESTS_FIELDS if field.factor])
def test_every_workload_factor_can_be_given_levels(factor):
    level = {
        "method": "GET",
        "response": "3 kB",
        "request": "0 B",
        "rate": "50/s",
        "arrivals": "poisson",
        "congestion_control": "bbr",
        "tls_version": "1.3",
        "key_exchange": "X25519",
        "in_flight": "10",
        "connections": "10",
        "streams": "1",
        "quinn": "stock",
        "read_timeout": "5 s",
        "write_timeout": "none",
        "client_cpu": "5 %",
        "server_cpu": "none",
        "initial_window": "2",
        "pacing": "off",
        "ack_delay": "5 ms",
        "ack_packets": "10",
        "segmentation_offload": "off",
        "idle_window": "keep",
        "packet_threshold": "100",
        "tls_record": "1200 B",
        "tls_wait": "220 ms",
        "mtu": "1280",
        "udp_buffer": "16 MB",
        "stream_window": "16 kB",
        "connection_window": "64 KiB",
        "ip": "IPv6",
    }.get(factor, "false")
    text = studies.bundled()["race"].read_text()
    file = text.replace("  response: 10 kB\n", "").replace("  in_flight: 10\n", "").replace("  method: GET\n", "")
    from trifecta.design.study_file import parse_study

    more = ["loop=open", "workload.rate=50/s"] if factor == "arrivals" else ["loop=open"] if factor == "rate" else []
    study = parse_study(file, "f.yaml", [*more, f"factors.{factor}={level}", "budget=none"])
    assert len(study.factors[factor]) == 1


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("path", "option --set path: write KEY=VALUE"),
        ("=3", "option --set =3: write KEY=VALUE"),
        ("pth=clean", "option --set pth=clean: no factor or field 'pth'; did you mean 'path'?"),
        ("path=cleen", "option --set path=cleen: factors.path[0]: path 'cleen' is not defined; did you mean 'clean'?"),
        ("paths.rough.loss=lots", "option --set paths.rough.loss=lots: paths.rough.loss: 'lots' is not a share"),
        ("paths.rough.los=1 %", "option --set paths.rough.los=1 %: paths.rough.los: unknown field"),
        ("path.rough=1", "no field 'path' in a study; did you mean 'paths'?"),
        ("seed=", "option --set seed=: has no value"),
        ("seed.x=1", "seed: is a mapping, not a single value"),
        ("paths..loss=1", "has an empty part"),
        ("paths.ruogh.loss=1 %", "no cell has the path 'ruogh'; did you mean 'rough'?"),
        ("blocks.at_least=300", "blocks.at_least: 300 is more than at_most (200)"),
        ("workload={", "not YAML"),
    ],
)
def test_errors_name_the_option(option, message):
    with pytest.raises(UserError) as error:
        studies.load("race", [option])
    assert message in str(error.value)
    assert option in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", sorted({*STUDY_FIELDS, *WORKLOAD_FIELDS, *LENGTH_FIELDS} - {"title", "description"}))
def test_every_field_can_be_reached_by_its_bare_name(name):
    with pytest.raises(UserError, match=f"option --set {name}=<>: "):
        studies.load("race", [f"{name}=<>"])


def test_texts_can_be_set():
    study = studies.load("race", ["title=A race, at last", "description=x"])
    assert (study.title, study.description) == ("A race, at last", "x")


def lengths(*options):
    study = studies.load("race", ["budget=none", *options])
    found = {}
    for one in plan.treatments(study):
        workload = plan.workload_for(study, one)
        found[one.path, one.connection] = (workload.requests, workload.warmup_requests)
    return found


@pytest.mark.parametrize("key", ["requests", "workload.requests"])
def test_a_length_asked_for_by_hand_wins_over_that_of_a_path(key):
    assert {requests for requests, _ in lengths(f"{key}=6000").values()} == {6000}
    assert lengths("requests=6000")["clean", "reused"] == (6000, 50)


def test_a_warm_up_asked_for_by_hand_wins_too():
    assert {warmup for _, warmup in lengths("warmup=5 requests").values()} == {5}
    assert lengths("warmup=5 requests")["far", "new"] == (10, 5)


@pytest.mark.parametrize("connection", ["new", "reused"])
def test_a_length_asked_for_where_a_path_has_lengths_of_other_connections_too(connection):
    assert {requests for requests, _ in lengths("requests=60", f"connection={connection}").values()} == {60}


@pytest.mark.parametrize("turned", [1, -1])
def test_the_length_of_a_path_asked_for_by_hand_wins_over_that_of_the_workload(turned):
    found = lengths(*["requests=60", "paths.far.trial.new.requests=7"][::turned])
    assert found["far", "new"][0] == 7
    assert {requests for place, (requests, _) in found.items() if place != ("far", "new")} == {60}


def test_a_length_that_the_budget_cannot_hold_is_refused():
    with pytest.raises(UserError, match="budget: 3 min cannot hold 6 blocks of every cell"):
        studies.load("race", ["requests=6000"])
    alone = ["requests=60000", "blocks={at_least: 1, at_most: 1}"]
    with pytest.raises(UserError, match=r"cannot hold 1 block of every cell: \d+ s at the least; raise it, or shorten"):
        studies.load("race", alone)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["path=clean", "paths.rough.loss=5 %"], "no cell has the path 'rough'; add --set path=rough, or leave it out"),
        (["captured_trials_count=true"], "no trial is captured; add --capture, or leave it out"),
        (["paths.far.trial.new.requests=5", "connection=reused"], "no cell has new connections; leave it out"),
    ],
)
def test_what_no_cell_has_is_refused(options, said):
    with pytest.raises(UserError) as error:
        studies.load("race", options)
    assert str(error.value).startswith("option --set ")
    assert str(error.value).endswith(said)
