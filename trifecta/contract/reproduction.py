"""What ``reproduction.json`` says of published statements and of the runs behind them (docs/reproduce.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from trifecta.contract.values import JsonObject


class JudgedCell(TypedDict, total=False):
    """What one cell, or one pair of cells, says to a statement: `analysis.deciding.Effect`.

    ``values``: by block, a ratio or a difference (of a pair those of the other cell, too; of two cells that are
    compared by themselves, the metric's value); ``again``: of the baseline's second run to its first. ``"inf"``,
    ``"-inf"``: a trial of failures, which is worse than every other. ``to``: the reference, or of arms that are judged
    each by itself the arm.
    """

    run: str
    cell: str
    against: str
    state: str
    value: float | None
    low: float | None
    high: float | None
    blocks: int
    to: str
    values: list[list[float | str]]
    again: list[float]


class StatementDocument(TypedDict):
    """A statement under the conditions of its study: ``value`` is a ratio or a difference (``form``).

    ``by`` is where it was measured: the folder ``as-published``, or a ladder.
    """

    state: str
    form: str
    value: float | None
    low: float | None
    high: float | None
    blocks: int
    reason: str
    by: str


_Relation = TypedDict("_Relation", {"is": str | None}, total=False)


class Judged(_Relation, total=False):
    """A published statement, or an effect of a threat, and what all cells together say to it.

    ``state`` is what was measured here says, ``answer`` that together with ``as_published``, what it was under the
    study's conditions (null: not tried); ``why`` is the reason of an answer that is not the state.

    ``margin`` and ``confidence`` are those it was judged by, at which ``look`` (0: the blocks were set in advance);
    ``rates``: of what is to be whole, by trial, what was asked and what succeeded.

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
    answer: str
    why: str
    as_published: StatementDocument | None
    reason: str
    depends: bool
    metric: str | None
    over: str | None
    of: str
    form: str
    ratio: float | None
    difference: float | None
    low: float | None
    high: float | None
    blocks: int
    margin: float
    confidence: float | None
    look: int
    rates: list[list[int]]
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


class RunProvenance(TypedDict, total=False):
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


class ReproductionRun(RunProvenance, total=False):
    """A run of a reproduction, and how it was made."""

    study: str
    name: str
    folder: str
    report: str
    trials: int
    valid: int


class UndecidedClaim(TypedDict):
    """A claim that a budget left open, and why more of it would not have helped."""

    claim: str
    why: str


class Step(TypedDict, total=False):
    """A line of ``budget.jsonl``: some blocks that were chosen, and why (``step``); what became of them (``took_s``).

    ``targets``: by run and cell how many blocks it is to have in all. ``chance``: that the claim is decided with
    ``blocks`` blocks of each of its cells, which takes ``expected_s`` from here on (the step itself ``step_s``, which
    is ``pace`` times what the blocks of its runs took before); ``also``: open claims about the same cells.
    ``before_s``: by run how long it had taken before; ``counted_s``: of a step that was interrupted, what is in the
    time spent already. ``reached``: whether all blocks came; ``problem``: why not.
    """

    step: int
    utc: str
    claim: str
    why: str
    look: int
    blocks: int
    chance: float
    expected_s: float
    step_s: float
    pace: float
    left_s: float
    also: list[str]
    targets: dict[str, dict[str, int]]
    before_s: dict[str, float]
    counted_s: float
    took_s: float
    reached: bool
    problem: str
    state: str
    decided: int
    claims: int


class Spending(TypedDict):
    """How the time of a reproduction with a budget was spent, in seconds, and why it ended (empty: it did not yet)."""

    budget_s: float
    spent_s: float
    decided: int
    claims: int
    ended: str
    open: list[UndecidedClaim]
    steps: list[Step]
