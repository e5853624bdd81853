"""One real run that holds a full grid and the search of a map against each other.

Three kinds of blocks take turns in it, so that all see the same machine: one block at each place of the grid, in random
order; the blocks of the map's planner, which sees its own alone; and blocks from which neither learns, at places drawn
from squares that tile the plane (`bench.mapping.compare` judges both by them). Each kind has block numbers of its own:
a block's losses are drawn by its number, and no two kinds may share them.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bench.mapping.contest import Contest, read_contest
from trifecta.design.errors import CannotError, UserError
from trifecta.design.mapping import change_to_map, make_plan
from trifecta.design.model import Study, Verdict
from trifecta.workloads.progress import NoProgress

if TYPE_CHECKING:
    from bench.mapping.turns import Turns
    from trifecta.store.run import RunDirectory

FACT = "map_against_grid"  # in run.json
_EVERY = 16  # blocks from one line of progress to the next


def make_contest(asked: argparse.Namespace) -> tuple[Contest, Study]:
    """The comparison that the command line asks for, and its study."""
    from trifecta import studies

    places = asked.side * asked.side
    blocks = asked.blocks or places // 4
    plan = make_plan(asked.x, asked.y, f"{asked.side}x{asked.side}", "h3,h2", blocks=blocks)
    study = studies.load(
        "objects",
        (),
        studies.known_servers(),
        change=lambda document: change_to_map(document, plan, [f"seed={asked.seed}"]),
    )
    held_out = places // 4 if asked.held_out is None else asked.held_out
    return Contest(plan, held_out, asked.seed), study


class _Lines(NoProgress):
    """A line of progress every so many blocks."""

    _blocks = 0

    def block_finished(self, verdicts: Sequence[Verdict], elapsed_ns: int, budget_ns: int | None, reason: str) -> None:
        """A block is complete."""
        self._blocks += 1
        if self._blocks % _EVERY == 0:
            print(f"{elapsed_ns / 1e9:6.0f} s: {reason}", flush=True)

    def note(self, text: str) -> None:
        """Say it."""
        print(text, flush=True)


def measure(folder: Path, contest: Contest, study: Study, budget_ns: int, *, resume: bool) -> int:
    """Measure, or go on; 130 when interrupted. Must run inside the sandbox."""
    from bench.mapping.turns import Turns
    from trifecta.workloads import runner
    from trifecta.workloads.stopping import StopFlag

    runner.PROBE_EVERY_S = math.inf  # each of the many paths is probed once, before its first block

    def planner(of: Study, cells: Sequence[Any], _: int) -> Turns:
        return Turns(contest, of, cells, budget_ns)

    with StopFlag() as stop:
        outcome = runner.run_study(
            study,
            folder,
            _Lines(),
            stop,
            resume=resume,
            more_facts=cast(Any, {FACT: contest.document()}),
            planner=planner,
        )
    print(
        f"{outcome.elapsed_ns / 1e9:.0f} s, {outcome.valid_trials} of {outcome.trials} trials count: {outcome.reason}"
    )
    return 130 if outcome.interrupted else 0


def judge(folder: Path, contest: Contest, study: Study, run: RunDirectory) -> int:
    """Compare what is there; writes ``comparison.json``, a picture and the search's map. 0 when the target is met."""
    import numpy as np

    from bench.mapping import compare, picture, turns
    from trifecta.analysis.mapping.planner import blocks_of_rows
    from trifecta.analysis.mapping.result import work_out
    from trifecta.report.figures import picture_files, svg
    from trifecta.report.map import page, words
    from trifecta.store import files

    parts = turns.split(run.rows())
    found = {kind: blocks_of_rows(contest.plan, study, rows).blocks for kind, rows in parts.items()}
    counting = {kind: {b.place: b.value for b in blocks if b.value is not None} for kind, blocks in found.items()}
    ending, facts = str(run.facts.get("ended_because", "")), run.facts
    about = {"study": study.name, "trifecta": facts["trifecta"], "seed": contest.seed, "argv": []}
    made = work_out(contest.plan, study, parts[turns.SEARCH], ending=ending, about=about)
    if made.surface is None or len(counting[turns.GRID]) < 2:
        print("nothing to compare: no block of the search or of the grid counts")
        return 1
    grid = np.full(len(contest.plan.places()), np.nan)
    grid[list(counting[turns.GRID])] = list(counting[turns.GRID].values())
    blocks = compare.Blocks(np.array(contest.plan.shares()), grid, counting[turns.HELD_OUT], made.surface, study.margin)
    comparison = compare.compare(blocks, contest.seed)
    cost = {
        kind: {"blocks": len(own), "counting": len(counting[kind]), "seconds": sum(b.span_ns for b in own) / 1e9}
        for kind, own in found.items()
    }
    cost[turns.SEARCH]["counting"] = sum(b.value is not None for b in found[turns.SEARCH])
    document = {"cost": cost, **comparison.figures}
    files.write_text(folder / "comparison.json", json.dumps(document, indent=1) + "\n")
    with svg.drawing():
        picture_files.write(picture.draw(made, blocks, comparison), folder, "comparison", picture.legend(made))
    (folder / "search").mkdir(exist_ok=True)
    print(table(document))
    print(f"{words.headline(made)}\nThe search's map: {page.write(made, folder / 'search')}")
    print(f"Picture: {folder / 'comparison.png'}")
    return 0 if document.get("mean_square_search_to_grid", [9.0])[0] <= 1 else 1


