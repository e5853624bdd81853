"""What ``reproduction.json`` says of published statements and of the runs behind them (docs/reproduce.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from trifecta.contract.values import JsonObject


class JudgedCell(TypedDict, total=False):
    """What one cell, or one pair of cells, says to a statement: `analysis.published.Effect`."""

    run: str
    cell: str
    against: str
    state: str
    value: float | None
    low: float | None
    high: float | None
    blocks: int
    to: str


_Relation = TypedDict("_Relation", {"is": str | None}, total=False)


class Judged(_Relation, total=False):
    """A published statement, or an effect of a threat, and what all cells together say to it.

    Of an effect of a threat there is no more than ``id``, ``kind``, ``text``, ``state``, ``form``, ``metric`` and the
    ratio with its interval; ``ratio`` is null where a difference is compared.
    """

    id: str
    study: str
    kind: str
    defined: str
    text: str
    source: str
    state: str
    reason: str
    depends: bool
    metric: str | None
    of: str
    form: str
    ratio: float | None
    difference: float | None
    low: float | None
    high: float | None
    blocks: int
    margin: float
    published: float | None
    published_range: list[float] | None
    said: str
    quote: str
    here: str
    size: str
    arms: Mapping[str, float]
    run: str | None
    cell: str | None
    cells: list[JudgedCell]
    checks: Mapping[str, int]
    threats: list[str]


class RunMade(TypedDict, total=False):
    """Of ``run.json`` what a reader needs to make the run again."""

    seed: int | None
    started_utc: str | None
    elapsed_ns: int | None
    engine: JsonObject | None
    servers: JsonObject | None
    clients: JsonObject | None
    python: str | None
    trifecta: str | None
    machine: JsonObject | None
    parity: JsonObject | None
    network: JsonObject | None
    sha256: str


class RunTold(RunMade, total=False):
    """A run of a reproduction, and how it was made."""

    study: str
    name: str
    folder: str
    report: str
    trials: int
    valid: int
