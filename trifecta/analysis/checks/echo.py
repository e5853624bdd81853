"""What a link says that it was configured with, and what its draws must have done, against the plan.

The plan is the study, not the configuration that was written for the link: a link that was given another one, or did
something else than it was told, is named by the field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, cast

from trifecta.analysis.checks.evidence import Finding
from trifecta.analysis.draws import expected_hits
from trifecta.contract.impairments import ImpairmentDocument
from trifecta.contract.stored import OneLink, Tally
from trifecta.design import plan
from trifecta.design.impairments import kind_of
from trifecta.design.model import PathSpec

DirectionKey = Literal["a_to_b", "b_to_a"]
REMEDY = "check the link's configuration in the run's log, and the engine: the link did not follow the plan"


def of_link(path: PathSpec, seed: int, wire: str, link: OneLink) -> list[Finding]:
    """Seed and splitting of a link, as it says them, against the plan; nothing where it does not say."""
    had_and_wanted = {
        "seed": (link.get("seed"), plan.stable_seed("wire", seed, wire) if wire else seed),
        "split": (link.get("split"), "real" if path.frames == "wire" else "merge"),
    }
    return [
        Finding(
            "fail",
            f"the link{f' {wire}' if wire else ''} had {field} {had}, planned {wanted}",
            None,
            None,
            REMEDY,
        )
        for field, (had, wanted) in had_and_wanted.items()
        if had is not None and had != wanted
    ]


def of_direction(
    name: str, key: DirectionKey, link: OneLink, impairments: Sequence[ImpairmentDocument]
) -> list[Finding]:
    """The impairments of a direction, one by one, and how many packets each one hit."""
    report = link[key]
    tallies = report.get("impairments")
    if tallies is None:
        return []
    kinds = [str(tally["kind"]) for tally in tallies]
    planned = [str(impairment["kind"]) for impairment in impairments]
    if kinds != planned:
        text = f"{name}: the link had {', '.join(kinds) or 'no impairment'}, planned {', '.join(planned) or 'none'}"
        return [Finding("fail", text, None, None, REMEDY)]
    findings = [
        Finding("fail", f"{name}: the link had {kind} {field} {recorded}, planned {value}", None, None, REMEDY)
        for kind, tally, impairment in zip(kinds, tallies, impairments, strict=True)
        for field, recorded, value in _differences(tally.get("asked"), impairment)
    ]
    return findings or _recounted(name, key, link, impairments, tallies)


def _differences(
    recorded: Mapping[str, object] | None, impairment: ImpairmentDocument
) -> list[tuple[str, object, object]]:
    if recorded is None:  # a run from before links said it
        return []
    differing = []
    planned = dict(impairment.items())
    for field in sorted((set(recorded) | set(planned)) - {"kind"}):
        value = planned.get(field)
        value = len(value) if isinstance(value, list | tuple) else value
        if not _is_equal(recorded.get(field), value):
            differing.append((field, recorded.get(field), value))
    return differing


def _is_equal(one: object, other: object) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        numbers = isinstance(one, int | float) and isinstance(other, int | float)
        return numbers and math.isclose(cast(float, one), cast(float, other), rel_tol=1e-12)
    return one == other


def _recounted(
    name: str,
    key: DirectionKey,
    link: OneLink,
    impairments: Sequence[ImpairmentDocument],
    tallies: Sequence[Tally],
) -> list[Finding]:
    """The link's counts against those that its draws must have given: nothing of this is chance."""
    report = link[key]
    if "seed" not in link or report.get("memory_dropped") or link.get("netem"):  # netem's draws are its own
        return []
    packets = int(report.get("wire_packets") or 0)
    findings = []
    for impairment, tally, expected in zip(
        impairments,
        tallies,
        expected_hits(int(link["seed"]), key, impairments, packets, tallies),
        strict=True,
    ):
        if expected is None or expected == int(tally["hit"]):
            continue
        deed = kind_of(impairment).deed
        text = f"{name}: {deed} {tally['hit']} of {tally['met']} packets, the plan's seed gives exactly {expected}"
        findings.append(Finding("fail", text, float(tally["hit"]), float(expected), REMEDY, bounded=False))
    return findings