def table(document: Mapping[str, Any]) -> str:
    """The comparison as RESULTS.md has it."""
    cost, counted, seen = (document[key] for key in ("cost", "reference", "unseen_blocks_in_the_interval_of_a_block"))
    lines = ["| | blocks | count | time of trials |", "|---|---|---|---|"]
    lines += [f"| {kind} | {c['blocks']} | {c['counting']} | {c['seconds']:.0f} s |" for kind, c in cost.items()]
    lines.append("")
    if "rmse" in document:
        names = {"grid": "grid", "search": "search", "grid_smoothed": "grid, smoothed by the same model (cross-fitted)"}
        places = document["held_out_places"]
        lines += [
            f"| judged at {places} places by blocks held out | error of the log ratio | wrong side of that block |"
        ]
        lines.append("|---|---|---|")
        for name, said in names.items():
            error, side = document["rmse"][name], document["wrong_side_of_held_out"][name]
            lines.append(f"| {said} | {_spanned(error, '.3f')} | {_spanned(side, '.0%')} |")
        ratio, less = document["mean_square_search_to_grid"], document["wrong_side_search_less_grid"]
        beyond = "" if ratio[2] <= 1 else ", though the interval reaches beyond"
        lines += [
            "",
            f"Mean squared error, search to grid: {_spanned(ratio, '.2f')}; wrong sides, search less grid: "
            f"{_spanned(less, '+.0%')}. At most the grid's error: {f'met{beyond}' if ratio[0] <= 1 else 'not met'}.",
        ]
    one, other = counted["only_grid_wrong"], counted["only_search_wrong"]
    lines += [
        f"At {counted['sure']} of {counted['places']} places the grid's other seven eighths, smoothed, are sure of the "
        f"winner. Wrong there: the grid's block at {counted['grid_wrong']}, the search at {counted['search_wrong']} "
        f"(only the grid {one}, only the search {other}); wrong winners claimed: {counted['search_claims_wrong']}.",
        f"Of {seen['blocks']} blocks that the search has not seen, {seen['share']:.0%} lie where it expects 95 %.",
    ]
    return "\n".join(lines)


def _spanned(values: Sequence[float], form: str) -> str:
    return f"{values[0]:{form}} [{values[1]:{form}}, {values[2]:{form}}]"


def main(asked: argparse.Namespace) -> int:
    """Measure what is missing in the folder, and compare."""
    try:
        return _main(asked)
    except (UserError, CannotError) as error:
        print(error)
        return 2 if isinstance(error, UserError) else 3


def _main(asked: argparse.Namespace) -> int:
    from trifecta.design.study_file import parse_study
    from trifecta.lab import sandbox
    from trifecta.store.run import RunDirectory

    folder: Path = asked.real
    resume = (folder / "run.json").is_file()
    if resume:
        run = RunDirectory.open(folder)
        if FACT not in run.facts:
            raise UserError(f"{folder} is the run of something else; give another folder")
        contest = read_contest(cast(Any, run.facts)[FACT])
        study = parse_study(run.study_text, str(folder / "study.yaml"))
    else:
        contest, study = make_contest(asked)
    code = 0
    if not resume or run.facts["state"] != "blocks":
        sandbox.enter()
        code = measure(folder, contest, study, round(asked.minutes * 60e9), resume=resume)
    return code or judge(folder, contest, study, RunDirectory.open(folder))
