"""Arms are levels of the factor that a study compares; protocol is the default."""

import pytest

from trifecta import studies
from trifecta.cli.options import as_overrides
from trifecta.design import plan
from trifecta.design.arms import arm_words
from trifecta.design.errors import UserError
from trifecta.design.study_file import parse_study

FOUND = {"server": ["origin", "caddy", "nginx"], "client": ["load", "curl"]}


def race(*sets, study="race", **asked):
    changes = as_overrides(tuple(sets), None, None, None, (), **asked)
    return studies.load(study, changes, found_levels=FOUND.__getitem__)


def test_protocol_is_compared_unless_the_study_says_otherwise():
    study = race()
    assert (study.compare, study.baseline.level) == ("protocol", "h2")
    assert "compare" not in study.source, "studies from before keep their identity"


def test_levels_of_any_factor_are_arms_and_all_other_factors_make_the_cells():
    study = race("protocol=h2,h3", "path=far", compare="server=origin,caddy")
    assert plan.arms(study) == ["origin", "caddy", "origin#aa"]
    assert [cell.key for cell in plan.cells(study)] == [
        f"protocol={protocol},path=far,connection={mode}" for protocol in ("h2", "h3") for mode in ("new", "reused")
    ]
    assert parse_study(study.source, "again.yaml") == study
    trials = plan.block_trials(study, plan.cells(study)[-1], 0, 0)
    assert {(one.arm, one.server, one.protocol, one.client) for one in trials} == {
        ("origin", "origin", "h3", "load"),
        ("caddy", "caddy", "h3", "load"),
        ("origin#aa", "origin", "h3", "load"),
    }
    assert len({one.seed for one in trials}) == 1


def test_a_compared_field_of_the_workload_is_set_by_the_arm():
    study = race("protocol=h3", "path=clean", "connection=new", "server=origin", compare="in_flight=1,10")
    (cell,) = plan.cells(study)
    trials = {one.arm: one for one in plan.block_trials(study, cell, 0, 0)}
    assert {arm: plan.workload_for(study, one).in_flight for arm, one in trials.items()} == {
        "1": 1,
        "10": 10,
        "1#aa": 1,
    }
    assert trials["10"].levels["in_flight"] == 10, "the level itself, not its text"


def test_the_baseline_is_the_first_level_or_the_one_that_is_named():
    assert race(compare="server=caddy,origin").baseline.level == "caddy"
    assert race(compare="server=caddy,origin", baseline="origin").baseline.level == "origin"
    assert race(baseline="HTTP/3").baseline.level == "h3"
    assert race(compare="server=any").baseline.level == "origin"


def test_a_threat_is_a_factor_with_levels_off_and_on():
    study = race("protocol=h2", compare="delayed-ack")
    assert (study.compare, plan.arms(study)) == ("tcp_nodelay", ["true", "false", "true#aa"])
    assert race("protocol=h3", compare="stock-quinn").factors["quinn"] == ("adapted", "stock")
    for name in ("jitter-reordering", "single-load", "retries-hidden"):
        with pytest.raises(UserError, match=f"option --compare {name}: it is no factor with levels off and on"):
            race(compare=name)


def test_the_baseline_of_the_file_goes_with_what_the_file_compares():
    text = "study: mine\nworkload: {requests: 10}\nbaseline: HTTP/1.1\nfactors: {server: [caddy, origin]}\n"
    assert parse_study(text, "mine.yaml").baseline.level == "h1"
    assert parse_study(text, "mine.yaml", ["compare=server"]).baseline.level == "caddy"
    assert race(compare="server").title == "race: which server?"
    assert race(compare="resumption=false,true").title == "race: resumption on or off?"
    assert race("title=Mine", compare="server").title == "Mine"
    assert race("compare=protocol").title == race().title


@pytest.mark.parametrize(
    ("sets", "asked", "said"),
    [
        ([], {"compare": "speed"}, "compare: 'speed' is no factor of the workload 'requests'; choose from protocol"),
        ([], {"compare": "servr"}, "compare: 'servr' is no factor of the workload 'requests'; did you mean 'server'?"),
        ([], {"compare": "server=origin"}, "compare: server has the level origin only; give two levels or more"),
        (["protocol=h3"], {"compare": "protocol"}, "compare: protocol has the level h3 only; give two levels or more"),
        ([], {"compare": "key_exchange"}, "compare: key_exchange is no factor of this study; give two levels or more"),
        ([], {"compare": "server", "baseline": "nginx"}, "baseline: 'nginx' is not a level of server (origin, caddy)"),
        ([], {"compare": "server="}, "option --compare: 'server=' is not FACTOR=LEVEL,LEVEL, nor a factor alone"),
        ([], {"compare": "delayed_ack"}, "'delayed_ack' is neither a factor nor a threat; did you mean 'delayed-ack'?"),
        ([], {"compare": "path"}, "trials of clean and of far would not do the same in protocol=h1,connection=new"),
        (["requests=100"], {"compare": "connection"}, "warmup 20 requests"),
        (
            ["server=origin"],
            {"compare": "server=origin,caddy"},
            "options --compare server=origin,caddy and --set server=origin: both set server; leave one out",
        ),
        (
            ["compare=path"],
            {"compare": "server"},
            "options --compare server and --set compare=path: both set compare; leave one out",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(sets, asked, said):
    with pytest.raises(UserError) as error:
        race(*sets, **asked)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_level_that_looks_like_a_second_run_is_refused():
    text = (
        "study: mine\nworkload: {requests: 10}\npaths: {clean: {}}\ncompare: server\nfactors: {server: [a, 'a#aa']}\n"
    )
    with pytest.raises(UserError, match="no level of server may end in '#aa'"):
        parse_study(text, "mine.yaml")


def test_compared_paths_share_the_random_numbers_of_a_block():
    study = race("requests=40", "warmup=4 requests", "protocol=h2", compare="path=far,rough")
    cell = plan.cells(study)[0]
    trials = plan.block_trials(study, cell, 3, 0)
    assert {one.path for one in trials} == {"far", "rough"}
    assert len({one.seed for one in trials}) == 1
    assert trials[0].seed != plan.block_seed(study, cell, 4)


@pytest.mark.parametrize(
    ("compare", "arm", "said"),
    [
        ("protocol", "h3", "HTTP/3"),
        ("server", "caddy", "caddy"),
        ("congestion_control", "bbr", "bbr"),
        ("resumption", "true", "resumption on"),
        ("in_flight", "10", "in flight 10"),
        ("read_timeout", "none", "read timeout none"),
        ("response", "10 kB", "response 10 kB"),
        ("connection", "new", "new connection"),
        ("inside", "HTTP/2", "HTTP/2 inside"),
        ("inside", "same", "same inside"),
        ("zero_rtt", "false", "0-RTT off"),
        ("page", "/home/me/pages/mine/", "mine"),
        ("key_exchange", "X25519", "X25519"),
        ("tls_version", "1.3", "TLS version 1.3"),
    ],
)
def test_an_arm_says_of_what_it_is_a_level(compare, arm, said):
    assert arm_words(compare, arm) == said
