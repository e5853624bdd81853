"""A run that goes on after its end: what is kept in its files, and what is refused."""

import json

import numpy as np
import pytest

from tests.analysis.worlds import make_row
from trifecta.analysis.planner import Decision, Planner
from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.study_file import parse_study
from trifecta.store.run import RunDirectory, TrialFiles
from trifecta.studies import load
from trifecta.workloads import extending
from trifecta.workloads.extending import RunExtension
from trifecta.workloads.facts import check_same_study, study_digest

MINUTE = 60_000_000_000
TINY = ["path=clean", "server=origin", "connection=new,reused", "seed=7"]


@pytest.fixture
def ended(tmp_path):
    """Makes a run of two cells that has ended: undecided in both, or decided in the first."""

    def make(*settings, blocks=(3, 2), faster=(1.0, 1.0), state="blocks", name="run"):
        study = load("race", [*TINY, *settings])
        cells = plan.cells(study)
        facts = {
            "study": {"name": study.name, "sha256": study_digest(study)}, "seed": study.seed, "unsupported": [],
            "state": state, "ended_because": "it was so",
        }  # fmt: skip
        run = RunDirectory.create(tmp_path / name, facts, study.source)
        rng, number = np.random.default_rng(5), 0
        for cell, count, factor in zip(cells, blocks, faster, strict=True):
            for block in range(count):
                for trial in plan.block_trials(study, cell, block, number):
                    slower = {"h1": factor**2, "h2": factor, "h3": 1.0}[trial.protocol]
                    run.commit_trial(make_row(trial, 1e6 * slower * np.exp(rng.normal(0, 0.02))), TrialFiles())
                    number += 1
        run.log_decision({"stop": state, "reason": "it was so", "elapsed_ns": 90_000_000_000})
        return run, study, cells

    return make


def again(run):
    """The study as another process reads it, which must be what run.json says."""
    study = parse_study(run.study_text, "study.yaml")
    check_same_study(run.facts, study, [])
    assert extending.current(run, study) == study
    return study


def ends(study):
    return (study.min_blocks, study.max_blocks, study.budget_ns)


def test_more_blocks_of_a_run_with_a_fixed_number(ended):
    run, study, cells = ended("blocks={at_least: 2, at_most: 3}", "budget=none")
    longer = extending.extend(run, study, cells, RunExtension(blocks=4))
    assert ends(longer) == (2, 7, None)
    assert again(run) == longer
    (entry,) = run.facts["extended"]
    assert (entry["asked"], entry["after_trials"], entry["after_state"]) == ("--blocks 4", 20, "blocks")
    assert entry["most_blocks"] == {cells[0].key: 7, cells[1].key: 6}
    assert run.facts["seed"] == 7
    assert json.loads((run.path / "planner.jsonl").read_text().splitlines()[-1])["extended"] == "--blocks 4"
    decision = extending.planner(run.facts)(longer, cells).next(run.rows(), 0)
    assert isinstance(decision, Decision)
    assert decision.block == {cells[0].key: 3, cells[1].key: 2}[decision.cell.key]
    assert plan.block_trials(longer, cells[0], 3, 20) == plan.block_trials(study, cells[0], 3, 20)  # the same plan


def test_more_time_counts_from_what_was_spent(ended):
    run, study, cells = ended("budget=90 s", "blocks={at_least: 2, at_most: 3}", state="budget")
    longer = extending.extend(run, study, cells, RunExtension(budget_ns=MINUTE))
    assert longer.budget_ns == 150_000_000_000
    assert longer.max_blocks >= 200  # time alone is the end
    assert isinstance(extending.planner(run.facts)(longer, cells).next(run.rows(), 90_000_000_000), Decision)
    assert again(run) == longer


def test_both_end_it_whichever_is_first_and_it_can_be_done_again(ended):
    run, study, cells = ended("blocks={at_least: 2, at_most: 3}", "budget=none")
    once = extending.extend(run, study, cells, RunExtension(blocks=4, budget_ns=MINUTE))
    assert ends(once) == (2, 7, 150_000_000_000)
    twice = extending.extend(run, once, cells, RunExtension(blocks=9))
    assert ends(twice) == (2, 12, None)
    assert [entry["asked"] for entry in run.facts["extended"]] == ['--blocks 4 --budget "1 min"', "--blocks 9"]
    assert again(run) == twice


