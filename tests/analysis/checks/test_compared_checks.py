"""Checks between arms: the compared factor's own field may differ, everything else must not."""

import dataclasses

import pytest

from tests.analysis.checks import sound
from trifecta.analysis.checks import TRIAL_CHECKS
from trifecta.analysis.checks.evidence import Evidence
from trifecta.design import plan
from trifecta.design.model import Baseline, RequestsWorkload


def pair(compare, levels, **changes):
    """The trials of two arms over HTTP/3; ``changes`` are of the second one's evidence."""
    study = dataclasses.replace(
        sound.evidence().study,
        workload=RequestsWorkload(requests=220, response_bytes=1000, warmup_requests=20),
        compare=compare,
        baseline=Baseline(str(levels[0])),
        factors={"protocol": ("h3",), "path": ("clean",), "connection": ("reused",), "server": ("origin",)}
        | {compare: tuple(levels)},
    )
    trials = {one.arm: one for one in plan.block_trials(study, plan.cells(study)[0], 0, 0)}
    made = []
    for level in levels:
        trial = trials[plan.level_text(level)]
        given = sound.evidence()
        asked = plan.workload_for(study, trial).for_protocol("h3")
        quic = given.load["quic"] | {"congestion_control": asked.congestion_control}
        own = {
            "study": study, "trial": trial, "load": given.load | {"quic": quic, "key_exchange": asked.key_exchange},
            "samples": sound.facts(protocols={"h3": 200}, bytes_in={asked.response_bytes: 200}),
            "server": {"congestion_control": {"quic": asked.congestion_control}},
        }  # fmt: skip
        made.append(dataclasses.replace(given, **own))
    first, second = made
    return dataclasses.replace(second, siblings=(first,), **changes)


def judged(name, evidence: Evidence):
    (result,) = TRIAL_CHECKS[name].function(evidence)
    return result


@pytest.mark.parametrize(
    ("compare", "levels"),
    [
        ("congestion_control", ("cubic", "bbr")),
        ("key_exchange", ("X25519", "X25519MLKEM768")),
        ("server", ("origin", "caddy")),
        ("response", ("1 kB", "100 kB")),
    ],
)
def test_what_is_compared_may_differ(compare, levels):
    evidence = pair(compare, levels)
    assert judged("parity", evidence).status == "pass"
    assert judged("same_work", evidence).status == "pass"
    assert judged("protocol", evidence).status == "pass"


def test_nothing_else_may():
    evidence = pair("congestion_control", ("cubic", "bbr"))
    other = dataclasses.replace(evidence, load=evidence.load | {"key_exchange": "secp256r1"})
    assert judged("parity", other).evidence == "key exchange is secp256r1, requested: X25519"
    ciphers = sound.facts(protocols={"h3": 200}, bytes_in={1000: 200}, ciphers={"TLS13_CHACHA20_POLY1305_SHA256": 200})
    found = judged("parity", dataclasses.replace(evidence, samples=ciphers))
    assert found.status == "fail" and "in cubic" in found.evidence


def test_a_compared_congestion_control_that_was_not_set_fails():
    evidence = pair("congestion_control", ("cubic", "bbr"))
    load = evidence.load | {"quic": evidence.load["quic"] | {"congestion_control": "cubic"}}
    found = judged("parity", dataclasses.replace(evidence, load=load))
    assert found.status == "fail" and "is cubic, requested: bbr" in found.evidence


def test_servers_that_give_other_content_are_no_comparison():
    evidence = pair("server", ("origin", "caddy"))
    short = dataclasses.replace(evidence, samples=sound.facts(protocols={"h3": 200}, bytes_in={900: 200}))
    assert judged("same_work", short).status == "fail"


def test_each_trial_is_held_against_its_own_protocol():
    evidence = pair("server", ("origin", "caddy"))
    spoke = dataclasses.replace(evidence, samples=sound.facts(protocols={"h2": 200}, bytes_in={1000: 200}))
    found = judged("protocol", spoke)
    assert found.status == "fail" and found.evidence.startswith("HTTP/3 was requested")
