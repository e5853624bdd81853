"""What commands do with ``--cluster``: a launcher is made, and its places run the blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trifecta.design.model import Study
    from trifecta.lab.launcher import Launcher


def check(studies: Iterable[Study], address: str) -> None:
    """UserError or CannotError, before anything is made, where there is no such cluster or a study cannot be spread."""
    from trifecta.lab.ray_launcher import reach
    from trifecta.workloads.cluster.head import refuse

    for study in studies:
        refuse(study)
    reach(address)


def launching(address: str | None) -> Callable[[], Launcher] | None:
    """What makes the launcher of a cluster; None where none is named."""
    if address is None:
        return None
    from trifecta.lab.ray_launcher import RayLauncher

    def launch() -> Launcher:
        return RayLauncher(address)

    return launch
