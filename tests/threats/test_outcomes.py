"""Whatever the world is like, every threat with traffic comes out as an effect, none on this machine, or open with why.

Each threat's own experiments, at the depth of a quick reproduction, in simulated worlds whose truth is known.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trifecta.design import plan
from trifecta.design.metrics import METRICS, OF_SERVICES
from trifecta.report.threats import sentences
from trifecta.threats import THREATS, Threat
from trifecta.workloads import experiments

WITH_TRAFFIC = {name: threat for name, threat in THREATS.items() if threat.experiment and not threat.procedure}
MANY, FEW = 5_000, 4  # requests a trial
# Chance alone is called an effect in 41 of 1,200 such worlds (seeds 0 to 59), in 73 with a family a table.
SEED = 1


@pytest.mark.parametrize(
    ("threat", "name"),
    [pytest.param(threat, name, id=name) for threat in THREATS.values() for name in threat.experiments],
)
def test_no_cell_of_an_experiment_is_given_up(threat: Threat, name: str) -> None:
    """Effects are those of single arms, too: three blocks without a usable pair are no reason to end a cell."""
    assert not experiments.study_of(threat, quick=True, name=name).give_up


class World:
    """A run of an experiment: ``by`` is what the threat multiplies the metric of HTTP/3 by, ``noise`` the standard
    deviation of a trial's log value; of success rates ``by`` 2 means that half of HTTP/3's requests fail.
    """

    def __init__(self, threat: Threat, path: Path, by: float, noise: float, failed: tuple[str, ...] = ()) -> None:
        self.path, self.checks, self.left_out = path, [], []
        self.study = experiments.study_of(threat, quick=True, name=path.name)
        effects = [one for one in threat.effects if (one.experiment or threat.experiment) == path.name]
        rng = np.random.default_rng([SEED, len(path.name)])
        said = json.dumps([{"check": check, "status": "fail"} for check in failed])
        self.rows: list[dict[str, Any]] = []
        for cell in plan.cells(self.study):
            levels = {name: plan.level_text(level) for name, level in cell.levels.items()}
            on = any(levels.get(effect.factor) == effect.on for effect in effects)
            for block in range(self.study.min_blocks):
                for arm in plan.arms(self.study):
                    harmed = on and arm.startswith("h3")
                    samples = MANY if noise < 0.1 else FEW
                    errors = samples - round(samples / by) if harmed else 0
                    if noise >= 0.1:
                        errors = int(rng.integers(0, 2))
                    # Little noise is that of the block and arm, the same off and on: then no chance is left at all.
                    drawn = rng if noise >= 0.1 else np.random.default_rng([block, len(arm), int(arm[1])])
                    value = math.exp(drawn.normal(0, noise)) * (by if harmed else 1.0)
                    self.rows.append(
                        {"cell": cell.key, "arm": arm, "block": block, "valid": not failed, "error": None,
                         "factors_json": json.dumps({**cell.levels, "protocol": arm[:2]}), "checks_json": said,
                         "samples": samples, "errors": errors, "success_rate": 1 - errors / samples,
                         **{name: value * 1e6 for name in (*METRICS, *OF_SERVICES) if name != "success_rate"}}
                    )  # fmt: skip


def found(
    threat: Threat,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    by: float = 1.0,
    noise: float = 0.001,
    failed: tuple[str, ...] = (),
) -> dict[str, Any]:
    for name in threat.experiments:
        (folder / name).mkdir()
        (folder / name / "run.json").write_text('{"schema": 1}')
    monkeypatch.setattr(experiments, "_Run", lambda path: World(threat, path, by, noise, failed))
    monkeypatch.setattr(experiments, "_model", lambda *_: [])
    return experiments.threat_document(threat, folder)


# Requests of a trial may fail together: without a failure a dozen trials do not show that a switch makes none.
FEW_FOR_SUCCESS = ("conntrack", "server-timeouts")
each = pytest.mark.parametrize("threat", WITH_TRAFFIC.values(), ids=WITH_TRAFFIC)


@each
def test_a_switch_without_effect_is_reported_as_such(
    threat: Threat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = found(threat, tmp_path, monkeypatch)
    if threat.id in FEW_FOR_SUCCESS:
        assert one["outcome"] == "not decided"
        assert "100 % without, 100 % with (open)" in " ".join(sentences(one))
        return
    assert one["outcome"] == "no effect"
    assert sentences(one)[0] == "no effect on this machine"


@each
def test_a_switch_with_an_effect_has_one(threat: Threat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = found(threat, tmp_path, monkeypatch, by=2.0)
    assert one["outcome"] == "effect"
    assert sentences(one)[0] == "an effect"


@each
def test_what_chance_hides_is_open_and_says_why(
    threat: Threat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = found(threat, tmp_path, monkeypatch, noise=1.0)
    assert one["outcome"] == "not decided"
    said = sentences(one)
    assert said[0] == "not decided"
    for line in said[1 : 1 + len(one["effects"])]:
        assert "(open)" in line or ("is open" in line and "too few" in line)


@each
def test_where_another_check_leaves_all_trials_out_that_is_named(
    threat: Threat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if all(effect.metric == "success_rate" for effect in threat.effects):
        pytest.skip("of successes every trial counts that ended")
    one = found(threat, tmp_path, monkeypatch, by=2.0, failed=("machine",))
    told = [effect["left_out"] for effect in one["effects"] if effect["metric"] != "success_rate"]
    assert told
    for missing in told:
        assert missing["count"] == missing["trials"] == missing["checks"]["machine"] > 0
    if all(effect.metric != "success_rate" for effect in threat.effects):
        assert one["outcome"] == "not measured"
        assert "its checks" in one["reason"]
