"""A reproduction's page, terminal and data; and what is read out of a run for it."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.report import pages
from tests.report.synthetic import Shape, write_run
from trifecta import studies
from trifecta.analysis import interim_looks
from trifecta.analysis.deciding import Rule
from trifecta.analysis.published import evaluate
from trifecta.conclude.reproduction import rejudge
from trifecta.conclude.reproduction.chance import by_chance
from trifecta.conclude.reproduction.places import half_sample_mode
from trifecta.conclude.reproduction.places import read as read_places
from trifecta.conclude.reproduction.resampled import OfRun, outcome, read_stored
from trifecta.conclude.reproduction.result import Result, as_data
from trifecta.conclude.reproduction.result import read as read_result
from trifecta.contract.reproduction import Spending, Step
from trifecta.design.campaign import parse_campaign
from trifecta.design.errors import UserError
from trifecta.report.reproduction import print_result, words, write
from trifecta.report.reproduction.output import render
from trifecta.report.reproduction.resampled import resampling_words
from trifecta.store import campaign as campaigns
from trifecta.store import reproduction

THREAT = {
    "threat": "round-trips",
    "title": "a title <b>",
    "fact": "f",
    "studies": ["milicevic2023"],
    "check": None,
    "undetected": "why",
    "outcome": "not measured",
    "reason": "no time for `tshark` <i>",
    "runs": ["out/threats/round-trips", "out/threats/early-data"],
    "effects": [],
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """One study of two: a run that knows the far path, everything else not run."""
    folder = tmp_path_factory.mktemp("reproduced") / "all"
    names = ["milicevic2023", "ding2022"]
    read_campaigns, asked = {}, {}
    for name in names:
        text = studies.read_text(studies.campaigns()[name])
        asked[name] = {"text": text, "file": name, "depth": "quick", "overrides": [], "only": []}
        read_campaigns[name] = parse_campaign(text, name, "quick")
    about = {"studies": names, "depth": "quick", "began": "2026-01-01T00:00:00Z", "elapsed_s": {}}
    about["argv"] = ["/here/.venv/bin/trifecta", "reproduce", "--only", "two words"]
    reproduction.create(folder, {**about, "campaigns": asked})
    campaigns.create(folder / "milicevic2023", read_campaigns["milicevic2023"], asked["milicevic2023"])
    shape = Shape(blocks=6, samples_per_trial=60, paths=("far",), connections=("new",), servers=("hypercorn",),
                  clients=("python-client",))  # fmt: skip
    shape.troubles = False
    write_run(folder / "milicevic2023" / "python-latency", shape)
    (folder / "threats").mkdir()
    (folder / "threats" / "threats.json").write_text(json.dumps([THREAT]))
    return read_result(folder, read_campaigns, {"ding2022": {"captured-transfers": "no tshark"}})


def test_what_was_run_is_judged_and_what_was_not_is_named(result: Result) -> None:
    said = {one.statement.id: one for one in result.evaluations()}
    far = said["milicevic2023.far-faster"]
    assert far.blocks == 6
    assert far.effects[0].run == "milicevic2023/python-latency"
    near = said["milicevic2023.near-faster"].reason
    assert near == "nothing was run that it is about"  # what engine-latency would run are not the study's programs
    missing = {study.published.id: study.missing for study in result.studies}
    assert missing["milicevic2023"]["engine-latency"] == "not run"
    assert set(missing["ding2022"]) == {"captured-transfers", "timed-transfers", "engine-transfers"}


def test_a_cell_that_could_not_be_run_is_named_in_the_claims_about_it(result: Result) -> None:
    campaign = parse_campaign(studies.read_text(studies.campaigns()["ding2022"]), "ding2022", "quick")
    folder = result.folder.parent / "partly"
    campaigns.create(folder / "ding2022", campaign, {})
    reproduction.create(folder / "asked", {"studies": ["ding2022"], "depth": "quick"})
    (folder / "asked" / "reproduce.json").rename(folder / "reproduce.json")
    missing = {"captured-transfers": "no curl with HTTP/3", "timed-transfers, client curl": "curl was not found"}
    said = {
        one.statement.id: one
        for one in read_result(folder, {"ding2022": campaign}, {"ding2022": missing}).evaluations()
    }
    reason = said["ding2022.fewer-frames-to-data"].reason
    assert "nothing was run that it is about; captured-transfers was not run: no curl with HTTP/3" in reason
    assert "timed-transfers was not run: curl was not found" in said["ding2022.hello-closed.duration-h3"].reason


def test_how_many_can_be_expected_to_be_false_is_said(result: Result) -> None:
    measured = [one for one in result.evaluations() if one.rule and one.low is not None]
    assert len(measured) > 1
    said = words.by_chance(by_chance(measured))
    assert f"of {len(measured)} that were measured, " in said
    assert "an error of at most 5 %" in said
    later = [replace(one, look=2, rule=Rule(0.05, interim_looks.confidence_at(0.95, 2))) for one in measured]
    assert words.by_chance(by_chance(later)) == said, "all looks together have the same error"
    assert "of 60 that were measured, up to 3 can be" in words.by_chance(by_chance([measured[0]] * 60))
    assert words.by_chance(by_chance(measured[:1])) == ""
    assert said in " ".join(pages.read(render(result)).root.text.split())
    out = Console(file=io.StringIO(), width=200)
    print_result(result, out)
    assert said in out.file.getvalue()  # type: ignore[attr-defined]


def test_the_page_holds_every_statement_and_nothing_from_outside(result: Result) -> None:
    experiments = ("round-trips", "early-data")
    for run in experiments:
        (result.folder / "threats" / run).mkdir(parents=True, exist_ok=True)
        (result.folder / "threats" / run / "report.html").touch()
    page = pages.read(write(result).read_text()).root
    for run in experiments:  # every experiment of a threat is a link away
        assert f'href="threats/{run}/report.html"' in (result.folder / "reproduction.html").read_text()
    ids = {element.attributes.get("id") for element in page.all("tr")}
    assert {one.statement.id for one in result.evaluations()} <= ids
    text = page.text
    assert "a title <b>" in text  # escaped, so that it is text
    assert "no time for tshark <i>" in text  # between backticks it is code
    assert "<code>tshark</code> &lt;i&gt;" in (result.folder / "reproduction.html").read_text()
    assert "with trifecta reproduce --only 'two words'." in text
    assert "Of 16 claims" in text
    assert "python-latency" in text
    seed = json.loads((result.folder / "milicevic2023" / "python-latency" / "run.json").read_text())["seed"]
    assert f"seed {seed}" in text
    for element in page.all("a"):
        target = str(element.attributes["href"])
        assert target.startswith("#") or (result.folder / target).exists(), target


def test_how_a_budget_was_spent_is_on_the_page_in_the_terminal_and_in_the_data(result: Result, tmp_path: Path) -> None:
    step: Step = {
        "step": 1, "claim": "milicevic2023.far-faster", "why": "with 14 blocks a cell, 40 s from here, it is decided",
        "look": 2, "blocks": 14, "chance": 0.6, "expected_s": 40.0, "step_s": 20.0, "pace": 1.0, "left_s": 90.0,
        "also": ["milicevic2023.far-mode"], "targets": {"milicevic2023/python-latency": {"path=far": 9}},
        "before_s": {"milicevic2023/python-latency": 30.0}, "took_s": 21.0, "reached": True, "state": "confirmed",
        "decided": 1, "claims": 12,
    }  # fmt: skip
    why = "about 32 blocks a cell would decide, which take 5 min; 60 s is left"
    told: Spending = {
        "budget_s": 7200.0, "spent_s": 6720.0, "decided": 1, "claims": 12,
        "ended": "what is left of the budget decides nothing more",
        "open": [{"claim": "milicevic2023.near-faster", "why": why}], "steps": [step],
    }  # fmt: skip
    spent = replace(result, spending=told)
    said = "spent 1 h 50 min of 2 h: 1 of 12 claims decided; what is left of the budget decides nothing more."
    text = pages.read(render(spent)).root.text
    assert said.capitalize() in text
    assert "About 32 blocks a cell would decide, which take 5 min; 60 s is left." in text
    assert "1 cell of milicevic2023/python-latency up to 9 blocks, took 21 s: With 14 blocks a cell" in text
    assert "Also for milicevic2023.far-mode. Then: confirmed." in text
    out = Console(file=io.StringIO(), width=200)
    print_result(spent, out)
    printed = out.file.getvalue()  # type: ignore[attr-defined]
    assert f"Budget: {said}" in printed and f"open: milicevic2023.near-faster: {why}" in printed
    assert as_data(spent)["budget"] == told
    assert "budget" not in as_data(result)
    assert "Budget" not in pages.read(render(result)).root.text


def test_cells_have_the_values_of_their_blocks_and_give_the_answer_again(result: Result) -> None:
    data = json.loads(json.dumps(as_data(result), default=str))
    statements = {one.statement.id: one.statement for one in result.evaluations()}
    seen = 0
    for row in (*data["claims"], *data["figures"]):
        says = statements[row["id"]].says
        if says is None or row["state"] == "not compared" or not row["cells"]:
            continue
        seen += 1
        one = rejudge.recomputed(row, says)
        assert one is not None and (one[0], one[2]) == (row["state"], row["size"]), row["id"]
        assert [len(cell["values"][0]) for cell in row["cells"]] == [cell["blocks"] for cell in row["cells"]]
    assert seen == 4


def test_the_data_have_what_the_table_says(result: Result) -> None:
    write(result)
    data = json.loads((result.folder / "reproduction.json").read_text())
    assert data == json.loads(json.dumps(as_data(result), default=str))
    # With what it was made stands in it: it is whole without the runs beside it.
    assert data["reproduction"]["programs"]["origin"]
    claim = next(one for one in data["claims"] if one["id"] == "milicevic2023.far-faster")
    assert claim["study"] == "milicevic2023"
    assert claim["state"] in ("confirmed", "contradicted", "open")
    assert claim["low"] < claim["ratio"] < claim["high"]
    assert claim["run"] == "milicevic2023/python-latency"
    assert "path=far" in claim["cell"]
    assert {one["study"] for one in data["missing"]} == {"milicevic2023", "ding2022"}
    assert data["threats"][0]["threat"] == "round-trips"
    assert len(data["figures"]) == 40


@pytest.mark.parametrize("width", [40, 80, 109, 110, 200])
def test_the_terminal_has_a_row_for_each_at_any_width(result: Result, width: int) -> None:
    out = Console(file=io.StringIO(), width=width)
    print_result(result, out)
    said = out.file.getvalue()  # type: ignore[attr-defined]
    assert "Of 16 claims" in said.replace("\n", " ")
    words = " ".join(said.split())
    assert "open" in words
    if width in (80, 200):
        assert ("published: 102 to 118 requests/s against 20 (5.1 to 5.9, our ratio);" in words) == (width == 80)
    assert max(map(len, said.splitlines())) <= max(width, len(str(result.folder)) + 40, 200)


def test_metrics_of_single_requests_are_those_of_the_samples(result: Result) -> None:
    place = read_places(result.folder / "milicevic2023" / "python-latency")[0]
    assert place.levels["kind"] == "requests"
    row: dict[str, Any] = dict(place.rows[0])
    assert row["latency_min_ns"] <= row["latency_mode_ns"] <= row["latency_max_ns"]
    assert row["latency_min_ns"] <= row["latency_p50_ns"] <= row["latency_max_ns"]
    assert 0 < row["latency_spread_ns"] <= row["latency_max_ns"] - row["latency_min_ns"]
    assert row["duration_ns"] > 0


def test_every_metric_of_a_statement_is_one_that_is_read() -> None:
    """A metric that nobody measures would leave its claim open for ever."""
    from trifecta.conclude.packets.metrics import METRICS as OF_PACKETS
    from trifecta.conclude.reproduction.places import CPU_SHARE, ELAPSED, SAMPLES, SERVICES
    from trifecta.conclude.visits.metrics import PAGE, VIDEO
    from trifecta.design.metrics import METRICS, of_all

    known = {*METRICS, *SERVICES, CPU_SHARE, ELAPSED, "latency_mode_ns", "dns_ns"} | {
        one.name for one in (*OF_PACKETS, *PAGE, *VIDEO)
    }
    for study in studies.published().values():
        for one in study.statements:
            assert one.says is not None
            for metric in filter(None, (one.says.metric, one.says.over)):
                assert of_all(metric) in known or f" AS {metric}" in SAMPLES.sql, one.id


@given(st.lists(st.floats(1, 1e9), min_size=1, max_size=60))
def test_a_mode_lies_among_the_values(values: list[float]) -> None:
    mode = half_sample_mode(np.array(values))
    assert min(values) * (1 - 1e-9) <= mode <= max(values) * (1 + 1e-9)


def test_a_mode_is_where_most_values_are() -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(30, 1, 800), rng.uniform(0, 200, 300)])
    assert half_sample_mode(values) == pytest.approx(30, abs=2)


def test_a_folder_that_is_no_reproduction_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no reproduction"):
        reproduction.read(tmp_path)
    (tmp_path / "reproduce.json").write_text("{}")
    with pytest.raises(UserError, match="'studies' is missing"):
        reproduction.read(tmp_path)
    (tmp_path / "reproduce.json").write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        reproduction.read(tmp_path)


def concluded(**said: float | None) -> OfRun:
    """200 conclusions on one comparison that HTTP/3 wins."""
    nothing = dict.fromkeys(("rate", "low", "high", "ratio", "ratio_low", "ratio_high"))
    return OfRun("single-load", "path=far", "h3", "h2", "h3", 200, 20, 0, **{**nothing, **said}, run="r")


def test_what_was_concluded_is_read_back_as_it_was_kept() -> None:
    one = concluded(rate=0.1, low=0.05, high=0.2)
    assert next(iter(one.as_data())) == "run"
    assert read_stored([one.as_data()]) == [one]


def test_a_procedure_without_traffic_says_how_often_it_would_have_been_wrong() -> None:
    one = concluded(low=0.4, high=0.6)
    open_, same = replace(one, winner=None), replace(one, rate=1.0, winner="same")
    decided = [replace(one, rate=rate) for rate in (0.1, 0.5, 0.2)]
    said = resampling_words([*decided, open_, open_, same])
    assert "200 times on each of 6 comparisons" in said
    assert "where our verdict names the faster protocol (3 of 6)" in said
    assert "in 1 there is no difference beyond the margin, and it names one all the same" in said
    assert "in 2 our verdict is open, and nothing counts as wrong" in said
    assert "wrong protocol" not in resampling_words([open_])
    assert "in 20 % of its conclusions at the median, in 50 % [40 %, 60 %] where it is worst" in said
    assert "could not be carried out" in resampling_words([])


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ([(0.0, 0.02), (0.1, 0.3)], "effect"),
        ([(0.0, 0.02), (0.0, 0.05)], "no effect"),
        ([(0.0, 0.02), (0.04, 0.11)], "not decided"),
        ([(0.0, 0.02), (None, None)], "no effect"),
        ([(None, None)], "not decided"),
        ([], "not measured"),
    ],
)
def test_a_procedure_has_an_effect_none_or_is_open(known: list[tuple[float | None, float | None]], said: str) -> None:
    found = [concluded(rate=None if low is None else 0.1, low=low, high=high) for low, high in known]
    assert outcome(found) == said


def test_nothing_is_confirmed_without_a_run() -> None:
    for study in studies.published().values():
        states = {evaluate(one, []).state for one in study.statements}
        assert states <= {"open", "not compared"}
