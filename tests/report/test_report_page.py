from __future__ import annotations

import base64
import hashlib
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.report import pages
from tests.report.synthetic import Shape, write_run
from trifecta.design.errors import CannotError, UserError
from trifecta.report.figures import style
from trifecta.report.html import render, write_report

MEGABYTE = 1_000_000
SHAPE = {"blocks": 4, "samples_per_trial": 40, "paths": ("far",), "connections": ("new",), "servers": ("origin",)}


@pytest.fixture(scope="module")
def html(run: Path) -> str:
    return (run / "report.html").read_text()


@pytest.fixture(scope="module")
def page(html: str) -> pages.Element:
    reader = pages.read(html)
    assert reader.faults == []
    return reader.root


def test_it_needs_nothing_else(html: str, page: pages.Element) -> None:
    assert len(html.encode()) < 5 * MEGABYTE
    assert re.findall(r"""(?:src|href)=["'](?!#)([^"']+)""", html) == []
    assert "@import" not in html
    assert re.findall(r"url\((?!#)", html) == []
    for name in ("img", "iframe", "object", "link", "base", "form"):
        assert page.all(name) == []
    addresses = set(re.findall(r"https?://[^\s\"'<]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_its_policy_lets_only_its_own_script_run(html: str, page: pages.Element) -> None:
    policy = next(
        meta.attributes["content"]
        for meta in page.all("meta")
        if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    scripts = page.all("script")
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].text.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not [element for element in page.all() if any(name.startswith("on") for name in element.attributes)]


def test_links_lead_somewhere_and_ids_are_unique(page: pages.Element) -> None:
    ids = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    targets = {link.attributes["href"].removeprefix("#") for link in page.all("a")}
    uses = {use.attributes["xlink:href"].removeprefix("#") for use in page.all("use")}
    clips = set(re.findall(r"url\(#([^)]+)\)", "".join(str(element.attributes) for element in page.all())))
    assert targets | uses | clips <= set(ids)


def test_figures_take_their_colours_from_the_page_and_say_what_they_show(html: str, page: pages.Element) -> None:
    figures = [svg for figure in page.all("figure") for svg in figure.all("svg")]
    assert len(figures) == 12 * 6 + 9 + 3  # and the small ones of the first screen, which are in its table
    for svg in figures:
        assert svg.attributes["role"] == "img"
        assert len(svg.attributes["aria-label"]) > 30
        assert svg.all("text"), "text stays text"
    assert not [colour for colour in style.CSS_VARIABLES if colour in html]
    css = page.all("style")[0].text
    for variable in style.CSS_VARIABLES.values():
        # Light, dark by preference, dark by choice, print.
        assert css.count(f"{variable}:") == 4, variable
    drawn = "".join(str(child.attributes) for svg in figures for child in svg.all())
    assert re.findall(r"#[0-9a-f]{6}\b", drawn) == []


def test_ticks_are_not_rounded_away(page: pages.Element) -> None:
    """Shortening coordinates must not shorten labels."""
    texts = {text.text for svg in page.all("svg") for text in svg.all("text")}
    assert {"1.05", "0.95"} <= texts


def test_tables_are_accessible(page: pages.Element) -> None:
    for table in page.all("table"):
        assert table.all("caption")
        assert all("scope" in head.attributes for head in table.all("th"))
    levels = [int(heading.tag[1]) for heading in page.all() if re.fullmatch("h[1-6]", heading.tag)]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_answer_comes_first_and_hides_nothing(page: pages.Element) -> None:
    answer = next(section for section in page.all("section") if section.attributes.get("id") == "answer")
    assert "HTTP/3 was faster than HTTP/2 in" in answer.text
    assert "stay open" in answer.text
    assert "path (2)" in answer.text
    assert "2 of 528 trials are kept but left out" in answer.text
    assert "server nginx: not installed" in answer.text
    assert "service time" in answer.text
    assert "Noise floors, from HTTP/2 against itself" in answer.text
    assert "between blocks, which a difference from another cell or run" in answer.text
    assert "the budget of 3" in answer.text


def test_every_finding_and_every_excluded_trial_is_named(page: pages.Element) -> None:
    text = page.text
    for trial in ("t00017", "t00101", "t00005", "t00040"):
        assert trial in text
    assert "91.2 ms where 80.0 ms was asked" in text


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    evil = "</style></title><script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x"
    run = write_run(tmp_path / "run", Shape(title=evil, **SHAPE))  # type: ignore[arg-type]
    facts = run / "run.json"
    facts.write_text(facts.read_text().replace("not installed", "<script>alert(2)</script>"))
    reader = pages.read(render(run))
    assert reader.faults == []
    assert len(reader.root.all("script")) == 1
    assert reader.root.all("img") == []
    assert reader.root.all("h1")[0].text == evil


def test_deliberate_faults_and_unfinished_runs_are_said_first(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(**SHAPE))  # type: ignore[arg-type]
    facts = run / "run.json"
    text = facts.read_text().replace('"faults": {}', '"faults": {"link": {"spin_ns": 0}}')
    facts.write_text(re.sub(r'"ended_because": "[^"]*",', "", text))
    answer = pages.read(render(run)).root.all("section")[0].text
    assert "deliberate faults (link)" in answer
    assert "has not finished: it is still running, or was killed" in answer


def test_the_last_decisions_say_why_and_not_how_every_verdict_stood(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(**SHAPE))  # type: ignore[arg-type]
    then = [{"cell": "c", "arm": "h3", "reference": "h2", "blocks": 1}]
    said = [{"block": block, "reason": "more", "elapsed_ns": 1, "intervals": then} for block in range(7)]
    (run / "planner.jsonl").write_text("".join(json.dumps(one) + "\n" for one in said))
    *_, folded = [one for one in pages.read(render(run)).root.all("details") if "The planner's last" in one.text]
    told = [json.loads(line) for line in folded.all("code")[0].text.splitlines() if line]
    assert told == [{"block": block, "reason": "more", "elapsed_ns": 1} for block in range(2, 7)]


def test_an_open_loop_is_called_so(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(loop="open", **SHAPE))  # type: ignore[arg-type]
    text = pages.read(render(run)).root.text
    assert "service time" not in text
    assert "open loop at 500/s" in text
    assert "late start" in text


def test_a_metric_where_more_is_better(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(metric="requests_per_s", **SHAPE | {"blocks": 9}))  # type: ignore[arg-type]
    root = pages.read(render(run)).root
    assert "requests per second" in root.text
    shown = {
        number.column: float(number.shown)
        for number in pages.numbers(root)
        if number.key.endswith("|h3|h2") and number.column in ("factor", "ratio")
    }
    # HTTP/3 does more per second on this path, and the ratio itself is above 1.
    assert shown["factor"] == shown["ratio"] > 1
    assert "HTTP/3 did more requests per second than HTTP/2 in" in root.text
    assert "× more" in root.text
    assert "× faster" not in root.text
    assert "faster than" not in root.text


def test_a_run_without_a_trial(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(**SHAPE))  # type: ignore[arg-type]
    for folder in ("trials", "samples"):
        for file in (run / folder).iterdir():
            file.unlink()
    (run / "verdicts.parquet").unlink()
    (run / "checks.parquet").unlink()
    text = pages.read(render(run)).root.text
    assert "Nothing can be said yet" in text
    assert "No check was recorded" in text


def test_what_is_no_run_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run"):
        write_report(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(UserError, match="JSON"):
        write_report(tmp_path)


def test_a_report_that_cannot_be_written(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", refuse)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(CannotError, match="disk is full"):
        from trifecta.store import files

        files.write_text(small / "report.html", "x")


def test_the_same_run_gives_the_same_report(small: Path) -> None:
    assert render(small) == render(small)
