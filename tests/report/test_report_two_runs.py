"""Two runs side by side: what is counted, what is not compared and why, what else differs, and what is refused."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.docs.examples import ROOT
from tests.report.synthetic import Shape, write_run
from tests.store.sealed import seal
from trifecta.analysis.two_runs import INDISTINGUISHABLE
from trifecta.cli import main
from trifecta.conclude.two_runs.questions import Compared, compare
from trifecta.design.errors import UserError
from trifecta.report import two_runs
from trifecta.ui import comparison

GOLDEN = Path(__file__).parent / "golden" / "compare.txt"


def made(folder: Path, seed: int, http3: float, paths: tuple[str, ...], **more: Any) -> Path:
    more = {"connections": ("reused",), "servers": ("origin",), "blocks": 10, **more}
    shape = Shape(
        samples_per_trial=40, troubles=False, seed=seed, paths=paths, http3_wait={"origin": http3, "caddy": 1.3}, **more
    )
    return write_run(folder, shape)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Monday, Tuesday with HTTP/3 turned from faster to slower, and Wednesday as Monday was."""
    folder = tmp_path_factory.mktemp("runs")
    monday = made(folder / "monday", 7, 0.7, ("clean", "far"))
    tuesday = made(folder / "tuesday", 8, 1.5, ("far", "near"))
    change(tuesday, '"started_utc": "2026-01-02', '"started_utc": "2026-01-04', "run.json")
    change(tuesday, '"version": "2.11.0"', '"version": "2.12.0"', "run.json")
    return monday, tuesday, made(folder / "wednesday", 9, 0.7, ("clean", "far"))


@pytest.fixture
def copied(runs: tuple[Path, Path, Path], tmp_path: Path) -> Path:
    """Wednesday, to be changed."""
    return Path(shutil.copytree(runs[2], tmp_path / "wednesday"))


def change(run: Path, old: str, new: str, file: str = "study.yaml") -> None:
    text = (run / file).read_text()
    assert old in text
    (run / file).write_text(text.replace(old, new))


def printed(found: Compared, width: int = 160) -> str:
    out = Console(file=io.StringIO(), width=width)
    two_runs.print_compared(found, out)
    text: str = out.file.getvalue()  # type: ignore[attr-defined]
    return text


def outcomes(found: Compared) -> dict[tuple[str, str], str]:
    return {(one.arm, one.reference): one.became or "" for one in found.questions}


def test_what_turned_is_decided_otherwise_and_the_rest_alike(runs: tuple[Path, Path, Path]) -> None:
    found = compare(*runs[:2])
    assert {one.cell for one in found.questions} == {"path=far,connection=reused,server=origin"}
    became = outcomes(found)
    assert became["h3", "h2"] == became["h3", "h1"] == "otherwise"
    assert became["h1", "h2"] not in ("otherwise", "")
    assert not found.agree
    turned = next(one for one in found.questions if (one.arm, one.reference) == ("h3", "h2"))
    assert turned.apart is not None and turned.apart.alone.value is not None
    assert turned.apart.alone.value == pytest.approx(0.762, abs=0.03)  # log of 1.5 / 0.7
    assert {one.cell.split(",")[0] for one in found.only_first} == {"path=clean"}
    assert {one.cell.split(",")[0] for one in found.only_second} == {"path=near"}


def test_two_runs_of_one_truth_agree(runs: tuple[Path, Path, Path]) -> None:
    found = compare(runs[0], runs[2])
    assert found.agree
    assert len(found.questions) == found.among == 6
    became = outcomes(found)
    assert became["h3", "h2"] == became["h3", "h1"] == "alike"
    assert not any(one.size for one in found.questions)
    assert found.session_spread is not None and found.session_spread.median < 0.02
    for one in found.questions:
        assert one.apart is not None and one.apart.alone.low is not None and one.apart.alone.high is not None
        assert one.apart.alone.high - one.apart.alone.low > 2 * 1.96 * 1.4142 * 0.01  # what sessions differ by is in it


def test_what_is_printed(runs: tuple[Path, Path, Path]) -> None:
    said = printed(compare(*runs[:2])).replace(str(runs[0].parent), "runs")
    assert [line.rstrip() for line in said.splitlines()] == GOLDEN.read_text().splitlines()


def test_an_outcome_has_other_words_than_in_json_where_those_are_no_english(runs: tuple[Path, Path, Path]) -> None:
    found = compare(*runs[:2])
    close = dataclasses.replace(found.questions[0], became=INDISTINGUISHABLE)
    assert two_runs.became_words(close).startswith("indistinguishable")
    lines = two_runs.answer_lines(dataclasses.replace(found, questions=(close,)))
    assert "    1 decided differently, but indistinguishable" in lines
    assert INDISTINGUISHABLE == "not told apart"  # as JSON has it: a contract


