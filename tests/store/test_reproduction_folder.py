"""The folder of a reproduction goes on with what it was made for, and with nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from trifecta.contract.invocation import CampaignInvocation, ReproductionInvocation
from trifecta.design.errors import UserError
from trifecta.store import reproduction


def asked(**more: object) -> ReproductionInvocation:
    """What is asked of one study; ``more`` of its campaign, too."""
    campaign: CampaignInvocation = {"text": "t", "file": "f", "depth": "quick", "overrides": [], "only": []}
    whole: ReproductionInvocation = {
        "studies": ["ding2022"], "all": False, "depth": "quick", "threats": True, "began": "b", "argv": [],
        "elapsed_s": {}, "campaigns": {"ding2022": {**campaign, **more}},  # type: ignore[typeddict-item]
    }  # fmt: skip
    return {**whole, **more}  # type: ignore[typeddict-item]


def test_a_folder_of_before_goes_on_with_todays_conditions(tmp_path: Path) -> None:
    folder = reproduction.create(tmp_path / "old", asked())
    assert reproduction.require_same(folder, asked(as_published=False)) == asked()
    with pytest.raises(UserError, match=r"another reproduction \(as_published differs\)"):
        reproduction.require_same(folder, asked(as_published=True))


def test_as_published_is_not_gone_on_with_as_today(tmp_path: Path) -> None:
    folder = reproduction.create(tmp_path / "then", asked(as_published=True))
    assert reproduction.require_same(folder, asked(as_published=True))
    with pytest.raises(UserError, match="as_published differs"):
        reproduction.require_same(folder, asked(as_published=False))
