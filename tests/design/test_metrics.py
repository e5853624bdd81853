"""The one table of metrics, and that nobody keeps another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import trifecta
from trifecta import studies
from trifecta.conclude.catalogue import VERDICTS
from trifecta.design import metrics, numbers
from trifecta.design.metrics import METRICS, asked_for, find, label
from trifecta.store.schema import TRIALS

SOURCES = sorted(Path(trifecta.__file__).parent.rglob("*.py"))
OWN = Path(metrics.__file__)


def test_every_metric_of_a_verdict_is_a_column_of_trials() -> None:
    assert set(METRICS) <= set(TRIALS.names)
    for asked, name in {"latency_p50": "latency_p50_ns", "bitrate_mean": "bitrate_mean_bits_per_s"}.items():
        assert asked_for(asked) is METRICS[name]


def test_every_unit_can_be_written() -> None:
    tables = (metrics.TRIALS, metrics.PAGE, metrics.VIDEO, metrics.PACKETS, metrics.SERVICES, metrics.SAMPLES)
    for one in (one for table in tables for one in table):
        form = numbers.FORM_OF_UNIT[one.unit]
        assert numbers.in_unit(1.5, one.unit)
        assert f"{form}_interval" in numbers.FORMATS
        assert "{" not in one.has("faster") + one.has("slower")


def test_every_metric_of_a_published_statement_is_known() -> None:
    said = {one.says.metric for study in studies.published().values() for one in study.statements if one.says}
    assert {name for name in said if find(name) is None} == set()
    assert label("nobody_knows") == "nobody_knows"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("latency_p50_ns", ["faster", "slower", "was faster", "is slower"]),
        ("requests_per_s", ["more", "fewer", "did more requests per second", "does fewer requests per second"]),
        (
            "bitrate_mean_bits_per_s",
            ["higher", "lower", "had a higher mean bitrate shown", "has a lower mean bitrate shown"],
        ),
        ("success_rate", ["higher", "lower", "had a higher success rate", "has a lower success rate"]),
        (
            "client_cpu_ns_per_request",
            ["lower", "higher", "took less client CPU per request", "takes more client CPU per request"],
        ),
    ],
)  # fmt: skip
def test_words_fit_the_direction(name: str, words: list[str]) -> None:
    one = METRICS[name]
    better = f"{one.wording.was} {one.has('faster')}"
    assert [one.word("faster"), one.word("slower"), better, f"{one.wording.is_} {one.has('slower')}"] == words
    assert one.word("same") == "same"


def test_the_sql_of_verdicts_turns_the_ratio_by_the_table() -> None:
    """A better bitrate was "0.67x faster": the list in the SQL lacked it."""
    more = sorted(one.name for one in metrics.TRIALS if one.better == "more")
    assert more == ["bitrate_mean_bits_per_s", "requests_per_s", "success_rate"]
    assert all(f"'{name}'" in VERDICTS.sql for name in more)


def _told(node: ast.expr) -> bool:
    """Whether it says something of a metric by itself: words, a direction, how to write it."""
    if isinstance(node, ast.Constant):  # another column says nothing
        return node.value is not None and find(str(node.value)) is None
    return isinstance(node, ast.Lambda) or (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "numbers"
    )


def _lists(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Dict):
            named = [key.value for key, value in zip(node.keys, node.values, strict=True)
                     if isinstance(key, ast.Constant) and key.value in METRICS and _told(value)]  # fmt: skip
            if len(named) > 1:
                yield f"{file.name}:{node.lineno}: a dictionary by metric"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "metric IN ('" in node.value:
            yield f"{file.name}:{node.lineno}: SQL that lists metrics"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Metric":
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant):
                yield f"{file.name}:{node.lineno}: the metric {first.value} outside of the table"


def test_no_other_module_keeps_such_a_list() -> None:
    # data_dictionary.py says what a column holds, for `trifecta sql`, and when it is null
    others = [file for file in SOURCES if file != OWN and file.name != "data_dictionary.py"]
    assert [one for file in others for one in _lists(file)] == []
