"""What a report says of the nodes of a cluster, and that it says nothing of one machine."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.clusters import cluster_rows
from tests.analysis.worlds import one_cell_study
from trifecta.analysis.verdict import verdicts
from trifecta.conclude.comparisons import Comparison
from trifecta.contract.run import RunDocument
from trifecta.report import html, nodes, terminal

TRUTH = {"h1": 1.5e6, "h2": 1e6, "h2#aa": 1e6, "h3": 0.7e6}


def compared(blocks: dict[str, int], bad: str = "") -> list[Comparison]:
    study = one_cell_study()

    def value(arm: str, node: str) -> float:
        return TRUTH[arm] * (2 if node == bad and arm == "h2#aa" else 1)

    rows: list[Any] = cluster_rows(study, value, blocks)
    return [
        Comparison(one.cell, one.arm, one.reference, one.verdict, dataclasses.asdict(one))
        for one in verdicts(study, rows)
    ]


def test_it_says_how_many_nodes_there_are_how_much_they_differ_and_that_few_are_few() -> None:
    said = nodes.sentences(compared({"a": 8, "b": 8, "c": 8}), {})
    assert said[0].startswith("Measured on 3 nodes: ")
    assert "Standard deviation of the ratios between nodes: 0." in said[1]
    assert "at most" in said[1]
    assert "So few nodes" in said[2]
    many = nodes.sentences(compared({f"n{node}": 4 for node in range(8)}), {})
    assert not [one for one in many if "So few nodes" in one]


def test_a_node_that_is_left_out_is_named_with_its_reason_once() -> None:
    found = compared({f"n{node}": 10 for node in range(8)}, bad="n3")
    said = [
        one for one in nodes.sentences(found, {}) if one.startswith("Left out: node n3, because its baseline differs")
    ]
    assert len(said) == 1
    assert said[0].endswith("Its trials are kept and marked.")
    assert list(nodes.left_out(found)) == ["n3"]


def test_where_no_block_is_usable_nothing_is_said_of_differences() -> None:
    none = [
        dataclasses.replace(one, row={**one.row, "nodes": 0, "node_sd": None}) for one in compared({"a": 8, "b": 8})
    ]
    assert nodes.sentences(none, {}) == ["No comparison has a usable block on any node."]


def test_what_came_about_is_told_and_a_node_once() -> None:
    found = compared({f"n{node}": 10 for node in range(8)}, bad="n3")
    lost = [{"cell": "c", "block": 1, "node": "n5", "reason": "it was killed by signal 9"}]
    run: RunDocument = {
        "nodes_share_machine": True,
        "lost_blocks": lost,
        "nodes_left_out": {"n3": "its baseline differs", "n9": "its engine is another"},
    }
    said = nodes.sentences(found, run)
    assert [one for one in said if one.startswith("These nodes share a machine")]
    assert "1 block was lost, and run again (node n5: it was killed by signal 9)." in said
    assert said[-1] == "Not used: node n9, because its engine is another."
    assert len([one for one in said if "n3" in one]) == 1


def test_what_a_node_has_as_the_run_has_it_is_listed_once() -> None:
    rest = {"machine": {"cpus": 2}, "nodes": {"a": {"machine": {"cpus": 2}}, "b": {"machine": {"cpus": 8}}}}
    assert html._said_once(rest)["nodes"] == {"a": "as the run", "b": {"machine": {"cpus": 8}}}
    assert html._said_once({"machine": {}}) == {"machine": {}}


@pytest.mark.parametrize("node", ["", "rack-1"])
def test_of_one_machine_or_node_there_is_nothing_to_say(node: str) -> None:
    assert nodes.sentences(compared({node: 8}), {}) == []
    assert nodes.left_out(compared({node: 8})) == {}


def test_json_has_the_nodes_of_a_run_and_of_every_verdict(run: Path) -> None:
    found = json.loads(terminal.as_json(run))
    assert found["nodes"] == {"said": [], "left_out": []}
    assert {one["nodes"] for cell in found["cells"] for one in cell["verdicts"]} == {None}
    assert "node_sd_high" in found["cells"][0]["verdicts"][0]
