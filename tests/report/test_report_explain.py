"""The chain of evidence of a verdict, on invented runs whose causes are known."""

from __future__ import annotations

import io
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tests.report import pages
from tests.report.synthetic import Shape, write_run
from tests.report.synthetic_packets import write_traces
from tests.report.synthetic_visits import VIDEO, VIDEO_FACTORS, VisitsShape, write_visits_run
from trifecta.analysis.causes import ASK, LATE, ROUND_TRIPS, TRANSFER, WHOLE_SETUP
from trifecta.analysis.startup_delay import PLAYER, SEGMENT, START_PARTS
from trifecta.conclude.explain import parts, resampled
from trifecta.conclude.explain.chain import Chain, Explained
from trifecta.conclude.explain.chain import explain as explain_run
from trifecta.design.errors import UserError
from trifecta.report import explain
from trifecta.report.explain import (
    brief,
    shares,
    words,
)
from trifecta.store import views

NEW = "path=far,connection=new,server=origin"
REUSED = "path=far,connection=reused,server=origin"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two cells without troubles, of as many blocks as an interval of the verdict needs and two more."""
    shape = Shape(blocks=8, samples_per_trial=60, paths=("far",), connections=("new", "reused"), servers=("origin",))
    shape.troubles = False
    return write_run(tmp_path_factory.mktemp("runs") / "explained", shape)


@pytest.fixture(scope="module")
def explained(small: Path) -> Explained:
    return explain_run(small)


def chain_of(found: Explained, cell: str, arm: str = "h3", reference: str = "h2") -> Chain:
    return next(
        one
        for one in found.chains
        if (one.comparison.cell, one.comparison.arm, one.comparison.reference) == (cell, arm, reference)
    )


def sentences(found: Explained, chain: Chain) -> dict[str, str]:
    return {link.name: " ".join(link.sentences) for link in words.links(found.about, chain)}


def test_a_saved_round_trip_is_the_cause_of_new_connections(explained: Explained) -> None:
    chain = chain_of(explained, NEW)
    causes = chain.splits[0].causes
    assert causes.told_apart and causes.causes[0].part == ROUND_TRIPS
    assert causes.causes[0].share == pytest.approx(1.0, abs=0.1)
    assert causes.causes[0].found.difference_ns == pytest.approx(-80e6, rel=0.02)  # the path's round trip
    said = sentences(explained, chain)
    assert "needs 1 round trip and HTTP/2 2 round trips" in said["causes"]
    concluded = words.conclusion(explained.about, chain)
    assert "is round trips of set-up" in concluded
    assert re.search(r"Of the difference of the means \d+ % \[\d+ %, \d+ %\] is", concluded)
    assert causes.causes[0].share_low < 1.0 < causes.causes[0].share_high


def test_without_a_handshake_there_is_no_such_cause(explained: Explained) -> None:
    causes = chain_of(explained, REUSED).splits[0].causes
    assert ROUND_TRIPS not in [one.part for one in causes.causes]


def test_what_a_client_does_not_tell_over_one_protocol_is_not_split_over_any(tmp_path: Path) -> None:
    shape = Shape(blocks=7, samples_per_trial=60, paths=("far",), connections=("new",), servers=("origin",))
    shape.troubles = False
    run = write_run(tmp_path / "run", shape)
    whole = explain_run(run, arm="h3").chains[0].splits[0].causes.whole.whole
    for file in (run / "samples").glob("*.parquet"):  # as curl: not when a request was sent over HTTP/3, no TLS
        rows = pq.read_table(file)
        for name in ("tls_version", *(["request_sent_ns"] if "h3" in rows["protocol"].to_pylist() else [])):
            field = rows.schema.field(name)
            rows = rows.set_column(rows.schema.get_field_index(name), field, pa.nulls(rows.num_rows, field.type))
        pq.write_table(rows, file)
    found = explain_run(run, arm="h3")
    split = found.chains[0].splits[0]
    assert split.parts.names == (LATE, WHOLE_SETUP, ASK, TRANSFER) and split.parts.round_trips == {}
    assert split.causes.causes[0].part == WHOLE_SETUP
    assert split.causes.whole.whole.difference_ns == pytest.approx(whole.difference_ns)
    said = sentences(found, found.chains[0])["causes"]
    assert "Before a request can be sent" not in said and "Unknown:" not in said


def test_of_a_verdict_that_excludes_nothing_no_cause_is_told(tmp_path: Path) -> None:
    shape = Shape(blocks=5, samples_per_trial=60, paths=("far",), connections=("new",), servers=("origin",))
    shape.troubles = False
    found = explain_run(write_run(tmp_path / "run", shape), arm="h3")
    chain = found.chains[0]
    assert chain.splits[0].causes.causes == ()
    said = sentences(found, chain)
    assert said["overturn"].startswith("Nothing is decided: 5 usable blocks are too few")
    assert "there is no difference to split" in said["causes"]
    assert not re.search("By part|CPU of|Before a request", said["causes"])
    assert "Of the difference" not in words.conclusion(found.about, chain)


def test_every_link_is_there(explained: Explained) -> None:
    said = sentences(explained, chain_of(explained, NEW))
    assert list(said) == ["differed", "ruled_out", "causes", "overturn", "threats"]
    assert "largest segment bytes (1452 and 1448)" in said["differed"]
    assert "key exchange (X25519)" in said["differed"].split("Equal in both")[1]
    assert "The check protocol passed" in said["ruled_out"]
    assert said["overturn"].startswith("An error that alone makes HTTP/3 look")
    assert "retries-hidden" in said["threats"]


def test_a_server_that_was_left_out_is_not_side_by_side_with_another(tmp_path: Path) -> None:
    shape = Shape(blocks=6, samples_per_trial=20, paths=("far",), connections=("new",), troubles=False)
    run = write_run(tmp_path / "run", shape)
    both = explain_run(run).chains[0]
    assert "2 programs side by side" in why(both, "implementation")
    for trial in (run / "trials").iterdir():
        if "server=caddy" in pq.read_table(trial).column("cell")[0].as_py():
            trial.unlink()
    facts = json.loads((run / "run.json").read_text())
    left_out = [{"factor": "server", "level": "caddy", "reason": "not installed"}]
    (run / "run.json").write_text(json.dumps(facts | {"unsupported": left_out}))
    assert "one server and one client" in why(explain_run(run).chains[0], "implementation")


def why(chain: Chain, threat: str) -> str:
    return next(one.why for one in chain.switches if one.id == threat)


def test_what_a_check_says_is_a_doubt(run: Path) -> None:
    found = explain_run(run, "path=clean,connection=new,server=caddy")
    doubts = [link for chain in found.chains for link in words.links(found.about, chain) if link.name == "doubts"]
    assert doubts  # the synthetic run has trials that fail
    assert any("failed in 1" in said for link in doubts for said in link.sentences)
    counted = [chain.challenge.counted for chain in found.chains if chain.challenge.counted is not None]
    assert counted


def test_a_decided_verdict_says_what_would_overturn_it(run: Path) -> None:
    found = explain_run(run)
    chain = next(one for one in found.chains if one.comparison.kind == "faster" and one.comparison.reference == "h2")
    said = sentences(found, chain)["overturn"]
    assert "by chance HTTP/2, run against itself, differs by up to" in said
    assert "Leaving out any one of the" in said and "The first half of the blocks gives" in said
    assert "The same verdict by: " in said


def test_what_is_open_does_not_differ_from_what_is_decided(run: Path) -> None:
    found = explain_run(run)
    beside = {
        decided: [
            sentences(found, one)["overturn"]
            for one in found.chains
            if one.comparison.decided is decided
            and any(other.decided and other.kind != one.comparison.kind for _, other in one.neighbours)
        ]
        for decided in (True, False)
    }
    assert all("the verdict differs." in said and "it is decided." not in said for said in beside[True])
    assert all("it is decided." in said and "the verdict differs." not in said for said in beside[False])
    assert beside[True]
    assert beside[False]


def test_evidence_of_a_check_says_which_protocol_it_is_of(explained: Explained) -> None:
    said = sentences(explained, chain_of(explained, NEW))["ruled_out"]
    found = re.findall(r"The check protocol passed in all \d+ trials; of one with (HTTP/[123]): ([^.]*)\.", said)
    assert [protocol for protocol, _ in found] in (["HTTP/2"], ["HTTP/3"])  # the pair's, and it says which


def test_a_captured_run_splits_its_time_by_packets_first(tmp_path: Path) -> None:
    shape = Shape(blocks=7, samples_per_trial=60, paths=("far",), connections=("new",), servers=("origin",))
    shape.troubles = False
    run = write_run(tmp_path / "run", shape)
    write_traces(run, size=30_000, lose=(12,))
    found = explain_run(run, arm="h3")
    chain = found.chains[0]
    assert [split.parts.of for split in chain.splits] == [parts.PACKETS, parts.REQUESTS]
    assert all(one.share_low < one.share < one.share_high for one in chain.splits[0].causes.causes if one.share)
    said = sentences(found, chain)["causes"]
    assert "a request, by its packets" in said and "a request, by the times of its samples" in said
    assert [split.parts.of for split in explain_run(run, arm="h3", packets=False).chains[0].splits] == ["requests"]


def test_captured_trials_that_do_not_count_are_explained_by_their_packets_alone(tmp_path: Path) -> None:
    shape = Shape(blocks=7, samples_per_trial=60, paths=("far",), connections=("new",), servers=("origin",))
    shape.troubles = False
    run = write_run(tmp_path / "run", shape)
    write_traces(run, size=30_000)
    study = run / "study.yaml"
    study.write_text(study.read_text() + "capture: true\n")
    for file in (run / "trials").glob("*.parquet"):
        rows = pq.read_table(file)
        at = rows.column_names.index("valid")
        pq.write_table(rows.set_column(at, "valid", pa.array([False] * rows.num_rows)), file)
    found = explain_run(run, arm="h3")
    assert [split.parts.of for split in found.chains[0].splits] == [parts.PACKETS]
    found = explain_run(run, arm="h3", packets=False)  # as the report does, which has them elsewhere
    said = sentences(found, found.chains[0])["causes"]
    assert said.startswith("Samples cannot split the difference") and "With --capture" not in said


def test_the_load_of_a_page_is_not_explained_by_the_mean_of_its_requests(tmp_path: Path) -> None:
    factors = {"path": "[bare]", "client": "[chromium]", "page": "[light]"}
    run = write_visits_run(tmp_path / "page", VisitsShape(factors=factors, blocks=7, failing=False))
    write_traces(run, size=30_000)
    found = explain_run(run, arm="h3")
    chain = found.chains[0]
    assert [split.parts.of for split in chain.splits] == [parts.LOADS, parts.PACKETS]
    said = sentences(found, chain)["causes"]
    assert "Requests of a page load run at the same time: their mean is not its load time." in said
    chain = replace(chain, splits=chain.splits[1:])  # captured trials that do not count
    assert shares.first_split(found.about, chain) is None
    assert "Of the difference" not in words.conclusion(found.about, chain)
    assert "of the difference" not in sentences(found, chain)["causes"].split("CPU of the client")[1]


def test_a_start_of_a_video_is_split(tmp_path: Path) -> None:
    run = write_visits_run(tmp_path / "video", VisitsShape(VIDEO, dict(VIDEO_FACTORS), blocks=7))
    found = explain_run(run, arm="h3")
    split = found.chains[0].splits[0]
    assert split.parts.of == parts.STARTS and split.parts.names == START_PARTS
    with views.connect(run) as connection:
        rows = connection.execute(
            "SELECT t.trial, avg(v.startup_ns) FROM visits AS v JOIN trials AS t USING (trial) "
            "WHERE t.valid AND v.error IS NULL AND NOT v.warmup GROUP BY t.trial"
        ).fetchall()
    assert len(split.parts.trials) == len(rows)
    sums = sorted(sum(one.parts.values()) for one in split.parts.trials)
    assert sums == pytest.approx(sorted(mean for _, mean in rows))
    assert all(one.parts[SEGMENT] > 0 and one.parts[PLAYER] > 0 for one in split.parts.trials)
    said = sentences(found, found.chains[0])["causes"]
    assert "the start of a video, by the times of its requests" in said
    assert "on a watch than" in said and "of the difference." not in said  # the CPU of a watch bounds no start


def test_a_cell_is_named_by_levels_that_it_alone_has(small: Path) -> None:
    found = explain_run(small, "connection=new", "h3")
    assert {chain.comparison.cell for chain in found.chains} == {NEW}
    with pytest.raises(UserError, match="fits 2 cells"):
        explain_run(small, "path=far")
    with pytest.raises(UserError, match="no cell 'path=mars'; choose from "):
        explain_run(small, "path=mars")


def test_the_terminal_and_the_program_get_the_same(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explain_run(small, NEW, "h3")
    concluded = resampled.conclusions(small, [NEW], draws=50)
    assert {one.procedure for one in concluded} == {"single-load", "no-noise-floor"}
    console = Console(record=True, width=100, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    explain.print_chains(found, concluded, console)
    text = console.export_text()
    assert "Where the time difference is" in text and "By part: " in text and "single-load" in text
    data = json.loads(json.dumps(explain.as_data(found, concluded), allow_nan=False))
    assert [one["arm"] for one in data["chains"]] == ["h3", "h3"]
    assert data["chains"][0]["causes"][0]["parts"][0]["part"] == ROUND_TRIPS
    assert data["chains"][0]["resampled"][0]["draws"] == 50


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_screen_has_fifty_lines_and_says_how_to_see_the_rest(run: Path, width: int) -> None:
    found = explain_run(run)
    decided = [chain.comparison for chain in found.chains if chain.comparison.decided]
    stream = io.StringIO()
    explain.print_brief(found, Console(file=stream, width=width, highlight=False))
    text = stream.getvalue()
    assert len(text.splitlines()) <= brief.LINES == 50
    assert f"{len(decided)} of {len(found.chains)} verdicts decided." in text
    assert f"Open: {len(found.chains) - len(decided)}." in text
    assert "What would overturn it: " in text
    assert f"Causes, by experiment: trifecta why {shlex.quote(str(run))}\n" in text
    shown = text.count(": HTTP/")
    more = re.search(r"And (\d+) more decided verdict", text)
    assert shown + int(more[1]) == len(decided) if more else shown == len(decided)
    assert f"trifecta explain {shlex.quote(str(run))} --full" in text.splitlines()[-2]


def test_of_one_cell_a_screen_has_the_open_verdicts_too(run: Path) -> None:
    cell = "path=rough,connection=new,server=caddy"
    found = explain_run(run, cell)
    assert not all(chain.comparison.decided for chain in found.chains)
    stream = io.StringIO()
    explain.print_brief(found, Console(file=stream, width=80, highlight=False))
    text = " ".join(stream.getvalue().split())
    assert all(f"against HTTP/{one}" in text for one in ("1.1", "2"))
    assert len(stream.getvalue().splitlines()) <= brief.LINES


def test_failures_are_tried_again(run: Path) -> None:
    cell = "path=rough,connection=new,server=origin"
    concluded = resampled.conclusions(run, [cell], draws=50)
    assert "retries-hidden" in {one.procedure for one in concluded}


def test_the_report_has_the_chain_and_its_numbers_their_sql(run: Path) -> None:
    root = pages.read((run / "report.html").read_text()).root
    why = [one for one in root.all("details") if one.has("why")]
    assert len(why) == 24  # two comparisons to the baseline in each of 12 cells
    assert "What would overturn it" in why[0].text
    tables = [table for table in root.all("table") if table.attributes.get("data-query", "").startswith("causes")]
    assert len(tables) == 24
