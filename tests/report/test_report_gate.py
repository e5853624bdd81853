"""A gate in a terminal, as Markdown, as JUnit XML and as JSON; and against the last good state."""

import io
import json
import re
from xml.etree import ElementTree

import pytest
from rich.console import Console

from tests.analysis.gates import FACTS, gate_of, load_json, some_rows
from trifecta.conclude import gate as concluded
from trifecta.contract import codec
from trifecta.contract.gate import GateDocument
from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.report import gate as view
from trifecta.store import gates

SLOW, EVEN, OPEN = 1.5, 1.0, None


def made(tmp_path, h2=EVEN, h3=EVEN, *, scale=1.0, facts=FACTS, fail_on=("slower:3%",), **more):
    """A gate of two cells, 8 blocks each, in which the candidate takes so many times as long; ``OPEN``: it varies."""
    gate = gate_of(fail_on, protocols="HTTP/2, HTTP/3", **more)

    def value(trial):
        times = {"h2": h2, "h3": h3}[trial.protocol]
        times = (0.5, 2.0)[trial.block % 2] if times is None else times
        return scale * 1e6 * (times if trial.arm == "caddy" else 1.0)

    rows = some_rows(gate, 8, latency_p50_ns=value, load_json=lambda trial: load_json(1000))
    return gate, concluded.document(gate, rows, plan.cells(gate.study), facts, run=tmp_path / "run")


def shown(document, width=120):
    out = io.StringIO()
    view.show(document, Console(file=out, width=width, highlight=False))
    return out.getvalue()


def test_the_verdict_stands_first_then_a_row_a_cell(tmp_path):
    text = shown(made(tmp_path, h3=SLOW)[1])
    lines = text.splitlines()
    assert lines[0] == "FAIL caddy against origin: worse than allowed by slower:3 % in HTTP/3, far, reused"
    rows = [re.split("  +", line.strip()) for line in lines if line.startswith("HTTP/")]
    assert rows == [
        [f"{place}, far, reused", "median latency", "1.00 ms", took, ratio, interval, "slower:3 %", state]
        for place, took, ratio, interval, state in (
            ("HTTP/2", "1.00 ms", "1.000", "[1.000, 1.000]", "pass"),
            ("HTTP/3", "1.50 ms", "1.500", "[1.500, 1.500]", "fail"),
        )
    ]
    assert "48 trials in 42 s of 1.5 min; seed 1. origin 0.1.0. caddy 2.10." in " ".join(lines)
    assert lines[-1] == f"Run: {tmp_path / 'run'}"
    assert len(lines) < 25, "one screen"


def test_what_is_open_is_said_with_its_reason(tmp_path):
    text = " ".join(shown(made(tmp_path, h3=OPEN)[1]).split())
    assert text.startswith("UNDECIDED caddy against origin: 1 of 2 tests are open; the budget is spent")
    assert "open: slower:3 % in HTTP/3, far, reused: " in text
    assert shown(made(tmp_path)[1]).startswith("PASS caddy against origin: slower:3 % passes in all 2 tests\n")
    assert "open: " not in shown(made(tmp_path, h2=SLOW, h3=OPEN)[1]), "of a gate that failed it does not matter"


def test_trials_that_do_not_count_are_told_with_their_checks(tmp_path):
    gate, document = made(tmp_path)
    rows = some_rows(gate, 2)
    for row in rows[:3]:
        row["valid"] = False
        row["checks_json"] = json.dumps([{"check": "machine", "status": "fail"}, {"check": "path", "status": "pass"}])
    document = concluded.document(gate, rows, plan.cells(gate.study), FACTS, run=tmp_path)
    assert document["failed_checks"] == {"machine": 3}
    assert "12 trials, 3 of which do not count (machine 3) in 42 s" in " ".join(shown(document).split())


def test_a_narrow_terminal_of_ascii_loses_nothing(tmp_path):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    view.show(made(tmp_path, h2=SLOW, h3=OPEN)[1], Console(file=out, width=60, highlight=False))
    out.flush()
    text = out.buffer.getvalue().decode("ascii")
    assert "interval: [1.500, 1.500]" in text
    assert text.startswith("FAIL")


def test_markdown_is_a_table_that_no_name_breaks(tmp_path):
    _, document = made(tmp_path, h2=SLOW)
    document["candidate"] = "cmd:a|b <x>"
    lines = view.markdown(document).splitlines()
    assert lines[0].startswith("### ❌ FAIL: caddy against origin: worse than allowed")
    head, rule, *rows = [line for line in lines if line.startswith("|")]
    assert "cmd:a\\|b &lt;x>" in head
    cells = [line.replace("\\|", "").count("|") for line in (head, rule, *rows)]
    assert set(cells) == {9}
    assert [row.split("|")[-2].strip() for row in rows] == ["❌ fail", "✅ pass"]


