"""A study in Python equals the same study in a file."""

import doctest

import pytest

from trifecta import studies
from trifecta.design import study as study_module
from trifecta.design.errors import UserError
from trifecta.design.study import path, requests, study, to_yaml
from trifecta.design.study_file import parse_study

FILE = """\
study: both
title: "Two routes: one study"
workload:
  method: POST
  response: 1 kB
  request: 10 kB
  duration: 1 s
  warmup: 100 ms
factors:
  protocol: [HTTP/2, HTTP/3]
  path: [rough, odd]
  in_flight: [1, 10]
  tcp_nodelay: [true, false]
paths:
  rough:
    rtt: 50 ms
    rate: 20 Mbit/s
    queue: 1 bdp
    loss: 2 %
  odd:
    delay: {forward: 10 ms, backward: 30 ms}
    loss: {backward: 1 %}
    jitter: {distribution: pareto, scale: 1 ms, shape: 2.5}
    trial: {requests: 40, warmup: 10 requests}
margin: 3 %
blocks: {at_least: 3, at_most: 9}
budget: 30 min
seed: 7
"""


def in_python():
    return study(
        "both",
        title="Two routes: one study",
        workload=requests(method="POST", response="1 kB", request="10 kB", duration="1 s", warmup="100 ms"),
        factors={
            "protocol": ["h2", "h3"],
            "path": ["rough", "odd"],
            "in_flight": [1, 10],
            "tcp_nodelay": [True, False],
        },
        paths=[
            path("rough", rtt="50 ms", rate="20 Mbit/s", queue="1 bdp", loss="2 %"),
            path(
                "odd",
                delay={"forward": "10 ms", "backward": "30 ms"},
                loss={"backward": 0.01},
                jitter={"distribution": "pareto", "scale": "1 ms", "shape": 2.5},
                trial={"requests": 40, "warmup": "10 requests"},
            ),
        ],
        margin=0.03,
        blocks={"at_least": 3, "at_most": 9},
        budget="30 min",
        seed=7,
    )


def test_both_routes_give_equal_studies():
    assert in_python() == parse_study(FILE, "both.yaml")


def test_to_yaml_reads_back_equal():
    assert parse_study(to_yaml(in_python()), "again.yaml") == in_python()


@pytest.mark.parametrize(
    "title", ["\U0001f600 \u2028 \ufeff \x85 \x00", 'a "b" \\c', "# no comment", "null", " x ", "é: ü", "1"]
)
def test_any_title_reads_back(title):
    odd = study("odd", title=title, workload=requests(requests=5))
    assert parse_study(to_yaml(odd), "again.yaml") == odd


def test_errors_name_the_study_and_the_field():
    with pytest.raises(UserError, match=r"study x: workload\.response: '10' has no unit"):
        study("x", workload=requests(response="10", requests=5))


def test_race_in_python_is_race():
    race = studies.load("race")
    again = study(
        "race",
        title=race.title,
        description=race.description,
        workload=requests(response="10 kB", in_flight=10, requests=150, warmup="20 requests"),
        factors={
            "protocol": ["HTTP/1.1", "HTTP/2", "HTTP/3"],
            "path": ["clean", "far", "rough"],
            "connection": ["new", "reused"],
            "server": ["origin", "caddy"],
        },
        paths=[
            path("clean", trial=trial_of(race, "clean")),
            path("far", rtt="60 ms", rate="100 Mbit/s", queue="1 bdp", trial=trial_of(race, "far")),
            path("rough", rtt="40 ms", rate="20 Mbit/s", queue="1 bdp", loss="1 %", trial=trial_of(race, "rough")),
        ],
        blocks={"at_least": race.min_blocks},
        budget="3 min",
    )
    assert again == race


def trial_of(race, name):
    lengths = race.paths[name].trial
    return {
        connection: {"requests": length.requests}
        | ({"warmup": f"{length.warmup_requests} requests"} if length.warmup_requests else {})
        for connection, length in lengths.items()
    }


def test_the_examples_in_the_docstring_hold():
    results = doctest.testmod(study_module)
    assert results.attempted > 0
    assert results.failed == 0
