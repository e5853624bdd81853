"""Simulated clusters: rows of trials whose blocks take turns on nodes, and log ratios of blocks nested in nodes."""

import numpy as np

from tests.analysis.worlds import make_row
from trifecta.design import plan


def cluster_rows(study, value, blocks, seed=0, sigma=0.01, **columns):
    """Rows of one cell: ``blocks`` by node, whose blocks take turns; value(arm, node) ns times log-normal noise."""
    rng = np.random.default_rng(seed)
    turns = sorted((turn / count, node) for node, count in blocks.items() for turn in range(count))
    cell, rows = plan.cells(study)[0], []
    for block, (_, node) in enumerate(turns):
        rows += [
            make_row(trial, value(trial.arm, node) * np.exp(rng.normal(0, sigma)), node=node, **columns)
            for trial in plan.block_trials(study, cell, block, len(rows))
        ]
    return rows


def nested_logs(rng, nodes, blocks, between, within=0.05):
    """Logs of arm and two reference runs, and the node of each block, in turns: no difference but that of nodes."""
    own = rng.normal(0, between, nodes)
    names = [f"n{node:02}" for node in range(nodes)] * blocks
    logs = rng.normal(0, within, (nodes * blocks, 3))
    logs[:, 0] += np.tile(own, blocks)
    return logs, names
