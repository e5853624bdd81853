"""What real races decided stays what it was, octet by octet: protocol is a factor like others, and the default."""

import dataclasses
import json
from pathlib import Path

import pytest

from tests.analysis.real_blocks import races, study
from trifecta.analysis.verdict import verdicts

OF_NODES = ("nodes", "node_sd", "node_sd_low", "node_sd_high", "left_out_nodes_json")
KEPT = Path(__file__).with_name("data") / "races-verdicts.jsonl"


@pytest.mark.parametrize("seed", [302, 305])
def test_a_race_of_protocols_decides_what_it_always_did(seed):
    kept = [line for line in KEPT.read_text().splitlines() if json.loads(line)["seed"] == seed]
    judged = [dataclasses.asdict(one) for one in verdicts(study(), races()[seed])]
    assert [{one.pop(name) for name in OF_NODES} for one in judged] == [{None}] * 36, "these ran on one machine"
    assert [json.dumps({"seed": seed} | one) for one in judged] == kept
    assert len(kept) == 36
