"""What was asked of campaigns and reproductions, as their folders keep it so that they can be gone on with."""

from __future__ import annotations

from typing import Literal, TypedDict


class CampaignInvocation(TypedDict, total=False):
    """What it takes to read a campaign again, as its folder keeps it; ``as_published``: under the study's conditions,
    not today's (left out: today's); ``with_budget``: with what its depth leaves out of what is claimed.
    """

    text: str
    file: str
    depth: Literal["quick", "full"]
    overrides: list[str]
    only: list[str]
    threats_on: list[str]
    threats_off: list[str]
    as_published: bool
    with_budget: bool
    campaign: str
    studies: list[str]


class ReproductionInvocation(TypedDict, total=False):
    """What it takes to go on with a reproduction, as its folder keeps it; ``elapsed_s``: of its parts so far.

    ``budget_ns``: how long it may take in all, over its sessions; None or left out: as long as its depth takes.
    ``as_published``: under the conditions of the studies, not today's (left out: today's).
    """

    studies: list[str]
    all: bool
    depth: Literal["quick", "full"]
    threats: bool
    began: str
    argv: list[str]
    elapsed_s: dict[str, float]
    campaigns: dict[str, CampaignInvocation]
    budget_ns: int | None
    as_published: bool
