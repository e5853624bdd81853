"""The checks: measured conditions of validity, one file each and one line in a table here, or in another package.

A check of a trial decides, with the others, whether the trial counts (`is_valid`). A check of the run says something of
a cell as a whole and excludes nothing, but for `delivered` and `nodes`: where they fail, no trial of the path, or of
the node, counts. How to add one: docs/add-a-check.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from trifecta.analysis.checks import (
    answers,
    blocks,
    browser,
    capture,
    clocks,
    conntrack,
    delayed_ack,
    delivered,
    drift,
    drops,
    errors,
    frames,
    gaps,
    handshakes,
    headroom,
    machine,
    nodes,
    noise_floor,
    parity,
    path,
    playback,
    protocol,
    reordering,
    same_page,
    same_work,
    service,
    steady_state,
)
from trifecta.analysis.checks.check import RunCheck, TrialCheck
from trifecta.analysis.checks.evidence import Evidence, RunEvidence
from trifecta.design.errors import UserError
from trifecta.design.model import CheckResult
from trifecta.entries import Registry

Kind = TypeVar("Kind", TrialCheck, RunCheck)


def _adopt(_name: str, check: Kind, package: str) -> Kind:
    """A check of another package: documented as our own are."""
    check = replace(check, package=package)
    _ = check.documentation
    return check


_TRIAL = {
    "protocol": TrialCheck(protocol.check),
    "same_work": TrialCheck(same_work.check),
    "same_page": TrialCheck(same_page.check),
    "errors": TrialCheck(errors.check),
    "path": TrialCheck(path.check),
    "reordering": TrialCheck(reordering.check),
    "parity": TrialCheck(parity.check),
    "headroom": TrialCheck(headroom.check),
    "gaps": TrialCheck(gaps.check),
    "browser": TrialCheck(browser.check),
    "playback": TrialCheck(playback.check),
    "drops": TrialCheck(drops.check),
    "frames": TrialCheck(frames.check),
    "delayed_ack": TrialCheck(delayed_ack.check),
    "conntrack": TrialCheck(conntrack.check),
    "service": TrialCheck(service.check),
    "steady_state": TrialCheck(steady_state.check),
    "machine": TrialCheck(machine.check),
    "clocks": TrialCheck(clocks.check),
    "answers": TrialCheck(answers.check),
    "capture": TrialCheck(capture.check),
}

_RUN = {
    "blocks": RunCheck(blocks.check),
    "delivered": RunCheck(delivered.check),
    "drift": RunCheck(drift.check),
    "handshakes": RunCheck(handshakes.check),
    "nodes": RunCheck(nodes.check),
    "noise_floor": RunCheck(noise_floor.check),
}


UNSEEN = frozenset({"reordering", "delayed_ack", "conntrack", "service"})
"""Checks that need both ends, or the wire between them: for a server elsewhere their answer is one phrase."""


TRIAL_CHECKS = Registry("check", _TRIAL, TrialCheck, _adopt, error=UserError, taken=_RUN, beside=(RunCheck,))
RUN_CHECKS = Registry("check", _RUN, RunCheck, _adopt, error=UserError, taken=_TRIAL, beside=(TrialCheck,))
"""Entry points of the group ``trifecta.checks`` come after our own: objects TrialCheck or RunCheck."""


def load() -> None:
    """Load the checks of other packages now: UserError with one line where one is broken, before anything is run."""
    from scipy import special  # noqa: F401 - takes a third of a second to load: not between two trials

    for table in (TRIAL_CHECKS, RUN_CHECKS):
        len(table)


def check_trial(evidence: Evidence) -> list[CheckResult]:
    """Every check of a trial, in the order of the table."""
    return [
        result
        for name, each in TRIAL_CHECKS.items()
        for result in (
            evidence.result(name, "unknown", "not observable from here")
            if evidence.workload.outside and name in UNSEEN
            else each.results(name, evidence.trial.trial, evidence)
        )
    ]


def check_run(evidence: RunEvidence) -> list[CheckResult]:
    """Every check of a run, in the order of the table."""
    return [result for name, each in RUN_CHECKS.items() for result in each.results(name, "run", evidence)]


def is_valid(results: Iterable[CheckResult]) -> bool:
    """Whether a trial counts: none of its checks failed. What is unknown does not exclude, it is reported."""
    return all(result.status != "fail" for result in results)
