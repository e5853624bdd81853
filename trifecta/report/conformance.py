"""The conformance matrix: implementation x protocol x object, in a terminal and in the report.

A sign tells each outcome (``✓ ✗ – ∅ …``), so that neither colour nor a screen is needed to read it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from trifecta.conclude.queries import QueryResult
from trifecta.conclude.query import Query
from trifecta.contract.values import JsonObject
from trifecta.design import naming
from trifecta.design.conformance import CASES, LARGE, OUTCOME_WORDS, OWN, ConformanceCase, ConformanceResult
from trifecta.design.model import PROTOCOL_NAMES, PROTOCOLS
from trifecta.design.numbers import MARKS
from trifecta.design.phrases import listed
from trifecta.report import grids, tables
from trifecta.report.tables import Column

HOP = "†"
_HOP_NOTE = (
    "a proxy in front of another server. Its times hold two programs and the connection between "
    "them, so it is not to be ranked against a server that answers by itself."
)
_ASCII = {"✓": "ok", "✗": "X", "–": "-", "∅": "n/a", "…": "..."}
_COLOURS = {"pass": "green", "fail": "bold red", "not_offered": "dim", "unsupported": "dim", "not_run": "yellow"}
_OBJECTS = (*CASES, LARGE, OWN)

# One row an implementation and protocol; what is said of all of its objects at once fills every column. The smallest
# word is the worst: where a server runs twice, with other settings, 'fail' is shown and not 'pass'.
MATRIX = Query(
    "conformance",
    "SELECT t.role, t.name, CASE WHEN bool_or(t.proxy) THEN 'adds a hop' ELSE '' END AS hop, "
    "left(max(t.version), 24) || CASE WHEN length(max(t.version)) > 24 THEN '...' ELSE '' END AS version, "
    "coalesce(t.protocol, 'any') AS protocol,\n"
    + ",\n".join(
        f"       coalesce(min(t.result) FILTER (WHERE t.object {'LIKE' if case is OWN else '='} "
        f"'{case.name}{'%' if case is OWN else ''}'), min(t.result) FILTER (WHERE t.object IS NULL)) AS "
        f"{case.name}"
        for case in _OBJECTS
    )
    + "\nFROM (SELECT *, CASE WHEN error IS NULL THEN outcome ELSE outcome || ' ' || error END AS result "
    "FROM conformance) AS t\n"
    "GROUP BY t.role, t.name, t.protocol\n"
    "ORDER BY t.role DESC, t.name, t.protocol",
    ("role", "name", "protocol"),
)

FINDINGS = Query(
    "conformance_findings",
    """
SELECT t.role, t.name, coalesce(t.protocol, 'any') AS protocol, t.outcome, coalesce(t.error, '') AS error, t.reason,
       coalesce(string_agg(t.label, ', ' ORDER BY t.method, t.octets) FILTER (WHERE t.object IS NOT NULL), '')
         AS objects,
       coalesce(string_agg(DISTINCT t.evidence, ', '), '') AS evidence,
       coalesce(string_agg(DISTINCT t.capture, '; '), '') AS capture
FROM conformance AS t WHERE t.outcome <> 'pass' OR t.reason <> ''
GROUP BY t.role, t.name, t.protocol, t.outcome, t.error, t.reason
ORDER BY t.outcome <> 'fail', t.role DESC, t.name, t.protocol, t.outcome, t.error, t.reason
""",
    ("role", "name", "protocol", "outcome", "error", "reason"),
)

# ->> instead of a JSON path: the text stands between a shell's double quotes.
PROXIES = Query(
    "proxies",
    """
