"""The studies' own figures: every place that the study drew, ours beside what it says, in the page and as files."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import cast
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report import pages
from tests.report.synthetic_services import CHAIN, ServicesShape, write_services_run
from tests.report.synthetic_visits import VisitsShape, write_visits_run
from trifecta import studies
from trifecta.analysis.places import Place
from trifecta.conclude.reproduction import own_bourbon2020 as own
from trifecta.conclude.reproduction.result import Result, StudyResult
from trifecta.conclude.reproduction.result import read as read_result
from trifecta.contract.reproduction import ReproductionRun
from trifecta.contract.trial import TrialValues
from trifecta.design.campaign import parse_campaign
from trifecta.report.figures import scales, svg
from trifecta.report.figures.small_multiples import Group, Mark, Panel, Row, Scale, draw
from trifecta.report.reproduction import write
from trifecta.report.reproduction.own import section, table
from trifecta.report.reproduction.own.study_figure import StudyFigure
from trifecta.store import campaign as campaigns
from trifecta.store import reproduction, schema, views

NAMES = ["bourbon2020", "baccichet2021"]
PLACES = "[docker-host, native]"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Some runs of both campaigns: the chain on a normal network and with lag, the fan-in with lag, both pages."""
    folder = tmp_path_factory.mktemp("reproduced") / "all"
    asked, read = {}, {}
    for name in NAMES:
        text = studies.read_text(studies.campaigns()[name])
        asked[name] = {"text": text, "file": name, "depth": "quick", "overrides": [], "only": []}
        read[name] = parse_campaign(text, name, "quick")
    about = {"studies": NAMES, "depth": "quick", "began": "2026-01-01T00:00:00Z", "elapsed_s": {}, "argv": ["x"]}
    reproduction.create(folder, {**about, "campaigns": asked})
    for name in NAMES:
        campaigns.create(folder / name, read[name], asked[name])
    chain = {"connection": "[new]", "place": PLACES, "request": "[128 B, 10240 B]"}
    fan_in = {"connection": "[new]", "place": "[native]", "clients": "[4]", "response": "[128 B, 1024 B]"}
    shapes = {
        "distributed-A": ServicesShape(CHAIN, {"path": "[normal]", **chain}, blocks=4, cycles=6, failing=False),
        "distributed_delay-A": ServicesShape(CHAIN, {"path": "[lag, lag-in-order]", **chain, "request": "[128 B]"},
                                             blocks=4, cycles=6),
        "distributed-B": ServicesShape("kind: fan-in\n  hosts: 2", {"path": "[normal]", **fan_in}, 4, 6, failing=False),
        "distributed_delay-B": ServicesShape("kind: fan-in\n  hosts: 2", {"path": "[lag]", **fan_in}, 4, 6),
    }  # fmt: skip
    for name, shape in shapes.items():
        run = write_services_run(folder / "bourbon2020" / name, shape)
        if name == "distributed-A":
            _readings(run)
    pages_shape = VisitsShape(factors={"path": "[bare]", "client": "[chromium]", "page": "[light, heavy]"}, blocks=4,
                              frames=False, failing=False)  # fmt: skip
    write_visits_run(folder / "baccichet2021" / "bare-page", pages_shape)
    problems = {"bourbon2020": {"distributed_loss-A": "no Docker"}, "baccichet2021": {"bare-video": "no ffmpeg"}}
    return read_result(folder, read, problems)


