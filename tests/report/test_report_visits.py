"""The report of browsers: real visits, metrics over blocks, film strips, watches, and what others published."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report import pages
from tests.report.held import asked
from tests.report.synthetic_visits import PAGE, VIDEO, VIDEO_FACTORS, VisitsShape, write_visits_run
from tests.report.test_report_terminal import printed
from trifecta.conclude import queries
from trifecta.conclude.facts import read as read_facts
from trifecta.conclude.queries import Row
from trifecta.conclude.visits import catalogue, metrics
from trifecta.conclude.visits.published import load_studies
from trifecta.report import terminal
from trifecta.report.figures.connections import lanes
from trifecta.report.figures.page_waterfall import Load, bars, rows_of
from trifecta.report.html import render, write_report
from trifecta.store import views
from trifecta.store.schema import TRIALS, YOUNGER
from trifecta.store.visits import FETCHES, PLAYBACK, VISITS

ONE_BROWSER = {"path": "[bare]", "client": "[chromium]"}


def made(folder: Path, shape: VisitsShape) -> Path:
    write_visits_run(folder, shape)
    write_report(folder)
    return folder


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = VisitsShape(PAGE, ONE_BROWSER | {"page": "[light, heavy]"}, blocks=7)
    return made(tmp_path_factory.mktemp("runs") / "page", shape)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("runs") / "video", VisitsShape(VIDEO, dict(VIDEO_FACTORS), blocks=7))


@pytest.fixture(params=["page", "video"])
def run(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def document(run: Path) -> pages.Element:
    found = pages.read((run / "report.html").read_text())
    assert found.faults == []
    return found.root


def part(run: Path, identity: str) -> pages.Element:
    return next(one for one in document(run).all() if one.attributes.get("id") == identity)


def rewrite(file: Path, schema: pa.Schema, change: Callable[[Row], None]) -> None:
    rows = pq.read_table(file).to_pylist()
    for row in rows:
        change(row)
    pq.write_table(pa.Table.from_pylist(rows, schema), file)


def test_its_numbers_are_those_of_the_sql(run: Path) -> None:
    root = document(run)
    found = pages.numbers(root)
    assert len(found) > 300
    pages.assert_sql_gives(run, found)
    with views.connect(run) as connection:
        for sql in {span.text for span in root.all("span") if span.has("query") and "chosen AS" in span.text}:
            assert connection.execute(sql).fetchall()


def test_keys_tell_rows_apart_and_the_sql_can_be_pasted(run: Path) -> None:
    for query in catalogue.QUERIES:
        assert not set('"$!`\\') & set(query.text("path=a'b")), query.name
        keys = [tuple(row[name] for name in query.key) for row in asked(run, query.text())]
        assert len(keys) == len(set(keys)), query.name


def test_it_needs_nothing_else(run: Path) -> None:
    html = (run / "report.html").read_text()
    assert len(html.encode()) < 5_000_000
    links = re.findall(r"""(?:src|href)=["'](?!#)([^"']+)""", html)
    assert all(link.startswith("data:image/jpeg;base64,") for link in links)
    root = document(run)
    policy = next(meta.attributes for meta in root.all("meta") if "http-equiv" in meta.attributes)["content"]
    assert ("img-src data:" in policy) == bool(links)
    ids = [element.attributes["id"] for element in root.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    uses = {use.attributes["xlink:href"].removeprefix("#") for use in root.all("use")}
    assert {link.attributes["href"].removeprefix("#") for link in root.all("a")} | uses <= set(ids)
    figures = [svg for figure in root.all("figure") for svg in figure.all("svg")]
    assert all(len(svg.attributes["aria-label"]) > 30 and svg.all("text") for svg in figures)
    drawn = "".join(str(child.attributes) for svg in figures for child in svg.all())
    assert re.findall(r"#0[12]00[0-9a-f]{2}\b", drawn) == [], "every colour is the page's"


def test_it_speaks_of_loads_and_not_of_requests_in_a_loop(page: Path, video: Path) -> None:
    said = part(page, "answer").text
    assert "loaded the page" in said or "loads the page" in said
    assert "median load time" in said
    assert "cold loads of a page, 3 a trial after 1 not measured" in said
    watched = part(video, "answer").text.replace("\u00a0", " ")
    assert "the video" in watched
    assert "cold on-demand watches of the clip synthetic, 30 s each, 2 a trial" in watched
    for text in (document(page).text, document(video).text):
        assert "service time" not in text
        assert "closed loop" not in text
        assert "load generator" not in text


def test_the_visit_shown_is_the_median_one(page: Path) -> None:
    for row in asked(page, catalogue.LOADS.text()):
        every = asked(
            page,
            "SELECT v.load_ns, v.error FROM visits AS v JOIN trials AS t USING (trial) WHERE t.valid AND NOT t.is_aa "
            f"AND NOT v.warmup AND t.cell = '{row['cell']}' AND t.arm = '{row['arm']}'",
        )
        loads = sorted(float("inf") if one["error"] else one["load_ns"] for one in every)
        assert row["load_ns"] == loads[(len(loads) + 1) // 2 - 1]
        assert row["visits"] == len(every)


def test_failures_are_longest_and_leave_no_visit_to_show(tmp_path: Path) -> None:
    run = write_visits_run(tmp_path / "run", VisitsShape(PAGE, dict(ONE_BROWSER), blocks=4, frames=False))
    h3 = {row["trial"] for row in asked(run, "SELECT trial FROM trials WHERE arm = 'h3'")}

    def fail(row: Row) -> None:
        row |= {"error": "timeout", "load_ns": None} if not row["warmup"] else {}

    for trial in h3:
        rewrite(run / "visits" / f"{trial}.parquet", VISITS.arrow(), fail)
    write_report(run)
    assert {row["arm"] for row in asked(run, catalogue.LOADS.text())} == {"h1", "h2"}
    metrics = asked(run, "SELECT arm, value FROM visit_metrics WHERE metric = 'load_ns'")
    assert {row["arm"]: row["value"] is None for row in metrics} == {"h1": False, "h2": False, "h3": True}
    text = document(run).text
    assert "None of HTTP/3: the median lies among failed visits." in text
    assert any("timeout" in row.text for row in part(run, "visits").all("tr"))


def test_a_run_without_a_trial_that_counts_says_so(tmp_path: Path) -> None:
    run = write_visits_run(tmp_path / "run", VisitsShape(PAGE, dict(ONE_BROWSER), blocks=1, frames=False))
    for file in (run / "trials").iterdir():
        rewrite(file, TRIALS.arrow(), lambda row: row.update(valid=False))
    write_report(run)
    assert "No visit can be compared" in part(run, "visits").text
    assert printed(run, 80)


def test_phases_lie_one_after_the_other(page: Path) -> None:
    for row in asked(page, catalogue.FETCHES.text()):
        found = bars(row)
        assert found[-1][2] == row["done_ns"]
        for (_, _, end), (_, start, _) in pairwise(found):
            assert start >= end
        names = {span.column for span, _, _ in found}
        assert not {"tls_secured_ns", "quic_secured_ns"} <= names
        if row["arm"] == "h3":
            assert "tcp_connected_ns" not in names


def test_a_resource_has_one_line_whatever_the_order() -> None:
    def fetches(*urls: str) -> Load:
        return Load([{"url": url} for url in urls], {})

    loads = {"h1": fetches("b", "a", "a", "x"), "h2": fetches("a", "b", "a")}
    assert rows_of(loads, "h2") == [("a", 0), ("b", 0), ("a", 1), ("x", 0)]


def test_requests_at_the_same_time_get_lines_of_their_own(page: Path) -> None:
    rows = asked(page, catalogue.FETCHES.text("path=bare,connection=browser,server=origin,client=chromium,page=light"))
    of = {arm: lanes(Load([row for row in rows if row["arm"] == arm], {})) for arm in ("h1", "h2", "h3")}
    assert [lane.lines for lane in of["h1"]] == [1] * 12, "HTTP/1.1 has one request at a time on a connection"
    assert len(of["h2"]) == len(of["h3"]) == 2
    assert all(lane.lines > 5 for lane in of["h2"])
    for lane in of["h2"]:
        by_line: dict[int, list[Row]] = {}
        for row, line in lane.fetches:
            by_line.setdefault(line, []).append(row)
        for there in by_line.values():
            assert all(a["done_ns"] <= b["request_sent_ns"] for a, b in pairwise(there))


def test_film_strips_are_small_and_once(page: Path) -> None:
    section = part(page, "cell-0")
    strip = next(svg for svg in section.all("svg") if "Film strips" in svg.attributes.get("aria-label", ""))
    images, uses = strip.all("image"), strip.all("use")
    assert 0 < len(images) <= 8
    assert len([use for use in uses if "-p" in use.attributes["xlink:href"]]) + len(images) == 3 * 8
    assert len({image.attributes["href"] for image in images}) == len(images)


def test_half_a_picture_is_left_out_and_no_picture_no_strip(tmp_path: Path) -> None:
    run = write_visits_run(tmp_path / "run", VisitsShape(PAGE, dict(ONE_BROWSER), blocks=4))
    shown = asked(run, catalogue.FILMED.text())
    assert len(shown) == 3
    assert all(row["warmup"] for row in shown)
    for number, row in enumerate(shown):
        for file in (run / "frames" / row["trial"] / str(row["visit"])).iterdir():
            file.write_bytes(file.read_bytes()[: 200 * number])
    html = render(run)
    assert "Film strips of page loads" not in html
    assert "img-src" not in html


def test_pictures_have_a_budget(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["trifecta.report.visits.section"], "MOST_BYTES", 1)
    html = render(page)
    assert "data:image" not in html
    assert "Film strips of 2 cells are not embedded" in html


def test_what_the_recording_lacks_and_what_failed_is_named(tmp_path: Path) -> None:
    run = write_visits_run(tmp_path / "run", VisitsShape(PAGE, dict(ONE_BROWSER), blocks=4, frames=False))
    evil = "https://www.light.lab/<script>alert(1)</script>?q=\"'"

    def change(row: Row) -> None:
        if row["fetch"] == 3:
            row |= {"missing": True, "url": evil}
        if row["fetch"] == 4:
            row |= {"error": "status", "protocol": "h1"}

    rewrite(run / "fetches" / "t00001.parquet", FETCHES.arrow(), change)
    write_report(run)
    root = document(run)
    assert len(root.all("script")) == 1
    section = part(run, "visits").text
    assert evil in section
    assert "not in the recording" in section


def test_another_protocol_than_asked_for_shows(tmp_path: Path) -> None:
    run = write_visits_run(tmp_path / "run", VisitsShape(PAGE, dict(ONE_BROWSER), blocks=4, frames=False))
    trial = asked(run, "SELECT trial FROM trials WHERE arm = 'h3' LIMIT 1")[0]["trial"]
    rewrite(run / "fetches" / f"{trial}.parquet", FETCHES.arrow(), lambda row: row.update(protocol="h2"))
    write_report(run)
    spoken = {(row["arm"], row["protocol"]) for row in asked(run, catalogue.SPOKEN.text())}
    assert spoken == {("h1", "h1"), ("h2", "h2"), ("h3", "h3"), ("h3", "h2")}


def test_third_parties_are_shown_apart(tmp_path: Path) -> None:
    run = write_visits_run(tmp_path / "run", VisitsShape(PAGE, dict(ONE_BROWSER), blocks=4, frames=False))

    def change(row: Row) -> None:
        if row["fetch"] == 3:
            row |= {"third_party": True, "protocol": "h2"}

    def headings() -> set[str]:
        write_report(run)
        return {one.text.strip() for one in document(run).all("th")}

    assert "with" not in headings()
    for path in sorted((run / "fetches").iterdir()):
        rewrite(path, FETCHES.arrow(), change)
    assert "with" in headings()
    spoken = {(row["arm"], row["whose"], row["protocol"]) for row in asked(run, catalogue.SPOKEN.text())}
    assert spoken == {
        (arm, whose, "h2" if whose == "third parties" else arm)
        for arm in ("h1", "h2", "h3") for whose in ("the page", "third parties")
    }  # fmt: skip


def test_a_run_of_before_there_were_third_parties_is_read(tmp_path: Path) -> None:
    run = write_visits_run(tmp_path / "run", VisitsShape(PAGE, dict(ONE_BROWSER), blocks=2, frames=False))
    for name in ("visits", "fetches"):
        for path in sorted((run / name).iterdir()):
            pq.write_table(pq.ParquetFile(path).read().drop_columns(sorted(YOUNGER[name])), path)
    assert {row["whose"] for row in asked(run, catalogue.SPOKEN.text())} == {"the page"}


def test_a_page_of_a_thousand_resources_is_drawn(tmp_path: Path) -> None:
    factors = ONE_BROWSER | {"page": "[vast]"}
    run = made(tmp_path / "run", VisitsShape(PAGE, factors, blocks=2, frames=False))
    assert "Waterfall of a page load with 1000 resources" in (run / "report.html").read_text()
    assert (run / "report.html").stat().st_size < 5_000_000


def test_watches_are_drawn_with_their_stalls(video: Path) -> None:
    rows = asked(video, catalogue.STALLS.text())
    stalls = [row for row in rows if row["event"] == "stall"]
    assert stalls
    assert all(row["at_ns"] < row["until_ns"] <= row["watched_ns"] for row in stalls)
    label = next(
        svg.attributes["aria-label"]
        for svg in part(video, "cell-0").all("svg")
        if "Watches of a video" in svg.attributes.get("aria-label", "")
    )
    h1 = sum(row["arm"] == "h1" for row in stalls)
    assert f"HTTP/1.1: 14 watches, {h1} stalls" in label


def test_a_stall_that_never_ended_lasts_until_the_end(tmp_path: Path) -> None:
    run = write_visits_run(tmp_path / "run", VisitsShape(VIDEO, dict(VIDEO_FACTORS), blocks=4))
    trial = asked(run, "SELECT trial FROM trials WHERE arm = 'h3' LIMIT 1")[0]["trial"]
    file = run / "playback" / f"{trial}.parquet"
    rows = [row for row in pq.read_table(file).to_pylist() if row["event"] not in ("stall", "resume")]
    pq.write_table(pa.Table.from_pylist([*rows, rows[60] | {"event": "stall"}], PLAYBACK.arrow()), file)
    found = [row for row in asked(run, catalogue.STALLS.text()) if row["trial"] == trial and row["event"] == "stall"]
    assert [row["until_ns"] for row in found] == [found[0]["watched_ns"]]


def test_what_can_be_zero_has_a_difference(video: Path) -> None:
    rows = asked(
        video, "SELECT * FROM visit_metrics WHERE metric IN ('rebuffers', 'startup_ns', 'segment_ns') AND arm = 'h1'"
    )
    by = {row["metric"]: row for row in rows}
    assert by["rebuffers"]["ratio"] is None
    assert by["rebuffers"]["difference_low"] < by["rebuffers"]["difference"] < by["rebuffers"]["difference_high"]
    assert by["startup_ns"]["difference"] is None
    # In a trial too few videos started for it to have a value: the ratio is a median, without an interval.
    assert by["startup_ns"]["ratio"] is not None and by["startup_ns"]["ratio_low"] is None
    assert by["segment_ns"]["ratio_low"] < by["segment_ns"]["ratio"] < by["segment_ns"]["ratio_high"]


def test_published_claims_are_those_of_the_published_numbers() -> None:
    """A claim in words, its direction and the table it was read from must say the same."""
    numbers: dict[tuple[Any, ...], dict[str, float]] = {}
    for study in load_studies():
        for subject in study.document.get("numbers", ()):
            for one in subject["metrics"]:
                numbers[study.id, str(subject["where"]), one["metric"]] = one
        for claim in study.claims:
            says = claim.says
            assert says is not None
            values = numbers.get((study.id, str(claim.where), says.metric))
            if values is None or says.between_cells:
                continue
            assert (values[says.arms[0]] / values[says.to[0]] > 1) == (says.relation == "above"), claim.text


def test_claims_stand_beside_our_interval(page: Path) -> None:
    section = part(page, "visits").text
    assert "HTTP/3 loads the light page more slowly than HTTP/2." in section
    assert "Absolute values are those of another machine" in section
    claimed = [row for row in asked(page, catalogue.PUBLISHED.text()) if row["metric"] == "load_ns"]
    ratios = {(row["subject"], row["arm"]): row["published_ratio"] for row in claimed}
    assert ratios["light page", "h3"] == pytest.approx(1080 / 961)
    assert ratios["light page", "h2"] is None


def test_what_the_players_page_calls_latency_is_the_first_octet_of_a_segment(video: Path) -> None:
    about = read_facts(video)
    with queries.connect(video) as connection:
        for row in metrics.trial_values(connection, metrics.metrics_of(about)):
            assert 0 < row["segment_ttfb_ns"] < row["segment_ns"]


def test_another_page_has_no_published_numbers(tmp_path: Path) -> None:
    factors = ONE_BROWSER | {"page": "[vast]"}
    run = made(tmp_path / "run", VisitsShape(PAGE, factors, blocks=2, frames=False))
    assert "published" not in part(run, "visits").text


def test_the_terminal_has_the_metrics(page: Path, video: Path) -> None:
    said = printed(page, 132)
    assert re.search(r"load(ed|s) the page", said)
    assert re.search(r"HTTP/3 ÷ HTTP/2: TTFB 0\.\d+ \[", said)
    assert "Any other [a, b] is a 95 % interval for a number of blocks set in advance" in " ".join(said.split())
    assert "claims published in baccichet2021" in said
    assert "startup" in printed(video, 80)
    data = json.loads(terminal.as_json(page))
    assert data["visits"]["visit_metrics"]
    assert data["visits"]["said"]


def test_a_campaign_shows_the_claims_of_all_its_cells(page: Path, video: Path, tmp_path: Path) -> None:
    from types import SimpleNamespace

    from rich.console import Console

    from trifecta.report import campaign as shown

    shapes = {
        "page": VisitsShape(PAGE, ONE_BROWSER | {"page": "[light, heavy]"}),
        "video": VisitsShape(VIDEO, dict(VIDEO_FACTORS)),
    }
    for name, run in (("page", page), ("video", video)):
        (tmp_path / name).symlink_to(run)
    made_up: Any = SimpleNamespace(
        name="c",
        title="A campaign",
        description="",
        depth="full",
        studies={name: shape.study for name, shape in shapes.items()},
        label=lambda name, own: name,
        test_names=lambda name, own: "",
        as_published=True,
        tolerate=frozenset({"parity", "drops"}),
    )
    kept: dict[str, shown.RunRead] = {}
    made = shown.overview(made_up, tmp_path, {}, kept)
    assert set(kept) == set(shapes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shown, "_read", lambda *_: pytest.fail("a run that is kept is read again"))
        again = shown.overview(made_up, tmp_path, {}, kept)
    assert (again.lines, again.claims, again.samples) == (made.lines, made.claims, made.samples)
    assert {claim.cell for claim, _ in made.claims} == {line["cell"] for line in asked_cells(page, video)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            shown.manifest, "absent", lambda run: {"samples/t00000.parquet": "0"} if run.name == "video" else {}
        )
        patch.setattr(shown, "left_out", lambda _campaign, _folder, problems: list(problems.items()))
        partly = shown.overview(made_up, tmp_path, {}, kept)
    assert [name for name, said in partly.problems if "still in its store; `trifecta resume" in said] == ["video"]
    assert 0 < len(partly.lines) < len(made.lines), "the others are told of"
    text = pages.read(shown.write_page(made, tmp_path).read_text()).root.text
    assert "HTTP/3 starts the video later than HTTP/2." in text
    assert "a campaign of 2 studies, as published, full" in text
    assert "The reproduction counts trials that fail drops or parity and no other check, since these" in text
    made_up.as_published, made_up.tolerate = False, frozenset()
    plain = pages.read(shown.write_page(made, tmp_path).read_text()).root.text
    assert "a campaign of 2 studies, full" in plain and "counts trials" not in plain
    console = Console(record=True, width=200)
    shown.print_overview(made, tmp_path, console)
    assert re.search(
        r"HTTP/3 loads the light page more slowly than HTTP/2: \w+ in 1 of 1 cell\.", console.export_text()
    )
    assert json.dumps(shown.as_data(made, tmp_path)["claims"])


def asked_cells(*runs: Path) -> list[Row]:
    return [row for run in runs for row in asked(run, "SELECT DISTINCT cell FROM trials")]
