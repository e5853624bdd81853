"""How long a study takes at least, from its plan alone: what no machine can beat."""

from __future__ import annotations

import itertools

from trifecta.design import plan
from trifecta.design.model import Levelled, Study


def least_ns(study: Study) -> int:
    """The shortest time for the fewest blocks of every cell, if every request took the least its path allows."""
    return study.min_blocks * sum(
        least_trial_ns(study, plan.treatment(study, cell, arm))
        for cell, arm in itertools.product(plan.cells(study), plan.arms(study))
    )


def least_trial_ns(study: Study, at: Levelled) -> int:
    """The shortest time a trial can take: its duration, or as many round trips as its requests need."""
    return plan.workload_for(study, at).least_ns(study.paths[at.path].rtt_ns, at.protocol, at.connection)
