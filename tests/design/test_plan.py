"""The plan: cells, orders and seeds that depend on the study and on nothing else."""

import itertools
import subprocess
import sys
from collections import Counter

from scipy.stats import chisquare

from trifecta import studies
from trifecta.design import plan
from trifecta.design.study import requests, study


def race():
    return studies.load("race")


def test_race_has_twelve_cells_with_four_arms_each():
    cells = plan.cells(race())
    assert len(cells) == 12
    assert cells[0].key == "path=clean,connection=new,server=origin"
    assert cells[-1].key == "path=rough,connection=reused,server=caddy"
    assert plan.arms(race()) == ["h1", "h2", "h3", "h2#aa"]


def test_every_block_holds_every_arm_once_and_the_baseline_again():
    a_race = race()
    for cell, block in itertools.product(plan.cells(a_race), range(5)):
        trials = plan.block_trials(a_race, cell, block, 100)
        assert sorted(t.arm for t in trials) == ["h1", "h2", "h2#aa", "h3"]
        assert [t.trial for t in trials] == ["t00100", "t00101", "t00102", "t00103"]
        assert [t.position for t in trials] == [0, 1, 2, 3]
        assert [t.protocol for t in trials if t.is_aa] == ["h2"]
        assert len({t.seed for t in trials}) == 1


def test_every_order_is_equally_likely():
    a_race = race()
    cell = plan.cells(a_race)[0]
    orders = Counter(tuple(plan.block_order(a_race, cell, block)) for block in range(4_800))
    assert len(orders) == 24
    assert chisquare(list(orders.values())).pvalue > 1e-4


def test_arms_stand_at_every_position_equally_often_over_cells_of_one_block():
    counts = Counter()
    for seed in range(1, 401):
        a_race = studies.load("race", [f"seed={seed}"])
        for cell in plan.cells(a_race):
            counts[plan.block_order(a_race, cell, 0).index("h3")] += 1
    assert chisquare([counts[position] for position in range(4)]).pvalue > 1e-4


def test_orders_and_seeds_are_the_same_in_every_process():
    code = (
        "from trifecta import studies; from trifecta.design import plan; s = studies.load('race'); "
        "print([(t.arm, t.seed) for c in plan.cells(s) for t in plan.block_trials(s, c, 3, 0)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": salt}, capture_output=True, text=True, check=True
        ).stdout
        for salt in ("1", "2")
    }
    assert len(outputs) == 1
    assert "h2#aa" in outputs.pop()


def test_the_weather_is_the_same_for_arms_and_cells_of_a_path_and_differs_by_block_path_and_seed():
    a_race = race()
    by_path = {}
    for cell in plan.cells(a_race):
        by_path.setdefault(cell.levels["path"], set()).add(plan.block_seed(a_race, cell, 0))
    assert all(len(seeds) == 1 for seeds in by_path.values())
    cell = plan.cells(a_race)[0]
    seeds = {plan.block_seed(a_race, each, 0) for each in plan.cells(a_race)}
    seeds |= {plan.block_seed(a_race, cell, block) for block in range(1, 50)}
    seeds.add(plan.block_seed(studies.load("race", ["seed=2"]), cell, 0))
    assert len(seeds) == 3 + 49 + 1
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_workload_of_a_cell_has_the_length_of_its_path_and_the_levels_of_its_factors():
    file = studies.load("race", ["factors.congestion_control=cubic,bbr", "path=clean,far"])
    workloads = {one.cell.key: plan.workload_for(file, one) for one in plan.treatments(file)}
    clean = workloads["path=clean,connection=new,server=origin,congestion_control=bbr"]
    far = workloads["path=far,connection=reused,server=origin,congestion_control=cubic"]
    assert (clean.congestion_control, clean.requests) == ("bbr", file.workload.requests)
    assert far.congestion_control == "cubic"
    assert (far.requests, far.warmup_requests) == (10, 10)
    far = workloads["path=far,connection=new,server=origin,congestion_control=cubic"]
    assert (far.requests, far.warmup_requests) == (10, 0)
    assert clean.requests != 10


def test_quantities_as_levels_reach_the_workload():
    sizes = study("sizes", workload=requests(requests=50), factors={"response": ["1 kB", "1000000 B"]})
    assert [cell.key for cell in plan.cells(sizes)] == [
        "path=clean,connection=reused,server=origin,response=1 kB",
        "path=clean,connection=reused,server=origin,response=1 MB",
    ]
    assert [plan.workload_for(sizes, one).response_bytes for one in plan.treatments(sizes) if one.protocol == "h3"] == [
        1_000,
        1_000_000,
    ]


def test_connections_and_streams_follow_from_each_other():
    two = study(
        "two",
        workload=requests(requests=50, in_flight=10, connections=2),
        factors={"protocol": ["HTTP/2", "HTTP/3"]},
    )
    workload = plan.workload_for(two, plan.treatments(two)[0])
    assert (workload.connections, workload.streams) == (2, 5)
