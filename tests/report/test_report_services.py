"""The report of services: real cycles, intervals over trials, causes of failure, and what is said across cells."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report import pages
from tests.report.held import asked, rows_of
from tests.report.synthetic_services import CHAIN, ServicesShape, write_services_run
from tests.report.test_report_terminal import printed
from trifecta.conclude import facts, queries
from trifecta.conclude.services import catalogue
from trifecta.conclude.services.derive import derive
from trifecta.contract.trial import value_of
from trifecta.report import terminal
from trifecta.report.html import render, write_report
from trifecta.store import schema, views
from trifecta.store.derived import DERIVED


def made(folder: Path, shape: ServicesShape) -> Path:
    write_services_run(folder, shape)
    write_report(folder)
    return folder


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    factors = {"path": "[lag, lag-in-order]", "connection": "[new]", "place": "[native, docker-bridge]"}
    shape = ServicesShape(CHAIN, factors, blocks=10, cycles=16)
    return made(tmp_path_factory.mktemp("runs") / "chain", shape)


@pytest.fixture(scope="module")
def fan_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    factors = {"path": "[normal, lag]", "connection": "[new]", "clients": "[4, 50, 400]"}
    shape = ServicesShape("kind: fan-in\n  hosts: 2", factors, blocks=10, cycles=12, failing=False)
    return made(tmp_path_factory.mktemp("runs") / "fan-in", shape)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    factors = {"path": "[normal]", "connection": "[new]", "inside": "[same, HTTP/2, HTTP/3+HTTP/2]"}
    return made(tmp_path_factory.mktemp("runs") / "mixed", ServicesShape(CHAIN, factors, blocks=8, cycles=10))


@pytest.fixture(scope="module")
def registration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    factors = {"path": "[normal]", "connection": "[reused]"}
    shape = ServicesShape("kind: sba-registration\n  hosts: 7", factors, blocks=4, cycles=8, failing=False)
    return made(tmp_path_factory.mktemp("runs") / "sba", shape)


def part(run: Path, identity: str) -> pages.Element:
    page = pages.read((run / "report.html").read_text())
    assert page.faults == []
    return next(one for one in page.root.all() if one.attributes.get("id") == identity)


@pytest.mark.parametrize("name", ["chain", "fan_in", "mixed", "registration"])
def test_its_numbers_are_those_of_the_sql(name: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(name)
    root = pages.read((run / "report.html").read_text()).root
    found = pages.numbers(root)
    assert len(found) > 150
    pages.assert_sql_gives(run, found)
    with views.connect(run) as connection:
        for sql in {span.text for span in root.all("span") if span.has("query") and "WITH cycle" in span.text}:
            assert connection.execute(sql).fetchall()


@pytest.mark.parametrize("name", ["chain", "fan_in", "mixed", "registration"])
def test_links_lead_somewhere_and_figures_say_what_they_show(name: str, request: pytest.FixtureRequest) -> None:
    html = (request.getfixturevalue(name) / "report.html").read_text()
    page = pages.read(html)
    assert page.faults == []
    ids = [element.attributes["id"] for element in page.root.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    assert {link.attributes["href"].removeprefix("#") for link in page.root.all("a")} <= set(ids)
    figures = [svg for figure in page.root.all("figure") for svg in figure.all("svg")]
    assert any("cycle hop by hop" in svg.attributes["aria-label"] for svg in figures)
    assert all(len(svg.attributes["aria-label"]) > 30 and svg.all("text") for svg in figures)
    drawn = "".join(str(child.attributes) for svg in figures for child in svg.all())
    assert re.findall(r"#0[12]00[0-9a-f]{2}\b", drawn) == [], "every colour is the page's"


def test_keys_tell_rows_apart_and_the_sql_can_be_pasted(chain: Path) -> None:
    with views.connect(chain) as connection:
        for query in catalogue.QUERIES:
            assert not set('"$!`\\') & set(query.text("path=a'b")), query.name
            rows = rows_of(connection, query.text())
            keys = [tuple(row[name] for name in query.key) for row in rows]
            assert len(keys) == len(set(keys)), query.name


def test_a_waterfall_shows_a_real_cycle_whose_parts_add_up(chain: Path) -> None:
    rows = asked(chain, catalogue.WATERFALL.text())
    spans = {(row["trial"], row["request"], row["ordinal"]): row for row in asked(chain, "SELECT * FROM spans")}
    assert {row["quantile"] for row in rows} == {"median", "p99"}
    for row in rows:
        span = spans[row["trial"], row["request"], row["ordinal"]]
        parts = (row["handshake_ns"] or 0) + row["way_ns"] + row["at_callee_ns"] + row["back_ns"]
        assert parts == row["elapsed_ns"] == span["returned_ns"] - span["started_ns"]
        first = spans[row["trial"], row["request"], 0]
        assert row["start_ns"] == span["started_ns"] - first["started_ns"]
        assert row["total_ns"] == first["returned_ns"] - first["started_ns"]


def test_the_cycle_is_at_its_quantile(chain: Path) -> None:
    """At most a twentieth of the tail, or two places, from the place of the quantile, failures counted as longest."""
    for row in asked(chain, catalogue.WATERFALL.text()):
        if row["ordinal"]:
            continue
        totals = sorted(
            float("inf") if one["error"] else one["elapsed_ns"]
            for one in asked(
                chain,
                "SELECT s.* FROM spans AS s JOIN trials AS t USING (trial) WHERE s.ordinal = 0 AND t.valid "
                f"AND NOT t.is_aa AND t.arm = '{row['arm']}' AND t.cell = '{row['cell']}'",
            )
        )
        share = {"median": 0.5, "p99": 0.99}[row["quantile"]]
        place = -int(-share * len(totals) // 1) - 1
        assert row["wanted_ns"] == totals[place]
        far = max(2, int(0.05 * len(totals) * min(share, 1 - share)))
        assert abs(totals.index(row["total_ns"]) - place) <= far
        assert row["cycles"] == len(totals)


def with_failures(run: Path, errors: dict[int, str]) -> None:
    """Let cycles of HTTP/3 fail: by request, ``hop error``."""
    for file in sorted((run / "spans").iterdir()):
        trial = file.name.removesuffix(".parquet")
        if pq.read_table(run / "trials" / f"{trial}.parquet").to_pylist()[0]["arm"] != "h3":
            continue
        spans, samples = pq.read_table(file).to_pylist(), pq.read_table(run / "samples" / file.name).to_pylist()
        for request, said in errors.items():
            hop, error = said.split()
            for span in spans:
                if span["request"] == request and span["ordinal"] <= int(hop):
                    span["error"] = error if span["ordinal"] == int(hop) else "status"
            spans = [span for span in spans if span["request"] != request or span["ordinal"] <= int(hop)]
            samples[request] |= {"error": "status", "status": 504}
        pq.write_table(pa.Table.from_pylist(spans, schema.SPANS.arrow()), file)
        pq.write_table(pa.Table.from_pylist(samples, schema.SAMPLES.arrow()), run / "samples" / file.name)


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    """Three of twenty cycles of HTTP/3 fail in every trial, each somewhere else."""
    factors = {"path": "[normal]", "connection": "[new]"}
    run = write_services_run(tmp_path / "run", ServicesShape(CHAIN, factors, blocks=6, cycles=20, failing=False))
    with_failures(run, {3: "2 timeout", 4: "0 connect", 5: "1 reset"})
    return run


def test_a_failure_is_put_down_to_the_hop_where_it_began(failing: Path) -> None:
    rows = asked(failing, catalogue.FAILURES.text())
    assert {(row["arm"], row["hop"], row["error"], row["requests"]) for row in rows} == {
        ("h3", "C → D", "timeout", 6),
        ("h3", "A → B", "connect", 6),
        ("h3", "B → C", "reset", 6),
    }
    write_report(failing)
    table = next(t for t in part(failing, "cells").all("table") if "Where and why" in t.text)
    assert "C → D" in table.text and "timeout" in table.text


def test_success_rates_know_failures_and_a_p99_cycle_among_them_is_not_shown(failing: Path) -> None:
    write_report(failing)
    rows = {row["arm"]: row for row in asked(failing, "SELECT * FROM success")}
    assert rows["h3"]["rate"] == pytest.approx(0.85)
    assert rows["h3"]["low"] < 0.85 < rows["h3"]["high"]
    assert (rows["h2"]["rate"], rows["h2"]["high"]) == (1.0, 1.0)
    assert rows["h2"]["low"] == pytest.approx(0.025 ** (1 / 6))
    said = part(failing, "services").text.replace("\u00a0", " ")
    assert "HTTP/3 fell below 100 % in 1 of 1 cell, to 85.00 %" in said
    assert "HTTP/2 stayed at 100 % in the one cell." in said
    assert "HTTP/3 failed more often than HTTP/2, by 15 percentage points" in said
    cells = part(failing, "cells").text
    assert "None of HTTP/3: it lies among failed cycles, or there are too few" in cells
    p99 = {row["arm"] for row in asked(failing, catalogue.WATERFALL.text()) if row["quantile"] == "p99"}
    assert p99 == {"h1", "h2"}


def test_failures_in_excluded_trials_are_counted_apart(failing: Path) -> None:
    for file in (failing / "trials").iterdir():
        table = pq.read_table(file)
        row = table.to_pylist()[0]
        if row["arm"] == "h3" and row["block"] == 0:
            pq.write_table(pa.Table.from_pylist([row | {"valid": False}], table.schema), file)
    write_report(failing)
    row = asked(failing, "SELECT * FROM success WHERE arm = 'h3'")[0]
    assert (row["requests"], row["trials"], row["excluded_requests"], row["excluded_failed"]) == (100, 5, 20, 3)
    said = part(failing, "services").text
    assert "In trials that were left out, 3 of 20 requests failed" in said


def test_elapsed_times_are_named_as_in_the_study_and_rest_on_blocks(chain: Path) -> None:
    table = next(t for t in part(chain, "cells").all("table") if t.all("caption")[0].text == "Elapsed times")
    heads = [row.all("th")[0].text for row in table.all("tr")[1:]]
    assert [head for head in heads if "handshake" not in head] == [
        "elapsedAB", "elapsedBC", "elapsedCD", "elapsedDC", "elapsedCB", "elapsedBA", "elapsedABCDA"
    ]  # fmt: skip
    rows = asked(chain, "SELECT * FROM hops WHERE arm = 'h3' AND name = 'elapsedAB'")
    assert all(row["low_ns"] < row["value_ns"] < row["high_ns"] and row["blocks"] >= 9 for row in rows)
    # The way there is the handshake, of one round trip over HTTP/3 and two over HTTP/2, and half a round trip.
    by_arm = {row["arm"]: row for row in asked(chain, "SELECT * FROM hops WHERE name = 'elapsedAB' ORDER BY cell")}
    assert by_arm["h2"]["value_ns"] - by_arm["h3"]["value_ns"] == pytest.approx(100e6, rel=0.15)


def test_what_the_container_costs_each_protocol(chain: Path) -> None:
    rows = asked(chain, "SELECT * FROM contrasts WHERE factor = 'place' AND reference IS NULL AND place = 'all places'")
    memory = {row["arm"]: row for row in rows if row["metric"] == "memory of all services"}
    assert set(memory) == {"h1", "h2", "h3"}
    assert all(row["outcome"] == "more" and 1.02 < row["ratio"] < 1.09 for row in memory.values())
    said = part(chain, "services").text
    assert "Memory of all services, docker-bridge to native: HTTP/1.1 1.05" in said.replace("\u00a0", " ")
    assert {"Median service time", "Memory of all services"} <= {
        figure.all("figcaption")[0].text for figure in part(chain, "services").all("figure")
    }


def test_jitter_that_reorders_is_explained_and_compared(chain: Path, fan_in: Path) -> None:
    rows = asked(chain, "SELECT * FROM contrasts WHERE factor = 'path' AND place = 'all places'")
    found = {(row["arm"], row["reference"]): row for row in rows}
    assert found["h3", None]["outcome"] == "more"
    assert found["h2", None]["outcome"] != "more"
    assert found["h3", "h2"]["low"] > 1
    said = part(chain, "services").text
    assert "fixed threshold of three packets of RFC 9002 (6.1.1)" in said
    assert "to that on lag-in-order, the same in order" in said
    assert "it costs HTTP/3 more than HTTP/2" in said
    assert "The study has no variant of lag in order" in part(fan_in, "services").text


def test_where_http3_stops_to_win(fan_in: Path) -> None:
    said = part(fan_in, "services").text.replace("\u00a0", " ")
    assert "Along the clients the verdict of HTTP/3 against HTTP/2 changes in 1 of 2 places" in said
    assert re.search(
        r"HTTP/3 against HTTP/2: stops winning between \d+ clients \(1\.\d+× faster \[[^]]+\]\) and 400", said
    )
    assert re.search(r"clients: lag, new connections.*is faster than HTTP/2 from 4 clients", said)
    curves = asked(fan_in, "SELECT * FROM curves WHERE arm = 'h3' AND place LIKE 'path=normal%' ORDER BY level")
    assert [row["text"] for row in curves] == ["4", "50", "400"]
    assert [row["value"] for row in curves] == sorted(row["value"] for row in curves)
    labels = [svg.attributes["aria-label"] for svg in part(fan_in, "services").all("svg")]
    assert any("HTTP/3 against HTTP/2 along clients" in label for label in labels)


def test_which_hop_is_worth_changing(mixed: Path) -> None:
    rows = asked(mixed, "SELECT * FROM combinations")
    pairs = {(row["edge"], row["inside"]) for row in rows}
    assert pairs == {(edge, inside) for edge in ("h1", "h2", "h3") for inside in ("h2", "h3+h2")} | {
        ("h1", "h1"), ("h3", "h3")
    }  # fmt: skip
    own = next(row for row in rows if (row["edge"], row["inside"]) == ("h2", "h2"))
    assert own["ratio"] is None
    assert own["blocks"] == 16, "same at the edge HTTP/2 and HTTP/2 inside are one combination"
    said = part(mixed, "services").text.replace("\u00a0", " ")
    assert "From HTTP/2 to HTTP/3, median service time: the first hop alone 0.9" in said
    assert "HTTP/3 then HTTP/2" in said


def test_a_registration_stays_readable(registration: Path) -> None:
    figures = [one for one in part(registration, "cells").all("figure") if one.has("wide")]
    assert len(figures) == 1, "too few cycles for a p99"
    texts = [text.text for text in figures[0].all("text")]
    assert len([text for text in texts if "→" in text]) == 3 * 17
    assert max(len(text) for text in texts) <= 44
    assert "AMF → UDM PUT amf-3gpp-access" in texts
    table = next(t for t in part(registration, "cells").all("table") if t.all("caption")[0].text == "Elapsed times")
    heads = [row.all("th")[0].text for row in table.all("tr")[1:]]
    assert heads[0] == "0: UE → AMF"
    assert heads[-1] == "whole cycle"
    assert len(heads) == 2 * 17 + 1
    costs = asked(registration, "SELECT DISTINCT service FROM service_costs")
    assert {row["service"] for row in costs} == {"UE", "AMF", "NRF", "AUSF", "UDM", "PCF", "SMF"}


def test_costs_by_service_and_protocol(chain: Path) -> None:
    rows = asked(chain, "SELECT * FROM service_costs WHERE cell LIKE '%path=lag,%native%'")
    by = {(row["service"], row["arm"]): row for row in rows}
    assert by["B", "h3"]["cpu_ns_per_1000"] == pytest.approx(310e3 * 1000, rel=0.1)
    assert by["B", "h3"]["rss_bytes"] == pytest.approx(14e6, rel=0.03)
    assert by["B", "h2"]["cpu_ns_per_1000_low"] < 190e6 < by["B", "h2"]["cpu_ns_per_1000_high"]
    assert by["D", "h1"]["host"] == "host4"


def test_readings_of_a_service_come_before_what_its_trial_says(tmp_path: Path) -> None:
    factors = {"path": "[normal]", "connection": "[new]"}
    run = write_services_run(tmp_path / "run", ServicesShape(CHAIN, factors, blocks=4, cycles=5, failing=False))
    for file in (run / "trials").iterdir():
        readings = [
            {"trial": file.stem, "time_ns": time_ns, "process": "B", "cpu_ns": 7_000_000 + 30 * time_ns}
            | {"rss_bytes": 2_000_000 + time_ns, "cgroup_memory_bytes": 3_000_000 - time_ns}
            for time_ns in (0, 100_000, 50_000)
        ]
        pq.write_table(pa.Table.from_pylist(readings, schema.RESOURCES.arrow()), run / "resources" / file.name)
    write_report(run)
    rows = asked(run, "SELECT * FROM service_costs WHERE arm = 'h2' ORDER BY service")
    found = {row["service"]: row for row in rows}
    assert found["B"]["cpu_ns_per_1000"] == pytest.approx(3_000_000 * 1000 / 5)
    assert (found["B"]["rss_bytes"], found["B"]["cgroup_memory_bytes"]) == pytest.approx((2_100_000, 3_000_000))
    assert found["C"]["cpu_ns_per_1000"] == pytest.approx(190e3 * 1000, rel=0.1)
    assert found["C"]["cgroup_memory_bytes"] is None
    table = next(t for t in part(run, "cells").all("table") if "What each service cost" in t.text)
    assert "of its cgroup, peak" in table.text


def test_usage_is_the_growth_of_counters_and_the_most_of_levels(tmp_path: Path) -> None:
    run = write_services_run(tmp_path / "run", ServicesShape(CHAIN, {"path": "[normal]"}, blocks=1, cycles=2))
    file = next((run / "trials").iterdir())
    readings = [  # in no order
        {"process": "B", "time_ns": 1_000, "cpu_ns": 2_000, "rss_bytes": 7_000},
        {"process": "B", "time_ns": 0, "cpu_ns": 1_000, "rss_bytes": 5_000},
        {"process": "B", "time_ns": 500, "cpu_ns": 1_400, "rss_bytes": 9_000},
        {"process": "A", "time_ns": 0, "cpu_ns": 50, "rss_bytes": 100},
        {"process": "A", "time_ns": 1_000, "cpu_ns": 250, "rss_bytes": None},  # it had ended
        {"process": "C", "time_ns": 1_000, "cpu_ns": 77, "rss_bytes": 1},
    ]
    rows = [{"trial": file.stem} | one for one in readings]
    pq.write_table(pa.Table.from_pylist(rows, schema.RESOURCES.arrow()), run / "resources" / file.name)
    found = asked(run, f"SELECT * FROM ({catalogue.TRIAL_USAGE.text()}) WHERE trial = '{file.stem}'")
    used = {row["process"]: (row["cpu_ns"], row["rss_bytes"]) for row in found}
    assert used == {"A": (200, 100), "B": (1_000, 9_000), "C": (None, 1)}


def test_a_new_report_does_not_show_what_an_old_one_left(mixed: Path) -> None:
    before = (mixed / "report.html").read_text()
    for name in DERIVED:
        pq.write_table(pa.table({"left": ["by another version"]}), mixed / f"{name}.parquet")
    assert render(mixed) == before
    for name in DERIVED:
        (mixed / f"{name}.parquet").unlink()
    write_report(mixed)
    assert (mixed / "report.html").read_text() == before
    assert (mixed / "hops.parquet").exists()


def test_a_run_of_services_without_a_trial(tmp_path: Path) -> None:
    run = write_services_run(tmp_path / "run", ServicesShape(CHAIN, {"path": "[normal]"}, blocks=4, cycles=4))
    for folder in ("trials", "samples", "spans"):
        for file in (run / folder).iterdir():
            file.unlink()
    (run / "verdicts.parquet").unlink()
    text = pages.read(render(run)).root.text
    assert "No request of a valid trial was counted." in text


def test_other_runs_have_no_services(small: Path) -> None:
    page = pages.read(render(small)).root
    assert not [one for one in page.all("section") if one.attributes.get("id") == "services"]
    with queries.connect(small) as connection:
        assert derive(connection, facts.read(small)) is None
    assert json.loads(terminal.as_json(small))["services"] == {"said": []}


def test_the_terminal_says_what_fits(chain: Path, fan_in: Path) -> None:
    text = printed(fan_in, 80)
    assert "Services. All " in text
    assert "stops winning between" in " ".join(text.split())
    assert [line for line in text.splitlines() if len(line) > 80 and not line.startswith(("Report: ", "Next: "))] == []
    assert "new, clients 50" in text, "the level that all services share is not said"
    assert printed(chain, 80, encoding="ascii").isascii()
    found: dict[str, Any] = json.loads(terminal.as_json(chain))["services"]
    assert {"hops", "success", "service_costs", "contrasts", "curves", "combinations"} <= set(found)
    assert any("docker-bridge to native" in sentence for sentence in found["said"])


def test_the_scope_names_the_workload(chain: Path, fan_in: Path, registration: Path) -> None:
    said = {name: part(run, "answer").text for name, run in (("a", chain), ("b", fan_in), ("c", registration))}
    assert "cycles of POST through a chain of 4 services, 128\u00a0B sent with each request, 1 in flight" in said["a"]
    assert "GET of 128\u00a0B by clients at once, closed loop" in said["b"]
    assert "registrations of a user equipment in a 5G core" in said["c"]


def test_clients_are_told_one_by_one_and_together(fan_in: Path, chain: Path) -> None:
    found = asked(fan_in, catalogue.CLIENTS.text())
    assert found
    for row in found:
        assert row["fastest_ns"] <= row["middle_ns"] <= row["slowest_ns"]
        assert row["fewest"] == row["most"]
        alone = asked(
            fan_in,
            "SELECT count(DISTINCT samples.client) AS clients, quantile_disc(latency_censored_ns, 0.5) AS p50"
            " FROM samples JOIN trials USING (trial) WHERE valid AND NOT is_aa AND NOT warmup"
            f" AND cell = '{row['cell']}' AND arm = '{row['arm']}'",
        )[0]
        assert (row["clients"], row["pooled_ns"]) == (alone["clients"], alone["p50"])
    assert "Client by client" in (fan_in / "report.html").read_text()
    assert "Client by client" not in (chain / "report.html").read_text()


def test_a_cell_that_has_no_trial_yet_is_left_out_of_the_services(registration: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    shutil.copytree(registration, begun)
    verdicts = pq.read_table(begun / "verdicts.parquet")
    another = pa.array([str(cell) + "0" for cell in verdicts["cell"].to_pylist()])
    waiting = verdicts.set_column(verdicts.schema.get_field_index("cell"), "cell", another)
    pq.write_table(pa.concat_tables([verdicts, waiting.cast(verdicts.schema)]), begun / "verdicts.parquet")
    page = pages.read(render(begun))
    assert page.faults == []


def test_cpu_is_a_share_of_the_time_too(tmp_path: Path) -> None:
    """bourbon2020 shows CPU in per cent: what a request takes is more where requests are few, a share is less."""
    from trifecta.conclude.reproduction import places

    factors = {"path": "[lag]", "connection": "[new]", "place": "[native]"}
    run = tmp_path / "run"
    write_services_run(run, ServicesShape(CHAIN, factors, blocks=2, cycles=4))
    assert {row.get("cpu_share") for row in places.read(run)[0].rows} == {None}  # without readings nobody knows
    about = dict.fromkeys(schema.RESOURCES.names)
    readings = [
        {**about, "trial": "t00000", "time_ns": at, "process": service, "cpu_ns": at // 10 * (1 + number)}
        for number, service in enumerate("ABCD")
        for at in (1_000_000_000, 1_500_000_000, 3_000_000_000)
    ]
    pq.write_table(pa.Table.from_pylist(readings, schema.RESOURCES.arrow()), run / "resources" / "t00000.parquet")
    shares = {row["trial"]: row["cpu_share"] for row in places.read(run)[0].rows}
    assert shares.pop("t00000") == pytest.approx(0.1 + 0.2 + 0.3 + 0.4)
    first = next(row for row in places.read(run)[0].rows if row["trial"] == "t00000")
    assert [value_of(first, f"cpu_share[{service}]") for service in "ABCD"] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert set(shares.values()) == {None}


def test_a_trial_has_each_way_between_two_services_and_a_clients_part_of_the_cpu(tmp_path: Path) -> None:
    """bourbon2020's elapsedAB and elapsedBA; its clients were a process each, ours are one."""
    from trifecta.conclude.reproduction import places

    factors = {"path": "[lag]", "connection": "[new]", "place": "[native]", "clients": "[4]"}
    run = tmp_path / "run"
    write_services_run(run, ServicesShape("kind: fan-in\n  hosts: 2", factors, blocks=1, cycles=5))
    about = dict.fromkeys(schema.RESOURCES.names)
    readings = [
        {**about, "trial": "t00000", "time_ns": at, "process": service, "cpu_ns": at // 10 * share}
        for service, share in (("A", 4), ("B", 3))
        for at in (1_000_000_000, 3_000_000_000)
    ]
    pq.write_table(pa.Table.from_pylist(readings, schema.RESOURCES.arrow()), run / "resources" / "t00000.parquet")
    row = next(row for row in places.read(run)[0].rows if row["trial"] == "t00000")
    assert [value_of(row, f"cpu_share[{service}]") for service in "AB"] == pytest.approx([0.4 / 4, 0.3])
    assert value_of(row, "cpu_share") == pytest.approx(0.7)
    spans = pq.read_table(run / "spans" / "t00000.parquet").to_pylist()
    there = np.median([span["arrived_ns"] - span["started_ns"] for span in spans if span["error"] is None])
    back = np.median([span["returned_ns"] - span["replied_ns"] for span in spans if span["error"] is None])
    assert (value_of(row, "elapsed_ns[AB]"), value_of(row, "elapsed_ns[BA]")) == (there, back)