def test_the_page_marks_what_both_decided_and_differently(runs: tuple[Path, Path, Path]) -> None:
    points = comparison.side_by_side(*runs[:2], metric=None)["points"]
    marked = {(point["label"].split(": ")[1], point["differs"], point["decided"]) for point in points}
    assert marked == {
        ("HTTP/3 ÷ HTTP/2", True, True), ("HTTP/3 ÷ HTTP/1.1", True, True), ("HTTP/1.1 ÷ HTTP/2", False, False),
    }  # fmt: skip


def test_a_narrow_terminal_loses_nothing(runs: tuple[Path, Path, Path]) -> None:
    found = compare(runs[0], runs[2])
    text = " ".join(printed(found, 60).split())
    assert text.count("alike") >= 4
    assert "HTTP/3" in text


def test_the_data_has_all_of_it_and_its_keys_are_documented(runs: tuple[Path, Path, Path]) -> None:
    data: Any = json.loads(json.dumps(two_runs.as_data(compare(*runs[:2])), allow_nan=False))
    assert (data["agree"], data["counts"]["otherwise"], data["compare"], data["sessions"]) == (
        False,
        2,
        "protocol",
        0.01,
    )
    row = next(one for one in data["questions"] if (one["arm"], one["reference"]) == ("h3", "h2"))
    assert (row["first"]["verdict"], row["second"]["verdict"], row["size"]) == ("faster", "slower", "larger")
    assert row["apart"]["among_low"] < row["apart"]["low"] < row["apart"]["ratio"] < row["apart"]["high"]
    assert row["apart"]["ratio"] == pytest.approx(row["second"]["ratio"] / row["first"]["ratio"])
    differ = {(one["of"], one["name"]): (one["first"], one["second"]) for one in data["differences"]}
    assert differ["study", "seed"] == ("7", "8")
    assert differ["study", "path"] == ("clean, far", "far, near")
    assert differ["version", "caddy"] == ("2.11.0", "2.12.0")
    assert differ["path", "near"][0] == "none"
    assert any(of == "measured" for of, _ in differ)
    page = (ROOT / "docs/compare.md").read_text()
    documented = set(re.findall(r"`(\w+)`", page.partition("## For a program")[2]))
    for part in (data, data["first"], row, row["first"], row["apart"], data["differences"][0]):
        assert {*part} <= documented


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("rtt: 80 ms", "rtt: 40 ms", "path far"),
        ("in_flight: 10", "in_flight: 20", "workload in flight"),
        ("duration: 1 s", "duration: 2 s", "workload duration"),
        ("margin: 5 %", "margin: 10 %", "margin"),
        ("metric: latency_p50", "metric: requests_per_s", "metric"),
    ],
)
def test_what_was_not_asked_alike_is_not_compared(
    runs: tuple[Path, Path, Path], copied: Path, old: str, new: str, name: str
) -> None:
    change(copied, old, new)
    found = compare(runs[0], copied)
    far = [one for one in found.questions if one.cell.startswith("path=far")]
    assert far and all(one.became is None and one.apart is None for one in far)
    assert f"not comparable: {name}" in " ".join(printed(found, 250).split())
    clean = [one for one in found.questions if one.cell.startswith("path=clean")]
    assert clean and all((one.became is not None) == (name == "path far") for one in clean)
    assert found.among == (3 if name == "path far" else 0)


def test_what_only_warns_hinders_nothing(runs: tuple[Path, Path, Path], copied: Path) -> None:
    change(copied, "seed: 9", "seed: 7")
    change(copied, "confidence: 95 %", "confidence: 99 %")
    change(copied, '"cpus": 2', '"cpus": 8', "run.json")
    change(copied, '"mtu_bytes": 1500', '"mtu_bytes": 9000', "run.json")
    change(copied, '"quinn_proto": "0.11.12"', '"quinn_proto": "0.12.0"', "run.json")
    change(copied, '"state": "budget"', '"state": "decided", "extended": [{"asked": "--blocks 4"}]', "run.json")
    found = compare(runs[0], copied)
    assert len(found.comparable) == 6
    assert found.confidence == 0.99
    said = "\n".join(two_runs.warnings(found))
    for part in (
        "both began on one day, 2026-01-02 (UTC)",
        "both have the seed 7",
        "one may be a copy of the other",
        "not the same versions (engine: quinn_proto)",
        "not the same machine",
        "not the same settings (mtu_bytes)",
        "the verdicts have different confidence levels",
    ):
        assert part in said
    text = printed(found, 250)
    assert "not the same: machine cpus: 2 | 8" in text
    assert "not the same: session extended: none | --blocks 4" in text
    assert "seed 7" not in "\n".join(two_runs.warnings(compare(runs[0], runs[2])))


