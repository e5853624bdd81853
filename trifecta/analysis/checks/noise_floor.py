"""Does the baseline agree with itself, and how small a difference can this lab resolve?

## Fails when
The baseline differs from itself beyond chance among all cells: something other than the compared factor makes the runs
of a block differ.

## Warns when
It differs in one cell judged alone, or the floor is above the study's margin.

## Why
Differences below the floor cannot be told from no difference here.

## Sources
Marcus et al. 1976 (closed testing); Vovk & Wang 2021 (e-values).
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import RunEvidence
from trifecta.analysis.noise import NoiseFloor, noise_floors
from trifecta.design import phrases, quantity
from trifecta.design.arms import arm_words, factor_words
from trifecta.design.model import CheckResult

_BIAS_REMEDY = "look for drift, caches and other load: something other than the {} makes the runs of a block differ"


def check(evidence: RunEvidence) -> list[CheckResult]:
    """Per cell: fail when the A/A pair differs beyond chance among all cells, warn when the floor is wide."""
    study = evidence.study
    floors = noise_floors(study, evidence.rows, [cell.key for cell in evidence.cells])
    name = arm_words(study.compare, study.baseline.level)
    remedy = _BIAS_REMEDY.format(factor_words(study.compare))
    return [_cell(floor, name, study.margin, remedy) for floor in floors.values()]


def _cell(floor: NoiseFloor, name: str, margin: float, bias_remedy: str) -> CheckResult:
    if floor.ratio is None:
        return CheckResult("noise_floor", floor.cell, "unknown", f"{name} has not been run twice in a block yet")
    text = f"{name} against itself: ratio {floor.ratio:.4g}"
    if floor.low is not None and floor.high is not None:
        text += f" [{floor.low:.4g}, {floor.high:.4g}]"
    text += f" over {phrases.numbered(floor.blocks, 'block')}"
    if floor.biased:
        text += f", which excludes 1 beyond chance among all cells (e-value {floor.e_value:.3g})"
        return CheckResult("noise_floor", floor.cell, "fail", text, floor.floor, margin, bias_remedy)
    if floor.excludes_one:
        text += ", which excludes 1, as one cell in twenty may by chance"
        return CheckResult("noise_floor", floor.cell, "warn", text, floor.floor, margin, bias_remedy)
    if floor.floor is None:
        text += ": too few blocks to say how small a difference could have been detected"
        return CheckResult("noise_floor", floor.cell, "unknown", text, None, margin, "raise `--budget`")
    text += f": a difference of {100 * floor.floor:.1f} % or more could have been detected within a block"
    if floor.weather_floor is not None:
        text += f", of {100 * floor.weather_floor:.1f} % between blocks"
    if floor.floor > margin:
        text += (
            f", which is more than the margin of {quantity.format_ratio(margin)}: nothing can be called the same here"
        )
        remedy = "run more blocks or longer trials, or use a quieter machine"
        return CheckResult("noise_floor", floor.cell, "warn", text, floor.floor, margin, remedy)
    return CheckResult("noise_floor", floor.cell, "pass", text, floor.floor, margin)
