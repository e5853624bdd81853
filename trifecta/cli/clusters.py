"""What commands do with ``--cluster`` and ``--store``: a launcher is made, and its places run the blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trifecta.design.errors import UserError

if TYPE_CHECKING:
    from trifecta.design.model import Study
    from trifecta.lab.launcher import StreamLauncher
    from trifecta.workloads.cluster.options import Cluster


@dataclass(frozen=True)
class OnCluster:
    """What a command line says of a cluster."""

    address: str
    store: str | None = None
    """URL of a place in an object store, for what trials leave; None: the head takes it."""


def cluster_options(address: str | None, store: str | None) -> OnCluster | None:
    """What these options say; None without a cluster. UserError where they do not fit, or the URL is none."""
    if store is not None:
        if address is None:
            raise UserError("option --store: it is for the nodes of a cluster; add --cluster, or leave it out and use "
                            "`trifecta export RUN --to URL`")  # fmt: skip
        from trifecta.store.exports.object_store import check as check_url

        check_url(store, "--store")
    return None if address is None else OnCluster(address, store)


def check(studies: Iterable[Study], on: OnCluster) -> None:
    """UserError or CannotError, before anything is made, where there is no such cluster or store, or a study cannot be
    spread.
    """
    from trifecta.lab.ray_launcher import reach
    from trifecta.workloads.cluster.head import refuse

    for study in studies:
        refuse(study)
    reach(on.address)
    if on.store is not None:
        from trifecta.cli import object_stores

        object_stores.reach(on.store)


def launching(on: OnCluster | None) -> Cluster | None:
    """On what a study is run; None where no cluster is named."""
    if on is None:
        return None
    from trifecta.lab.ray_launcher import RayLauncher
    from trifecta.workloads.cluster.options import Cluster

    def launch() -> StreamLauncher:
        return RayLauncher(on.address)

    return Cluster(launch, on.store)
