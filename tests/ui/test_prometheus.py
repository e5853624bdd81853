"""What Prometheus is told of a run while it happens: what is finished, to who has the token, and at what cost."""

from __future__ import annotations

import json
import re
import shutil
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.store import servers
from tests.ui.serving import Served, serving
from tests.ui.test_live import arrive, shortened, written
from trifecta.design.errors import UserError
from trifecta.store import parquet
from trifecta.store.exports import grafana
from trifecta.store.exports.openmetrics import RATIOS
from trifecta.ui import prometheus, prometheus_token
from trifecta.ui.index import Index
from trifecta.ui.prometheus import Exposition

TOKEN = "a-token-of-prometheus-that-is-long"
SAMPLE = re.compile(r'([a-z0-9_]+)\{((?:[a-z0-9_]+="(?:\\.|[^"\\])*",?)+)\} (\S+)')
LABEL = re.compile(r'([a-z0-9_]+)="((?:\\.|[^"\\])*)"')

Sample = tuple[str, dict[str, str], float]


def told(text: str) -> list[Sample]:
    """The samples, of which each has to be announced, lie with its family and be there once."""
    assert text.endswith("# EOF\n")
    found, announced = [], ""
    families: list[str] = []
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            announced = line.split()[2]
            families.append(announced)
        elif not line.startswith("# "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert re.fullmatch(f"{announced}(_bucket|_count|_sum)?", match[1])
            found.append((match[1], dict(LABEL.findall(match[2])), float(match[3])))
    assert len(families) == len(set(families))
    assert len({(name, tuple(labels.items())) for name, labels, _ in found}) == len(found)
    return found


def values(samples: list[Sample], name: str) -> list[float]:
    return [value for told, _, value in samples if told == name]


def scrape(served: Served, **headers: str) -> Any:
    return served.get("/metrics", cookie="", **{"authorization": f"Bearer {TOKEN}", **headers})


def test_a_run_is_told_of_from_finished_trials_while_it_grows(growing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "SHARE", 1e9)
    later = shortened(growing, 24)
    shutil.copy(later[0].with_name(later[0].name.replace("trials-", "samples-")), growing / "samples")  # not finished
    one = Exposition(Index(growing.parent))
    assert told(one.text()) == []  # nobody measures here
    with written(growing):
        first = told(one.text())
        assert values(first, "trifecta_run_measuring") == [1.0]
        assert values(first, "trifecta_run_trials") == [24.0]
        answered = "SELECT count(*) AS n, sum(done_ns - coalesce(intended_ns, started_ns)) / 1e9 AS s FROM "
        files = [growing / "samples" / f"t{number:05}.parquet" for number in range(24)]
        (wanted,) = parquet.select(f"{answered} {parquet.scan(files)} WHERE error IS NULL AND NOT warmup")
        assert sum(values(first, f"{grafana.REQUESTS}_count")) == wanted["n"] > 0
        assert sum(values(first, f"{grafana.REQUESTS}_sum")) == pytest.approx(wanted["s"])
        arrive(growing, later[:8])
        second = told(one.text())
    assert values(second, "trifecta_run_trials") == [32.0]
    assert sum(values(second, f"{grafana.REQUESTS}_count")) > wanted["n"]
    rows = parquet.read(growing / "verdicts.parquet")
    ratios = {(labels["cell"], labels["arm"], labels["reference"]): value for name, labels, value in second
              if name == "trifecta_verdict_ratio"}  # fmt: skip
    assert ratios == {(row["cell"], row["arm"], row["reference"]): row["ratio"] for row in rows if row["ratio"]}
    medians = [labels for name, labels, _ in second if name == "trifecta_latency_p50_seconds"]
    assert len({(one["cell"], one["arm"]) for one in medians}) == len(medians) == 8
    assert {one["trial"] for one in medians} == {f"t000{n}" for n in range(24, 32)}
    assert values(told(one.text()), "trifecta_run_measuring") == [0.0]  # its end is told of, too


def test_one_dashboard_shows_runs_that_are_over_and_one_that_happens(growing: Path) -> None:
    with written(growing):
        names = {name for name, *_ in told(Exposition(Index(growing.parent)).text())}
    panels = grafana.dashboard()["panels"]
    asked = set(re.findall(r"trifecta_\w+", json.dumps(panels)))
    rows = parquet.read(growing / "verdicts.parquet")
    without = {f"trifecta_verdict_{column}" for column in RATIOS if all(row[column] is None for row in rows)}
    assert asked and asked <= names | without and without < asked


def test_it_is_worked_out_no_more_often_than_its_cost_allows(growing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = shortened(growing, 24)
    monkeypatch.setattr(prometheus, "SHARE", 1e-9)
    one = Exposition(Index(growing.parent))
    with written(growing):
        before = one.text()
        arrive(growing, later[:8])
        assert one.text() == before and values(told(before), "trifecta_run_trials") == [24.0]
        one._until_s = 0.0
        assert values(told(one.text()), "trifecta_run_trials") == [32.0]


def test_a_run_that_cannot_be_read_is_told_as_that_and_others_go_on(growing: Path, folder: Path) -> None:
    second = Path(shutil.copytree(folder / "first", growing.with_name("whole")))
    (growing / "verdicts.parquet").write_bytes(b"no")
    one = Exposition(Index(growing.parent))
    with written(growing), written(second):
        samples = told(one.text())
    readable = {labels["folder"]: value for name, labels, value in samples if name == "trifecta_run_readable"}
    assert readable == {"growing": 0.0, "whole": 1.0}
    assert len(values(samples, "trifecta_run_trials")) == 1
    shutil.rmtree(growing)
    one._until_s = 0.0
    assert {labels["folder"] for name, labels, _ in told(one.text()) if "folder" in labels} == {"whole"}


def test_a_scrape_of_a_damaged_run_opens_no_more_than_one_of_a_whole_run(
    growing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    for name in ("select", "types_of"):
        real = getattr(parquet, name)
        monkeypatch.setattr(parquet, name, lambda *asked, _real=real: (opened.append(asked[0]), _real(*asked))[1])
    with written(growing):
        whole = told(Exposition(Index(growing.parent)).text())
        enough = len(opened)
        max((growing / "samples").iterdir()).write_bytes(b"no")
        opened.clear()
        damaged = told(Exposition(Index(growing.parent)).text())
    assert values(whole, "trifecta_run_readable") == [1.0] and values(damaged, "trifecta_run_readable") == [0.0]
    assert 0 < len(opened) <= enough


@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"])
def test_who_lacks_the_token_is_refused(folder: Path, tmp_path: Path, shown: str) -> None:
    with serving(folder, tmp_path, metrics=TOKEN) as served:
        answer = served.get("/metrics", authorization=shown)  # with the cookie of the page
        assert answer.status == 403 and answer.text == "refused: no token of --metrics as Authorization: Bearer\n"


def test_the_token_opens_nothing_else_and_no_other_site_asks_with_it(folder: Path, tmp_path: Path) -> None:
    with serving(folder, tmp_path, metrics=TOKEN) as served:
        answer = scrape(served)
        assert answer.status == 200 and answer.headers["content-type"].startswith("application/openmetrics-text")
        assert told(answer.text) == []
        assert scrape(served, host="evil.example").status == 403
        assert scrape(served, origin="http://evil.example").status == 403
        for path in ("/", "/api/runs", "/metrics/x"):
            assert served.get(path, cookie="", authorization=f"Bearer {TOKEN}").status == 403
        own = {"host": f"127.0.0.1:{served.port}", "authorization": f"Bearer {TOKEN}"}
        assert served.raw("POST", "/metrics", own).status == 403


def test_without_being_asked_for_it_is_not_there(served: Served) -> None:
    assert served.get("/metrics").status == 404
    assert served.get("/metrics", cookie="", authorization="Bearer ").status == 403


def test_the_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    made = prometheus_token.of_file(path)
    assert len(made) >= 40 and path.stat().st_mode & 0o777 == 0o600
    assert prometheus_token.of_file(path) == made == path.read_text().strip()
    path.chmod(0o640)  # Prometheus may be another user
    assert prometheus_token.of_file(path) == made


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        ("a-token-of-prometheus-that-is-long\n", 0o644, "every user can read it; run: chmod o="),
        ("short\n", 0o600, "is no token of 20 characters"),
        ("two words that are long enough\n", 0o600, "is no token of 20 characters"),
        ("", 0o600, "is no token of 20 characters"),
        ("\xe9" * 30, 0o600, "cannot be read as text"),
    ],
)
def test_a_file_that_holds_no_such_token_is_one_line(tmp_path: Path, content: str, mode: int, said: str) -> None:
    path = tmp_path / "token"
    path.write_text(content, encoding="latin-1")
    path.chmod(mode)
    with pytest.raises(UserError) as error:
        prometheus_token.of_file(path)
    assert said in str(error.value) and "\n" not in str(error.value) and str(path) in str(error.value)


@pytest.mark.parametrize("name", ["", "none/token"])
def test_a_place_for_no_file_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="--metrics"):
        prometheus_token.of_file(tmp_path / name)


