"""Pages that are made of the code are what the code says, and nothing is left undocumented."""

import importlib.util
import inspect
import re

import pytest

from tests.docs.examples import ROOT
from trifecta.analysis.checks import RUN_CHECKS, TRIAL_CHECKS
from trifecta.analysis.checks.check import HEADINGS
from trifecta.design import metrics
from trifecta.design.documented import read
from trifecta.threats import THREATS

CHECKS = TRIAL_CHECKS.own | RUN_CHECKS.own


def _script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"scripts/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference():
    return _script("reference")


def test_the_pages_are_what_the_code_says(reference, capsys):
    assert reference.main(["--check"]) == 0, capsys.readouterr().out


def test_a_stale_page_is_named_and_left_alone(reference, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reference, "DOCS", tmp_path)
    (tmp_path / "checks.md").write_text("old")
    assert reference.main(["--check"]) == 1
    assert "docs/checks.md: is not what the code says; run: python scripts/reference.py" in capsys.readouterr().out
    assert (tmp_path / "checks.md").read_text() == "old"
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0


@pytest.mark.parametrize("name", CHECKS)
def test_every_check_is_documented_in_its_file(name):
    check = CHECKS[name]
    assert check.question.endswith("?")
    statuses = {
        status for status in ("fail", "warn") if f'"{status}"' in inspect.getsource(inspect.getmodule(check.function))
    }
    for status, heading in (("fail", "Fails when"), ("warn", "Warns when")):
        if check.documentation[heading] == "Never.":
            assert status not in statuses, f"{name} says that it never does, and its file says {status!r}"


@pytest.mark.parametrize("name", THREATS.own)
def test_every_threat_is_documented_in_its_file(name):
    threat = THREATS[name]
    assert threat.title and "\n" not in threat.fact
    assert threat.documentation["Experiment"]


def test_every_metric_says_what_is_measured():
    names = {one.name for table in metrics.EVERY for one in table}
    assert names == set(metrics.ABOUT)
    assert all(text and text == text.strip() for text in metrics.ABOUT.values())


@pytest.mark.parametrize(
    ("docstring", "said"),
    [
        (None, "is not documented: its docstring needs one line of title, then the headings ## Fails when, ## Warns"),
        ("Q?", "lacks the heading 'Fails when'"),
        ("Q?\n\nText.\n\n## Fails when\nx", "has text before its first heading"),
        ("Q?\n\n## Fails when\nx\n\n## Why\nx\n\n## Warns when\nx", "has its headings in another order"),
        ("Q?\n\n## Fails when\n\n## Warns when\nx\n\n## Why\nx", "says nothing under 'Fails when'"),
        ("Q?\n\n## Fail\nx\n\n## Warns when\nx\n\n## Why\nx", "has the heading 'Fail'"),
    ],
)
def test_what_is_missing_is_named(docstring, said):
    with pytest.raises(ValueError) as raised:
        read(docstring, HEADINGS)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_picture_of_the_architecture_is_drawn_from_the_contract(monkeypatch, tmp_path, capsys):
    drawing = _script("architecture_picture")
    assert drawing.main(["--check"]) == 0, capsys.readouterr().out
    names = {name for layer in drawing.layers() for name in layer}
    there = {path.stem for path in (ROOT / "trifecta").iterdir() if (path / "__init__.py").is_file()}
    assert there | {"entries"} == names
    monkeypatch.setattr(drawing, "layers", lambda: [["cli"], ["lab"], ["store"]])
    assert drawing.main(["--check"]) == 1


def test_the_walk_of_a_request_names_files_that_are_there():
    text = (ROOT / "docs/architecture.md").read_text()
    walk = text[text.index("## One request") : text.index("## 1. Engine")]
    named = set(re.findall(r"`([\w/]+\.(?:py|rs))`", walk))
    assert len(named) > 25
    files = [str(path) for path in (*(ROOT / "trifecta").rglob("*.py"), *(ROOT / "engine/crates").rglob("*.rs"))]
    assert [name for name in sorted(named) if not any(file.endswith(f"/{name}") for file in files)] == []


def test_no_cell_of_a_table_is_a_page():
    long = [
        f"{page.name}: {cell[:60]}"
        for page in (ROOT / "docs").glob("*.md")
        for line in page.read_text().splitlines() if line.startswith("|")
        for cell in line.split(" | ") if len(cell) > 600
    ]  # fmt: skip
    assert long == []
