"""Two reproductions compared: what is printed, the data, and files that are no reproductions."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy import stats

from tests.analysis.test_agreement import said
from trifecta.conclude.reproduction import switches
from trifecta.conclude.reproduction.compared import Comparison, compare
from trifecta.design.errors import UserError
from trifecta.report.reproduction import compared


def folder(path: Path, *claims: dict[str, Any], **about: Any) -> Path:
    path.mkdir(parents=True)
    machine = {"machine": {"cpus": 2, "kernel": "6.18"}, "seed": 1}
    head = {"began": "2026-01-02T03:04:05Z", "depth": "quick", "studies": ["s"], "version": "0.1.0", "machine": machine}
    runs = [{"folder": "s/one"}, {"folder": "../outside"}]
    document = {"reproduction": head | about, "claims": list(claims), "figures": [], "runs": runs}
    (path / "reproduction.json").write_text(json.dumps(document))
    return path


def printed(made: Comparison, width: int = 160) -> str:
    out = Console(file=io.StringIO(), width=width)
    compared.print_comparison(made, out)
    text: str = out.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_what_differs_stands_first_with_both_values(tmp_path: Path) -> None:
    first = folder(tmp_path / "a", said("x", "confirmed", 1.2), said("y", "contradicted", 0.8), said("z", "open", None))
    second = folder(tmp_path / "b", said("x", "confirmed", 1.3), said("y", "confirmed", 1.4), said("z", "confirmed"))
    made = compare(first, second)
    assert not made.agree
    text = printed(made)
    assert text.index("Text of y.") < text.index("Text of x.") < text.index("Text of z.")
    assert "contradicted 0.80 [0.78, 0.82]" in text
    assert "confirmed 1.40 [1.38, 1.42]" in text
    assert "Of 3 claims: 1 differs, 1 same, 1 only in the second." in text
    assert "The two contradict each other." in text
    assert "begun 2026-01-02T03:04:05Z, quick, version 0.1.0, seed 1" in text
    data = json.loads(json.dumps(compared.as_data(made), allow_nan=False))
    assert data["agree"] is False
    assert data["counts"]["claims"]["differs"] == 1
    assert [one["relation"] for one in data["claims"]] == ["same", "differs", "only in the second"]
    assert data["claims"][1]["first"]["ratio"] == 0.8


def effects(*rows: dict[str, Any], metric: str = "latency_p50_ns") -> list[dict[str, Any]]:
    head = {"title": "", "factor": "path", "on": "overtaking", "metric": metric, "metric_label": "median latency"}
    head |= {"margin": 0.05}
    return [{"threat": "jitter-reordering", "title": "jitter", "effects": [{**head, "rows": list(rows)}]}]


def changed(outcome: str, ratio: float, reference: str | None = "h2", **more: Any) -> dict[str, Any]:
    reach = 0.01 if outcome == "same" else 0.1
    ends = {"low": ratio - reach, "high": ratio + reach, "blocks": 6}
    return {"arm": "h3", "reference": reference, "place": "", "outcome": outcome, "ratio": ratio, **ends, **more}


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("more", "more", "same"),
        ("same", "same", "same"),
        ("more", "less", "differs"),
        ("same", "less", "differs"),
        ("undecided", "less", "only in the second"),
        ("same", "undecided", "only in the first"),
        ("undecided", "undecided", "open in both"),
    ],
)
def test_what_threats_do_is_compared_too(tmp_path: Path, first: str, second: str, relation: str) -> None:
    ratios = {"more": 2.0, "less": 0.5, "same": 1.0, "undecided": 1.3}
    sides = [folder(tmp_path / name, said("x", "confirmed")) for name in ("a", "b")]
    for side, outcome in zip(sides, (first, second), strict=True):
        document = json.loads((side / "reproduction.json").read_text())
        own = changed("more", 9.0, None)  # of one protocol: no comparison of two
        document["threats"] = effects(changed(outcome, ratios[outcome]), own)
        (side / "reproduction.json").write_text(json.dumps(document))
    made = compare(*sides)
    assert [one.relation for one in made.threats] == [relation]
    assert made.agree == (relation != "differs")
    text = printed(made)
    assert f"Of 1 effect of a threat: 1 {relation}." in text
    assert "jitter-reordering, path overtaking, median latency of HTTP/3 : HTTP/2" in text
    data = compared.as_data(made)
    assert data["counts"]["threats"][relation] == 1
    assert data["threats"][0]["first"]["ratio"] == ratios[first]


def test_a_small_effect_is_not_more_in_one_and_the_same_in_the_other(tmp_path: Path) -> None:
    """Both were measured on one day: 3 % more than 1, and within 5 % of it, are true at once."""
    sides = []
    for name, row in (
        ("a", changed("same", 1.009, low=0.984, high=1.035, blocks=4)),
        ("b", changed("more", 1.030, low=1.012, high=1.049, blocks=4)),
    ):
        sides.append(folder(tmp_path / name, said("x", "confirmed")))
        document = json.loads((sides[-1] / "reproduction.json").read_text())
        (sides[-1] / "reproduction.json").write_text(json.dumps({**document, "threats": effects(row)}))
    made = compare(*sides)
    assert [one.relation for one in made.threats] == ["only in the first"]  # the second is too near to the margin
    assert made.agree


@pytest.mark.parametrize("truth", [1.0, 1.03, 1.05, 1.08])
@pytest.mark.parametrize("noise", [0.001, 0.01])
def test_two_sessions_of_one_truth_hardly_ever_contradict_each_other(truth: float, noise: float) -> None:
    """What blocks vary by and what sessions differ by (1 %), the effect of a threat as large as the margin or less."""
    rng = np.random.default_rng(5)
    decided, differ = 0, 0
    for _ in range(1000):
        states = []
        for _ in range(2):
            day = math.log(truth) + rng.normal(0, 0.01)
            blocks = day + rng.normal(0, noise, 6)
            low, high = stats.t.interval(0.95, 5, blocks.mean(), stats.sem(blocks))
            outcome = "more" if low > 0 else "less" if high < 0 else "same" if high < math.log(1.05) else "undecided"
            value, low, high = (math.exp(number) for number in (blocks.mean(), low, high))
            row = changed(outcome, value, low=low, high=high)
            (one,) = switches.statements(Path("reproduction.json"), effects(row))
            states.append(one["state"])
        decided += "open" not in states
        differ += "open" not in states and states[0] != states[1]
    assert differ <= 10
    assert decided > (0 if truth in (1.03, 1.05) else 300)


def test_successes_are_compared_for_each_protocol_and_runs_without_threats_have_none(tmp_path: Path) -> None:
    first, second = (folder(tmp_path / name, said("x", "confirmed")) for name in ("a", "b"))
    assert compare(first, second).threats == []
    assert "threat" not in printed(compare(first, second))
    document = json.loads((first / "reproduction.json").read_text())
    document["threats"] = effects(changed("less", 0.5, None), metric="success_rate")
    (first / "reproduction.json").write_text(json.dumps(document))
    assert [one.relation for one in compare(first, second).threats] == ["only in the first"]


@pytest.mark.parametrize("threats", [3, [3], [{"threat": "x", "title": "t", "effects": [{"metric": "m"}]}], {"a": 1}])
def test_threats_that_are_none_are_refused_in_one_line(tmp_path: Path, threats: Any) -> None:
    first, second = (folder(tmp_path / name, said("x", "confirmed")) for name in ("a", "b"))
    document = json.loads((first / "reproduction.json").read_text())
    (first / "reproduction.json").write_text(json.dumps({**document, "threats": threats}))
    with pytest.raises(UserError, match=r"a/reproduction\.json: 'threats' is not a list"):
        compare(first, second)


def test_two_that_agree_say_so_and_what_else_was_not_the_same(tmp_path: Path) -> None:
    first = folder(tmp_path / "a", said("x", "confirmed"))
    second = folder(tmp_path / "b", said("x", "confirmed"), depth="full", version="0.2.0")
    for where, version in ((first, "1.0"), (second, "1.1")):
        (where / "s" / "one").mkdir(parents=True)
        facts = {"servers": {"caddy": {"version": version}}, "engine": {"quinn": "0.11"}}
        (where / "s" / "one" / "run.json").write_text(json.dumps({"schema": 1} | facts))
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "run.json").write_text('{"servers": {"stranger": {"version": "9"}}}')
    made = compare(first, second)
    assert made.agree
    assert compared.differences(made) == ["depth: quick, full", "version: 0.1.0, 0.2.0", "caddy: 1.0, 1.1"]
    assert "stranger" not in json.dumps(compared.as_data(made))  # a folder never leads outside
    assert "Everything that both decided is decided alike." in printed(made)


def made_of(path: Path, began: str, code: str | None, **about: Any) -> Path:
    where = folder(path, said("x", "confirmed"), began=began, **about)
    (where / "s" / "one").mkdir(parents=True)
    facts: dict[str, Any] = {"servers": {"caddy": {"version": "2.11"}}}
    if code is not None:
        facts["code"] = {"trifecta": code}
    (where / "s" / "one" / "run.json").write_text(json.dumps({"schema": 1} | facts))
    return where


@pytest.mark.parametrize(
    ("second", "days"),
    [
        ("2026-01-02T05:04:05Z", "both began on one day, 2026-01-02 (UTC), 2 h apart"),
        ("2026-01-02T03:04:05Z", "both began on one day, 2026-01-02 (UTC), at the same time"),
        ("2026-01-02T23:04:05-03:00", ""),
        ("2026-01-03T03:04:05Z", ""),
        ("yesterday", "when they began is not known of both"),
    ],
)
def test_two_of_one_day_are_no_proof_of_another_day(tmp_path: Path, second: str, days: str) -> None:
    first = made_of(tmp_path / "a", "2026-01-02T03:04:05Z", "abc")
    made = compare(first, made_of(tmp_path / "b", second, "abc"))
    warned = compared.warnings(made)
    assert [one for one in warned if not one.startswith(days)] == []
    assert len(warned) == bool(days)
    assert compared.as_data(made)["warnings"] == warned
    assert ("! " in printed(made)) == bool(days)


def test_one_night_over_midnight_is_not_two_days(tmp_path: Path) -> None:
    first = made_of(tmp_path / "a", "2026-01-02T23:50:00Z", "abc")
    made = compare(first, made_of(tmp_path / "b", "2026-01-03T00:30:00Z", "abc"))
    (said,) = compared.warnings(made)
    assert said.startswith("they began on two days (UTC), but in one night, 40 min apart")


def test_another_version_or_code_or_machine_is_warned_of(tmp_path: Path) -> None:
    days = ("2026-01-02T03:04:05Z", "2026-01-09T03:04:05Z")
    first = made_of(tmp_path / "a", days[0], "abc")
    other = {"machine": {"cpus": 8}, "seed": 1}
    cases = {
        "code: trifecta": made_of(tmp_path / "b", days[1], "def"),
        "trifecta": made_of(tmp_path / "c", days[1], "abc", version="0.2.0"),
        "do not record which code": made_of(tmp_path / "d", days[1], None),
        "not the same machine": made_of(tmp_path / "e", days[1], "abc", machine=other),
    }
    for words, second in cases.items():
        (said,) = compared.warnings(compare(first, second))
        assert words in said
    assert compared.differences(compare(first, cases["code: trifecta"])) == ["code: trifecta: abc, def"]
    assert compared.warnings(compare(first, made_of(tmp_path / "f", days[1], "abc"))) == []


def test_differences_have_the_unit_of_what_is_compared(tmp_path: Path) -> None:
    about = {"form": "difference", "metric": "latency_p50_ns", "difference": -195e6, "low": -202e6, "high": -188e6}
    rows = [said("x", "confirmed", 1.0, **about)]
    text = printed(compare(folder(tmp_path / "a", *rows), folder(tmp_path / "b", *rows)), 200)
    assert text.count("confirmed -195 ms [-202 ms, -188 ms]") == 2


@pytest.mark.parametrize("width", [40, 80, 200])
def test_it_fits_any_width(tmp_path: Path, width: int) -> None:
    forms = (("x", "confirmed", 1.2, "ratio"), ("y", "open", 3.0, "difference"), ("z", "open", None, "ratio"))
    rows = [said(name, state, by, form=form, difference=by) for name, state, by, form in forms]
    made = compare(folder(tmp_path / "a", *rows), folder(tmp_path / "b", *rows))
    prose = ("first", "second", "Half", "!")
    table = [line for line in printed(made, width).splitlines() if not line.startswith(prose)]
    assert max(map(len, table)) <= width


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "'claims' is not a list of statements"),
        ('{"claims": [1], "figures": []}', "'claims' is not a list of statements"),
        ('{"claims": [], "figures": []}', "'reproduction' is missing"),
        (None, "does not exist"),
    ],
)
def test_what_is_no_reproduction_is_refused_in_one_line(tmp_path: Path, text: str | None, message: str) -> None:
    good = folder(tmp_path / "good", said("x", "confirmed"))
    bad = tmp_path / "bad"
    bad.mkdir()
    if text is not None:
        (bad / "reproduction.json").write_text(text)
    with pytest.raises(UserError, match=message) as error:
        compare(good, bad)
    assert "\n" not in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["id", "kind", "text", "state", "claims", "figures", "reproduction", "runs", "machine",
                         "low", "high", "ratio", "blocks", "form", "folder"]), inner, max_size=6),
    max_leaves=20,
)  # fmt: skip


@given(JSON)
def test_no_document_makes_it_fail_otherwise(tmp_path_factory: pytest.TempPathFactory, document: Any) -> None:
    where = tmp_path_factory.mktemp("any")
    (where / "reproduction.json").write_text(json.dumps(document))
    try:
        made = compare(where, where)
    except UserError:
        return
    assert made.agree
    json.dumps(compared.as_data(made))


def test_a_document_that_names_its_programs_needs_no_runs_beside_it(tmp_path: Path) -> None:
    programs = {"caddy": "2.11", "code: trifecta": "abc"}
    first, second = (
        folder(tmp_path / name, said("x", "confirmed"), programs=told)
        for name, told in (("a", programs), ("b", programs | {"caddy": "2.12"}))
    )
    made = compare(first / "reproduction.json", second / "reproduction.json")
    assert compared.differences(made) == ["caddy: 2.11, 2.12"]
    assert not [line for line in compared.warnings(made) if "earlier versions" in line]
