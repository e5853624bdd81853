"""What is listed, from where its answers come, and that no name leads out of the folder."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.ui.serving import Served
from trifecta.design.errors import UserError
from trifecta.store import cache
from trifecta.ui import reading
from trifecta.ui.index import Entry, Index

ESCAPES = (
    "../x",
    "/etc",
    "first/../../x",
    "./first",
    "first/",
    "first/trials",
    "below",
    "",
    "first\x00",
    "....//x",
    "~",
)


def waited(served: Served, name: str) -> dict:
    for _ in range(2000):
        found = {one["name"]: one for one in served.get("/api/runs").json["runs"]}
        if found[name]["answer"] is not None or found[name]["problem"]:
            return found[name]
        time.sleep(0.1)
    raise AssertionError("no answer came")


def test_the_list_has_every_run_with_the_terminal_s_answer(served: Served, folder: Path) -> None:
    body = served.get("/api/runs").json
    assert {one["name"] for one in body["runs"]} == {"first", "below/second"}
    assert body["folder"] == str(folder) and "race" in body["studies"] and body["again_s"] >= 5
    one = waited(served, "first")
    assert one["answer"] == reading.answer(folder / "first", "run") and "HTTP/3" in one["answer"]
    assert one["title"] == "The first" and one["kind"] == "run" and not one["written"]
    assert "caddy" in one["words"].split()


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.parametrize(
    "path",
    ["/api/run", "/api/cell", "/api/values", "/api/trial", "/api/found", "/api/live", "/api/report", "/api/known"],
)
def test_no_name_leads_out_of_the_folder(served: Served, path: str, name: str) -> None:
    fields = {"cell": "x", "metric": "latency_p50_ns", "factor": "path", "trial": "t00001"}
    answer = served.get(path, {**fields, "name": name})
    assert answer.status == 400
    assert "has no" in answer.json["error"] or "is missing" in answer.json["error"]


@pytest.mark.parametrize("path", ["/api/stop", "/api/resume"])
def test_nor_does_one_that_would_be_changed(served: Served, path: str) -> None:
    for name in ESCAPES:
        assert served.post(path, {"name": name}).status == 400
    assert served.get("/api/jobs").json == {"jobs": []}


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    there = tmp_path / "runs"
    there.mkdir()
    (there / "out").symlink_to(folder / "first")
    (there / "half").mkdir()
    (there / "half" / "run.json").symlink_to(folder / "first" / "run.json")
    index = Index(there)
    assert index.look() == []
    with pytest.raises(UserError, match="has no 'out'"):
        index.path("out")


def test_a_run_that_is_the_folder_itself_is_listed(folder: Path) -> None:
    index = Index(folder / "first")
    assert [one.name for one in index.look()] == ["."]
    assert index.path(".") == (folder / "first").resolve()


def test_answers_are_kept_in_the_cache_until_a_file_changes_and_no_run_is_written_into(
    folder: Path, tmp_path: Path
) -> None:
    there = tmp_path / "runs"
    shutil.copytree(folder / "first", there / "first")
    before = {path: path.stat().st_mtime_ns for path in there.rglob("*")}
    asked: list[Path] = []

    def answer(path: Path, kind: str) -> str:
        asked.append(path)
        return f"a {kind}"

    def answered() -> Entry:
        index = Index(there)
        index.look()
        for one in index.unanswered():
            index.answer(one, answer)
        index.keep()
        return index.entry("first")

    assert answered().answer == "a run" and len(asked) == 1
    assert answered().answer == "a run" and len(asked) == 1  # of the cache
    assert {path: path.stat().st_mtime_ns for path in there.rglob("*")} == before
    assert list((cache.cache_folder() / "ui").glob("*.json"))
    os.utime(there / "first" / "verdicts.parquet")
    assert answered().answer == "a run" and len(asked) == 2


def test_what_cannot_be_read_says_why_and_is_not_kept(folder: Path, tmp_path: Path) -> None:
    there = tmp_path / "runs"
    shutil.copytree(folder / "first", there / "first")
    (there / "first" / "trials" / "t00003.parquet").write_bytes(b"no")
    index = Index(there)
    [one] = index.look()
    made = index.answer(one, reading.answer)
    assert made.answer is None and "t00003" in made.problem
    assert index.unanswered() == []
    index.keep()
    assert Index(there).look()[0].problem == ""


def test_a_cache_that_is_none_is_as_if_there_were_none(folder: Path) -> None:
    Index(folder).keep()
    [kept, *_] = (cache.cache_folder() / "ui").glob("*.json")
    for text in ("", "[]", "{", '{"version": "0", "entries": []}', '{"version": 1}'):
        for path in (cache.cache_folder() / "ui").glob("*.json"):
            path.write_text(text)
        assert len(Index(folder).look()) == 2
    assert kept.exists()
