"""A map's files and sentences."""

import dataclasses
import json
import re

import pytest

from tests.analysis.mapping.plane import a_plan, a_study, explore
from tests.report.synthetic import Shape, write_run
from trifecta.analysis.mapping.noise import Noise
from trifecta.analysis.mapping.result import PlaceEstimate, work_out
from trifecta.conclude import maps
from trifecta.design.errors import UserError
from trifecta.design.mapping import make_plan, parse_place
from trifecta.report import html
from trifecta.report.map import page, words
from trifecta.report.question_progress import QuestionProgress


@pytest.fixture(scope="module")
def made():
    plan = a_plan("6x6", blocks=40)
    study = a_study(plan)
    rows, stop, _ = explore(plan, study, lambda x, y: 0.5 * (x - 0.5) + 0.2 * y - 0.1)
    for row in rows[:3]:
        row["valid"] = False
        row["checks_json"] = json.dumps([{"check": "path", "status": "fail"}])
    return work_out(plan, study, rows, ending=stop.reason, about={"argv": ["trifecta", "map", "--y", "<loss>"]})


def test_the_files_are_there_and_read_back(made, tmp_path):
    written = page.write(made, tmp_path)
    there = {"map.json", "map.svg", "map.png", "map.html", "results.sha256"}
    assert {path.name for path in tmp_path.iterdir()} == there
    assert maps.load(tmp_path).document() == made.document()
    text = written.read_text()
    assert "<script" not in text
    for drawn in (text, (tmp_path / "map.svg").read_text()):
        assert "round-trip time (log)</text>" in drawn and "50 ms</text>" in drawn  # text stays text
    assert "&lt;loss&gt;" in text
    assert "HTTP/3" in text and "path in 3 trials" in text
    assert text.count("<td") == 36
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert "#0100" not in (tmp_path / "map.svg").read_text()  # no stand-in colour is left


def test_a_map_without_a_trial_that_counts_has_its_page_too(made, tmp_path):
    plan = a_plan("4x4")
    study = a_study(plan)
    rows, _, _ = explore(a_plan("4x4", blocks=3), study, lambda x, y: 0.3)
    nothing = work_out(plan, study, [row | {"valid": False} for row in rows])
    assert "No result: in no block did all trials pass" in page.write(nothing, tmp_path).read_text()


def test_the_report_of_its_trials_leaves_the_figures_to_the_map(tmp_path):
    run = write_run(tmp_path / "run", Shape(blocks=1, paths=("clean", "far"), servers=("origin",)))
    whole = html.render(run)
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"map": a_plan("4x4").document()}))
    short = html.render(run)
    assert len(short) < 0.6 * len(whole)
    assert 'id="cells"' in whole and 'id="cells"' not in short
    assert "A map: blocks at 4 places." in short and 'href="map.html"' in short
    assert 'id="evidence"' in short
    for page_text in (whole, short):
        links, targets = (set(re.findall(pattern, page_text)) for pattern in (r'href="#([^"]+)"', r' id="([^"]+)"'))
        assert links <= targets


def test_a_sentence_a_kind_of_answer(made):
    def said(low, high):
        return words.sentence(PlaceEstimate(made, 35e6, 0.005, (low + high) / 2, low, high, 0.5, made.spots[:1]))

    begin = "at 35 ms and 0.5 % loss, for 20 objects of 30 kB: "
    assert said(0.1133, 0.1740) == begin + "HTTP/3, 1.12 to 1.19 times faster"
    assert said(-0.1740, -0.1133) == begin + "HTTP/2, 1.12 to 1.19 times faster"
    assert said(-0.02, 0.03).startswith(begin + "the same within 5")
    assert said(-0.1, 0.2).startswith(begin + "open (HTTP/3 is between 0.90")


def test_an_answer_names_the_checks_that_failed_near(made):
    bad = next(spot for spot in made.spots if spot.failed)
    i, j = made.plan.places()[bad.place]
    answer = made.at(made.plan.x.values[i], made.plan.y.values[j])
    assert "failed a check do not count: path in 3 trials; 1 block with them." in words.evidence(answer)
    assert answer.document()["checks_failed"] == {"path": 3}


def test_the_noise_of_too_few_blocks_is_not_called_none():
    assert words.noise(Noise(1, 0.995), "h2") == "HTTP/2 against itself over 1 block: 0.995, too few to tell."
    assert words.noise(Noise(90, 1.005, 0.994, 1.01), "h2").endswith("1.005 (0.994 to 1.01): no difference.")


def test_an_answer_says_when_nothing_near_was_measured(made):
    few = dataclasses.replace(made, spots=[spot for spot in made.spots if spot.place == 0])
    answer = few.at(made.plan.x.high, made.plan.y.high)
    assert "none of them near. " in words.evidence(answer)
    assert answer.document()["nearby"] is False
    assert "near. Every trial there passed its checks." in words.evidence(made.at(made.plan.x.high, made.plan.y.high))


@pytest.mark.parametrize(
    ("x", "y", "place", "begin"),
    [
        ("rate=2Mbit/s..50Mbit/s", "queue=0.25bdp..4bdp", "rate=10Mbit/s,queue=1bdp",
         "at 10 Mbit/s and a queue of 1 bdp, for 20 objects of 30 kB: HTTP/"),
        ("rtt=5ms..100ms", "response=1kB..1MB", "rtt=35ms,workload.response=50kB",
         "at 35 ms and responses of 50 kB, for 20 objects: HTTP/"),
        ("in_flight=1..20", "path.loss=0..2%", "loss=0.5%,in_flight=7",
         "at 7 in flight and 0.5 % loss, for requests of 30 kB: HTTP/"),
    ],
)  # fmt: skip
def test_a_sentence_for_any_two_factors(x, y, place, begin):
    plan = make_plan(x, y, "6x6", "h3,h2", blocks=24)
    study = a_study(plan)
    rows, stop, _ = explore(plan, study, lambda x, y: 0.3)
    made = work_out(plan, study, rows, ending=stop.reason)
    said = words.sentence(made.at(*parse_place("--at", plan, place)))
    assert said.startswith(begin)
    assert said.endswith("times faster")


def test_a_plane_that_is_all_open_is_told_in_words(made, monkeypatch):
    shares = {"faster": 0.0, "slower": 0.0, "same": 0.0, "open": 1.0}
    monkeypatch.setattr(type(made), "outcome_of_border", lambda _: shares)
    assert words.headline(made) == "For 20 objects of 30 kB, all of the plane is open."


def test_the_end_of_a_map_is_said_once(monkeypatch):
    said = []
    progress = QuestionProgress()
    monkeypatch.setattr(progress, "_say", said.append)
    progress._done = 1
    progress.finished((), "stopped by the user")
    assert said == ["1 trial: stopped by the user"]


def test_the_headline_has_every_part(made):
    said = words.headline(made)
    shares = [float(number) for number in re.findall(r"([\d.]+) ?%", said.replace("within 5", ""))]
    assert said.startswith("For 20 objects of 30 kB, HTTP/3 is faster on")
    assert sum(shares) > 95


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1}'])
def test_a_damaged_file_is_one_line(text, tmp_path):
    (tmp_path / "map.json").write_text(text)
    with pytest.raises(UserError, match=r"map\.json"):
        maps.load(tmp_path)
    with pytest.raises(UserError, match="not there yet"):
        maps.load(tmp_path / "none")