@pytest.mark.parametrize(
    ("h2", "h3", "counts", "children"),
    [
        (EVEN, EVEN, (2, 0, 0, 0), [set(), set()]),
        (SLOW, EVEN, (2, 1, 0, 0), [{"failure"}, set()]),
        (SLOW, OPEN, (2, 1, 0, 1), [{"failure"}, {"skipped"}]),
        (EVEN, OPEN, (2, 0, 1, 0), [set(), {"error"}]),
    ],
)
def test_junit_has_a_case_a_test(tmp_path, h2, h3, counts, children):
    root = ElementTree.fromstring(view.junit(made(tmp_path, h2=h2, h3=h3)[1]))
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    assert tuple(int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")) == counts
    assert [{each.tag for each in case} - {"system-out"} for case in suite] == children
    assert suite[0].get("name") == "HTTP/2, far, reused: slower:3 %"


def test_json_reads_back_and_has_every_value(tmp_path):
    _, document = made(tmp_path, h3=SLOW, fail_on=["slower:3%", "more-bytes:2%"])
    assert codec.decode(GateDocument, codec.encode_pretty(document)) == document
    slow = next(one for one in document["tests"] if one["state"] == "fail")
    assert slow["candidate_values"] == [pytest.approx(1.5e6)] * 8
    assert (slow["metric"], slow["limit"], slow["blocks"]) == ("latency_p50_ns", 0.03, 8)
    assert [one["state"] for one in document["tests"] if one["metric"] == "wire_bytes"] == ["pass", "pass"]


def test_the_last_good_state_is_kept_when_a_gate_passes_without_a_warning(tmp_path):
    _, document = made(tmp_path)
    path = gates.reference_file(tmp_path / "refs", "gated", "server")
    assert path.name == "gated-server.json"
    assert gates.read(path) is None
    assert not gates.keep(path, made(tmp_path, h2=SLOW)[1])
    assert not gates.keep(path, {**document, "warnings": ["worse"]})
    assert not path.exists()
    assert gates.keep(path, document)
    assert gates.read(path) == document


def warned(tmp_path, before, **now):
    gate, document = made(tmp_path, **now)
    told = concluded.against_reference(gate, document, before)
    assert told["state"] == document["state"], "a warning only"
    return told["warnings"], told["notes"]


def test_a_candidate_that_is_worse_than_the_last_good_one_is_warned_of(tmp_path):
    before = made(tmp_path)[1]
    assert warned(tmp_path, before) == ([], [])
    assert warned(tmp_path, before, scale=0.5) == ([], [])
    assert warned(tmp_path, before, scale=1.04) == ([], []), "sessions differ by as much"
    told, notes = warned(tmp_path, before, scale=1.2)
    assert notes == []
    assert told[0] == (
        "HTTP/2, far, reused: median latency is 1.20 ms, and was 1.00 ms in the last good state (caddy, "
        "2026-11-25T12:00:00+00:00): worse by more than slower:3 % and than sessions differ"
    )
    assert len(told) == 2


def test_what_was_measured_otherwise_is_not_compared(tmp_path):
    before = made(tmp_path)[1]
    elsewhere = {**FACTS, "machine": {**FACTS["machine"], "cpu_model": "another"}}
    told, (note,) = warned(tmp_path, before, scale=2.0, facts=elsewhere)
    assert told == []
    assert note.endswith("2026-11-25T12:00:00+00:00): machines differ")
    assert warned(tmp_path, before, scale=2.0, sets=["response=20 kB"])[1][0].endswith(": what is asked differ")
    newer = {**FACTS, "trifecta": "0.2.0"}
    assert warned(tmp_path, before, facts=newer)[1][0].endswith(": versions of what measures differ")
    assert warned(tmp_path, before, sets=["seed=7"]) == ([], []), "another seed is the same question"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ("{}", "is missing"),
        ("[]", "object"),
        ('{"schema": 2}', "is missing"),
        ("\udcff", "is not UTF-8"),
    ],
)
def test_a_damaged_reference_is_named(tmp_path, content, said):
    path = tmp_path / "gated-server.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError, match=said) as error:
        gates.read(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "remove it, or give another folder with --references" in str(error.value)


def test_a_reference_of_another_schema_is_named(tmp_path):
    path = tmp_path / "gated-server.json"
    path.write_text(json.dumps({**made(tmp_path)[1], "schema": 2}))
    with pytest.raises(UserError, match="schema: 2 is of another version"):
        gates.read(path)
