"""Which threats to validity are on, off, or not to be told in a cell of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from trifecta.analysis.programs import PROGRAMS
from trifecta.design.arms import factor_words
from trifecta.design.errors import TrifectaError
from trifecta.design.model import Cell, Study
from trifecta.design.study_file import parse_study
from trifecta.threats import THREATS, Threat, switches

State = Literal["on", "off", "unknown"]
# A check that fails or warns has seen the threat at work; one that passes has looked and seen nothing.
_SAID: dict[str, State] = {"fail": "on", "warn": "on", "pass": "off"}


@dataclass(frozen=True)
class Switch:
    """A threat, whether it is on in this cell, and how that is known."""

    id: str
    title: str
    state: State
    why: str


class Switchboard:
    """The threats against one study: what each switch would change in it is worked out once.

    ``measured`` has the programs of which there are trials: a server that was left out is not side by side with others.
    """

    def __init__(self, study: Study, measured: Study | None = None) -> None:
        self.study = study
        self.measured = measured or study
        self.changed = {
            (one.id, position): self._changed(one, on=position == "on")
            for one in THREATS.values()
            for position in ("on", "off")
        }

    def states(self, cell: Cell, checks: Mapping[str, tuple[str, str]]) -> list[Switch]:
        """The state of every threat; ``checks`` is by name the worst status of the trials compared, with its evidence.

        What a check saw counts before what the study asked for.
        """
        return [Switch(one.id, one.title, *self._state(one, cell, checks)) for one in THREATS.values()]

    def _state(self, threat: Threat, cell: Cell, checks: Mapping[str, tuple[str, str]]) -> tuple[State, str]:
        known, declared = OWN.get(threat.id), self._state_by_switch(threat, cell)
        if known is not None and declared != "on":
            return known(self.measured, checks)
        status, evidence = checks.get(threat.check or "", ("", ""))
        check = (threat.check or "").replace("_", " ")
        spoke_up = status in ("fail", "warn") and threat.evidence_words in evidence
        if spoke_up and (threat.tells_apart or declared is None):
            state: State = "on" if threat.tells_apart else "unknown"
            said = "says so" if threat.tells_apart else "cannot tell it from other reasons"
            return state, f"the check {check} {said}: {evidence}"
        if declared is not None:
            return declared, f"so the study asks{f', and the check {check} passed' if status == 'pass' else ''}"
        if status in _SAID:  # what it warned of was something else
            return "off", f"the check {check} saw nothing of it{f': {evidence}' if status == 'pass' else ''}"
        if threat.check is None:
            return "unknown", threat.undetected or "no check detects it"
        return "unknown", f"the check {check} was not made, or could not tell"

    def _state_by_switch(self, threat: Threat, cell: Cell) -> State | None:
        """A switch that changes nothing is in that position already; None where neither says so, or both do."""
        own = _of_cell(self.study, cell)
        held = []
        for position in ("on", "off"):
            changed = self.changed.get((threat.id, position))
            held.append(changed is not None and _of_cell(changed, cell) == own)
        if held[0] == held[1]:
            return None
        return "on" if held[0] else "off"

    def _changed(self, threat: Threat, *, on: bool) -> Study | None:
        """The study with the switch in this position; None where there is none, or nothing that it could change."""
        try:
            change = switches([threat.id], []) if on else switches([], [threat.id])
            return parse_study(self.study.source, "study.yaml", change=change)
        except TrifectaError:
            return None


def _of_cell(study: Study, cell: Cell) -> Any:
    """What of a study runs in a cell: its workload, and its path."""
    path = study.paths.get(str(cell.levels.get("path")))
    known = {
        name: tuple(map(str, factor_levels)) for name, factor_levels in study.factors.items() if name not in cell.levels
    }
    present = {name: str(level) in map(str, study.factors.get(name, ())) for name, level in cell.levels.items()}
    return study.workload, path and replace(path, trial=None), known, present


def _blocks(study: Study, checks: Mapping[str, tuple[str, str]]) -> tuple[State, str]:
    status, evidence = checks.get("blocks", ("", ""))
    evidence_text = evidence or f"at least {study.min_blocks} blocks, one value each"
    return ("on" if status == "fail" or study.max_blocks < 2 else "off"), evidence_text


def _noise_floor(study: Study, checks: Mapping[str, tuple[str, str]]) -> tuple[State, str]:
    status, evidence = checks.get("noise_floor", ("", ""))
    state: State = "unknown" if status in ("", "unknown") else "off"
    return state, evidence or "the baseline runs twice in every block, but there are too few of them yet"


def _retries(study: Study, checks: Mapping[str, tuple[str, str]]) -> tuple[State, str]:
    return "off", "nothing is retried: a request that failed is a failure, and infinitely long"


def _work(study: Study, checks: Mapping[str, tuple[str, str]]) -> tuple[State, str]:
    for name in ("same_page", "same_work"):
        status, evidence = checks.get(name, ("", ""))
        if status in _SAID:
            return _SAID[status], evidence
    return "unknown", "no check compared what the protocols were asked for"


def _programs(study: Study, checks: Mapping[str, tuple[str, str]]) -> tuple[State, str]:
    if study.compare in PROGRAMS:
        return "off", "programs are what is compared: a difference is theirs"
    what = factor_words(study.compare)
    programs = max(len(study.factors.get("server", ())), 1) * max(len(study.factors.get("client", ())), 1)
    if programs > 1:
        return "off", f"{programs} programs side by side: the report splits the effect into {what} and program"
    return "on", f"one server and one client: the effect of the program cannot be separated from that of the {what}"


# Those that are part of how Trifecta measures, or that no single check tells.
OWN = {
    "single-load": _blocks,
    "no-noise-floor": _noise_floor,
    "retries-hidden": _retries,
    "different-work": _work,
    "implementation": _programs,
}
