"""The ladders that come with Trifecta, and those of a file: held against the claim and the threats that they name."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from trifecta import studies
from trifecta.analysis.statements import Statement
from trifecta.design.document import did_you_mean
from trifecta.design.errors import UserError
from trifecta.design.ladder import Ladder, Rung
from trifecta.design.ladder_file import parse_ladder
from trifecta.threats import THREATS

ALL = "all"
_FOLDER = Path(__file__).parent / "ladders"


def bundled() -> dict[str, Path]:
    """The ladders that come with Trifecta, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.yaml"))}


@cache
def claim_of() -> dict[str, str]:
    """By bundled ladder the claim that it is about."""
    return {ladder: read(studies.read_text(path), path.name).claim for ladder, path in bundled().items()}


def claims() -> dict[str, Statement]:
    """Every published claim and figure, by its id."""
    return {one.id: one for study in studies.published().values() for one in study.statements}


def read(text: str, file: str) -> Ladder:
    """The ladder in a text; UserError with one line where it, or what it names, is not there."""
    ladder, known = parse_ladder(text, file), claims()
    if ladder.claim not in known:
        raise UserError(f"{file}: claim: no published claim {ladder.claim!r}; {did_you_mean(ladder.claim, known)}")
    assertion = known[ladder.claim].says
    if assertion is None or assertion.between_cells or assertion.by_difference or assertion.over or not assertion.to:
        raise UserError(f"{file}: claim: {ladder.claim} compares no two protocols by their ratio; name one that does")
    for name, protocol, requested in (("arm", ladder.arm, assertion.arms), ("to", ladder.to, assertion.to)):
        if protocol not in requested:
            raise UserError(f"{file}: {name}: {ladder.claim} is about {', '.join(requested)}; name one of them")
    if ladder.metric != assertion.metric:
        raise UserError(
            f"{file}: study.metric: {ladder.claim} is about {assertion.metric}; begin with it, a step exchanges it"
        )
    for step in ladder.steps:
        if step.threat and step.threat not in THREATS:
            raise UserError(f"{file}: {step.id}: no threat {step.threat!r}; {did_you_mean(step.threat, THREATS)}")
    return ladder


def find(name: str) -> dict[str, Path]:
    """The ladders of a name: its own, that of its claim, of a study, ``all``, or the path of a file."""
    known = bundled()
    if name == ALL:
        return known
    if name in known:
        return {name: known[name]}
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return {path.stem: path}
    about = claim_of()
    files = {
        ladder: known[ladder]
        for ladder, claim in about.items()
        if name in (claim, claim.partition(".")[0], claim.partition(".")[2])
    }
    if not files:
        choices = [*known, *dict.fromkeys(claim.partition(".")[0] for claim in about.values()), ALL]
        if name in studies.published() or name in claims():
            raise UserError(f"there is no ladder of {name} yet; choose from {', '.join(choices)}, or give a file")
        raise UserError(f"no ladder, claim or study {name!r}; {did_you_mean(name, choices)}")
    return files


def tolerated(ladder: Ladder, rung: Rung) -> frozenset[str]:
    """The checks that see a published condition at work which a rung still has: trials that fail no other count."""
    steps = ladder.unapplied_steps(rung)
    own = {check for step in steps for check in step.checks}
    return frozenset(own | {check for step in steps if step.threat and (check := THREATS[step.threat].check)})
