"""A gate in a terminal, as Markdown, as JUnit XML and as JSON; and against the last good state."""

import io
import json
import re
from xml.etree import ElementTree

import pytest
from rich.console import Console

from tests.analysis.gates import FACTS, gate_of, load_json, some_rows
from trifecta.conclude import gate as concluded
from trifecta.conclude import last_good
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


def test_the_version_of_a_release_is_said_once(tmp_path):
    document = made(tmp_path)[1]
    text = shown({**document, "servers": {"caddy@2.10.0": "2.10.0", "nginx@./new": "1.29.1", "mine": ""}})
    assert "seed 1. caddy@2.10.0. nginx@./new 1.29.1. Ratio" in " ".join(text.split())


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


def beside(gate, document, before=None, **more):
    told, replaces = last_good.compare_to_last_good(gate, document, before, file="refs/it.json", **more)
    assert told["state"] == document["state"], "a warning only"
    return told["warnings"], told["notes"], replaces


def test_each_question_and_each_machine_has_a_state_of_its_own(tmp_path):
    def file(machine=FACTS["machine"], **more):
        gate = made(tmp_path, **more)[0]
        return gates.reference_file(tmp_path, "gated", "server", gate.asked_sha256, machine)

    same = file()
    assert re.fullmatch(r"gated-server-[0-9a-f]{8}-[0-9a-f]{8}\.json", same.name)
    assert file(sets=["seed=7"]) == same, "another seed is the same question"
    assert file(candidate="nginx") == same, "so is another candidate"
    elsewhere = file({**FACTS["machine"], "cpus": 64})
    names = {same, file(sets=["response=20 kB"]), file(fail_on=["latency_p95:3%"]), elsewhere}
    assert len(names) == 4
    for path in (*names, tmp_path / "gated-server-old-12345678-12345678.json", tmp_path / "gated-server.json"):
        path.write_text("")
    assert gates.count_others(same) == 3
    assert gates.count_others(tmp_path / "none" / same.name) == 0


def test_the_first_gate_that_passes_is_the_last_good_state(tmp_path):
    gate, document = made(tmp_path)
    _, notes, replaces = beside(gate, document, others=2)
    assert replaces
    assert notes == [
        "there is no last good state of this question on this machine (but 2 of other questions or machines)",
        "it is the last good state from now on: refs/it.json",
    ]
    path = tmp_path / "refs" / "it.json"
    assert gates.read(path) is None
    gates.keep(path, document)
    assert gates.read(path) == document
    failed = made(tmp_path, h2=SLOW)
    assert not beside(*failed)[2]
    assert not beside(*failed, accept=True)[2]
    assert beside(*failed, accept=True)[1][-1].startswith("--accept: it is not the last good state")


def test_steps_that_each_pass_add_up_to_a_warning(tmp_path):
    kept, warned_at = None, []
    for step in range(10):
        gate, document = made(tmp_path, scale=1.02**step)
        assert document["state"] == "pass", "beside a baseline that is as slow"
        warnings, _, replaces = beside(gate, document, kept)
        kept = document if replaces else kept
        warned_at += [step] if warnings else []
    assert warned_at == [3, 4, 5, 6, 7, 8, 9], "1.02 ** 3 is beyond 3 % and what sessions differ by"
    assert kept == made(tmp_path)[1]


def test_a_gate_that_is_better_takes_the_place_of_the_last_good_state(tmp_path):
    before = made(tmp_path)[1]
    for now, replaces in (
        ({"scale": 0.9}, True),
        ({"scale": 0.99}, False),  # sessions differ by as much
        ({"h2": 0.9, "h3": 1.01}, False),  # better here and worse there, which could go on for ever
        ({"h2": 0.9, "h3": 1.0}, True),
        ({"scale": 0.9, "h3": SLOW}, False),
    ):
        found = made(tmp_path, **now)
        assert beside(*found, before)[2] == replaces, now
    earlier = {**before, "tests": before["tests"][:1]}
    warnings, notes, replaces = beside(*made(tmp_path, scale=0.9), earlier)
    assert (warnings, replaces) == ([], False), "of one test nothing is known"
    assert notes[0].startswith("HTTP/3, far, reused: median latency has no value in the last good state")


def test_what_is_accepted_is_the_last_good_state_from_now_on(tmp_path):
    before = made(tmp_path)[1]
    worse = made(tmp_path, scale=1.2)
    warnings, notes, replaces = beside(*worse, before)
    assert (len(warnings), replaces) == (2, False)
    assert notes == ["the last good state stays as it is; --accept puts this one in its place"]
    warnings, notes, replaces = beside(*worse, before, accept=True)
    assert (len(warnings), replaces) == (2, True)
    assert notes == ["it is the last good state from now on: refs/it.json"]


def warned(tmp_path, before, **now):
    return beside(*made(tmp_path, **now), before)[:2]


def test_a_candidate_that_is_worse_than_the_last_good_one_is_warned_of(tmp_path):
    before = made(tmp_path)[1]
    assert warned(tmp_path, before) == ([], [])
    assert warned(tmp_path, before, scale=0.97) == ([], [])
    assert warned(tmp_path, before, scale=1.04) == ([], []), "sessions differ by as much"
    told, _ = warned(tmp_path, before, scale=1.2)
    assert told[0] == (
        "HTTP/2, far, reused: median latency is 1.20 ms, and was 1.00 ms in the last good state (caddy, "
        "2026-11-25T12:00:00+00:00): worse by more than slower:3 % and than sessions differ"
    )
    assert len(told) == 2


def test_trials_without_a_value_are_not_left_out(tmp_path):
    gate, before = made(tmp_path)
    now = made(tmp_path)[1]
    now["tests"][0]["candidate_values"] = [None] * 8
    warnings, notes, _ = beside(gate, now, before)
    assert len(warnings) == 1, "its median is beyond every value"
    assert "median latency: 8 of 8 trials have no value, and 0 of 8 had none in the last good state" in notes[0]
    now["tests"][0]["candidate_values"] = [None] * 3 + [1e6] * 5
    warnings, notes, replaces = beside(gate, now, before)
    assert (warnings, len(notes), replaces) == ([], 1, False)
    assert "3 of 8 trials have no value" in notes[0]
    assert beside(gate, before, now)[:2] == ([], []), "there are fewer than before"


def test_what_was_measured_otherwise_is_not_compared(tmp_path):
    before = made(tmp_path)[1]
    elsewhere = {**FACTS, "machine": {**FACTS["machine"], "cpu_model": "another"}}
    told, (note, stays) = warned(tmp_path, before, scale=2.0, facts=elsewhere)
    assert told == []
    assert note.endswith("2026-11-25T12:00:00+00:00): machines differ")
    assert stays.startswith("the last good state stays as it is; --accept")
    assert warned(tmp_path, before, scale=2.0, sets=["response=20 kB"])[1][0].endswith(": what is asked differ")
    newer = {**FACTS, "trifecta": "0.2.0"}
    assert warned(tmp_path, before, facts=newer)[1][0].endswith(": versions of what measures differ")
    assert not beside(*made(tmp_path, facts=newer), before)[2], "or an update would begin anew in silence"
    assert beside(*made(tmp_path, facts=newer), before, accept=True)[2]
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