SELECT DISTINCT t.server, t.server_json ->> 'backend' AS backend
FROM trials AS t WHERE (t.server_json ->> 'proxy') = 'true' ORDER BY t.server, backend
""",
    ("server", "backend"),
)


def matrix_tables(answer: QueryResult, requested: Collection[str | None]) -> list[tables.Table]:
    """The matrix of the report: a table for servers and one for clients, for the objects that were ``requested``."""
    objects = [Column(case.label, case.name, "mark") for case in _OBJECTS if case.name in requested]
    matrices = []
    for role, caption in (
        ("server", "Servers, asked by Trifecta's load"),
        ("client", "Clients, answered by Trifecta's origin"),
    ):
        rows = [row for row in answer.rows if row["role"] == role]
        columns = [
            Column("", "hop"),
            Column("version", "version"),
            Column("protocol", "protocol", "protocol"),
            *objects,
        ]
        matrices.append(
            tables.build(tables.with_rows(answer, rows), f"conformance-{role}s", caption, (role, "name"), columns)
        )
    return [table for table in matrices if table.lines]


@dataclass(frozen=True)
class Content:
    """What the report shows of the probe."""

    tables: list[tables.Table]
    sentence: str
    findings: list[dict[str, Any]]
    findings_sql: str
    legend: list[tuple[str, str]]


def section(matrix: QueryResult, findings: QueryResult, results: Sequence[ConformanceResult]) -> Content:
    """The part of the report; without a table when nothing was probed."""
    used = {one.outcome for one in results}
    return Content(
        matrix_tables(matrix, {one.object for one in results}),
        sentence(results),
        findings.rows,
        findings.query.text(),
        [(MARKS[outcome], outcome_words) for outcome, outcome_words in OUTCOME_WORDS.items() if outcome in used],
    )


def proxy_note(proxies: QueryResult) -> str:
    """The footnote of ``†`` with the names; empty when no server of the run is a proxy."""
    if not proxies:
        return ""
    who = listed([f"{row['server']} in front of {row['backend'] or 'another server'}" for row in proxies])
    what = "One of the levels adds a hop" if naming.compared_factor() == "server" else f"{HOP} adds a hop"
    return f"{what}: {_HOP_NOTE} Here: {who}."


def hop(place: str, cell_levels: Mapping[str, str], proxies: QueryResult) -> str:
    """The words for a cell, marked when its server adds a hop."""
    return f"{place} {HOP}" if cell_levels.get("server") in proxies.values("server") else place


def sentence(results: Sequence[ConformanceResult]) -> str:
    """What came out, in a sentence or two; empty when nothing was probed."""
    judged = [row for row in results if row.outcome in ("pass", "fail")]
    failed = [row for row in judged if row.outcome == "fail"]
    if not judged:
        return ""
    made = [row for row in judged if row.object is not None]  # one that did not even start transferred nothing
    passed, who = sum(row.outcome == "pass" for row in made), sorted({row.name for row in made})
    text = f"{passed} of {len(made)} transfers of {listed(who)} arrived complete, octet by octet."
    if not made:
        text = "Nothing was transferred."
    if failed:
        places = dict.fromkeys(
            " ".join(part for part in (row.name, PROTOCOL_NAMES.get(row.protocol or "", "")) if part) for row in failed
        )
        text += f" Failed: {listed(list(places))}."
    not_run = sum(row.outcome == "not_run" for row in results)
    return text + (f" {not_run} {'was' if not_run == 1 else 'were'} not requested." if not_run else "")


@dataclass(frozen=True)
class _Line:
    """A row of the matrix in a terminal."""

    name: str
    version: str
    protocol: str
    cells: tuple[Text, ...]


def print_matrix(out: Console, results: Sequence[ConformanceResult]) -> None:
    """Print the matrix, then every failure with its reason and where its evidence lies."""
    utf = out.encoding.lower().startswith("utf")
    objects = [case for case in _OBJECTS if any(one.object == case.name for one in results)]
    for role in ("server", "client"):
        here = [one for one in results if one.role == role]
        if here:
            grids.show(out, _terminal_table(here, role, objects, utf))
            out.print()
    used = list(dict.fromkeys(one.outcome for one in results))
    key = "  ".join(f"{_sign(outcome, utf)} {words}" for outcome, words in OUTCOME_WORDS.items() if outcome in used)
    out.print(Text(key, style="dim"))
    if any(one.proxy for one in results):
        out.print(Text(f"{HOP if utf else '*'} adds a hop: {_HOP_NOTE}", style="dim"))
    for line in reasons(results):
        out.print(Text(line), soft_wrap=True)


def reasons(results: Sequence[ConformanceResult]) -> list[str]:
    """One line for all that did not pass, or only in part; objects with the same reason share it, failures first."""
    groups: dict[tuple[Any, ...], list[ConformanceResult]] = {}
    for one in results:
        if one.outcome != "pass" or one.reason:
            key = (one.outcome != "fail", one.role, one.name, one.outcome, one.error, one.reason)
            groups.setdefault(key, []).append(one)
    return [_reason(ones) for _, ones in sorted(groups.items(), key=lambda item: item[0][0])]


def _reason(ones: Sequence[ConformanceResult]) -> str:
    """``caddy HTTP/1.1, HTTP/2: POST 1 B, POST 1 kB: not offered: why [evidence; capture]``."""
    first = ones[0]
    protocols = ", ".join(dict.fromkeys(PROTOCOL_NAMES[one.protocol] for one in ones if one.protocol))
    labels = ", ".join(dict.fromkeys(one.label for one in ones if one.label))
    parts = [f"{first.name} {protocols}".rstrip(), labels, first.outcome.replace("_", " ")]
    parts[-1] += f" ({first.error})" if first.error else ""
    line = ": ".join(part for part in (*parts, first.reason) if part)
    evidence = ", ".join(dict.fromkeys(one.evidence for one in ones if one.evidence))
    capture = "; ".join(dict.fromkeys(one.capture for one in ones if one.capture))
    return f"{line} [{evidence}; {capture}]" if evidence else line


def _sign(outcome: str, utf: bool) -> str:
    return MARKS[outcome] if utf else _ASCII[MARKS[outcome]]


def _terminal_table(
    results: Sequence[ConformanceResult], role: str, objects: Sequence[ConformanceCase], utf: bool
) -> RichTable:
    edges = box.SIMPLE_HEAD if utf else box.ASCII
    table = RichTable(box=edges, padding=0, show_edge=False, pad_edge=False)  # 80 columns hold every object
    table.add_column(role, no_wrap=True)
    table.add_column("version", overflow="fold", min_width=4, max_width=10)
    table.add_column("HTTP", no_wrap=True)
    for case in objects:
        words = case.label.replace(" ", "\n", 2 if case == LARGE else 1).replace(" rough", "\nrough")
        width = max(len(word) for word in words.split("\n"))
        table.add_column(words, justify="center", no_wrap=True, min_width=width)
    for line in _lines(results, objects, utf):
        table.add_row(line.name, line.version, line.protocol, *line.cells)
    return table


def _lines(results: Sequence[ConformanceResult], objects: Sequence[ConformanceCase], utf: bool) -> Iterable[_Line]:
    order: dict[str, int] = {protocol: place for place, protocol in enumerate(PROTOCOLS)}
    names = list(dict.fromkeys(one.name for one in results))
    keys = dict.fromkeys((one.name, one.protocol) for one in results)
    shown = ""
    for name, protocol in sorted(keys, key=lambda key: (names.index(key[0]), order.get(key[1] or "", 9))):
        ones = [one for one in results if (one.name, one.protocol) == (name, protocol)]
        by_object = {one.object: one for one in ones}
        cells = []
        for case in objects:
            one = by_object.get(case.name) or by_object.get(None)
            cells.append(Text(_sign(one.outcome, utf), style=_COLOURS[one.outcome]) if one else Text(""))
        label = f"{name} {HOP if utf else '*'}" if ones[0].proxy else name
        first = name != shown
        shown = name
        short = PROTOCOL_NAMES[protocol].removeprefix("HTTP/") if protocol else "any"
        yield _Line(label if first else "", ones[0].version if first else "", short, tuple(cells))


def as_data(results: Sequence[ConformanceResult]) -> list[JsonObject]:
    """The rows for a program to read."""
    return [dataclasses.asdict(one) for one in results]
