"""Is it the protocol or the program? What the trials say of servers and clients, when a study has several."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import duckdb

from trifecta.analysis.decomposition import decompose
from trifecta.analysis.interactions import PARTS as PHASES
from trifecta.analysis.interactions import Interaction, interactions
from trifecta.analysis.layout import PROTOCOL
from trifecta.analysis.league import Standing, league
from trifecta.analysis.programs import OWN_CLIENT, Program, place_of, program_of
from trifecta.analysis.shares import Decomposition, Share
from trifecta.conclude.cells import cells_in_order
from trifecta.conclude.comparisons import levels
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import Views
from trifecta.contract.trial import TrialRow
from trifecta.design import naming
from trifecta.design.study_file import parse_study
from trifecta.store.run import RunDirectory

_COLUMNS = (
    *("cell", "arm", "block", "node", "valid", "samples", "success_rate", "server", "client", "server_json"),
    *PHASES,
)


@dataclass(frozen=True)
class Derived:
    """What the trials say of the programs; rows of the views ``decomposition`` and ``league``."""

    shares: list[Decomposition] = field(default_factory=list)
    standings: list[Standing] = field(default_factory=list)
    programs: dict[str, list[Program]] = field(default_factory=dict)  # of each place, with usable trials or without
    apart: list[Interaction] = field(default_factory=list)
    rows: Views = field(default_factory=dict)

    def proxies(self) -> list[str]:
        """Servers that add a hop."""
        return list(dict.fromkeys(one.server for one in self.standings if one.proxy))


def _rows_of(decomposition: Decomposition) -> list[dict[str, object]]:
    row = {name: value for name, value in asdict(decomposition).items() if name != "shares"}
    row |= {
        "servers": len(decomposition.servers),
        "clients": len(decomposition.clients),
        "left_out": "; ".join(decomposition.left_out) or None,
    }
    nothing = dict.fromkeys(each.name for each in fields(Share))
    row["weighs"] = part_name(decomposition.weighs) if decomposition.weighs else None
    return [row | asdict(share) | {"part": part_name(share.part)} for share in decomposition.shares] or [row | nothing]


def part_name(part: str) -> str:
    """A part as views have it: that of what is compared is called by the compared factor."""
    return naming.compared_factor() if part == PROTOCOL else part


def derive(run: Path, connection: duckdb.DuckDBPyConnection, about: RunFacts) -> Derived:
    """Work it out from the trials; nothing with one server and one client."""
    text = RunDirectory.open(run).study_text
    there = {row[0] for row in connection.execute("DESCRIBE trials").fetchall()}
    columns = tuple(name for name in dict.fromkeys((*_COLUMNS, about.metric)) if name in there)
    cursor = connection.execute(f"SELECT {', '.join(columns)} FROM trials ORDER BY block, trial")  # noqa: S608 - known
    values = cursor.fetchall()
    order = tuple(cells_in_order(about, dict.fromkeys(row[columns.index("cell")] for row in values)))
    derived = _worked_out(text, columns, tuple(values), order, about.metric)
    shares = [row for one in derived.shares for row in _rows_of(one)]
    return replace(derived, rows={"decomposition": shares, "league": [asdict(one) for one in derived.standings]})


# A command writes the report and then prints its table: what takes seconds is worked out once for both.
@lru_cache(maxsize=1)
def _worked_out(
    text: str, columns: tuple[str, ...], values: tuple[tuple[Any, ...], ...], order: tuple[str, ...], metric: str
) -> Derived:
    study = parse_study(text, "study.yaml")
    rows = [cast(TrialRow, dict(zip(columns, row, strict=True))) for row in values]
    place = {cell: number for number, cell in enumerate(order)}
    rows.sort(key=lambda row: place[row["cell"]])
    programs: dict[str, list[Program]] = {}
    for cell, row in {row["cell"]: row for row in rows}.items():
        programs.setdefault(place_of(cell), []).append(program_of(row))
    stand_apart = interactions(study, rows, metric)
    return Derived(decompose(study, rows, metric), league(study, rows, metric), programs, stand_apart)


def program_at(cell: str) -> Program:
    """The programs of a cell."""
    there = levels(cell)
    return Program(there.get("server", ""), there.get("client", OWN_CLIENT))
