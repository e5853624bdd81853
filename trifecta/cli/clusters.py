"""What ``race``, ``run`` and ``resume`` do with ``--cluster``: a launcher is made, and its places run the blocks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trifecta.contract.run import RunDocument
    from trifecta.design.model import Study
    from trifecta.workloads.runner import StudyOutcome


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
    from trifecta.lab.launcher import Launcher
    from trifecta.lab.ray_launcher import RayLauncher, reach
    from trifecta.workloads.cluster.head import refuse, run_on_cluster
    from trifecta.workloads.extending import More
    from trifecta.workloads.progress import NoProgress
    from trifecta.workloads.stopping import StopFlag

    refuse(study)
    reach(address)  # what is wrong with it is said before anything is made

    def launch() -> Launcher:
        return RayLauncher(address)

    about: RunDocument = any_levels or {}
    more = More(blocks, budget_ns)
    with StopFlag() as stop:
        if quiet:
            shown = NoProgress()
            outcome = run_on_cluster(study, folder, launch, shown, stop, resume=resume, any_levels=about, more=more)
        else:
            from trifecta.report.progress import LiveProgress

            with LiveProgress() as live:
                outcome = run_on_cluster(study, folder, launch, live, stop, resume=resume, any_levels=about, more=more)
    return outcome
