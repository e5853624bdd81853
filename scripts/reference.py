"""Writes the pages of docs/ that are made of the code: `python scripts/reference.py`; `--check` only compares them.

The text of a check, threat, cause or metric stands with it; `tests/docs/test_made_pages.py` holds the pages to that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from trifecta.analysis.checks import RUN_CHECKS, TRIAL_CHECKS
from trifecta.design import metrics
from trifecta.design.documented import Documentation
from trifecta.design.why.table import CAUSES
from trifecta.threats import THREATS

DOCS = Path(__file__).parents[1] / "docs"


def checks() -> str:
    """Every check: what it asks, and when it fails."""
    parts = [
        _head("Checks", "the docstrings in `trifecta/analysis/checks/`"),
        "What a check does to the statistics: [methodology](methodology.md), section 7. A check of your own is one\n"
        "file, in Trifecta or in a package: [add a check](add-a-check.md).",
    ]
    every = TRIAL_CHECKS.own | RUN_CHECKS.own
    for title, table in (("Of each trial", TRIAL_CHECKS.own), ("Of the whole run", RUN_CHECKS.own)):
        rows = [(f"[`{name}`](#{name})", check.question) for name, check in table.items()]
        parts += [f"## {title}", _table(("check", "question"), rows)]
    for name, check in every.items():
        parts += [f"### {name}", f"**{check.question}**", *_sections(check.documentation)]
    return _page(parts)


def threats() -> str:
    """Every threat: why it matters, how it is switched, what detects it, what its experiment does."""
    parts = [
        _head("List of threats", "the docstrings in `trifecta/threats/`"),
        "How they are switched and measured, and what they did on one machine: [threats](threats.md).",
    ]
    rows = [
        (f"[`{one.id}`](#{one.id})", one.title, ", ".join(one.studies) or "none: Trifecta's own", _detected(one.check))
        for one in THREATS.own.values()
    ]
    parts.append(_table(("threat", "what it is", "studies", "detected by"), rows))
    for one in THREATS.own.values():
        parts += [f"### {one.id}", f"**{one.title[0].upper()}{one.title[1:]}.**", *_sections(one.documentation)]
        parts.append(f"**Detected by:** {_detected(one.check)}{f': {one.undetected}' if one.undetected else ''}.")
    return _page(parts)


def causes() -> str:
    """Every cause: what removes it, what makes it a candidate, and what its removal cannot do."""
    parts = [
        _head("List of causes", "the docstrings in `trifecta/design/why/`"),
        "How they are removed and measured: [why](why.md). One whose field a version does not have is listed there,\n"
        "not measured.",
        _table(("cause", "what it is"), [(f"[`{one.id}`](#{one.id})", one.title) for one in CAUSES.own.values()]),
    ]
    for one in CAUSES.own.values():
        parts += [f"### {one.id}", f"**{one.title[0].upper()}{one.title[1:]}.**", *_sections(one.documentation)]
        if one.check:
            parts.append(f"**Excludes no trial while it is there:** {_detected(one.check)}.")
    return _page(parts)


_TABLES = (
    ("Of a trial", "what a study can be judged by (`metric`), and columns of `trials`", metrics.TRIALS),
    ("Of visits of a page", "columns of `visits`, and counts over its requests", metrics.PAGE),
    ("Of watches of a video", "the same of a video", metrics.VIDEO),
    ("Of captured packets", "definitions in full: [packet metrics](packets.md)", metrics.PACKETS),
    ("Of single requests", "as published studies have them", metrics.SAMPLES),
    ("Of services", "of all services of a chain together", metrics.SERVICES),
)


def metric_list() -> str:
    """Every metric: its column, unit and direction, and what is measured."""
    parts = [
        _head("Metrics", "`trifecta/design/metrics.py`"),
        "The values of a trial (requests, visits, connections) become one as *of them* says; *in a study* is the\n"
        "name that `metric` takes. A percentile of too few values is null, everywhere (`design/percentiles.py`).",
    ]
    for title, said, table in _TABLES:
        rows = [
            (f"`{m.name}`", m.unit, _BETTER[m.better], m.aggregate, m.asked and f"`{m.asked}`", metrics.ABOUT[m.name])
            for m in table
        ]
        parts += [f"## {title}", f"{said[0].upper()}{said[1:]}.", _table(_COLUMNS, rows)]
    return _page(parts)


_BETTER = {"less": "less", "more": "more", "neither": "–"}
_COLUMNS = ("column", "unit", "better", "of them", "in a study", "what is measured")
PAGES: dict[str, Callable[[], str]] = {
    "checks.md": checks,
    "threat-list.md": threats,
    "cause-list.md": causes,
    "metrics.md": metric_list,
}


def _detected(check: str | None) -> str:
    return f"[`{check}`](checks.md#{check})" if check else "nothing"


def _head(title: str, source: str) -> str:
    return f"# {title}\n\n<!-- Made by scripts/reference.py of {source}: change the text there. -->"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("| --- |", "|---|").replace(" --- |", "---|")


def _sections(documentation: Documentation) -> list[str]:
    return [f"**{heading}:** {text}" for heading, text in documentation.sections.items()]


def _page(parts: Iterable[str]) -> str:
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str]) -> int:
    """The exit code: 1 where a page is not what the code says and is only compared."""
    stale = []
    for name, make in PAGES.items():
        path, text = DOCS / name, make()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
    for name in stale:
        written = "is not what the code says; run: python scripts/reference.py" if "--check" in arguments else "written"
        print(f"docs/{name}: {written}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
