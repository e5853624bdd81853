"""Simulated labs: studies with a known truth, trials in random order, noise of several kinds."""

import dataclasses

import numpy as np

from trifecta.design import plan
from trifecta.design.model import Baseline, RequestsWorkload, Study

NOISES = (
    "log-normal",
    "student t, 2 df",
    "cauchy",
    "ar(1) 0.9",
    "drift and outliers",
    "drift with jumps",
    "bimodal, 15 %",
    "bimodal, 30 %",
    "ties of 1 ms",
)
ARMS = 4  # h1, h2, h3 and the baseline again


def make_study(**changes):
    """Twelve cells with three protocols."""
    study = Study(
        name="simulated",
        title="Simulated",
        workload=RequestsWorkload(requests=100),
        factors={
            "protocol": ("h1", "h2", "h3"),
            "path": ("clean", "far", "rough"),
            "connection": ("new", "reused"),
            "server": ("origin", "caddy"),
        },
        paths={},
        baseline=Baseline("h2"),
    )
    return dataclasses.replace(study, **changes)


def one_cell_study(server="origin", **changes):
    return make_study(
        factors={"protocol": ("h1", "h2", "h3"), "path": ("clean",), "connection": ("new",), "server": (server,)},
        **changes,
    )


def trial_noise(kind, rng, trials):
    """Noise of `trials` trials in the order in which they run (last axis), on the log scale."""
    shape = trials if isinstance(trials, tuple) else (trials,)
    if kind == "log-normal":
        return rng.normal(0, 0.05, shape)
    if kind == "student t, 2 df":
        return 0.05 * rng.standard_t(2, shape)
    if kind == "cauchy":
        return 0.05 * rng.standard_cauchy(shape)
    if kind == "ar(1) 0.9":
        steps = rng.normal(0, 0.05, shape)
        for i in range(1, shape[-1]):
            steps[..., i] += 0.9 * steps[..., i - 1]
        return steps
    if kind == "drift and outliers":
        hit = rng.random(shape) < 0.03
        return 0.002 * np.arange(shape[-1]) + rng.normal(0, 0.02, shape) + hit * rng.exponential(1.0, shape)
    if kind == "drift with jumps":
        jumps = np.cumsum(rng.normal(0, 0.2, shape) * (rng.random(shape) < 0.02), axis=-1)
        return 0.002 * np.arange(shape[-1]) + jumps + rng.normal(0, 0.02, shape)
    if kind.startswith("bimodal"):
        share = 0.15 if "15" in kind else 0.30
        return np.log(1.5) * (rng.random(shape) < share) + rng.normal(0, 0.02, shape)
    if kind == "ties of 1 ms":
        return np.log(np.round(10 * np.exp(rng.normal(0, 0.05, shape))) / 10)
    raise ValueError(kind)


def blocks_in_random_order(kind, rng, count, blocks, slots):
    """(count, blocks, slots): noise of trials that ran one after the other, dealt to the slots at random."""
    noise = trial_noise(kind, rng, (count, blocks * slots)).reshape(count, blocks, slots)
    return rng.permuted(noise, axis=-1)


def make_rows(study, value, blocks, seed=0, sigma=0.05, **columns):
    """Rows of `trials`: value(cell, protocol) ns times log-normal noise, every block in its planned order."""
    rng = np.random.default_rng(seed)
    rows = []
    for block in range(blocks):
        for cell in plan.cells(study):
            for trial in plan.block_trials(study, cell, block, len(rows)):
                latency_ns = value(cell, trial.protocol) * np.exp(rng.normal(0, sigma))
                rows.append(make_row(trial, latency_ns, **columns))
    return rows


def make_row(trial, latency_ns, **columns):
    return {
        "trial": trial.trial,
        "block": trial.block,
        "cell": trial.cell.key,
        "arm": trial.arm,
        "position": trial.position,
        "valid": True,
        "samples": 100,
        "success_rate": 1.0,
        "started_ns": 0,
        "ended_ns": 100_000_000,
        "latency_p50_ns": round(latency_ns),
        **columns,
    }
