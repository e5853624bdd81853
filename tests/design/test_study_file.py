"""Study files: what is read, and the one line for everything that is wrong."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trifecta import studies
from trifecta.design.errors import UserError
from trifecta.design.study_file import parse_study

SMALL = """\
study: small
workload:
  response: 10 kB
  requests: 400
factors:
  path: [clean, rough]
paths:
  rough:
    rtt: 50 ms
    rate: 20 Mbit/s
    loss: 2 %
"""


def test_a_small_study_gets_every_factor_and_default():
    study = parse_study(SMALL, "small.yaml")
    assert study.factors == {
        "protocol": ("h1", "h2", "h3"),
        "path": ("clean", "rough"),
        "connection": ("reused",),
        "server": ("origin",),
    }
    assert study.workload.response_bytes == 10_000
    assert study.baseline.level == "h2"
    assert study.metric == "latency_p50_ns"
    assert study.paths["rough"].queue_bytes == 125_000  # 20 Mbit/s x 50 ms
    assert not study.paths["clean"].impaired


@pytest.mark.parametrize("name", sorted(studies.bundled()))
def test_bundled_studies_read_and_their_canonical_text_reads_back_equal(name):
    study = studies.load(name)
    again = parse_study(study.source, "canonical.yaml")
    assert again == study
    assert again.source == study.source


def test_race_is_the_race():
    race = studies.load("race")
    assert race.factors["protocol"] == ("h1", "h2", "h3")
    assert race.factors["path"] == ("clean", "far", "rough")
    assert race.factors["connection"] == ("new", "reused")
    assert race.factors["server"] == ("origin", "caddy")
    assert race.budget_ns == 180_000_000_000
    assert not race.paths["clean"].impaired
    far, rough = race.paths["far"], race.paths["rough"]
    assert (far.rtt_ns, far.rate_bits_per_s) == (60_000_000, 100_000_000)
    assert (rough.rtt_ns, rough.rate_bits_per_s, rough.queue_bytes) == (40_000_000, 20_000_000, 100_000)
    losses = [d["probability"] for way in (rough.forward, rough.backward) for d in way if d["kind"] == "loss"]
    assert losses == [0.01, 0.01]


def test_an_open_loop_may_ask_for_more_than_its_path_carries():
    """Who looks for the rate at which a path is full lets more be in flight; ten requests are never more than ten."""
    for requests, most in ((400, 200), (10, 10)):
        loop = f"requests: {requests}\n  loop: open\n  rate: 500/s\n  in_flight: {most}"
        workload = parse_study(changed(SMALL, "requests: 400", loop), "s.yaml").workload
        assert (workload.rate_per_s, workload.in_flight) == (500, most)


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("response:", "respons:", "s.yaml:3: workload.respons: unknown field; did you mean 'response'?"),
        ("study: small", "study: small\nbugdet: 3 min", "s.yaml:2: bugdet: unknown field; did you mean 'budget'?"),
        ("10 kB", "10 ms", "s.yaml:3: workload.response: '10 ms': 'ms' is not a unit of a size"),
        (
            "[clean, rough]",
            "[clean, rogh]",
            "s.yaml:6: factors.path[1]: path 'rogh' is not defined; did you mean 'rough'",
        ),
        ("path: [", "protocol: [HTTP/4]\n  path: [", "s.yaml:6: factors.protocol[0]: 'HTTP/4' is not a protocol"),
        ("path: [", "colour: [red]\n  path: [", "s.yaml:6: factors.colour: unknown field; choose from protocol"),
        ("path: [", "connection: [old]\n  path: [", "s.yaml:6: factors.connection[0]: 'old' is not a connection mode"),
        ("path: [", "server: [origin, origin]\n  path: [", "factors.server[1]: level 'origin' is listed twice"),
        ("path: [", "server: []\n  path: [", "s.yaml:6: factors.server: has no level"),
        ("path: [", "response: [1 kB]\n  path: [", "factors.response: is a field of the workload too"),
        ("loss: 2 %", "loss: 102 %", "s.yaml:11: paths.rough.loss: '102 %' is more than 100 %; give 0 % to 100 %"),
        ("loss: 2 %", "loss: 2", "paths.rough.loss: '2' is more than 100 %"),
        ("rate: 20 Mbit/s", "queue: 1 bdp", "s.yaml:10: paths.rough.queue: needs a rate"),
        ("rate: 20 Mbit/s", "rate: 0 bit/s", "paths.rough.rate: nothing passes at rate 0"),
        ("rtt: 50 ms", "queue: 1 bdp", "s.yaml:9: paths.rough.queue: a bandwidth-delay product needs a delay"),
        ("rtt: 50 ms", "rtt: 50 ms\n    delay: 5 ms", "s.yaml:10: paths.rough.delay: a path has an rtt or a delay"),
        ("rate: 20 Mbit/s", "rate: 20 Mbit/s\n    queue: 100 B", "paths.rough.queue: 100 B holds no full packet"),
        ("loss: 2 %", "loss: {forward: 2 %, back: 1 %}", "s.yaml:11: paths.rough.loss.back: unknown field"),
        ("requests: 400", "duration: 1 s\n  warmup: 2 s", "s.yaml:5: workload.warmup: is longer than the 1 s"),
        ("requests: 400", "requests: 400\n  warmup: 401 requests", "workload.warmup: is longer than the 400 requests"),
        ("requests: 400", "requests: 0", "s.yaml:2: workload: a trial would never end"),
        ("requests: 400", "requests: 400\n  streams: 2", "s.yaml:5: workload.streams: HTTP/1.1 has no 2 streams"),
        (
            "requests: 400",
            "requests: 400\n  connections: 3",
            "workload.connections: 10 requests in flight do not divide",
        ),
        ("requests: 400", "requests: 400\n  connections: 2", "workload.connections: HTTP/1.1 needs 10 connections"),
        ("requests: 400", "requests: 400\n  tls_version: 1.2", "workload.tls_version: HTTP/3 needs TLS 1.3"),
        ("requests: 400", "requests: 400\n  zero_rtt: true", "workload.zero_rtt: early data needs a resumed session"),
        ("requests: 400", "requests: 400\n  loop: open", "workload.rate: is missing; an open loop needs one"),
        ("requests: 400", "requests: 400\n  rate: 5/s", "workload.rate: a closed loop sets its own pace"),
        (
            "requests: 400",
            "requests: 400\n  loop: open\n  rate: 500/s",
            "workload.in_flight: 500 requests per second over a round trip of 50 ms are 25 in flight or more, and 10 "
            "may be; allow more, or lower the rate",
        ),
        (
            "requests: 400",
            "requests: 400\n  loop: open\n  rate: 500/s\n  in_flight: 199",
            "workload.rate: 500 per second of 10 kB are 40 Mbit/s, and the path carries 20 Mbit/s: 200 would be in "
            "flight in the end, and 199 may be; lower it, send less, or allow more in 'in_flight'",
        ),
        ("requests: 400", "requests: 400\n  request: 1 kB", "workload.request: a GET carries no content"),
        ("requests: 400", "requests: [400]", "s.yaml:4: workload.requests: is a list, not a single value"),
        ("study: small", "study: small\nbaseline: HTTP/9", "s.yaml:2: baseline: 'HTTP/9' is not a protocol"),
        ("study: small", "study: small\nbudget: 100 ms", "s.yaml:2: budget: 100 ms cannot hold 6 blocks"),
        ("study: small", "study: small\nblocks: {at_least: 9, at_most: 3}", "blocks.at_least: 9 is more than at_most"),
        ("study: small", "study: small\nmetric: speed", "s.yaml:2: metric: 'speed' is not a metric"),
        ("study: small", "study: small\nconfidence: 5 %", "confidence: '5 %' is not a useful confidence"),
        ("study: small", "study: small\nstudy: big", "s.yaml:2: study: appears twice, first in line 1"),
        ("study: small", "study: ../../etc", "s.yaml:1: study: '../../etc' is not a name"),
        ("study: small", "title: x", "study: is missing"),
        ("study: small", "study: !!python/name:os.system small", "tag 'tag:yaml.org,2002:python"),
        ("study: small", "study: !bad small", "s.yaml:1: study: tag '!bad' is not used here"),
        ("10 kB", "&size 10 kB\n  request: *size", "anchors and aliases are not used here"),
        ("10 kB", "&size 10 kB", "workload.response: anchors and aliases are not used here"),
        ("study: small", "&a study: small", "a field's name is one word"),
        ("study: small", "study: [small", "s.yaml:2: not YAML"),
        ("study: small", "study: small\n? [a]\n: b", "s.yaml:2: "),
    ],
)
def test_one_line_with_file_line_field_and_remedy(old, new, message):
    with pytest.raises(UserError) as error:
        parse_study(changed(SMALL, old, new), "s.yaml")
    text = str(error.value)
    assert message in text
    assert text.startswith("s.yaml")
    assert "\n" not in text


def test_baseline_must_be_a_level():
    with pytest.raises(UserError, match=r"s\.yaml:1: baseline: 'h1' is not a level of protocol"):
        parse_study("baseline: h1\n" + SMALL + "", "s.yaml", ["protocol=h2,h3"])


def test_servers_are_those_with_an_adapter():
    from trifecta.design.resolve import Surroundings

    text = changed(SMALL, "path: [", "server: [origin, cady]\n  path: [")
    with pytest.raises(UserError, match="no server 'cady'; did you mean 'caddy'"):
        parse_study(text, "s.yaml", surroundings=Surroundings(servers=["origin", "caddy"]))


@pytest.mark.parametrize("text", ["", "\n", "- a", "hello", "\x00", "a: " + "[" * 3000, "a: " + "{b: " * 3000])
def test_other_texts_are_refused_in_one_line(text):
    with pytest.raises(UserError) as error:
        parse_study(text, "s.yaml")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("bracket", ["[", "{"])
def test_brackets_are_read_only_so_deep(bracket):
    """What is deeper is not read on: that took seconds for a file of a few kB."""
    with pytest.raises(UserError, match="nested too deeply"):
        parse_study("a: " + bracket * 5000, "s.yaml")
    with pytest.raises(UserError, match="a study has a few levels"):
        parse_study("a: " + "[" * 50 + "]" * 50, "s.yaml")


@settings(max_examples=300, derandomize=True)
@given(st.one_of(st.text(max_size=200), st.binary(max_size=200).map(lambda b: b.decode("latin-1"))))
def test_any_text_is_a_study_or_one_line(text):
    try:
        parse_study(text, "s.yaml")
    except UserError as error:
        assert "\n" not in str(error)


@settings(max_examples=300, derandomize=True)
@given(st.data())
def test_a_damaged_study_is_a_study_or_one_line(data):
    start = data.draw(st.integers(0, len(SMALL)))
    end = data.draw(st.integers(start, min(len(SMALL), start + 20)))
    damaged = SMALL[:start] + data.draw(st.text(max_size=10)) + SMALL[end:]
    try:
        parse_study(damaged, "s.yaml")
    except UserError as error:
        assert "\n" not in str(error)
