"""A run whose arms are no protocols is told in their names, in the terminal, the page, JSON and SQL."""

import io
import json
import re

import pytest
from rich.console import Console

from tests.report.synthetic import Shape, write_run
from trifecta.conclude import queries
from trifecta.conclude.explain.chain import explain as explain_run
from trifecta.design import naming, phrases
from trifecta.report import (
    explain,
    html,
    terminal,
)
from trifecta.report.figures import style

SHAPE = Shape(
    compare="server", servers=("origin", "caddy"), paths=("clean",), connections=("reused",), blocks=8, troubles=False
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("arms") / "run", SHAPE)


@pytest.fixture(scope="module")
def page(run):
    return html.write_report(run).read_text()


def shown(run):
    out = io.StringIO()
    terminal.print_verdicts(run, Console(file=out, width=200, highlight=False))
    return " ".join(out.getvalue().split())


def test_the_terminal_compares_the_levels(run):
    said = shown(run)
    assert "caddy was slower than origin in all 3 cells" in said
    assert "The arms are levels of server" not in said, "that is for the page"
    assert "caddy vs origin" in said
    assert "HTTP/3 against" not in said and "HTTP/3 vs" not in said
    assert "from origin against itself" in said


def test_protocols_are_factors_of_the_cells(run):
    assert re.search(r"HTTP/2, reused", shown(run))


def test_a_path_has_one_row_whatever_factor_comes_before_it(tmp_path):
    """Protocols come before the path in a study: their cells of one path lie together all the same."""
    two = Shape(compare="server", servers=("origin", "caddy"), paths=("clean", "far"), blocks=6, samples_per_trial=20)
    summary = terminal.summarise(write_run(tmp_path / "run", two))
    assert [(row.path, row.cells) for row in summary.opening.rows] == [("clean", 6), ("far", 6)]
    assert [one.path for one in summary.words.by_path] == ["clean", "far"]


def test_json_says_what_is_compared(run):
    found = terminal.as_data(run)
    assert (found["compare"], found["arms"], found["baseline"]) == ("server", ["origin", "caddy"], "origin")
    assert {(row["arm"], row["reference"]) for cell in found["cells"] for row in cell["verdicts"]} == {
        ("caddy", "origin")
    }
    json.dumps(found, allow_nan=False)


def test_the_page_speaks_of_the_levels_and_gives_them_colours_of_their_own(run, page):
    text = re.sub(r"<[^>]+>", " ", page)
    assert "caddy against origin" in text
    assert "Every block ran each server once and origin twice" in text
    assert "Parity across servers" in text
    assert "Is it the" not in text, "servers are the arms, so there are no programs to tell from them"
    assert "against HTTP/" not in text
    assert 'class="m4"' in page and 'class="m5"' in page and 'class="m2"' not in page.split("<main", 1)[1]
    assert "var(--level-2)" in page


def test_the_numbers_beside_the_verdicts_are_of_the_levels(run, page):
    with queries.connect(run) as connection:
        levels = connection.execute("SELECT DISTINCT level FROM trials ORDER BY level").fetchall()
        ratios = connection.execute(
            "SELECT count(*) FROM trials WHERE arm = 'origin#aa' AND level = 'origin'"
        ).fetchone()
    assert levels == [("caddy",), ("origin",)]
    assert ratios == (24,)


def test_explain_says_what_the_study_varies(run):
    found = explain_run(run, "protocol=h3", "caddy")
    out = io.StringIO()
    explain.print_chains(found, [], Console(file=out, width=200))
    said = " ".join(out.getvalue().split())
    assert "The server, which the study varies: caddy and origin." in said
    assert "programs are what is compared" in said


def test_outside_of_a_run_an_arm_is_a_protocol():
    assert naming.name("h3") == "HTTP/3"
    assert naming.name("h2#aa") == "HTTP/2 again"
    with naming.arms_of("congestion_control", ["cubic", "bbr"]):
        assert naming.name("bbr") == "bbr"
        assert naming.name("h3") == "HTTP/3", "what is no arm"
        assert naming.title() == "Congestion control"
        assert (style.mark("cubic"), style.mark("bbr"), style.mark("h3")) == (4, 5, 3)
        assert style.arm_style("cubic") != style.arm_style("bbr")
        assert style.arm_style("cubic#aa") == style.arm_style("h2#aa")
    assert naming.name("bbr") == "bbr" and style.mark("bbr") == 0


def test_a_name_keeps_its_letters_where_a_sentence_begins():
    with naming.arms_of("tls_version", ["1.2", "1.3"]):
        assert (naming.title(), naming.name("1.3")) == ("TLS version", "TLS version 1.3")
    with naming.arms_of("congestion_control", ["cubic", "bbr"]):
        assert phrases.sentence("bbr was slower than cubic") == "bbr was slower than cubic."
        assert phrases.sentence("nothing was slower") == "Nothing was slower."


def test_many_levels_have_looks_that_differ():
    names = [f"server-{number}" for number in range(14)]
    with naming.arms_of("server", names):
        looks = [style.arm_style(name) for name in names]
    assert len({(look.colour, look.marker) for look in looks}) == 14
