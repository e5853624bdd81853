"""Who runs a study: this machine, or the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trifecta.workloads.cluster.options import Cluster
    from trifecta.workloads.runner import StudyOutcome


def runner_on(cluster: Cluster | None) -> Callable[..., StudyOutcome]:
    """`run_study` for None, else `run_on_cluster`; a run here does not wait for the imports of a cluster's."""
    if cluster is None:
        from trifecta.workloads.runner import run_study

        return run_study
    from trifecta.workloads.cluster.head import run_on_cluster

    return partial(run_on_cluster, launch=cluster.launch, store=cluster.store)