def _readings(run: Path) -> None:
    """Two readings a service and trial: the service of place n uses n tenths of a core and n MB."""
    for file in sorted((run / "samples").iterdir()):
        rows = [
            {"trial": file.stem, "time_ns": at, "process": name, "cpu_ns": at * n // 10, "rss_bytes": n * 1_000_000}
            for n, name in enumerate("ABCD", 1)
            for at in (0, 1_000_000_000)
        ]
        pq.write_table(pa.Table.from_pylist(rows, schema.RESOURCES.arrow()), run / "resources" / file.name)


@pytest.fixture(scope="module")
def page(result: Result) -> Path:
    return write(result)


def rows(result: Result, name: str) -> list[dict[str, str]]:
    with (result.folder / "figures" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def row(result: Result, name: str, **wanted: str) -> dict[str, str]:
    (found,) = [one for one in rows(result, name) if all(one[key] == value for key, value in wanted.items())]
    return found


def study(result: Result, name: str) -> StudyResult:
    return next(one for one in result.studies if one.published.id == name)


def test_every_figure_that_was_run_has_its_files_and_links_and_the_others_say_why(result: Result, page: Path) -> None:
    numbers = [f"bourbon2020-figure-{number}" for number in range(14, 22)]
    tables = ["baccichet2021-table-light", "baccichet2021-table-heavy"]
    there = {file.name for file in (result.folder / "figures").iterdir()}
    assert there == {f"{name}.{kind}" for name in numbers for kind in ("svg", "csv")} | {
        f"{name}.csv" for name in tables
    }
    read = pages.read(page.read_text()).root
    links = {str(one.attributes["href"]) for one in read.all("a")}
    assert {f"figures/{name}" for name in there} <= links
    for one in read.all("a"):
        target = str(one.attributes["href"])
        assert target.startswith("#") or (result.folder / target).exists(), target
    assert "The video (README, Video streaming performance, table): bare-video: no ffmpeg" in read.text
    for name in numbers:
        text = (result.folder / "figures" / f"{name}.svg").read_text()
        assert ElementTree.fromstring(text).tag.endswith("svg")  # a document by itself
        assert "prefers-color-scheme: dark" in text


def test_a_chain_has_every_test_in_every_scenario(result: Result, page: Path) -> None:
    found = rows(result, "bourbon2020-figure-14")
    assert len(found) == 8 * 9
    assert [one["test"] for one in found[:9]] == [f"A{number}" for number in range(1, 10)]
    assert list(dict.fromkeys(one["scenario"] for one in found)) == [
        "single_01", "single_02", "distributed_01", "distributed_02",
        "distributed_01_delay", "distributed_02_delay", "distributed_01_loss", "distributed_02_loss",
    ]  # fmt: skip
    measured = {(one["scenario"], one["test"]) for one in found if not one["missing"]}
    normal = {(f"distributed_0{n}", f"A{test}") for n in (1, 2) for test in (1, 2, 3, 7, 8, 9)}
    assert measured == normal | {(f"distributed_0{n}_delay", f"A{test}") for n in (1, 2) for test in (1, 2, 3)}
    assert row(result, "bourbon2020-figure-14", scenario="single_01", test="A1")["missing"] == "not run"
    lost = row(result, "bourbon2020-figure-14", scenario="distributed_02_loss", test="A9")
    assert lost["missing"] == "not run: no Docker"
    assert lost["median_ns"] == ""


def test_times_are_the_percentiles_of_the_requests_that_count(result: Result, page: Path) -> None:
    run = result.folder / "bourbon2020" / "distributed_delay-A"
    with views.connect(run) as connection:
        values = connection.execute(
            "SELECT s.latency_censored_ns FROM samples AS s JOIN trials AS t USING (trial) WHERE t.valid"
            " AND t.arm = 'h3' AND t.path = 'lag' AND t.cell LIKE '%place=native%' ORDER BY 1"
        ).fetchall()
    found = row(result, "bourbon2020-figure-14", scenario="distributed_02_delay", test="A3")
    assert int(found["requests"]) == len(values)
    assert int(found["failed"]) == sum(value == float("inf") for (value,) in values)
    for name, share in (("p10", 0.1), ("p25", 0.25), ("median", 0.5), ("p75", 0.75)):
        place = max(0, -(-len(values) * int(share * 100) // 100) - 1)
        assert int(found[f"{name}_ns"]) == values[place][0], name
    theirs = (found["published_low_ns"], found["published_high_ns"], found["published_said"])
    assert theirs == ("1200000000", "", "above 1.2 s for every version")
    assert found["published_source"] == "6.1.1, figure 14"


def test_parts_of_a_fan_in_and_its_time_against_the_normal_network(result: Result, page: Path) -> None:
    parts = rows(result, "bourbon2020-figure-18")
    assert {one["clients"] for one in parts} == {"4"}
    here = row(result, "bourbon2020-figure-18", scenario="distributed_02", test="B1")
    run = result.folder / "bourbon2020" / "distributed-B"
    with views.connect(run) as connection:
        (there,) = connection.execute(
            "SELECT quantile_disc(s.there_ns, 0.5) FROM spans AS s JOIN trials AS t USING (trial)"
            " WHERE t.valid AND t.arm = 'h1' AND s.ordinal = 0 AND t.cell LIKE '%response=128 B%'"
        ).fetchone() or (None,)
    assert int(here["there_median_ns"]) == there
    assert int(here["back_median_ns"]) < int(here["whole_median_ns"])
    found = row(result, "bourbon2020-figure-19", scenario="distributed_02_delay", test="B1", clients="4")
    with views.connect(run) as connection:
        (mean,) = connection.execute(
            "SELECT avg(s.latency_ns) FROM samples AS s JOIN trials AS t USING (trial)"
            " WHERE t.valid AND t.arm = 'h1' AND s.success AND NOT s.warmup AND t.cell LIKE '%response=128 B%'"
        ).fetchone() or (None,)
    assert int(here["whole_mean_ns"]) == pytest.approx(mean, abs=1)
    assert float(found["mean_to_normal"]) == pytest.approx(int(found["mean_ns"]) / mean)
    assert float(found["published_mean_to_normal"]) == 20
    assert {one["scenario"][:6] for one in rows(result, "bourbon2020-figure-19")} == {"distri"}
    assert len(rows(result, "bourbon2020-figure-19")) == 6 * 2 * 3
    crowds = {(one["scenario"][:6], one["clients"]) for one in rows(result, "bourbon2020-figure-21")}
    assert crowds == {("single", "4"), ("distri", "4"), ("distri", "50")}


def test_services_have_what_was_read_of_them(result: Result, page: Path) -> None:
    cpu = rows(result, "bourbon2020-figure-16")
    assert len(cpu) == 8 * 9 * 4
    here = {"scenario": "distributed_01", "test": "A2"}
    for n, service in enumerate(("msA", "msB", "msC", "msD"), 1):
        found = row(result, "bourbon2020-figure-16", **here, service=service)
        assert float(found["cpu_cores"]) == pytest.approx(n / 10)
        assert found["trials"] == "4"
        held = row(result, "bourbon2020-figure-17", **here, service=service)
        assert (float(held["memory_bytes"]), held["published_high_bytes"]) == (n * 1e6, "")
    third = row(result, "bourbon2020-figure-17", scenario="distributed_01", test="A3", service="msB")
    assert (third["published_low_bytes"], third["published_high_bytes"]) == ("15000000", "20000000")
    native = row(result, "bourbon2020-figure-21", scenario="single_02", test="B1", clients="4", service="msA")
    assert (native["published_low_bytes"], native["published_high_bytes"]) == ("", "200000000")


def test_success_has_the_interval_of_the_report_and_what_the_study_says(result: Result, page: Path) -> None:
    found = row(result, "bourbon2020-figure-15", scenario="distributed_02", test="A1")
    assert (found["success_rate"], found["published_success_rate"]) == ("1.0", "1.0")
    assert 0 < float(found["success_rate_low"]) < 1
    lossy = row(result, "bourbon2020-figure-15", scenario="distributed_01_loss", test="A1")
    assert (lossy["published_success_rate"], lossy["published_said"][:11]) == ("", "below 100 %")
    assert (
        row(result, "bourbon2020-figure-15", scenario="distributed_01_loss", test="A3")["published_success_rate"]
        == "1.0"
    )


def test_a_table_has_ours_beside_the_study_s(result: Result, page: Path) -> None:
    found = rows(result, "baccichet2021-table-heavy")
    assert [one["protocol"] for one in found] == ["HTTP/3", "HTTP/2", "HTTP/1.1"]
    assert [one["published_load_ns"] for one in found] == ["3330000000", "2990000000", "2920000000"]
    assert {one["published_page_weight_bytes"] for one in found} == {"7300000"}
    assert [float(one["published_requests"]) for one in found] == [134, 123, 120]
    place = next(one for one in study(result, "baccichet2021").places if "page=heavy" in one.cell)
    loads = {arm: [dict(one)["load_ns"] for one in place.rows if one["arm"] == arm] for arm in ("h1", "h3")}
    for arm, one in (("h3", found[0]), ("h1", found[2])):
        assert min(map(float, loads[arm])) <= int(one["load_ns"]) <= max(map(float, loads[arm]))  # type: ignore[arg-type]
        assert int(one["load_low_ns"]) < int(one["load_ns"]) < int(one["load_high_ns"])
    every = pages.read(page.read_text()).root.all("figure")
    drawn = next(one for one in every if one.attributes.get("id") == "baccichet2021-table-heavy")
    heads = [one.text for one in drawn.all("th") if one.attributes["scope"] == "col"]
    assert heads == ["protocol", "page weight", "TTFB", "load", "requests", "TCP connections", "blocks"]
    assert "published: 3.33 s" in drawn.text


def test_of_the_row_that_httpstat_labelled_http_3_it_says_what_was_spoken() -> None:
    published = studies.published()["baccichet2021"]
    levels = {"kind": "requests", "client": "load", "server": "origin", "path": "bare", "connection": "new",
              "response_bytes": "106200"}  # fmt: skip
    times = {"tcp_ns": 1e6, "tls_p50_ns": 2e6, "wait_p50_ns": 3e6, "transfer_p50_ns": 4e6, "latency_p50_ns": 10e6}
    measured = [
        {"arm": arm, "block": block, "cell": "c", "trial": f"t{block}", **times, "tcp_ns": None if arm == "h3" else 1e6}
        for arm in ("h2", "h3")
        for block in (0, 1)
    ]
    here = Place("baccichet2021/bare-index", "c", levels, cast(list[TrialValues], measured))
    told: ReproductionRun = {
        "study": "baccichet2021",
        "name": "bare-index",
        "folder": "",
        "report": "",
        "trials": 6,
        "valid": 6,
    }
    made = {one.id: one for one in table.figures(Path(), StudyResult(published, (), (told,), {}, (here,)))}
    found = made["baccichet2021-table-httpstat"]
    rows_ = [dict(zip(found.columns, one, strict=True)) for one in found.rows]
    assert [(one["protocol"], one["published_over"]) for one in rows_] == [
        ("HTTP/3", "HTTP/2"), ("HTTP/2", "HTTP/2"), ("HTTP/1.1", "HTTP/1.1"),
    ]  # fmt: skip
    assert [one["published_dns_lookup_ns"] for one in rows_] == [4_000_000] * 3
    assert [one["published_total_ns"] for one in rows_] == [33_000_000, 28_000_000, 26_000_000]
    assert [one["tcp_connection_ns"] for one in rows_] == [None, 1_000_000, None]
    assert [one["total_ns"] for one in rows_] == [10_000_000, 10_000_000, None]
    assert [one["missing"] for one in rows_] == ["", "", "no trial that counts"]
    assert "HTTP/1.1, here: no trial that counts" in found.svg
    assert "HTTP/3, published, answered over HTTP/2" in found.svg
    assert not made["baccichet2021-table-light"].rows


def test_what_did_not_change_is_not_drawn_again(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def figures(_: Path, one: StudyResult) -> Sequence[StudyFigure]:
        asked.append(one.published.id)
        return []

    monkeypatch.setattr(table, "figures", figures)
    kept: section.Kept = {}
    section.drawn(result, kept)
    section.drawn(result, kept)
    assert asked == NAMES
    changed = replace(result, studies=(replace(result.studies[0]), result.studies[1]))
    section.drawn(changed, kept)
    assert asked == [*NAMES, "bourbon2020"]


def test_what_was_not_run_and_what_failed_is_said_in_the_picture() -> None:
    time = Scale("time", "box", scales.time_label)
    slow = Mark("h2", "A2", float("inf"), (1e6, float("inf")), (1e6, float("inf")))
    with svg.drawing():
        text = draw([
            Row([Panel("here", time, [Group([Mark("h1", "A1", 1e6, (1e6, 2e6), (1e6, 3e6)), slow], "128 B"),
                                      Group([Mark("h1", "A4")], "1 kB", "not run")])]),
            Row([], "single_01: not run"),
        ], 100, "words").svg("x")  # fmt: skip
    assert text.count(">not run<") == 1
    assert ">single_01: not run<" in text
    assert ">∞<" in text
    assert ">A4<" in text


def test_a_study_of_which_nothing_was_run_has_no_figures(result: Result) -> None:
    assert table.figures(result.folder, replace(study(result, "bourbon2020"), runs=())) == []


def test_the_table_names_a_module_for_published_studies() -> None:
    assert set(table.STUDIES) <= set(studies.published())
    for module in table.STUDIES.values():
        assert callable(import_module(module).figures), module


def test_every_scenario_of_the_study_is_a_half_of_a_run_of_the_campaign() -> None:
    read = parse_campaign(studies.read_text(studies.campaigns()["bourbon2020"]), "bourbon2020", "full")
    for scenario in own.SCENARIOS:
        for suite in own.SERVICES:
            name = f"{scenario.run}-{suite}"
            assert read.label(name, {"place": scenario.place}) == scenario.name
            assert scenario.path in read.studies[name].factors["path"]
            assert getattr(read.studies[name].workload, "hosts", None) == scenario.hosts(suite)
