"""The configuration of a driver: what is refused, by the name of its field."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.implementations.browsers.driving import config
from trifecta.implementations.browsers import jobs


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "video"}, "video: belongs to kind 'video'"),
        ({"video": {"player_url": "https://a.lab/", "watch_ns": 5, "live": False}}, "video: belongs"),
        ({"discovery": "alt-svc", "protocol": "h2"}, "discovery: 'alt-svc' finds HTTP/3"),
        ({"url": "http://a.lab/"}, "url: 'http://a.lab/' is not an https URL"),
        ({"hosts": []}, "hosts: "),
        ({"hosts": ["a.lab, EXCLUDE *"]}, "hosts: "),
        ({"hosts": ["a.lab:443"]}, "hosts: "),
        ({"addresses": {"a.lab": "10.0.0.1, MAP *"}}, "addresses: "),
        ({"viewport": [1350]}, "viewport: "),
        ({"visits": True}, "visits: True is not a whole number"),
        ({"visits": 0}, "visits: 0 is not a whole number from 1"),
    ],
)
def test_what_is_refused(tmp_path, changes, words):
    with pytest.raises(ValueError, match="^" + words.replace("(", r"\(")):
        jobs.read(json.dumps(config(tmp_path, **changes)))


def test_what_may_be_left_out(tmp_path):
    job = jobs.job_of(jobs.read(json.dumps(config(tmp_path))))
    assert (job.discovery, job.view, job.viewport, job.watch) == ("forced", "cold", (1350, 940), None)
    assert job.state == tmp_path / "work" / "browser"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return config(tmp_path_factory.mktemp("config"))


@given(st.sampled_from([*jobs._FIELDS]), JSON)
def test_any_value_is_taken_or_refused_by_name(whole, name, value):
    try:
        jobs.job_of(jobs.read(json.dumps(whole | {name: value})))
    except ValueError as error:
        assert str(error).startswith((name, "video:", "discovery:"))


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_line_is_refused_in_words(line):
    with pytest.raises(ValueError, match=": "):
        jobs.read(line)
