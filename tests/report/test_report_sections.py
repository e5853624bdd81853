"""Sections of a report: a table of them, others by entry point, and what cannot be loaded is said."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tests.report import pages
from trifecta import entries as packages
from trifecta.report import sections
from trifecta.report.html import render
from trifecta.report.sections import Section

TEXT = '{% from "tables.html.j2" import fold %}{% call fold("weather", "Weather") %}<p>{{ weather }}</p>{% endcall %}'


def weather(templates: Path) -> Section:
    """A section of another package."""
    return Section(
        "weather",
        "Weather",
        derive=lambda run: len(run.comparisons),
        draw=lambda run, derived: f"{derived} fronts",
        rows=lambda derived: {},
        page="weather.html.j2",
        templates=templates,
    )


def entered(monkeypatch: pytest.MonkeyPatch, *values: str) -> None:
    entries = [EntryPoint(value.split(":")[1], value, sections.GROUP) for value in values]
    monkeypatch.setattr(packages, "installed", lambda group: (entries, []))


def test_names_are_one_a_section_and_templates_are_there() -> None:
    found = sections.load_sections()
    assert found.missing == ()
    assert len({one.name for one in found.sections}) == len(sections.SECTIONS) == len(found.sections)
    for one in found.sections:
        assert all((one.templates / name).is_file() for name in (one.page, one.cell) if name)
        assert one.page or one.cell


def test_a_package_adds_one_without_a_line(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without = render(small)  # what a report keeps for the next one is not this one's
    (tmp_path / "weather.html.j2").write_text(TEXT)
    monkeypatch.setattr(f"{__name__}.ADDED", weather(tmp_path), raising=False)
    entered(monkeypatch, f"{__name__}:ADDED")
    root = pages.read(render(small)).root
    here = next(one for one in root.all("section") if one.attributes.get("id") == "weather")
    assert "6 fronts" in here.text
    assert [link.text for link in root.all("a") if link.attributes["href"] == "#weather"] == ["Weather"]
    entered(monkeypatch)
    assert render(small) == without


def test_what_cannot_be_loaded_is_said_in_the_report(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.TWIN", sections.load_sections().sections[0], raising=False)
    entered(monkeypatch, "no.such.module:GONE", f"{__name__}:TEXT", f"{__name__}:TWIN")
    said = sections.load_sections().missing
    assert [one.split(" ")[0] for one in said] == ["GONE", "TEXT", "TWIN"]
    assert "ModuleNotFoundError" in said[0] and "not a" in said[1] and "already" in said[2]
    text = pages.read(render(small)).root.text
    assert text.count("A section of this report is missing: ") == 3
