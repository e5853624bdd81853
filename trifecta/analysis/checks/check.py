"""What a check is: the function that answers, and the documentation that its file begins with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from trifecta.analysis.checks.evidence import Evidence, RunEvidence
from trifecta.design.documented import Documentation, read
from trifecta.design.model import CheckResult

HEADINGS = ("Fails when", "Warns when", "Why")
FURTHER = ("Sources",)
_Evidence = TypeVar("_Evidence", Evidence, RunEvidence)


@dataclass(frozen=True)
class Check(Generic[_Evidence]):
    """A check: what it asks and when it fails stand in the docstring of its function's file, under fixed headings."""

    function: Callable[[_Evidence], list[CheckResult]]
    package: str = ""
    """The package that it comes from; empty for Trifecta's own."""

    @cached_property
    def documentation(self) -> Documentation:
        """Title and sections; ValueError where the docstring has other headings."""
        return read(getattr(self.function, "__globals__", {}).get("__doc__"), HEADINGS, FURTHER)

    @property
    def question(self) -> str:
        """What it asks, for reports."""
        return self.documentation.title

    def results(self, name: str, scope: str, evidence: _Evidence) -> list[CheckResult]:
        """What it says. A fault in the check of another package is *unknown* of ``scope``, and named."""
        if not self.package:
            return self.function(evidence)
        try:
            results = self.function(evidence)
            strange = next((result for result in results if result.check != name), None)
            fault = f"it returned a result of the check {strange.check!r}" if strange else ""
        except Exception as error:
            fault = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if not fault:
            return results
        text = f"the check of {self.package} failed ({fault})"
        return [CheckResult(name, scope, "unknown", text, remedy="report it to the author of the package")]


class TrialCheck(Check[Evidence]):
    """A check of one trial: where it fails, the trial does not count."""


class RunCheck(Check[RunEvidence]):
    """A check of a whole run: it excludes nothing, but for `delivered` and `nodes`."""
