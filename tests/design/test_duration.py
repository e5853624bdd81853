"""How long a study will take: held against what runs took, on two cores, in two reproductions at the quick depth."""

from __future__ import annotations

import pytest

from trifecta import studies
from trifecta.design import capacity, duration, numbers, plan
from trifecta.design.campaign import Campaign, parse_campaign
from trifecta.design.model import Study
from trifecta.design.study import path, requests, sba_registration, study

# Seconds that the runs of `reproduce all --quick` took, by study.
MEASURED = {"bourbon2020": 342.0, "baccichet2021": 419.0, "ding2022": 66.0, "milicevic2023": 240.0}


def campaign(name: str, depth: str) -> Campaign:
    return parse_campaign(studies.read_text(studies.campaigns()[name]), name, depth)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", MEASURED)
def test_it_is_within_a_factor_of_two_of_what_runs_took(name: str) -> None:
    expected = sum(duration.study_ns(one) for one in campaign(name, "quick").studies.values()) / 1e9
    assert MEASURED[name] / 2 < expected < MEASURED[name] * 2


def test_losses_take_most_of_the_time_where_there_are_any() -> None:
    """The chain over a path that loses a tenth each way took 98 s for 4 cycles a trial, of which 4 s are no waiting."""
    lossy = campaign("bourbon2020", "quick").studies["distributed_loss-A"]
    assert 40 < duration.study_ns(lossy) / 1e9 < 160


def trial_s(one: Study, connection: str) -> float:
    (cell,) = (cell for cell in plan.cells(one) if cell.levels["connection"] == connection)
    return duration.trial_ns(one, plan.treatment(one, cell, "h2")) / 1e9


@pytest.mark.parametrize(("connection", "measured_s"), [("reused", 1.55), ("new", 3.8)])
def test_the_calls_of_a_registration_count_one_by_one(connection: str, measured_s: float) -> None:
    """17 calls, of which 15 go from host to host; measured on 2026-12-01 over HTTP/2."""
    radio = path("radio", rtt="15 ms", rate="5 Mbit/s", queue="30 packets", loss="0.2 %")
    work = sba_registration(hosts=4, requests=10, warmup="1 requests", in_flight=3)
    factors = {"path": ["radio"], "connection": ["new", "reused"], "protocol": ["HTTP/2"]}
    one = study("s", workload=work, paths=[radio], factors=factors)
    assert one.workload.calls == 17
    assert measured_s / 2 < trial_s(one, connection) < measured_s * 2


def test_requests_in_flight_share_what_a_trace_carries() -> None:
    """100 answers of 50 kB, ten at a time, at a packet each 15 ms: 52 s measured, whether ten are in flight or one."""
    slow = path("slow", rtt="40 ms", trace={"opportunities": [0, 20, 40, 60], "queue": "100 packets"})
    assert capacity.bits_per_s(slow.spec().backward) == pytest.approx(4 * 1514 * 8 * 1000 / 60)
    for in_flight in (1, 10):
        work = requests(response="50 kB", requests=100, in_flight=in_flight)
        factors = {"path": ["slow"], "connection": ["reused"], "protocol": ["HTTP/2"]}
        assert 26 < trial_s(study("s", workload=work, paths=[slow], factors=factors), "reused") < 104


def test_each_direction_carries_its_own() -> None:
    """An upload over a line of 1 and 8 Mbit/s is not a download."""
    line = path("line", rtt="20 ms", rate={"forward": "1 Mbit/s", "backward": "8 Mbit/s"})
    factors = {"path": ["line"], "connection": ["reused"], "protocol": ["HTTP/2"]}
    down = study("s", workload=requests(response="50 kB", requests=40), paths=[line], factors=factors)
    up_work = requests(method="POST", request="50 kB", response="0 B", requests=40)
    up = study("s", workload=up_work, paths=[line], factors=factors)
    assert trial_s(down, "reused") == pytest.approx(2, rel=0.2)
    assert trial_s(up, "reused") == pytest.approx(16, rel=0.2)


def test_bursts_and_damage_stall_as_losses_do() -> None:
    plain = path("a", rtt="20 ms", loss="20 %").spec()
    bursts = path("b", rtt="20 ms", gilbert_elliott={"good_to_bad": "5 %", "bad_to_good": "20 %"}).spec()
    damage = path("c", rtt="20 ms", corrupt="20 %").spec()
    assert [one.missing for one in (plain, bursts, damage)] == pytest.approx([0.4, 0.4, 0.4])
    assert path(
        "d", rtt="20 ms", loss={"forward": "10 %"}, corrupt={"forward": "10 %"}
    ).spec().missing == pytest.approx(0.19)


def test_a_depth_of_hours_is_told_from_one_of_minutes() -> None:
    for name in MEASURED:
        whole = {
            depth: sum(duration.study_ns(one) for one in campaign(name, depth).studies.values())
            for depth in ("quick", "full")
        }
        assert whole["full"] > 2 * whole["quick"], name
    full = campaign("bourbon2020", "full").studies
    assert sum(map(duration.study_ns, full.values())) > 24 * 3600e9  # 2,000 cycles per test at 100 ms each hop


def test_twice_the_blocks_take_twice_as_long_and_a_budget_ends_it() -> None:
    near = path("near", rtt="20 ms")

    def made(**fields: object) -> int:
        work = requests(requests=200, in_flight=1)
        factors = {"path": ["near"], "connection": ["new"]}
        return duration.study_ns(study("s", workload=work, paths=[near], factors=factors, **fields))

    six = made(blocks={"at_least": 6, "at_most": 6}, budget="none")
    twelve = made(blocks={"at_least": 12, "at_most": 12}, budget="none")
    assert twelve == pytest.approx(2 * six, rel=0.05)
    assert made(budget="6 min") == 360_000_000_000


def test_the_number_of_trials_is_that_of_the_plan() -> None:
    one = campaign("milicevic2023", "quick").studies["python-latency"]
    assert duration.trials(one) == len(plan.cells(one)) * 6 * 3
    assert duration.trials(study("s", workload=requests(requests=10))) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (89, "89 s"), (90, "2 min"), (1500, "25 min"), (5400, "1 h 30 min"), (33_600, "9 h 20 min"),
     (36_000, "10 h"), (86_400, "24 h"), (302_400, "3 days 12 h"), (172_800, "2 days")],
)  # fmt: skip
def test_a_wall_time_is_written_as_roughly_as_it_is_known(seconds: float, words: str) -> None:
    assert numbers.wall(seconds * 1e9) == words
