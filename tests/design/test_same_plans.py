"""What runs, in which order and under which seeds, stays what it was: stored runs go on, and compare with new ones."""

import hashlib
import json
from pathlib import Path

import pytest

from trifecta import studies
from trifecta.design import plan

KEPT = json.loads(Path(__file__).with_name("data").joinpath("plans.json").read_text())
FIELDS = ("requests", "duration_ns", "warmup_ns", "response_bytes", "in_flight", "connections", "congestion_control")
FOUND = {"server": ["origin", "caddy"], "client": ["load"], "browser": ["chromium"]}
BLOCKS = 3


def planned(name):
    """Arms, cells, and a digest of the first blocks of every cell with what their trials ask for."""
    study = studies.load(name, found_levels=FOUND.__getitem__)
    digest = hashlib.sha256()
    for cell in plan.cells(study):
        digest.update(cell.key.encode())
        for block in range(BLOCKS):
            for trial in plan.block_trials(study, cell, block, 0):
                workload = plan.workload_for(study, trial)
                asked = [getattr(workload, field) for field in FIELDS]
                told = [trial.trial, trial.block, trial.arm, trial.position, trial.seed, trial.protocol, trial.is_aa]
                digest.update(json.dumps([*told, *asked]).encode())
    return {"arms": plan.arms(study), "cells": len(plan.cells(study)), "sha256": digest.hexdigest()}


@pytest.mark.parametrize("name", sorted(KEPT))
def test_a_study_of_protocols_has_the_blocks_it_always_had(name):
    assert planned(name) == KEPT[name]
