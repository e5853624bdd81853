"""What a study asks of its servers: the method of a trial's requests, and the URL elsewhere that they go to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trifecta.design.errors import UserError
from trifecta.design.study_file import parse_study
from trifecta.store import parquet
from trifecta.store.run import RunDirectory


@dataclass(frozen=True)
class Requested:
    """What holds for trials that have no level of their own; None where the study does not say it."""

    method: str | None
    url: str | None

    @property
    def method_of_trial(self) -> str:
        """In SQL, of a trial ``t``."""
        return _of_trial("method", self.method)

    @property
    def url_of_trial(self) -> str:
        """In SQL, of a trial ``t``; null where servers are of the lab, whose ports a run does not keep."""
        return _of_trial("url", self.url)


def of(run: Path) -> Requested:
    """What the study of a run asks for; nothing where it is one that only `trifecta report` names."""
    try:
        workload = parse_study(RunDirectory.open(run).study_text, "study.yaml").workload
    except UserError:
        return Requested(None, None)
    return Requested(workload.first_method, workload.elsewhere_at)


def _of_trial(factor: str, otherwise: str | None) -> str:
    text = "NULL" if otherwise is None else parquet.quoted(otherwise)
    return f"coalesce(json_extract_string(t.factors_json, '{factor}'), {text})"
