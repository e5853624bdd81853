"""``run.plot``: figures of matplotlib that show what the tables say, in colours that a notebook can show."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

import trifecta
from trifecta.report.figures import style, svg

PLACE = {"path": "far", "connection": "new"}
CELL = "path=far,connection=new,server=origin"


@pytest.fixture(scope="module")
def run(folder: Path) -> trifecta.Run:
    return trifecta.open(folder)


def drawn(figure: Figure) -> list[Line2D]:
    return [line for line in figure.axes[0].get_lines() if len(line.get_xdata())]


def legend(figure: Figure) -> list[str]:
    found = figure.axes[0].get_legend()
    return [text.get_text() for text in found.get_texts()] if found else []


@pytest.mark.parametrize("name", ["ecdf", "ratios", "blocks"])
def test_a_figure_is_shown_and_saved_in_colours_of_this_world(run: trifecta.Run, name: str, tmp_path: Path) -> None:
    figure = getattr(run.plot, name)(**PLACE)
    assert isinstance(figure, Figure)
    colours = {to_hex(line.get_color()) for line in figure.findobj(Line2D)}
    colours |= {to_hex(text.get_color()) for text in figure.findobj(Text)}
    assert len(colours) > 2
    assert not colours & set(style.CSS_VARIABLES), "a stand-in was left"
    shown = figure._repr_png_()
    assert shown.startswith(b"\x89PNG")
    width, height = figure.get_size_inches() * svg.POINTS  # CSS pixels, of two of its own each
    assert struct.unpack(">II", shown[16:24]) == (round(2 * width), round(2 * height))
    for kind in ("png", "svg", "pdf"):
        figure.savefig(tmp_path / f"it.{kind}")
        assert (tmp_path / f"it.{kind}").stat().st_size > 3000


def test_the_distribution_is_that_of_the_samples(run: trifecta.Run) -> None:
    figure = run.plot.ecdf(**PLACE)
    assert legend(figure) == ["HTTP/1.1", "HTTP/2", "HTTP/3"]
    assert len(drawn(figure)) == 3
    for arm, line in zip(("h1", "h2", "h3"), drawn(figure), strict=True):
        ((median,),) = run.sql(
            "SELECT quantile_disc(latency_censored_ns, 0.5) FROM samples JOIN trials USING (trial) "
            f"WHERE cell = '{CELL}' AND arm = '{arm}' AND valid AND NOT warmup"
        ).fetchall()
        assert dict(zip(line.get_ydata(), line.get_xdata(), strict=True))[0.5] == median
    assert list(drawn(run.plot.ecdf(CELL))[0].get_xdata()) == list(drawn(figure)[0].get_xdata())


def test_the_ratios_are_those_of_the_verdicts(run: trifecta.Run) -> None:
    figure = run.plot.ratios("h3", "h1")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert sum("connections" in text for text in texts) == 4
    assert {text.partition(",")[0] for text in texts if "connections" in text} == {"far", "rough"}
    assert figure.axes[0].get_xlabel().startswith("HTTP/3 ÷ HTTP/1.1")
    low, high = figure.axes[0].get_xlim()
    marks = {line.get_xdata()[0] for line in drawn(figure) if line.get_marker() == "o"}
    wanted = {min(max(run.verdict("h3", "h1", path=path, connection=connection).ratio or 1, low), high)
              for path in ("far", "rough") for connection in ("new", "reused")}  # fmt: skip
    assert marks == wanted
    alone = run.plot.ratios("HTTP/3", "HTTP/2", path="far")
    assert sum("connections" in text.get_text() for text in alone.axes[0].texts) == 2
    assert run.plot.ratios().axes[0].get_xlabel().startswith("HTTP/3 ÷ HTTP/2"), "the first that the report shows"


def test_the_blocks_are_those_of_the_trials(run: trifecta.Run) -> None:
    ((cell,),) = run.sql("SELECT DISTINCT cell FROM trials WHERE NOT valid ORDER BY cell LIMIT 1").fetchall()
    figure = run.plot.blocks(cell)
    assert "HTTP/2 again" in legend(figure)
    hollow = [line for line in drawn(figure) if line.get_linestyle() == "None"]
    ((bad, good),) = run.sql(
        f"SELECT count(*) FILTER (NOT valid), count(*) FILTER (valid) FROM trials WHERE cell = '{cell}' "
        "AND latency_p50_ns IS NOT NULL"
    ).fetchall()
    assert bad >= 1
    assert sum(len(line.get_xdata()) for line in hollow) == bad
    assert sum(len(line.get_xdata()) for line in drawn(figure) if line not in hollow) == good
    values = {row[0] for row in run.sql(f"SELECT requests_per_s FROM trials WHERE cell = '{cell}'").fetchall()}
    other = run.plot.blocks(cell, metric="requests_per_s")
    assert {value for line in drawn(other) for value in line.get_ydata()} == values


@pytest.mark.parametrize(
    ("picture", "asked", "said"),
    [
        ("ecdf", {}, r"4 cells fit, .*; add .*connection='new' or 'reused'"),
        ("ecdf", {"cell": "path=fra"}, "no cell 'path=fra'"),
        ("blocks", {"metric": "latency_p5_ns", **PLACE}, "no metric 'latency_p5_ns'; did you mean 'latency_p"),
        ("ratios", {"arm": "h2", "reference": "h3"}, "compares nothing so; its comparisons are: h3 against h2, "),
        ("ratios", {"path": "near"}, "no cell has path=near; "),
    ],
)
def test_what_cannot_be_drawn_is_one_line(run: trifecta.Run, picture: str, asked: dict[str, str], said: str) -> None:
    with pytest.raises(trifecta.UserError, match=said) as raised:
        getattr(run.plot, picture)(**asked)
    assert "\n" not in str(raised.value)


def test_the_look_of_other_figures_is_left_alone(run: trifecta.Run) -> None:
    import matplotlib as mpl

    names = ("font.size", "svg.fonttype", "text.parse_math")
    before = [mpl.rcParams[name] for name in names]
    run.plot.ecdf(**PLACE)._repr_png_()
    assert [mpl.rcParams[name] for name in names] == before