def test_a_real_prometheus_has_the_verdicts_of_a_run_that_is_being_measured(growing: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    with (
        serving(growing.parent, tmp_path, metrics=TOKEN) as served,
        written(growing),
        servers.prometheus(tmp_path, f"127.0.0.1:{served.port}", token) as port,
    ):
        found: list[dict[str, Any]] = []
        end = time.monotonic() + 60
        while not found and time.monotonic() < end:
            query = urllib.parse.urlencode({"query": "trifecta_verdict_ratio"})
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{query}") as answer:
                found = json.load(answer)["data"]["result"]
            time.sleep(0.5)
    rows = parquet.read(growing / "verdicts.parquet")
    there = {(one["metric"]["cell"], one["metric"]["arm"], one["metric"]["reference"]): float(one["value"][1])
             for one in found}  # fmt: skip
    assert there == {(row["cell"], row["arm"], row["reference"]): row["ratio"] for row in rows if row["ratio"]}


def test_requests_whose_samples_come_from_a_store_later_are_told_of_then(
    growing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "SHARE", 1e9)
    facts = json.loads((growing / "run.json").read_text())
    (growing / "run.json").write_text(json.dumps(facts | {"stored": "file:///lake/run-0"}))
    whole, one = Exposition(Index(growing.parent)), Exposition(Index(growing.parent))
    with written(growing):
        wanted = values(told(whole.text()), f"{grafana.REQUESTS}_count")
        away = tmp_path / "away"
        (growing / "samples").rename(away)
        (growing / "samples").mkdir()
        assert values(told(one.text()), f"{grafana.REQUESTS}_count") == []
        for path in sorted(away.iterdir())[::2]:
            path.rename(growing / "samples" / path.name)
        some = sum(values(told(one.text()), f"{grafana.REQUESTS}_count"))
        assert 0 < some < sum(wanted)
        for path in away.iterdir():
            path.rename(growing / "samples" / path.name)
        assert sum(values(told(one.text()), f"{grafana.REQUESTS}_count")) == sum(wanted)
