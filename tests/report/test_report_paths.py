"""A path in words: what was asked for, of each direction where they differ."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from trifecta.design import numbers, path_words
from trifecta.design.study_file import parse_study

STUDY = """
study: x
workload: {{requests: 10}}
factors: {{path: [p]}}
paths:
  p: {{{path}}}
"""


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "no impairment"),
        ("rtt: 80 ms, rate: 100 Mbit/s, queue: 1 bdp", "80 ms round trip, 100 Mbit/s, a queue of 1 MB"),
        ("rtt: 50 ms, loss: 2 %", "50 ms round trip, 2 % loss each way"),
        ("loss: {forward: 2 %}", "2 % loss there"),
        ("loss: {forward: 2 %, backward: 0.1 %}", "2 % loss there and 0.1 % loss back"),
        ("rtt: 0.3333 us", "333 ns round trip"),
        ("delay: {forward: 10 ms, backward: 30 ms}", "10 ms there and 30 ms back"),
        ("delay: {backward: 30 ms}", "0 ns there and 30 ms back"),
        (
            "rtt: 60 ms, rate: {forward: 5 Mbit/s, backward: 20 Mbit/s}",
            "60 ms round trip, 5 Mbit/s there and 20 Mbit/s back, a queue of 37.5 kB there and a queue of 150 kB back",
        ),
        (
            "rate: 10 Mbit/s, queue: 100 packets, discipline: codel",
            "10 Mbit/s, a queue of 100 packets with CoDel",
        ),
        (
            "gilbert_elliott: {good_to_bad: 1 %, bad_to_good: 24 %, loss_bad: 50 %}",
            "bursts of loss (2 % in all) each way",
        ),
        ("loss_schedule: [3, 7]", "packets 3, 7 lost each way"),
        ("loss_schedule: [1, 2, 3, 4, 5, 6]", "6 packets lost by a schedule each way"),
        ("corrupt: 0.1 %, duplicate: 1 %", "0.1 % corrupted each way, 1 % sent twice each way"),
        (
            "delay: 50 ms, jitter: {distribution: normal, sigma: 20 ms, reorder: true}",
            "100 ms round trip, normal jitter of 20 ms that reorders each way",
        ),
        ("delay: 5 ms, jitter: {distribution: table, table: [0 ms, 1 ms]}", "10 ms round trip, table jitter each way"),
        ("rtt: 10 ms, reorder: {probability: 1 %, gap: 2 ms}", "10 ms round trip, 1 % sent 2 ms ahead each way"),
        ("trace: {opportunities: [0, 3, 5], queue: 10 packets}", "deliveries by a trace"),
        ("rtt: 20 ms, frames: wire", "20 ms round trip, frames of a wire's size"),
    ],
)
def test_a_path_is_told_as_it_was_asked_for(path, words):
    study = asdict(parse_study(STUDY.format(path=path), "x.yaml"))
    assert path_words.in_words(study["paths"]["p"]) == words


@pytest.mark.parametrize(
    ("text", "plain"),
    [("10.0 kB", "10 kB"), ("1.50 MB", "1.5 MB"), ("100 kB", "100 kB"), ("1,000 B", "1,000 B"), ("1.05 s", "1.05 s")],
)
def test_what_was_asked_has_no_zeros_behind_the_point(text, plain):
    assert numbers.without_zeros(text) == plain
