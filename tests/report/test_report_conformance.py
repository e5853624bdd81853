"""The conformance matrix in the report and in a terminal, and the mark of a server that adds a hop."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.report import pages
from tests.report.synthetic import Shape, write_run
from trifecta.design.conformance import CASES, ConformanceResult
from trifecta.design.numbers import FORMATS, MARKS
from trifecta.report import conformance, terminal
from trifecta.report.html import write_report
from trifecta.store import views
from trifecta.store.run import RunDirectory

PASSED = ConformanceResult(
    depth="full", role="server", name="origin", version="0.1.0", peer="load", proxy=False, protocol="h3",
    object="get_0", label="GET 0 B", method="GET", octets=0, path="clean", outcome="pass", error=None, reason="",
    duration_ns=1000, evidence=None, capture="",
)  # fmt: skip


def row(name: str, protocol: str | None, case: str | None, outcome: str = "pass", **more: object) -> ConformanceResult:
    found = next((one for one in CASES if one.name == case), None)
    about = {} if found is None else {"label": found.label, "method": found.method, "octets": found.octets}
    if found is None:
        about = {"label": "", "method": None, "octets": None}
    return replace(PASSED, name=name, protocol=protocol, object=case, outcome=outcome, **about, **more)  # type: ignore[arg-type]


RESULTS = [
    *(row("origin", protocol, case.name) for protocol in ("h1", "h2", "h3") for case in CASES),
    row("caddy", "h1", "get_1"),
    row("caddy", "h1", "post_1", "not_offered", reason="static files"),
    row("caddy", "h3", "get_1", "fail", error="timeout", reason="no complete response within 5 s",
        evidence="conformance/server-caddy-h3-get_1", capture="no capture: Operation not permitted"),
    row("caddy", "h3", "get_1000", "fail", error="timeout", reason="no complete response within 5 s",
        evidence="conformance/server-caddy-h3-get_1000", capture="no capture: Operation not permitted"),
    row("nginx", None, None, "unsupported", reason="run: trifecta get nginx"),
    row("curl", "h2", "get_1", role="client", peer="origin"),
]  # fmt: skip


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = Shape(blocks=5, samples_per_trial=60, paths=("far",), connections=("new",), servers=("origin", "caddy"))
    shape.troubles = False
    shape.proxies = ("caddy",)
    folder = write_run(tmp_path_factory.mktemp("runs") / "run", shape)
    RunDirectory.open(folder).write_conformance(RESULTS)
    write_report(folder)
    return folder


def test_what_is_written_is_read_again(probed: Path) -> None:
    assert RunDirectory.open(probed).conformance() == RESULTS


def test_the_matrix_has_a_sign_for_every_outcome_and_its_sql_gives_it_again(probed: Path) -> None:
    root = pages.read((probed / "report.html").read_text()).root
    found = [one for one in pages.numbers(root) if one.sql == conformance.MATRIX.text() and one.form == "mark"]
    with views.connect(probed) as connection:
        cursor = connection.execute(conformance.MATRIX.text())
        names = [column[0] for column in cursor.description or ()]
        rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
    by_key = {f"{one['role']}|{one['name']}|{one['protocol']}": one for one in rows}
    assert len(by_key) == len(rows) == 7
    shown = {(one.key, one.column): one.shown for one in found}
    for (key, column), text in shown.items():
        assert FORMATS["mark"](by_key[key][column]) == text
    assert shown["server|origin|h3", "get_1000000"] == "✓"
    assert shown["server|caddy|h3", "get_1"] == "✗ timeout"
    assert shown["server|caddy|h1", "post_1"] == "–"
    assert {shown["server|nginx|any", case.name] for case in CASES} == {"∅"}
    assert shown["client|curl|h2", "get_1"] == "✓"


def test_a_server_that_runs_twice_shows_its_failure_not_its_success(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", Shape(blocks=2, samples_per_trial=20, paths=("far",), connections=("new",)))
    twice = [row("caddy", "h1", "get_1"), row("caddy", "h1", "get_1", "fail", error="content", reason="differs")]
    RunDirectory.open(folder).write_conformance(twice)
    with views.connect(folder) as connection:
        found = connection.execute(conformance.MATRIX.text()).fetchone()
    assert found is not None
    assert "fail content" in found
    assert "pass" not in found


def test_the_reasons_and_the_evidence_are_in_the_report(probed: Path) -> None:
    text = pages.read((probed / "report.html").read_text()).root.text
    assert (
        "29 of 31 transfers of caddy, curl and origin arrived complete, octet by octet. Failed: caddy HTTP/3." in text
    )
    assert "No complete response within 5\u00a0s." in text
    assert "conformance/server-caddy-h3-get_1" in text
    assert "no capture: Operation not permitted" in text
    assert "trifecta get nginx" in text.lower()


def test_a_run_without_a_probe_says_so(small: Path) -> None:
    write_report(small)
    assert "Not checked" in (small / "report.html").read_text()


def test_a_proxy_is_marked_wherever_it_stands_among_servers(probed: Path) -> None:
    root = pages.read((probed / "report.html").read_text()).root
    verdicts = next(table for table in root.all("table") if table.has("verdicts"))
    heads = [head.text for head in verdicts.all("th") if head.attributes.get("scope") == "row"]
    assert len(heads) == 2
    assert [head for head in heads if head.endswith("caddy †")]
    assert not [head for head in heads if "origin †" in head]
    assert "† adds a hop" in root.text
    data = terminal.as_data(probed)
    assert {cell["levels"]["server"]: cell["adds_hop"] for cell in data["cells"]} == {"origin": False, "caddy": True}
    assert len(data["conformance"]) == len(RESULTS)
    out = StringIO()
    terminal.print_verdicts(probed, Console(file=out, width=140))
    assert "caddy †" in out.getvalue()
    assert "† adds a hop" in out.getvalue()
    assert "29 of 31 transfers" in out.getvalue()
    json.dumps(data)


def test_the_matrix_fits_a_terminal_and_needs_no_colour() -> None:
    out = StringIO()
    conformance.print_matrix(Console(file=out, width=80, color_system=None), RESULTS)
    lines = out.getvalue().splitlines()
    matrix = lines[: lines.index("")]
    assert max(map(len, matrix)) <= 80
    caddy = next(line for line in matrix if line.startswith("caddy"))
    assert "✓" in caddy
    assert "–" in caddy
    assert [
        line
        for line in lines
        if line.startswith("caddy HTTP/3: GET 1 B, GET 1 kB: fail (timeout): no complete response")
    ]
    assert lines.index("nginx: unsupported: run: trifecta get nginx") > next(
        place for place, line in enumerate(lines) if line.startswith("caddy HTTP/3: GET")
    )


def test_the_matrix_in_ascii() -> None:
    class Ascii(StringIO):
        encoding = "ascii"

    out = Ascii()
    conformance.print_matrix(Console(file=out, width=80), [one for one in RESULTS if one.outcome != "unsupported"])
    assert not set(out.getvalue()) & set(MARKS.values())


def test_the_sql_can_be_pasted_between_double_quotes() -> None:
    for query in (conformance.MATRIX, conformance.FINDINGS, conformance.PROXIES):
        assert not set('"$!`\\') & set(query.text())


def test_what_did_not_start_transferred_nothing() -> None:
    dead = row("mine", None, None, "fail", reason="mine ended before it was ready")
    said = conformance.sentence([row("caddy", "h1", "get_1"), dead, row("caddy", "h2", "get_1", "not_run")])
    whole = "1 of 1 transfers of caddy arrived complete, octet by octet. Failed: mine. 1 was not requested."
    assert said == whole
    assert conformance.sentence([dead]) == "Nothing was transferred. Failed: mine."


def test_nothing_probed_is_no_sentence() -> None:
    assert conformance.sentence([]) == ""
    assert conformance.proxy_note(conformance.QueryResult(conformance.PROXIES, [])) == ""
