"""The pictures of a run, by name: each a figure of matplotlib, which a notebook shows and a script saves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trifecta.api import cells as of_run
from trifecta.conclude.facts import RunFacts
from trifecta.design.document import did_you_mean
from trifecta.design.errors import UserError
from trifecta.design.metrics import METRICS
from trifecta.store import damage

if TYPE_CHECKING:
    import duckdb
    from matplotlib.figure import Figure

    from trifecta.contract.values import Level


class Plots:
    """What ``run.plot`` is. A cell is one of ``run.cells``, or chosen by levels, ``path="far"``, as far as needed."""

    def __init__(
        self, path: Path, about: RunFacts, connection: duckdb.DuckDBPyConnection, cells: Sequence[str]
    ) -> None:
        """Of a run that is open."""
        self._path = path
        self._about = about
        self._connection = connection
        self._cells = cells

    def ecdf(self, cell: str | None = None, **levels: Level) -> Figure:
        """How long requests took: the whole distribution in one cell, a curve an arm; failed ones are never done.

        UserError where several cells have these levels, or none.
        """
        from trifecta.report import run_pictures

        cell = of_run.one(self._path, self._cells, levels, cell)
        with damage.naming_damaged_file(self._path):
            return run_pictures.distribution(self._about, self._connection, cell)

    def ratios(self, arm: str | None = None, reference: str | None = None, **levels: Level) -> Figure:
        """Who is faster where, and how sure that is: the ratio and its interval in every cell with these levels.

        ``arm`` against ``reference``: of the comparisons that the report shows, the first that fits. UserError where
        none does.
        """
        from trifecta.report import run_pictures

        pair = self._pair(arm, reference)
        chosen = of_run.fitting(self._path, self._cells, levels)
        rows = self._connection.execute(
            "SELECT DISTINCT cell FROM verdicts WHERE arm = ? AND reference = ? AND metric = ?",
            [*pair, self._about.metric],
        ).fetchall()
        judged = {str(cell) for (cell,) in rows}
        cells = [cell for cell in chosen if cell in judged]
        if not cells:
            what = f"no verdict on {pair[0]} against {pair[1]} there yet"
            raise UserError(f"{self._path}: {what}; open it again later")
        with damage.naming_damaged_file(self._path):
            return run_pictures.cell_ratios(self._about, self._connection, *pair, cells)

    def blocks(self, cell: str | None = None, *, metric: str | None = None, **levels: Level) -> Figure:
        """Whether the machine and the path were calm: a metric of every trial of a cell, block by block.

        ``metric``: the study's, or a column of ``trials``. Trials that do not count are hollow. UserError where several
        cells have these levels, or none, and for what is no metric.
        """
        from trifecta.report import run_pictures

        name = metric or self._about.metric
        if name not in METRICS:
            raise UserError(f"{self._path}: no metric {name!r}; {did_you_mean(name, METRICS)}")
        cell = of_run.one(self._path, self._cells, levels, cell)
        label = self._about.metric_label if name == self._about.metric else METRICS[name].label
        with damage.naming_damaged_file(self._path):
            return run_pictures.trials_by_block(self._about, self._connection, cell, METRICS[name], label)

    def _pair(self, arm: str | None, reference: str | None) -> tuple[str, str]:
        """The first comparison of the report that has these arms."""
        wanted = of_run.arm_of(arm), of_run.arm_of(reference)
        for pair in self._about.pairs:
            if all(given is None or given == there for given, there in zip(wanted, pair, strict=True)):
                return pair
        comparisons = ", ".join(f"{one} against {other}" for one, other in self._about.pairs) or "none"
        raise UserError(f"{self._path}: compares nothing so; its comparisons are: {comparisons}")
