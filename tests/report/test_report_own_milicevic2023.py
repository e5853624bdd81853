"""The figures of milicevic2023 out of runs here: what the rows say is what the samples say, beside the study's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.report.own_figures import asked, assert_sound, records, result, text_of
from tests.report.synthetic import Shape, write_run
from trifecta.report.reproduction.own.milicevic2023 import figures
from trifecta.report.reproduction.own.study_figure import StudyFigure

SHAPE: dict[str, Any] = {
    "blocks": 3,
    "samples_per_trial": 60,
    "servers": ("hypercorn", "origin"),  # what is asked of origin is not the study's
    "clients": ("python-client",),
    "in_flight": 1,
    "troubles": False,
}
LATENCY, THROUGHPUT = "milicevic2023/python-latency", "milicevic2023/python-throughput"
OWN = "t.valid AND NOT t.is_aa AND NOT s.warmup AND s.success AND t.cell LIKE '%server=hypercorn%'"
MS = 1_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("reproduced")
    payloads = ("100 B", "600 B")
    write_run(made / LATENCY, Shape(**SHAPE, paths=("near", "far"), connections=("new",), requests=payloads))
    write_run(made / THROUGHPUT, Shape(**SHAPE, paths=("near",), connections=("reused",), requests=payloads))
    return made


@pytest.fixture(scope="module")
def drawn(folder: Path) -> dict[str, StudyFigure]:
    found = figures(folder, result(folder, "milicevic2023", ["python-latency", "python-throughput"]))
    assert_sound(found)
    return {one.id.removeprefix("milicevic2023-"): one for one in found}


def samples(folder: Path, where: str) -> list[tuple[Any, ...]]:
    """Trial, R_i in ns, first sent and answered of the study's own programs."""
    return asked(
        folder,
        "SELECT s.trial, s.done_ns - s.started_ns, coalesce(s.request_sent_ns, s.started_ns), s.done_ns "
        f"FROM samples AS s JOIN trials AS t USING (trial) WHERE {OWN} AND {where}",
    )


def test_there_is_each_figure_and_table(drawn: dict[str, StudyFigure]) -> None:
    assert list(drawn) == ["figure-8", "figure-9", "latency", "figure-10", "figure-11", "throughput"]
    assert [name for name, one in drawn.items() if one.table] == ["latency", "throughput"]


@pytest.mark.parametrize(("figure", "path"), [("figure-8", "near"), ("figure-9", "far")])
def test_a_histogram_counts_the_samples_of_all_payloads(
    folder: Path, drawn: dict[str, StudyFigure], figure: str, path: str
) -> None:
    for arm, name in (("h2", "HTTP/2"), ("h3", "HTTP/3")):
        trips = np.array([row[1] for row in samples(folder / LATENCY, f"t.path = '{path}' AND t.arm = '{arm}'")])
        bins = [one for one in records(drawn[figure]) if one["protocol"] == name]
        last = bins[-2]["bin_high_ns"]
        for one in bins[:-1]:
            low, high = one["bin_low_ns"], one["bin_high_ns"]
            inside = (trips >= low) & ((trips < high) | ((high == last) & (trips == high)))
            assert one["requests"] == inside.sum()
            assert one["share"] == pytest.approx(inside.mean())
        assert (bins[-1]["bin_low_ns"], bins[-1]["bin_high_ns"]) == (last, None)
        assert sum(int(one["requests"] or 0) for one in bins) == len(trips)


def test_the_study_s_own_numbers_stand_beside_ours(drawn: dict[str, StudyFigure]) -> None:
    said = {(one["place"], one["protocol"]): one for one in records(drawn["latency"])}
    near, far = said["near", "HTTP/2"], said["far", "HTTP/3"]
    names = ("published_min_ns", "published_mode_low_ns", "published_mode_high_ns", "published_max_ns")
    assert [near[name] for name in names] == [29 * MS, 60 * MS, 65 * MS, 90 * MS]
    assert [far[name] for name in names] == [156 * MS, 156 * MS, 165 * MS, 282 * MS]
    assert (near["published_mean_saved_ns"], far["published_mean_saved_ns"]) == (None, 167 * MS)
    bins = records(drawn["figure-9"])
    assert {one["published_max_ns"] for one in bins if one["protocol"] == "HTTP/2"} == {392 * MS}
    rates = {(one["protocol"], one["request_bytes"]): one for one in records(drawn["throughput"])}
    assert rates["HTTP/3", 600]["published_mean_per_s"] == 107
    assert (rates["HTTP/2", 600]["published_settled_per_s"], rates["HTTP/2", 600]["published_settled_after_i"]) == (
        20,
        3000,
    )
    assert "published" in text_of(drawn["figure-8"])


