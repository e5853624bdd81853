"""What crosses a module's edge has a type: the rest is counted, and does not grow."""

from __future__ import annotations

from pathlib import Path

from tests.contract.edges import Edge, edges

# Goes down only. Lower it with every step.
MOST = 19
# Those that stay, with the reason.
STAYING = {
    "trifecta.contract.codec:changed:changes": "names of any document's fields, checked against its type",
    "trifecta.workloads.faults:Faults.load_changes:return": "faults of tests change any field, by its name",
    "trifecta.workloads.faults:Faults.service_changes:return": "faults of tests change any field, by its name",
    "trifecta.design.document:Section.__init__:mapping": "a study file before it is read: anything may be in it",
    "trifecta.store.documents:read_object:return": "a document of a run before it is checked",
    "trifecta.store.parquet:Table.__init__:rows": "rows of any schema, whose types it checks column by column",
    "trifecta.store.parquet:write:rows": "as those of Table",
    "trifecta.store.parquet:read:return": "the columns are those of the file, or those that were asked for",
    "trifecta.store.parquet:select:return": "the columns are those of the SQL that it is given",
    "trifecta.conclude.derived:write:views": "any derived view; who derives it has its type",
    "trifecta.conclude.queries:attach:derived": "as those of write",
    "trifecta.conclude.queries:QueryResult.where:return": "the answer to any query; QueryResult.of has its type",
    "trifecta.report.tables:with_rows:rows": "as those of QueryResult.where",
    "trifecta.video.ffmpeg:probe:return": "ffprobe's JSON, which another program defines",
    "trifecta.implementations.browsers.bidi:Bidi.command:params": "WebDriver BiDi, which its specification defines",
    "trifecta.implementations.browsers.bidi:Bidi.command:return": "WebDriver BiDi, which its specification defines",
    "trifecta.implementations.browsers.firefox_view:RunningFirefox.command:params": "as that of Bidi",
    "trifecta.implementations.browsers.firefox_view:RunningFirefox.command:return": "as that of Bidi",
    "trifecta.implementations.browsers.cdp_network:NetworkLog.handlers:return": "events of Chromium's DevTools",
}


def test_no_more_of_it_crosses_an_edge() -> None:
    found = edges()
    assert len(found) <= MOST, "\n".join(map(str, found))
    assert len(found) == MOST, f"there are {len(found)} now: write that down as MOST"


def test_what_stays_is_there_and_has_its_reason() -> None:
    found = {str(edge) for edge in edges()}
    assert set(STAYING) == found
    assert len(STAYING) <= 20


def test_aliases_lists_and_methods_are_seen(tmp_path: Path) -> None:
    package = tmp_path / "made"
    package.mkdir()
    (package / "one.py").write_text(
        "from collections.abc import Mapping, Sequence\nfrom typing import Any\nRow = Mapping[str, Any]\n"
        "class Kept:\n    def read(self, rows: 'Sequence[int]', *more: Row) -> list[dict[str, object]]: ...\n"
        "    def _own(self, row: Row) -> None: ...\n"
        "class _Own:\n    def read(self, row: Row) -> None: ...\n"
    )
    (package / "two.py").write_text(
        "from made.one import Row as Line\ndef go(line: Line | None, n: dict[str, int]): ...\n"
    )
    assert edges(package) == [
        Edge("made.one", "Kept.read", "more"), Edge("made.one", "Kept.read", "return"), Edge("made.two", "go", "line"),
    ]  # fmt: skip
