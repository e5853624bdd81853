"""`make test` finds the files of tests that create networks by their text, so the mark must stand in it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
MARK = "mark.lab"


def steps() -> list[list[str]]:
    """The paths that each call of pytest gets."""
    asked = ["make", "--dry-run", "--silent", "test-python"]
    lines = subprocess.run(asked, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()
    return [[one for one in line.split() if one.startswith("tests/")] for line in lines if " -m pytest " in line]


def test_a_file_that_takes_tests_with_the_mark_from_another_says_so() -> None:
    side_by_side, lab, *_ = steps()
    paths = [REPOSITORY / one for one in side_by_side]
    files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("test_*.py"))}
    helpers = [
        ".".join(file.relative_to(REPOSITORY).with_suffix("").parts)
        for file in (REPOSITORY / "tests").rglob("*.py")
        if not file.name.startswith("test_") and MARK in file.read_text(encoding="utf-8")
    ]
    assert "tests.implementations.check_client" in helpers
    takes = re.compile(rf"^from ({'|'.join(map(re.escape, helpers))}) import", re.M)
    taking = {file for file in files if takes.search(file.read_text(encoding="utf-8"))}
    assert taking, "nobody takes any: this asks nothing"
    found = {REPOSITORY / one for one in lab}
    assert taking <= found, f"say {MARK} in them: `make test` does not find their tests"
    assert all(file.is_file() for file in found) and len(found) > len(taking)