def test_the_table_of_round_trips_says_what_the_samples_say(folder: Path, drawn: dict[str, StudyFigure]) -> None:
    told = {(one["place"], one["protocol"]): one for one in records(drawn["latency"])}
    means = {}
    for path in ("near", "far"):
        for arm, name in (("h2", "HTTP/2"), ("h3", "HTTP/3")):
            trips = np.array([row[1] for row in samples(folder / LATENCY, f"t.path = '{path}' AND t.arm = '{arm}'")])
            one, width = told[path, name], np.median(trips) / 20
            places, counts = np.unique(np.floor(trips / width), return_counts=True)
            low = places[counts.argmax()] * width
            mode = max(low, trips.min()), min(low + width, trips.max())
            means[path, arm] = round(trips.mean())
            assert (one["requests"], one["min_ns"], one["max_ns"]) == (len(trips), trips.min(), trips.max())
            assert (one["mean_ns"], one["median_ns"]) == (means[path, arm], round(float(np.median(trips))))
            assert (one["mode_low_ns"], one["mode_high_ns"]) == (round(mode[0]), round(mode[1]))
        assert told[path, "HTTP/3"]["mean_saved_ns"] == means[path, "h2"] - means[path, "h3"]


def test_a_progression_is_that_of_the_trials(folder: Path, drawn: dict[str, StudyFigure]) -> None:
    rows = samples(folder / THROUGHPUT, "t.arm = 'h3' AND t.cell LIKE '%request=600 B%'")
    rates = []
    for trial in sorted({row[0] for row in rows}):
        own = [row for row in rows if row[0] == trial]
        done = np.sort([row[3] for row in own])
        rates.append(np.arange(1, len(done) + 1) * 1e9 / (done - min(row[2] for row in own)))
    points = [one for one in records(drawn["figure-11"]) if one["request_bytes"] == 600]
    assert len(points) > 20
    for one in points:
        here = np.array([rate[int(one["i"] or 0) - 1] for rate in rates])
        assert one["requests_per_s"] == pytest.approx(float(np.exp(np.log(here).mean())))
        assert (one["min_of_trials_per_s"], one["max_of_trials_per_s"]) == pytest.approx((here.min(), here.max()))
        assert one["trials"] == len(rates)
    told = next(
        one for one in records(drawn["throughput"]) if (one["protocol"], one["request_bytes"]) == ("HTTP/3", 600)
    )
    shown = [rate[9:] for rate in rates]  # ten at least: a hundredth is fewer
    assert told["min_per_s"] == pytest.approx(min(rate.min() for rate in shown))
    assert told["max_per_s"] == pytest.approx(max(rate.max() for rate in shown))
    assert told["settled_per_s"] == pytest.approx(float(np.median([rate[-1] for rate in rates])))


def test_a_payload_that_was_not_run_keeps_its_place(drawn: dict[str, StudyFigure]) -> None:
    for figure in ("figure-10", "figure-11", "throughput"):
        (one,) = [one for one in records(drawn[figure]) if one["request_bytes"] == 1000 and one["protocol"] != "x"][:1]
        assert one["missing"] == "not run"
    assert "1 kB, HTTP/3: not run" in text_of(drawn["figure-11"])
    (row,) = [one for one in records(drawn["figure-11"]) if one["request_bytes"] == 1000]
    assert (row["i"], row["requests_per_s"], row["published_max_per_s"]) == (None, None, 138)


def test_a_protocol_or_place_that_was_not_run_keeps_its_place(tmp_path: Path) -> None:
    shape = Shape(**SHAPE, paths=("near",), connections=("new",), requests=("600 B",), left_out="h3")
    write_run(tmp_path / LATENCY, shape)
    found = {one.id: one for one in figures(tmp_path, result(tmp_path, "milicevic2023", ["python-latency"]))}
    assert list(found) == ["milicevic2023-figure-8", "milicevic2023-latency"]
    assert "HTTP/3: no trial counts" in text_of(found["milicevic2023-figure-8"])
    (row,) = [one for one in records(found["milicevic2023-figure-8"]) if one["protocol"] == "HTTP/3"]
    assert (row["bin_low_ns"], row["requests"], row["missing"]) == (None, None, "no trial counts")
    assert row["published_min_ns"] == 22 * MS
    states = {(one["place"], one["protocol"]): one["missing"] for one in records(found["milicevic2023-latency"])}
    assert [states[place, "HTTP/2"] for place in ("near", "far")] == ["", "not run"]


def test_nothing_is_drawn_of_nothing(folder: Path) -> None:
    assert figures(folder, result(folder, "milicevic2023", [])) == []
