"""Two runs of other builds of a server: which questions they have in common, and what is told of the programs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.report.test_report_two_runs import change, made
from trifecta.conclude.two_runs.questions import compare
from trifecta.design.errors import UserError
from trifecta.report import two_runs


def test_another_build_of_a_server_is_the_same_question(tmp_path: Path) -> None:
    def of(*servers: str, seed: int) -> Path:
        return made(tmp_path / "-".join(servers), seed, 0.7, ("far",), servers=servers, blocks=2)

    before, after = of("caddy@2.10.0", seed=1), of("caddy@2.11.7", seed=2)
    found = compare(before, after)
    assert {one.cell for one in found.comparable} == {"path=far,connection=reused,server=caddy@2.10.0"}
    assert len(found.comparable) == 3 and not found.only_first and not found.only_second
    differ = {(one.of, one.name): (one.first, one.second) for one in found.differences}
    assert differ["study", "server"] == ("caddy@2.10.0", "caddy@2.11.7")
    assert len(compare(before, of("caddy", seed=3)).comparable) == 3
    assert len(compare(before, of("caddy@2.10.0", "caddy@2.12.0", seed=4)).comparable) == 3
    with pytest.raises(UserError, match="asks no question that"):  # which of the two would be a guess
        compare(before, of("caddy@2.8.1", "caddy@2.9.1", seed=5))
    with pytest.raises(UserError, match="asks no question that"):
        compare(before, of("nginx@1.27.0", seed=6))


def test_builds_that_are_compared_are_the_same_arms(tmp_path: Path) -> None:
    runs = [
        made(
            tmp_path / version,
            seed,
            1.0,
            ("clean",),
            compare="server",
            servers=("origin", f"caddy@{version}"),
            blocks=2,
        )
        for version, seed in (("2.10.0", 1), ("2.11.7", 2))
    ]
    found = compare(*runs)
    assert {(one.arm, one.reference) for one in found.comparable} == {("caddy@2.10.0", "origin")}
    assert len(found.comparable) == 3 and not found.only_second


def test_a_program_that_is_another_under_one_name_is_listed(tmp_path: Path) -> None:
    monday, tuesday = (
        made(tmp_path / name, seed, 0.7, ("far",), blocks=2) for name, seed in (("monday", 1), ("tuesday", 2))
    )
    earlier = Path(shutil.copytree(monday, tmp_path / "earlier"))  # which does not say what its program was
    for run, digest in ((monday, "a" * 64), (tuesday, "b" * 64)):
        change(run, '"version": "2.11.0"', f'"version": "2.11.0", "sha256": "{digest}"', "run.json")
    found = compare(monday, tuesday)
    told = [(one.of, one.name, one.first, one.second) for one in found.differences if one.of == "version"]
    assert told == [("version", "program of caddy", f"sha256 {'a' * 12}", f"sha256 {'b' * 12}")]
    assert "not the same versions (program of caddy)" in "\n".join(two_runs.warnings(found))
    assert not [one for one in compare(earlier, tuesday).differences if one.of == "version"]


def test_a_server_of_the_users_own_that_is_defined_otherwise_is_listed(tmp_path: Path) -> None:
    both = [
        made(tmp_path / name, seed, 0.7, ("far",), servers=("mine",), blocks=2) for name, seed in (("a", 1), ("b", 2))
    ]
    for run in both:
        change(run, "factors:", f"servers: {{mine: {{adapter: caddy, program: /{run.name}/caddy}}}}\nfactors:")
    found = compare(*both)
    assert len(found.comparable) == 3
    (told,) = [one for one in found.differences if one.name == "server mine"]
    assert json.loads(told.first) == {"adapter": "caddy", "program": "/a/caddy"}
    assert json.loads(told.second)["program"] == "/b/caddy"
