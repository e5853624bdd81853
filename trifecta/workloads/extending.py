"""More blocks for a run that has ended: its study with a later end, kept in the run's files.

Factors, paths, seed, and the order of every block stay as they are: only ``blocks`` and ``budget`` change. Intervals
that hold at any stopping time hold over an end that was put off as well (docs/methodology.md).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from trifecta.analysis.estimate import Row
from trifecta.analysis.planner import Planner
from trifecta.analysis.verdict import verdicts
from trifecta.contract.run import Extension, RunDocument, StudyOfRun
from trifecta.design import quantity
from trifecta.design.errors import UserError
from trifecta.design.model import Cell, Study
from trifecta.design.overrides import apply_overrides
from trifecta.design.phrases import counted
from trifecta.design.resolve import DEFAULT_MAX_BLOCKS, resolve
from trifecta.design.yaml_text import parse_document
from trifecta.store import files
from trifecta.store.run import RunDirectory
from trifecta.workloads.facts import study_digest

ENTRY: Final = "extended"  # of run.json: a list, one mapping for each time


@dataclass(frozen=True)
class RunExtension:
    """How much more of a run: so many blocks of every cell that is open, so much time, or whichever ends first.

    ``cells``: how many blocks these cells are to have in all, whatever their verdicts; the others get none.
    ``of_gate``: of a gate, whose tests may be open where all verdicts of its study are decided.
    """

    blocks: int | None = None
    budget_ns: int | None = None
    cells: Mapping[str, int] | None = None
    of_gate: bool = False

    def __bool__(self) -> bool:
        """Whether anything is asked for."""
        return self.blocks is not None or self.budget_ns is not None or self.cells is not None

    def words(self) -> str:
        """As it is asked for on a command line; of single cells, which no command line names, by how many they are."""
        if self.cells is not None:
            return f"reproduce --budget, {counted(len(self.cells), 'cell')}"
        options = [f"--blocks {self.blocks}"] if self.blocks is not None else []
        if self.budget_ns is not None:
            options.append(f'--budget "{quantity.format_time(self.budget_ns)}"')
        return " ".join(options)


def current(run: RunDirectory, study: Study) -> Study:
    """The study as it was last extended, where ``study`` is that of the run before.

    A run that was killed between its two files gets its ``study.yaml``.
    """
    for entry in run.facts.get(ENTRY, []):
        if study_digest(study) == entry["study_before_sha256"]:
            study = _changed(study, entry["blocks"], entry["budget"], "resume")
    if study.source != run.study_text and run.facts.get(ENTRY):
        files.write_text(run.path / "study.yaml", study.source)
    return study


def extend(run: RunDirectory, study: Study, cells: Sequence[Cell], more: RunExtension) -> Study:
    """Put off the end of a run that this process writes; the study with its new end. UserError where nothing is open.

    ``cells`` are those that can run.
    """
    rows = run.rows()
    if "map" in run.facts:
        raise UserError(f"{run.path} is a map, whose blocks go where its border is; make a new one with more blocks")
    state, done = run.facts.get("state"), _blocks(rows)
    judged = verdicts(study, rows, cells, fixed=False)
    open_cells = {one.cell for one in judged if one.verdict == "undecided"} if study.gives_verdicts else set()
    if not open_cells and more.blocks is None and more.cells is None and not more.of_gate:
        every = "the one verdict is" if len(judged) == 1 else f"all {len(judged)} verdicts are"
        sentence = f"{every} decided" if judged else "it has no verdict that could be open"
        raise UserError(
            f"option --budget: {sentence}, so no block would be chosen; --blocks N measures every cell longer"
        )
    most: dict[str, int] = {}
    at_least, at_most = study.min_blocks, max(study.max_blocks, max(done.values(), default=0) + DEFAULT_MAX_BLOCKS)
    if more.blocks is not None:
        most = {cell.key: done.get(cell.key, 0) + more.blocks for cell in cells}
        at_most = max(most.values())
        at_least = min(at_least, at_most) if open_cells else at_most
    if more.cells is not None:
        most = {cell.key: max(done.get(cell.key, 0), more.cells.get(cell.key, 0)) for cell in cells}
        at_least = at_most = max(most.values())
    spent_ns = max((int(decision["elapsed_ns"]) for decision in run.decisions()), default=0)
    budget = "none" if more.budget_ns is None else quantity.format_time(spent_ns + more.budget_ns)
    blocks = {"at_least": at_least, "at_most": at_most}
    longer = _changed(study, blocks, budget, f"resume {more.words()}")
    entry: Extension = {
        "utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "argv": sys.argv,
        "asked": more.words(),
        "after_trials": len(rows),
        "after_elapsed_ns": spent_ns,
        "after_state": state,
        "after_because": run.facts.get("ended_because"),
        "study_before_sha256": study_digest(study),
        "blocks": blocks,
        "budget": budget,
        "before_blocks": done,
        "most_blocks": most,
    }
    # Facts first: from the entry `current` makes the study's text again, were this process killed in between.
    about: StudyOfRun = {**run.facts["study"], "sha256": study_digest(longer)}
    run.write_facts(run.facts | {ENTRY: [*run.facts.get(ENTRY, []), entry], "study": about})
    files.write_text(run.path / "study.yaml", longer.source)
    run.log_decision({"extended": more.words(), "elapsed_ns": spent_ns, "trials": len(rows)})
    return longer


def planner(facts: RunDocument) -> type[Planner] | partial[Planner]:
    """What makes the planner of a run, which was perhaps extended."""
    entries = facts.get(ENTRY)
    return (
        partial(Planner, most=entries[-1]["most_blocks"], before=entries[-1]["before_blocks"]) if entries else Planner
    )


def _changed(study: Study, blocks: Mapping[str, int], budget: str, option: str) -> Study:
    """The study with other blocks and another budget."""
    document = parse_document(study.source, "study.yaml")
    fields = ", ".join(f"{name}: {number}" for name, number in blocks.items())
    apply_overrides(document, [f"blocks={{{fields}}}", f"budget={budget}"], option)
    changed = resolve(document)
    assert replace(changed, source="", **_ends(study)) == replace(study, source="")
    return changed


def _ends(study: Study) -> dict[str, Any]:
    return {"min_blocks": study.min_blocks, "max_blocks": study.max_blocks, "budget_ns": study.budget_ns}


def _blocks(rows: Sequence[Row]) -> dict[str, int]:
    """How many blocks each cell has, one that is not complete too."""
    blocks: dict[str, int] = {}
    for row in rows:
        blocks[str(row["cell"])] = max(blocks.get(str(row["cell"]), 0), int(row["block"]) + 1)
    return blocks
