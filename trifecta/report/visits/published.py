"""What other studies published, beside what was measured here: ratios are compared, never absolute values.

The files in ``trifecta/studies/published`` hold the numbers and, in a form that can be tested, the claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from trifecta import studies
from trifecta.design.quantity import parse_size_bytes
from trifecta.report import numbers, tables
from trifecta.report.comparisons import Comparison, levels
from trifecta.report.facts import RunFacts
from trifecta.report.figures import style
from trifecta.report.queries import Answer
from trifecta.report.tables import Column, Table

Row = dict[str, Any]
AGREES, CONTRADICTS, UNDECIDED = "agrees", "contradicts", "undecided"


@dataclass(frozen=True)
class Ratio:
    """A ratio to the baseline (or, of what can be zero, a difference) with its interval."""

    value: float | None
    low: float | None
    high: float | None
    even: float = 1.0  # where there is no difference

    def relation(self, above: bool, margin: float) -> str:
        """Whether it agrees with a published ratio above (or below) 1.

        It contradicts when it lies on the other side, and when it lies inside the margin: then there is no difference
        that matters.
        """
        low, high = self.low, self.high
        if low is not None and low > self.even and self.value is not None:
            side = True
        elif high is not None and high < self.even and self.value is not None:
            side = False
        else:
            side = None
        inside = self.even == 1 and low is not None and high is not None
        if inside and 1 / (1 + margin) <= (low or 0.0) and (high or 0.0) <= 1 + margin:
            return CONTRADICTS
        return UNDECIDED if side is None else AGREES if side == above else CONTRADICTS

    def words(self) -> str:
        """``1.12 [1.08, 1.17]``."""
        if self.even == 1:
            return f"{numbers.ratio(self.value)} {numbers.interval((self.low, self.high))}"
        ends = [_signed(end) for end in (self.low, self.high)]
        return f"{_signed(self.value)} [{ends[0]}, {ends[1]}]"


def _signed(value: float | None) -> str:
    return numbers.NO_VALUE if value is None else f"{'+' if value > 0 else ''}{numbers.significant(value)}"


@dataclass(frozen=True)
class Claim:
    """A published claim and what a cell of this run says to it."""

    study: str
    text: str
    cell: str
    relation: str
    ours: str


@lru_cache(maxsize=1)
def known() -> tuple[Mapping[str, Any], ...]:
    """The files of published numbers."""
    from ruamel.yaml import YAML

    folder = Path(studies.__file__).parent / "published"
    return tuple(YAML(typ="safe", pure=True).load(file) for file in sorted(folder.glob("*.yaml")))


def cells_of(about: RunFacts, where: Mapping[str, Any], cells: Sequence[str]) -> list[str]:
    """The cells that a published number is about: its kind of workload, and the same page, connections and size."""
    if about.workload.get("kind") != where["kind"]:
        return []
    return [cell for cell in cells if _is_about(about, where, levels(cell))]


def _is_about(about: RunFacts, where: Mapping[str, Any], own: Mapping[str, str]) -> bool:
    for name, wanted in where.items():
        if name == "response_bytes":
            level = own.get("response")
            size = about.workload.get(name) if level is None else parse_size_bytes(level)
            if size is None or not wanted[0] <= size <= wanted[1]:
                return False
        elif name != "kind" and own.get(name, about.workload.get(name)) != wanted:
            return False
    return True


def rows(about: RunFacts, metric_rows: Sequence[Row], cells: Sequence[str]) -> list[Row]:
    """The rows of the view ``published``."""
    ours = {(row["cell"], row["metric"], row["arm"]): row for row in metric_rows}
    made = []
    for study in known():
        base = study["baseline"]
        for subject in study["numbers"]:
            for cell in cells_of(about, subject["where"], cells):
                for place, one in enumerate(subject["metrics"]):
                    for arm in (arm for arm in about.protocols if arm in one):
                        row = ours.get((cell, one["metric"], arm), {})
                        ratio = one[arm] / one[base] if arm != base and one[base] else None
                        above = ratio is not None and ratio > 1
                        own = _ratio(row, about, base)
                        tells = ratio is not None and ratio != 1 and own is not None and one["unit"] != "count"
                        tells, artefact = tells and "artefact" not in one, one.get("artefact")
                        made.append(
                            {"cell": cell, "study": study["id"], "subject": subject["subject"], "place": place}
                            | {"metric": one["metric"], "label": row.get("label") or one["metric"], "arm": arm}
                            | {"unit": one["unit"], "published": float(one[arm]), "published_ratio": ratio}
                            | {"value": None if one["unit"] == "ratio" else row.get("value"), "ratio": row.get("ratio")}
                            | {name: row.get(name) for name in ("ratio_low", "ratio_high")}
                            | {"relation": own.relation(above, about.margin) if tells and own else artefact}
                        )
    return made


def _ratio(row: Mapping[str, Any], about: RunFacts, base: str) -> Ratio | None:
    """A row's ratio or difference to the baseline, which must be that of the published study."""
    if not row or about.baseline != base:
        return None
    if row["ratio"] is not None:
        return Ratio(row["ratio"], row["ratio_low"], row["ratio_high"])
    if row["difference"] is not None:
        return Ratio(row["difference"], row["difference_low"], row["difference_high"], 0.0)
    return None


def claims(
    about: RunFacts, metric_rows: Sequence[Row], found: Sequence[Comparison], cells: Sequence[str]
) -> list[Claim]:
    """What every cell says to every published claim that is about it.

    Of the study's own metric the interval is that of its verdict, of the others that of ``visit_metrics``.
    """
    ours = {(row["cell"], row["metric"], row["arm"]): row for row in metric_rows}
    verdicts = {(one.cell, one.arm, one.reference): one for one in found}
    judged = {"page": "load_ns", "video": "startup_ns"}.get(str(about.workload.get("kind")))
    made = []
    for study in known():
        for claim in study["claims"]:
            says = claim["says"]
            for cell in cells_of(about, claim["where"], cells):
                verdict = verdicts.get((cell, says["arm"], says["to"]))
                own = _ratio(ours.get((cell, says["metric"], says["arm"]), {}), about, says["to"])
                if says["metric"] == judged and about.metric == "latency_p50_ns" and verdict is not None:
                    own = Ratio(verdict.row["ratio"], verdict.row["low"], verdict.row["high"])
                if own is None:
                    continue
                relation = own.relation(says["ratio"] == "above", about.margin)
                pair = f"{style.name(says['arm'])} {'÷' if own.even else '−'} {style.name(says['to'])}"
                made.append(Claim(study["id"], claim["text"], cell, relation, f"{pair} here: {own.words()}"))
    return made


def published_table(answer: Answer, notes: Sequence[str]) -> Table:
    """The published numbers with their ratios, and ours beside them."""
    columns = [
        Column("published for", "subject"),
        Column("", "label"),
        Column("protocol", "arm", "protocol"),
        Column("published", "published", "unit"),
        Column("its ratio to HTTP/2", "published_ratio", "ratio"),
        Column("here", "value", "unit"),
        Column("our ratio to HTTP/2", "ratio", "ratio"),
        Column("interval", "ratio_low,ratio_high", "interval"),
        Column("", "relation"),
    ]
    return tables.build(answer, "published", "Published numbers and ours", ("cell", "cell"), columns, notes=notes)
