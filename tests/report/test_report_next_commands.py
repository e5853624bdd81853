"""Every open verdict says what to type so that it gets the blocks it lacks."""

import dataclasses
import io
import json
import re
import shlex

import pytest
from rich.console import Console

from trifecta.analysis.betting import fewest_blocks
from trifecta.conclude import facts, more_blocks
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.explain.chain import explain
from trifecta.report import next_commands, terminal
from trifecta.report.explain import as_data, print_chains

COMMAND = re.compile(r"trifecta resume (\S+) --blocks (\d+)")


def one(blocks, low, high, verdict="undecided", middle=None, invalid=0):
    row = {"blocks": blocks, "blocks_needed": middle, "blocks_needed_low": low, "blocks_needed_high": high,
           "invalid_trials": invalid}  # fmt: skip
    return Comparison("path=far", "h3", "h2", verdict, row)


@pytest.mark.parametrize(
    ("comparison", "asked"),
    [
        (one(20, 22, 31), 11),  # the upper end of the forecast
        (one(20, 50, None), 30),  # open above: its lower end, or as many again
        (one(20, 22, None), 20),
        (one(20, None, None), 20),  # far off: as many again
        (one(20, 50, None, middle=90), 70),
        (one(4, 7, 63, middle=17), 13),  # the first blocks have a range beyond what can be foreseen
        (one(2, 7, 2258), 5),
        (one(2, None, None), 4),  # no verdict before the sixth block
        (one(5, 6, 6), 1),
        (one(0, None, None, invalid=3), None),  # no valid block: more of them are no help
        (one(0, None, None), 6),  # it has not had its turn
        (one(None, None, None), 6),
        (one(20, None, None, "faster"), None),
    ],
)
def test_how_many_blocks_are_asked_for(small, comparison, asked):
    about = facts.read(small)
    assert more_blocks.of(about, comparison) == asked
    assert more_blocks.of(dataclasses.replace(about, rest={"map": {}}), comparison) is None


def test_of_several_half_are_decided_and_none_is_kept_below_six_blocks(small):
    about = facts.read(small)
    assert (
        more_blocks.blocks_needed(
            about, [one(20, 21, 23), one(20, 25, 30), one(20, 60, 90), one(0, None, None, invalid=3)]
        )
        == 10
    )
    assert more_blocks.blocks_needed(about, [one(5, 6, 6), one(5, 6, 6), one(1, None, None)]) == 5
    assert more_blocks.blocks_needed(about, [one(20, None, None, "same")]) is None
    far_off = [one(13, None, None)] * 3
    assert more_blocks.blocks_needed(about, [one(13, 51, None), one(13, 60, None), *far_off]) == 43
    assert more_blocks.blocks_needed(about, far_off) == 13


def test_time_is_that_of_the_cells_that_are_open(small):
    """Ten quick blocks of 2 s each (1 s was expected) say little of a cell whose blocks take a hundred times that."""
    about = dataclasses.replace(
        facts.read(small), block_ns={"quick": 10**9, "slow": 100 * 10**9}, rest={"elapsed_ns": 20 * 10**9}
    )
    quick = dataclasses.replace(one(10, None, None, "faster"), cell="quick")
    slow = dataclasses.replace(one(0, None, None), cell="slow")
    trials = 10 * (len(about.arms) + 1)
    assert more_blocks.estimated_ns(about, [quick, slow], trials) == 6 * 200e9
    assert next_commands.estimate(about, [quick, slow], trials) == "about 20 min"
    opened = dataclasses.replace(quick, kind="undecided")
    assert next_commands.estimate(about, [opened], trials) == "about 20 s at most"
    assert more_blocks.estimated_ns(dataclasses.replace(about, block_ns={}), [opened], trials) == 10 * 2e9
    begun = dataclasses.replace(slow, row=one(1, None, None).row)
    took_ns = more_blocks.estimated_ns(about, [quick, begun], 11 * (len(about.arms) + 1))
    assert took_ns == pytest.approx(5 * 20e9 * 100 / 110)


def test_the_fewest_blocks_that_can_decide():
    assert [fewest_blocks(level) for level in (0.9, 0.95, 0.99)] == [5, 6, 8]


def test_the_terminal_has_the_command_in_one_piece_and_json_for_each_verdict(run):
    stream = io.StringIO()
    terminal.print_verdicts(run, Console(file=stream, width=80, highlight=False))
    (line,) = [line for line in stream.getvalue().splitlines() if COMMAND.search(line)]
    folder, blocks = COMMAND.search(line).groups()
    assert line.startswith("Next: Measure more: trifecta resume ")
    assert shlex.split(folder) == [str(run)]
    data = json.loads(terminal.as_json(run))
    assert data["resume"] == f"trifecta resume {folder} --blocks {blocks}"
    for verdict in (verdict for cell in data["cells"] for verdict in cell["verdicts"]):
        opened = verdict["verdict"] == "undecided" and bool(verdict["blocks"])
        assert (verdict["resume"] is not None) == opened
    assert f"<code>{data['resume']}</code>" in (run / "report.html").read_text().replace("\u00a0", " ")


def test_explain_says_it_of_each_open_verdict(run):
    found = explain(run, None, None)
    opened = [c.comparison for c in found.chains if not c.comparison.decided and c.comparison.row["blocks"]]
    assert opened
    stream = io.StringIO()
    print_chains(found, [], Console(file=stream, width=60, highlight=False))
    lines = [line for line in stream.getvalue().splitlines() if COMMAND.fullmatch(line.strip())]
    assert len(lines) == len(opened)
    assert json.dumps(as_data(found, [])).count("trifecta resume ") == len(opened)


def test_a_run_that_was_extended_says_so(small, tmp_path):
    import shutil

    shutil.copytree(small, tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    document = json.loads(path.read_text())
    document["extended"] = [{"asked": "--blocks 4", "after_trials": 40}]
    path.write_text(json.dumps(document))
    assert (
        "It had ended after 40 trials and was extended by `--blocks 4`"
        in terminal.summarise(tmp_path / "run").words.scope
    )
