"""What commands do with ``--cluster``: a launcher is made, and its places run the blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trifecta.contract.run import RunDocument
    from trifecta.design.model import Study
    from trifecta.lab.launcher import Launcher
    from trifecta.workloads.runner import StudyOutcome


def check(studies: Iterable[Study], address: str) -> None:
    """UserError or CannotError, before anything is made, where there is no such cluster or a study cannot be spread."""
    from trifecta.lab.ray_launcher import reach
    from trifecta.workloads.cluster.head import refuse

    for study in studies:
        refuse(study)
    reach(address)


def launching(address: str) -> Callable[[], Launcher]:
    """What makes the launcher of a cluster."""
    from trifecta.lab.ray_launcher import RayLauncher

    def launch() -> Launcher:
        return RayLauncher(address)

    return launch


def carry_out(
    study: Study,
    folder: Path,
    address: str,
    *,
    resume: bool,
    quiet: bool,
    any_levels: RunDocument | None,
    blocks: int | None,
    budget_ns: int | None,
) -> StudyOutcome:
    """Run a study on a cluster into a folder here, or go on with it. No lab is entered: nothing is measured here."""
    from trifecta.workloads.cluster.head import run_on_cluster
    from trifecta.workloads.extending import More
    from trifecta.workloads.progress import NoProgress
    from trifecta.workloads.stopping import StopFlag

    check([study], address)
    launch = launching(address)
    about: RunDocument = any_levels or {}
    more = More(blocks, budget_ns)
    with StopFlag() as stop:
        if quiet:
            outcome = run_on_cluster(
                study, folder, NoProgress(), stop, launch=launch, resume=resume, any_levels=about, more=more
            )
        else:
            from trifecta.report.progress import LiveProgress

            with LiveProgress() as live:
                outcome = run_on_cluster(
                    study, folder, live, stop, launch=launch, resume=resume, any_levels=about, more=more
                )
    return outcome
