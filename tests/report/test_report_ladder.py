"""A ladder in words, as a table, as a picture, in the terminal and in the page of a reproduction."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from trifecta.conclude import ladder_results
from trifecta.conclude.reproduction.result import Result, as_data
from trifecta.contract.ladder import LadderDocument
from trifecta.design.errors import UserError
from trifecta.report.figures import svg
from trifecta.report.ladder import output, picture, section, words
from trifecta.report.reproduction.output import render


def ends(ratio: float | None, low: float | None = None, high: float | None = None, blocks: int = 6) -> dict[str, Any]:
    return {"ratio": ratio, "low": low, "high": high, "blocks": blocks}


def found(**changes: Any) -> LadderDocument:
    rung = {"metric": "requests_per_s", "trials": 18, "valid": 18, "checks": {}}
    step = {"threat": "", "source": "V <b>", "why": "Nothing waits.", "p_holm": 0.001, "counts": True}
    made: dict[str, Any] = {
        "ladder": "small",
        "title": "20 requests & a <script>",
        "claim": "milicevic2023.reused-more",
        "study": "milicevic2023",
        "text": "On one connection HTTP/3 answers more.",
        "source": "VI",
        "quote": "",
        "arm": "h3",
        "to": "h2",
        "metric": "requests_per_s",
        "published": "102 to 118 requests/s against 20",
        "published_range": [5.1, 5.9],
        "lacks": ["the machines of AWS"],
        "answer": "held then",
        "reason": "it holds under the published conditions; today no longer",
        "then": {"state": "confirmed", **ends(5.5, 5.2, 5.8, 12)},
        "now": {"state": "contradicted", **ends(0.7, 0.65, 0.75, 12)},
        "rungs": [
            {"cell": "tcp_nodelay=false", **rung, **ends(5.5, 5.1, 5.9)},
            {"cell": "tcp_nodelay=true", **rung, **ends(0.71, 0.66, 0.76)},
            {"cell": "tcp_nodelay=true,client=load", **rung, **ends(0.7, 0.6, 0.8)},
        ],
        "steps": [
            {"step": "nagle", "title": "Nagle off", "exchange": {"tcp_nodelay": ["false", "true"]}, **step,
             **ends(0.129, 0.12, 0.14)},
            {"step": "client", "title": "another client", "exchange": {"client": ["python-client", "load"]}, **step,
             "counts": False, **ends(0.99, 0.9, 1.1)},
        ],
        "whole": ends(0.127, 0.11, 0.14),
        "sum": ends(0.128, 0.12, 0.14),
        "left": ends(0.99, 0.9, 1.1),
        "meets": True,
        "rounds": 6,
        "complete": 6,
        "orders": [
            {"step": "nagle", "before": ends(0.13, 0.12, 0.14), "after": ends(0.26, 0.2, 0.3),
             "interaction": ends(2.0, 1.8, 2.2)},
        ],
        "no_orders": "",
        "margin": 0.05,
        "confidence": 0.95,
        "seed": 1,
        "runs": ["steps", "orders"],
    }  # fmt: skip
    return made | changes  # type: ignore[return-value]


def test_the_answer_names_the_steps_that_made_it():
    said = words.answer(found())
    assert said.startswith("Held then: it holds under the published conditions; today no longer.")
    assert "Nagle off (× 0.13 [0.12, 0.14])" in said
    assert "another client" not in said


def test_a_step_the_other_way_is_none_of_those_that_made_it():
    one = found()
    one["steps"][1] |= {"counts": True, "ratio": 1.02, "low": 1.01, "high": 1.03}
    said = words.answer(one)
    assert "What changed it: Nagle off (× 0.13 [0.12, 0.14])." in said
    assert said.endswith("What acted against that: another client (× 1.02 [1.01, 1.03]).")


def test_the_sum_of_the_steps_meets_the_whole_or_the_ladder_says_what_is_left():
    assert words.closing(found()).endswith("left × 0.99 [0.90, 1.10]: they agree.")
    apart = words.closing(found(meets=False, left=ends(1.4, 1.2, 1.6)))
    assert "they do not agree" in apart
    assert "1.4" in apart
    assert "too few rounds" in words.closing(found(meets=None))
    assert "round" not in words.closing(found())
    fewer = found(sum=ends(0.128, 0.12, 0.14, 5), left=ends(1.06, 0.9, 1.2, 5))
    said = words.closing(fewer)
    assert "× 0.13 [0.11, 0.14] (6 rounds); " in said
    assert "left × 1.06 [0.90, 1.20] (5 rounds): they agree." in said


def test_trials_that_do_not_count_are_counted_once_a_cell():
    assert words.left_out(found()) == ""
    some = found()
    for rung in some["rungs"][1:]:
        rung["cell"], rung["valid"], rung["checks"] = "same=cell", 15, {"machine": 3}
    assert words.left_out(some) == "3 of 36 trials do not count; checks that warned or failed: machine in 3."


def test_the_table_has_a_line_for_every_part():
    rows = list(csv.DictReader(io.StringIO(output.as_csv(found()))))
    assert [row["part"] for row in rows] == [
        "published", "rung", "rung", "rung", "step", "step", "whole", "sum", "left", "before", "after", "interaction"
    ]  # fmt: skip
    step = rows[4]
    assert (step["name"], step["ratio"], step["low"], step["high"]) == ("nagle", "0.129", "0.12", "0.14")
    assert (rows[0]["ratio"], rows[0]["low"], rows[0]["high"]) == ("", "5.1", "5.9")


def test_the_picture_says_what_it_shows():
    with svg.drawing():
        drawn = picture.draw(found())
        text = drawn.svg("x")
    assert "Nagle off: × 0.13" in drawn.label
    for part in ("published: 102 to 118", "Nagle off", "another client", "today: 0.7"):
        assert part in text
    assert "<script>" not in text


def test_a_ladder_without_values_is_drawn_and_told():
    nothing = ends(None, None, None, 0)
    bare = found(
        answer="open",
        reason="as published: no usable block",
        meets=None,
        orders=[],
        no_orders="not measured yet",
        **dict.fromkeys(("whole", "sum", "left"), nothing),
        then={"state": "open", **nothing},
        now={"state": "open", **nothing},
        published_range=None,
    )
    bare["rungs"] = [{**one, **nothing} for one in bare["rungs"]]  # type: ignore[typeddict-item]
    bare["steps"] = [{**one, **nothing, "p_holm": None, "counts": False} for one in bare["steps"]]  # type: ignore[typeddict-item]
    with svg.drawing():
        assert "no usable block" not in picture.draw(bare).svg("x")
    out = Console(file=io.StringIO(), width=100)
    output.print_ladder(bare, Path("x"), out)
    text = out.file.getvalue()  # type: ignore[attr-defined]
    assert "Open: as published: no usable block." in text
    assert "not measured yet" in text


@pytest.mark.parametrize("width", [80, 140])
def test_the_terminal_has_every_rung_and_what_follows(width):
    out = Console(file=io.StringIO(), width=width)
    output.print_ladder(found(), Path("there"), out)
    text = out.file.getvalue()  # type: ignore[attr-defined]
    for part in ("0.71 [0.66, 0.76]", "Nagle", "Held then", "Not as published: the machines of AWS.", "interaction"):
        assert part in text


def test_a_rung_that_was_run_from_end_to_end_too_says_how_many_rounds_its_step_has():
    out = Console(file=io.StringIO(), width=140)
    document = found()
    document["rungs"][-1]["blocks"] = 12
    output.print_ladder(document, Path("there"), out)
    lines = out.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert next(line for line in lines if line.startswith("another client")).split()[-3:] == ["12,", "step", "6"]
    assert next(line for line in lines if line.startswith("Nagle off")).split()[-1] == "6"


def test_files_are_written_and_what_was_changed_is_refused(tmp_path):
    own = tmp_path / "ladders" / "small"
    own.mkdir(parents=True)
    output.write(found(), own)
    assert {path.name for path in own.iterdir()} >= {"ladder.json", "ladder.csv", "ladder.svg", "ladder.png"}
    assert ladder_results.below(tmp_path) == [found()]
    (own / "ladder.json").write_text(json.dumps({**found(), "answer": "confirmed"}))
    with pytest.raises(UserError, match=r"ladder\.json: is not what"):
        ladder_results.below(tmp_path)


def test_the_page_of_a_reproduction_shows_it_escaped(tmp_path):
    asked = {"depth": "quick", "began": "2026-01-01T00:00:00Z", "argv": ["trifecta"], "elapsed_s": {}}
    page = render(Result(tmp_path, asked, (), (), (found(),)))
    assert '<h3 id="ladder-small">20 requests &amp; a &lt;script&gt;</h3>' in page
    assert "V &lt;b&gt;" in page
    assert "held then" in page.lower()
    assert '<a href="#ladders">Ladders</a>' in page
    assert "Ladders" not in render(Result(tmp_path, asked, ()))
    assert as_data(Result(tmp_path, asked, (), (), (found(),)))["ladders"] == [found()]


def test_the_section_of_a_page_has_steps_runs_and_the_answer():
    (one,) = section.shown_ladders([found()])
    assert [step.title for step in one.steps] == ["Nagle off", "another client"]
    assert one.steps[0].exchanged == "tcp_nodelay false → true"
    assert one.runs[0] == ("steps", "ladders/small/steps/report.html")
    assert one.answer.startswith("Held then")
    assert one.picture.startswith("<svg")