def test_where_nothing_is_open_every_cell_gets_the_blocks_and_time_alone_is_refused(ended):
    run, study, cells = ended("budget=none", blocks=(14, 14), faster=(1.5, 1.5), state="decided")
    before = (run.facts, run.study_text)
    with pytest.raises(UserError, match=r"^option --budget: all 6 verdicts are decided, .*; --blocks N measures every"):
        extending.extend(run, study, cells, RunExtension(budget_ns=MINUTE))
    assert (run.facts, run.study_text) == before  # nothing half-written
    longer = extending.extend(run, study, cells, RunExtension(blocks=2))
    assert ends(longer) == (16, 16, None)
    assert isinstance(extending.planner(run.facts)(longer, cells).next(run.rows(), 0), Decision)


def test_a_gate_whose_tests_are_open_gets_time_where_all_verdicts_are_decided(ended):
    run, study, cells = ended("budget=90 s", blocks=(14, 14), faster=(1.5, 1.5), state="budget")
    longer = extending.extend(run, study, cells, RunExtension(budget_ns=MINUTE, of_gate=True))
    assert longer.budget_ns == 150_000_000_000
    assert not RunExtension(of_gate=True), "that alone asks for nothing"


def test_a_run_killed_between_its_two_files_is_mended(ended):
    run, study, cells = ended("blocks={at_least: 2, at_most: 3}", "budget=none")
    old = run.study_text
    longer = extending.extend(run, study, cells, RunExtension(blocks=4))
    (run.path / "study.yaml").write_text(old)
    assert extending.current(run, parse_study(old, "study.yaml")) == longer
    assert again(run) == longer


def test_a_campaign_that_knows_the_first_study_goes_on_with_the_extended_one(ended):
    run, study, cells = ended("blocks={at_least: 2, at_most: 3}", "budget=none")
    longer = extending.extend(run, study, cells, RunExtension(blocks=4))
    assert extending.current(run, study) == longer
    other = load("race", [*TINY, "margin=9 %"])
    with pytest.raises(UserError, match="the study is not the one this run began with"):
        check_same_study(run.facts, extending.current(run, other), [])


def test_a_run_that_was_never_extended_is_as_it_was(ended):
    run, study, _ = ended()
    assert extending.current(run, study) is study
    assert extending.planner(run.facts) is Planner


def test_captured_trials_that_give_no_verdicts_can_have_more_blocks_too(ended):
    run, study, cells = ended("capture=true", "blocks={at_least: 2, at_most: 3}", "budget=none", state="captured")
    assert ends(extending.extend(run, study, cells, RunExtension(blocks=1))) == (4, 4, None)


def test_a_map_is_refused(ended):
    run, study, cells = ended()
    run.write_facts(run.facts | {"map": {}})
    with pytest.raises(UserError, match="is a map"):
        extending.extend(run, study, cells, RunExtension(blocks=1))


def test_single_cells_get_blocks_whatever_their_verdicts(ended):
    """What a reproduction with a budget asks for: all is decided, and one cell is measured on."""
    run, study, cells = ended("budget=none", blocks=(14, 14), faster=(1.5, 1.5), state="decided")
    more = RunExtension(cells={cells[1].key: 21})
    assert more and more.words() == "reproduce --budget, 1 cell"
    longer = extending.extend(run, study, cells, more)
    assert again(run) == longer
    (entry,) = run.facts["extended"]
    assert entry["most_blocks"] == {cells[0].key: 14, cells[1].key: 21}
    planner, rows, chosen = extending.planner(run.facts)(longer, cells), run.rows(), []
    while isinstance(decision := planner.next(rows, 0), Decision):
        chosen.append((decision.cell.key, decision.block))
        rows += [make_row(one, 1e6) for one in plan.block_trials(longer, decision.cell, decision.block, len(rows))]
    assert chosen == [(cells[1].key, block) for block in range(14, 21)]


def test_time_ends_single_cells_as_well(ended):
    run, study, cells = ended("budget=none", blocks=(14, 14), faster=(1.5, 1.5), state="decided")
    longer = extending.extend(run, study, cells, RunExtension(budget_ns=MINUTE, cells={cells[0].key: 21}))
    assert longer.budget_ns == 150_000_000_000
    assert not isinstance(extending.planner(run.facts)(longer, cells).next(run.rows(), 151_000_000_000), Decision)
