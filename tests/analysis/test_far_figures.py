"""The figures of `race URL`: how many requests decide a true 1.10, and how often drift alone is taken for a difference.

Requests of a server 30 ms away are simulated, one after the other at the pace that the command keeps, each with noise
of its own. Study, planner, caps and verdicts are the command's.
"""

import dataclasses
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.analysis.worlds import make_row
from trifecta.analysis.planner import Planner, Stop
from trifecta.analysis.polite_planner import PolitePlanner
from trifecta.design import plan
from trifecta.design.emit import to_yaml
from trifecta.design.study_file import parse_study
from trifecta.design.workloads.far import FarWorkload
from trifecta.workloads.far.choose import Choice, LookRequest, document
from trifecta.workloads.stat import read_url

SECOND = 1_000_000_000
RTT_NS = 30_000_000
TRIPS = {"new": 3, "reused": 1}
NOISE = 0.05  # of a request, on the log scale
ANSWER_BYTES = 5_000
WANTED = LookRequest((read_url("https://a.example/"),), Path("ca.pem"))
TEXT = to_yaml(document(WANTED, Choice(("h1", "h2", "h3"), ("192.0.2.1",), ANSWER_BYTES, ())))
STUDY = parse_study(TEXT, "race")


def still(now_ns):
    return 1.0


def sinusoidal(seed):
    """Between half and one and a half times the path, in periods of a quarter to four minutes."""
    drawn = np.random.default_rng(seed)
    period_ns, phase = SECOND * drawn.uniform(15, 240), drawn.uniform(0, 2 * math.pi)
    return lambda now_ns: 1 + 0.5 * math.sin(2 * math.pi * now_ns / period_ns + phase)


def stepped(seed):
    """The path, or one and a half times it, drawn anew every quarter to two minutes."""
    drawn = np.random.default_rng(seed)
    length_ns, high = SECOND * drawn.uniform(15, 120), drawn.random(1000) < 0.5
    return lambda now_ns: 1.5 if high[int(now_ns // length_ns)] else 1.0


def race(truth, drift, seed):
    """The planner, with its verdicts, and the rows, after every block of a race until it stops by itself.

    ``truth(protocol, connection)`` is how much longer an arm takes than others, ``drift(now_ns)`` what the path does.
    """
    study = dataclasses.replace(STUDY, seed=seed)
    cells = plan.cells(study)
    planner = Planner(study, cells)
    polite = PolitePlanner(planner, study, cells)
    rng, rows, now_ns = np.random.default_rng(seed), [], 0
    while not isinstance(decision := polite.next(rows, now_ns), Stop):
        yield planner, rows
        for trial in plan.block_trials(study, decision.cell, decision.block, len(rows)):
            workload = plan.workload_of(FarWorkload, study, trial)
            every, gap_ns = workload.every_request(trial.connection), workload.manners.gap_ns(ANSWER_BYTES)
            usual_ns = RTT_NS * TRIPS[trial.connection] * truth(trial.protocol, trial.connection)
            began_ns = now_ns + gap_ns
            took_ns = [
                usual_ns * drift(began_ns + number * gap_ns) * math.exp(rng.normal(0, NOISE)) for number in range(every)
            ]
            now_ns = began_ns + (every - 1) * gap_ns + round(took_ns[-1])
            load = {"ended": "requests", "samples": every, "wire_bytes_in": ANSWER_BYTES * every, "wire_bytes_out": 0}
            columns = {"samples": workload.requests, "load_json": json.dumps(load)}
            measured = took_ns[-workload.requests :]
            rows.append(make_row(trial, np.median(measured), started_ns=began_ns, ended_ns=now_ns, **columns))
    yield planner, rows


def decided(truth, seed, wanted):
    """By connection, how many requests each arm had made when HTTP/3 against HTTP/2 was decided, and how it was."""
    connections = {cell.key: str(cell.levels["connection"]) for cell in plan.cells(STUDY)}
    found = {}
    for planner, rows in race(truth, still, seed):
        for one in planner.verdicts:
            connection = connections[one.cell]
            if (one.arm, one.reference) == ("h3", "h2") and one.verdict != "undecided" and connection not in found:
                blocks = len({row["block"] for row in rows if row["cell"] == one.cell})
                found[connection] = blocks * STUDY.workload.every_request(connection), one.verdict
        if {*wanted} <= found.keys():
            break
    return found


def test_the_command_asks_as_it_is_simulated():
    assert [cell.key.partition("connection=")[2].partition(",")[0] for cell in plan.cells(STUDY)] == ["new", "reused"]
    assert plan.arms(STUDY) == ["h1", "h2", "h3", "h2#aa"]
    assert (STUDY.workload.requests, STUDY.workload.manners.pace_per_s) == (4, 2)
    assert (STUDY.min_blocks, STUDY.margin, STUDY.confidence) == (6, 0.05, 0.95)


@pytest.mark.parametrize("differing", [("new", "reused"), ("new",), ("reused",)], ids=" and ".join)
def test_a_tenth_more_is_decided_within_forty_requests_an_arm_in_the_median(differing):
    def truth(protocol, connection):
        return 1.10 if protocol == "h3" and connection in differing else 1.0

    asked, said = [], Counter()
    for seed in range(40):
        found = decided(truth, seed, differing)
        for connection in differing:
            requests, verdict = found.get(connection, (math.inf, "undecided"))
            asked.append(requests)
            said[verdict] += 1
    # With the request that opens a connection, where it is reused.
    assert np.median(asked) <= 40, Counter(asked)
    assert said["faster"] == said["same"] == 0, said
    assert said["slower"] >= 0.95 * said.total(), said


def false_claims(drift, seeds):
    """Races in which nothing differs, and something was said to."""
    wrong = 0
    for seed in seeds:
        *_, (planner, _) = race(lambda protocol, connection: 1.0, drift(seed), seed)
        wrong += any(one.verdict in ("faster", "slower") for one in planner.verdicts)
    return wrong


@pytest.mark.parametrize("drift", [sinusoidal, stepped])
def test_drift_by_half_is_no_difference(drift):
    assert false_claims(drift, range(20)) <= stats.binom.ppf(0.999, 20, 0.05)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_drift_by_half_is_taken_for_a_difference_in_at_most_one_race_of_twenty():
    wrong = {drift.__name__: false_claims(drift, range(1000, 1300)) for drift in (sinusoidal, stepped)}
    assert sum(wrong.values()) <= 0.05 * 600, wrong
    for found in wrong.values():
        assert found <= stats.binom.ppf(0.99, 300, 0.05), wrong


def test_a_race_ends_within_its_caps():
    rough = np.random.default_rng(3).uniform(0.5, 1.5, 10_000)  # of every second, so that nothing is ever decided
    *_, (_, rows) = race(lambda protocol, connection: 1.0, lambda now_ns: rough[int(now_ns // SECOND)], 1)
    requests = sum(json.loads(row["load_json"])["samples"] for row in rows)
    looks = 3 * 8
    assert 1000 - looks - 20 < requests <= 1000 - looks, "a block has 16 requests, or 20"
