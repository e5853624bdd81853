"""The checks: measured conditions of validity, one file each and one line in a table here.

A check of a trial decides, with the others, whether the trial counts (`is_valid`). A check of the run says something of
a cell as a whole and excludes nothing, but for `delivered`: where it fails, no trial of the path counts. How to add
one: docs/add-a-check.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trifecta.analysis.checks import (
    blocks,
    browser,
    capture,
    clocks,
    conntrack,
    delayed_ack,
    delivered,
    drops,
    errors,
    frames,
    gaps,
    handshakes,
    headroom,
    machine,
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
from trifecta.analysis.checks.evidence import Evidence, RunEvidence
from trifecta.design.model import CheckResult


@dataclass(frozen=True)
class TrialCheck:
    """A check of one trial: what it asks, for reports, and the function that answers."""

    question: str
    function: Callable[[Evidence], list[CheckResult]]


@dataclass(frozen=True)
class RunCheck:
    """A check of a whole run."""

    question: str
    function: Callable[[RunEvidence], list[CheckResult]]


TRIAL_CHECKS: dict[str, TrialCheck] = {
    "protocol": TrialCheck("Did every request use the requested protocol?", protocol.check),
    "same_work": TrialCheck("Did every arm get the same responses, whole?", same_work.check),
    "same_page": TrialCheck("Did every visit of a browser get the same page?", same_page.check),
    "errors": TrialCheck("Did the trial end normally, and what failed?", errors.check),
    "path": TrialCheck("Was the path delivered as requested?", path.check),
    "reordering": TrialCheck("Did the path keep packets in order?", reordering.check),
    "parity": TrialCheck("Are TLS, certificates, congestion control and sockets the same in every arm?", parity.check),
    "headroom": TrialCheck("Did client and link have CPU time to spare?", headroom.check),
    "gaps": TrialCheck("Did the client run without being paused?", gaps.check),
    "browser": TrialCheck("Did the browser have CPU time to spare, and was it the same one?", browser.check),
    "playback": TrialCheck("Did the player keep up with the clock, and decode in time?", playback.check),
    "drops": TrialCheck("Did a host itself lose packets?", drops.check),
    "frames": TrialCheck("Were the frames of a size that a wire can carry?", frames.check),
    "delayed_ack": TrialCheck("Did requests wait for a delayed acknowledgement?", delayed_ack.check),
    "conntrack": TrialCheck("Did every host's connection table have room?", conntrack.check),
    "service": TrialCheck("Did every service run to the end, and are its errors recorded?", service.check),
    "steady_state": TrialCheck("Is the warm-up excluded, and is nothing drifting?", steady_state.check),
    "machine": TrialCheck("Did the machine have time for the trial?", machine.check),
    "clocks": TrialCheck("Are all times from one clock and in order?", clocks.check),
    "capture": TrialCheck("Is the capture whole, and may a captured trial count?", capture.check),
}

RUN_CHECKS: dict[str, RunCheck] = {
    "blocks": RunCheck("Are there enough usable blocks?", blocks.check),
    "delivered": RunCheck("Did each path behave as requested over the whole run?", delivered.check),
    "handshakes": RunCheck("Are requests compared, or their handshakes?", handshakes.check),
    "noise_floor": RunCheck(
        "Does the baseline agree with itself, and how small a difference can this lab resolve?", noise_floor.check
    ),
}


def check_trial(evidence: Evidence) -> list[CheckResult]:
    """Every check of a trial, in the order of the table."""
    return [result for entry in TRIAL_CHECKS.values() for result in entry.function(evidence)]


def check_run(evidence: RunEvidence) -> list[CheckResult]:
    """Every check of a run, in the order of the table."""
    return [result for entry in RUN_CHECKS.values() for result in entry.function(evidence)]


def is_valid(results: Iterable[CheckResult]) -> bool:
    """Whether a trial counts: none of its checks failed. What is unknown does not exclude, it is reported."""
    return all(result.status != "fail" for result in results)
