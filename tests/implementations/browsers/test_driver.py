"""The driver's contract, with a browser that is none: rows whatever happens, and nothing left behind."""

from __future__ import annotations

import signal

import pytest

from tests.implementations.browsers.driving import FAKE, Driver, config, rows
from tests.lab.ended import all_ended
from trifecta.store.schema import SAMPLES
from trifecta.store.visits import FETCHES, PLAYBACK, VISITS


def drive(tmp_path, **changes):
    driver = Driver(FAKE, "fake", config(tmp_path, **changes))
    assert driver.hear("loaded") == {"client": "fake"}
    return driver


def test_a_trial_is_a_row_a_visit(tmp_path):
    driver = drive(tmp_path)
    ready = driver.hear("ready")
    assert (ready["browser"], ready["version"]) == ("fake", "1.2.3")
    family = driver.family()
    assert any(each.pid == ready["pid"] and "fake-browser" in each.cmdline() for each in family)
    summary = driver.hear("summary")
    assert driver.end() == 0, driver.words()
    assert {key: summary[key] for key in ("samples", "errors", "visits", "ended", "stray_lookups", "exit_code")} == {
        "samples": 2, "errors": 0, "visits": 2, "ended": "requests", "stray_lookups": 3, "exit_code": 0,
    }  # fmt: skip
    assert summary["left_out"] == {"https://www.fake.lab/well?1": 3}
    assert summary["declared"] == {"tls_library": "none"}
    assert summary["program_started_ns"] <= summary["started_ns"] <= summary["ended_ns"] <= summary["program_ended_ns"]
    samples = rows(tmp_path, "samples")
    assert [row["request"] for row in samples] == [0, 1, 2]
    assert [row["warmup"] for row in samples] == [True, False, False]
    assert all(row["done_ns"] - row["started_ns"] == 10_000_000 and row["bytes_in"] == 100 for row in samples)
    visits = rows(tmp_path, "visits")
    assert [row["requests"] for row in visits] == [2, 2, 2]
    assert {(row["missing_requests"], row["failed_requests"], row["connections"]) for row in visits} == {(1, 1, 2)}
    assert len({row["work"] for row in visits}) == 1
    assert [row["fetch"] for row in rows(tmp_path, "fetches")] == [0, 1] * 3
    assert all_ended(family, 5)
    assert not list((tmp_path / "work").rglob("profile"))


@pytest.mark.parametrize(
    ("what", "errors", "ended"),
    [
        ("refused", ["connect_refused"] * 3, "requests"),
        ("crash", [None, "browser:crashed", "browser:crashed"], "crashed"),
        ("hang", [None, "browser:hung", "browser:hung"], "crashed"),
        ("worker-dies", [None, "browser:crashed", "browser:crashed"], "crashed"),
        ("slow", ["timeout"] * 3, "requests"),
    ],
)
def test_what_goes_wrong_is_a_row(tmp_path, what, errors, ended):
    patience_ns = 200_000_000 if what == "slow" else 20_000_000_000
    driver = drive(tmp_path, url=f"https://www.fake.lab/{what}", visit_timeout_ns=patience_ns)
    driver.hear("ready")
    family = driver.family()
    summary = driver.hear("summary")
    assert (driver.end(), summary["ended"]) == (0, ended)
    assert [row["error"] for row in rows(tmp_path, "visits")] == errors
    assert [row["error"] for row in rows(tmp_path, "samples")] == errors
    assert summary["errors"] == sum(error is not None for error in errors[1:])
    assert all_ended(family, 5)


@pytest.mark.parametrize("how", ["total_timeout", "signal", "stdin"])
def test_it_ends_when_it_must(tmp_path, how):
    total = 1_500_000_000 if how == "total_timeout" else 60_000_000_000
    driver = drive(tmp_path, url="https://www.fake.lab/slow", total_timeout_ns=total)
    driver.hear("ready")
    family = driver.family()
    if how == "signal":
        driver.process.terminate()
    elif how == "stdin":
        driver.process.stdin.close()
    summary = driver.hear("summary")
    assert (driver.end(), summary["ended"]) == (0, how)
    error = "timeout" if how == "total_timeout" else "interrupted"
    assert [row["error"] for row in rows(tmp_path, "visits")] == [error] * 3
    assert all_ended(family, 5)


@pytest.mark.parametrize("killed", ["driver", "keeper", "worker"])
def test_nothing_is_left_when_it_is_killed(tmp_path, killed):
    driver = drive(tmp_path, url="https://www.fake.lab/slow")
    driver.hear("ready")
    family = driver.family()
    assert len(family) >= 5  # the driver, who waits, the worker, the browser, and a stopped orphan
    number = {"driver": 0, "keeper": 1, "worker": 2}[killed]
    family[number].send_signal(signal.SIGKILL)
    driver.end()
    assert all_ended(family, 5)
    assert not list((tmp_path / "work").rglob("profile"))


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (b"{", 2, "not JSON"),
        ({"protocol": "h4"}, 2, "protocol: 'h4' is none of h1, h2, h3"),
        ({"colour": 1}, 2, "colour: is not a field"),
        ({"url": "https://www.fake.lab/unsupported"}, 127, "take another"),
        ({"url": "https://www.fake.lab/broken"}, 1, "it fell over"),
        ({"samples_file": "/nowhere/at/all"}, 3, "samples_file: /nowhere/at/all"),
    ],
)
def test_refusals(tmp_path, line, code, words):
    document = line if isinstance(line, bytes) else config(tmp_path, **line)
    driver = Driver(FAKE, "fake", document)
    assert driver.end() == code
    said = driver.words()
    assert words in said
    assert "Traceback" not in said


def test_an_unknown_browser_is_named():
    driver = Driver(FAKE, "mosaic", b"{}")
    assert driver.end() == 2
    assert "no adapter 'mosaic'; known: fake" in driver.words()


def test_the_files_have_their_schemas(tmp_path):
    import pyarrow.parquet as pq

    driver = drive(tmp_path)
    assert driver.end() == 0
    for name, schema in (("samples", SAMPLES), ("visits", VISITS), ("fetches", FETCHES), ("playback", PLAYBACK)):
        assert pq.read_schema(tmp_path / f"{name}.parquet").equals(schema.arrow()), name