def test_checks_that_failed_more_often_are_listed(runs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    troubled = write_run(
        tmp_path / "run",
        Shape(paths=("far",), connections=("reused",), servers=("origin",), blocks=6, samples_per_trial=20),
    )
    differ = {(one.of, one.name): one.second for one in compare(runs[0], troubled).differences}
    assert differ["checks", "trials left out"] == "1 of 24"
    assert differ["checks", "path"] == "failed in 1 of 24 trials"
    assert differ["checks", "machine"] == "warned in 1 of 24 trials"


def test_another_metric_and_fewer_cells_can_be_asked_for(runs: tuple[Path, Path, Path], copied: Path) -> None:
    change(copied, "metric: latency_p50", "metric: requests_per_s")
    found = compare(runs[0], copied, metric="latency_p95", cell="path=clean")
    assert {one.cell for one in found.questions} == {"path=clean,connection=reused,server=origin"}
    assert {one.first.metric for one in found.comparable} == {"latency_p95_ns"} and len(found.comparable) == 3
    assert found.among == 6  # looking at fewer does not make them surer
    assert compare(runs[0], copied, metric="client_cpu_ns_per_request").sessions == 0.02


def test_a_factor_of_one_level_need_not_be_in_both(runs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    other = made(tmp_path / "run", 11, 0.7, ("far",), clients=("load",))
    assert len(compare(runs[0], other).comparable) == 3
    assert len(compare(other, runs[0]).comparable) == 3
    another = made(tmp_path / "curl", 11, 0.7, ("far",), clients=("curl",))
    assert {each.name for one in compare(runs[0], another).questions for each in one.hindrances} == {"client"}


def test_arms_of_any_factor(tmp_path: Path) -> None:
    servers = [
        made(tmp_path / name, seed, 1.0, ("clean",), compare="server", servers=("origin", "caddy"))
        for name, seed in (("a", 1), ("b", 2))
    ]
    found = compare(*servers)
    assert {(one.arm, one.reference) for one in found.questions} == {("caddy", "origin")}
    assert found.agree
    assert "caddy ÷ origin" in printed(found)
    few = [made(tmp_path / f"few-{seed}", seed, 1.0, ("clean",), blocks=2) for seed in (1, 2)]
    assert "No question is decided in both." in printed(compare(*few))


def refused(first: Path, second: Path, *more: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main.run(["compare", str(first), str(second), *more]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_exit_codes(runs: tuple[Path, Path, Path], copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monday, tuesday, wednesday = map(str, runs)
    assert main.run(["compare", monday, wednesday]) == 0
    assert "Nothing that both decided is decided differently." in capsys.readouterr().out
    assert main.run(["compare", monday, tuesday, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["counts"]["otherwise"] == 2
    change(copied, "metric: latency_p50", "metric: requests_per_s")
    assert main.run(["compare", monday, str(copied)]) == 2
    out, error = capsys.readouterr()
    assert "6 not comparable" in out
    assert "ask no question alike (not the same: metric)" in error


def test_bad_input_is_one_line(
    runs: tuple[Path, Path, Path], copied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monday, tuesday, _ = runs
    (tmp_path / "empty").mkdir()
    assert "are the same run" in refused(monday, monday, capsys=capsys)
    assert "holds no run (no run.json)" in refused(monday, tmp_path / "empty", capsys=capsys)
    assert "no cell 'path=moon' in both runs; choose from path=far" in refused(
        monday, tuesday, "--cell", "path=moon", capsys=capsys
    )
    assert "option --metric: no metric 'latency_p5'; did you mean" in refused(
        monday, tuesday, "--metric", "latency_p5", capsys=capsys
    )
    assert f"{monday} has no value of lcp_p50_ns; choose from latency_p50_ns" in refused(
        monday, tuesday, "--metric", "lcp_p50", capsys=capsys
    )
    servers = made(tmp_path / "servers", 1, 1.0, ("far",), compare="server", servers=("origin", "caddy"), blocks=2)
    assert "study.yaml: compare is server, and protocol in" in refused(monday, servers, capsys=capsys)
    near = made(tmp_path / "near", 1, 1.0, ("near",), blocks=2)
    assert "asks no question that" in refused(monday, near, capsys=capsys)
    change(copied, '"faults": {}', '"faults": {}, "map": {}', "run.json")
    assert "is a map" in refused(monday, copied, capsys=capsys)


def test_a_trial_that_was_changed_is_named(
    runs: tuple[Path, Path, Path], copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seal(copied)
    compare(runs[0], copied)
    trial = copied / "trials" / "t00001.parquet"
    shutil.copy(copied / "trials" / "t00002.parquet", trial)
    assert f"{trial}: was changed after the run wrote it" in refused(runs[0], copied, capsys=capsys)


def test_a_run_without_a_trial_is_refused(runs: tuple[Path, Path, Path], copied: Path) -> None:
    for path in (copied / "trials").iterdir():
        path.unlink()
    with pytest.raises(UserError, match="has no finished trial to compare; go on with `trifecta resume"):
        compare(runs[0], copied)
