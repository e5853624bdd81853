"""A run that was opened: its tables as relations of DuckDB, its verdicts, its pictures.

Nothing of the lab or the engine is needed, or imported: a run can be read wherever its folder was copied to.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, overload

from trifecta.contract.run import RunDocument
from trifecta.design.errors import UserError
from trifecta.design.model import AA_SUFFIX, Study, Verdict
from trifecta.store import damage, digest_prefetch, manifest, results_manifest, views
from trifecta.store.data_dictionary import TABLES
from trifecta.store.run import RunDirectory

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from trifecta.api.plots import Plots
    from trifecta.conclude.facts import RunFacts
    from trifecta.contract.values import Level

_MOST = 6


class View:
    """A view of a run (``trifecta sql RUN`` lists them with their columns) as an attribute of `Run`."""

    def __set_name__(self, owner: type[Run], name: str) -> None:
        """The attribute's name is the view's."""
        self.name = name
        self.__doc__ = TABLES.get(name)

    @overload
    def __get__(self, run: None, owner: type[Run]) -> View: ...

    @overload
    def __get__(self, run: Run, owner: type[Run]) -> DuckDBPyRelation: ...

    def __get__(self, run: Run | None, owner: type[Run]) -> View | DuckDBPyRelation:
        """The relation, which is read when it is asked for rows."""
        return self if run is None else run.view(self.name)


class Run:
    """A run's folder, opened by `open`; trials that are measured afterwards are seen when it is opened again.

    Each view is an attribute: a relation of DuckDB, which reads nothing before it is asked for rows, and becomes a
    frame of pandas, of polars, or Arrow by ``.df()``, ``.pl()``, ``.arrow()`` (in batches) or ``.to_arrow_table()``.
    """

    trials = View()
    samples = View()
    request_sums = View()
    checks = View()
    verdicts = View()
    intervals = View()
    link = View()
    link_packets = View()
    resources = View()
    spans = View()
    conformance = View()
    visits = View()
    fetches = View()
    playback = View()
    packets = View()
    frames = View()
    messages = View()
    connections = View()
    decomposition = View()
    league = View()
    hops = View()
    success = View()
    service_costs = View()
    contrasts = View()
    curves = View()
    combinations = View()
    visit_metrics = View()
    rate_sweep = View()
    looks = View()
    progress = View()
    trip_tests = View()
    packet_metrics = View()
    packet_parts = View()
    packet_times = View()
    causes = View()
    published = View()

    def __init__(self, directory: RunDirectory, connection: DuckDBPyConnection, said: Sequence[str] = ()) -> None:
        """Use `open`."""
        self._directory = directory
        self._connection = connection
        self.said = tuple(said)
        """Why stored verdicts or checks were worked out of the trials again; empty where they stand."""

    @property
    def path(self) -> Path:
        """The folder, in full."""
        return self._directory.path

    @property
    def facts(self) -> RunDocument:
        """What ``run.json`` says: seed, versions, machine, ``state`` (``running`` while it is not over)."""
        return self._directory.facts

    @cached_property
    def study(self) -> Study:
        """The study as it was run."""
        from trifecta.design.study_file import parse_study

        return parse_study(self._directory.study_text, str(self.path / "study.yaml"))

    @cached_property
    def cells(self) -> list[str]:
        """The cells that have a trial, by their keys: ``path=far,connection=new``, in the order of the study."""
        from trifecta.conclude.cells import cells_in_order

        rows = self._connection.execute("SELECT DISTINCT cell FROM trials").fetchall()
        return cells_in_order(self._about, (str(cell) for (cell,) in rows))

    @property
    def plot(self) -> Plots:
        """Its pictures."""
        from trifecta.api.plots import Plots

        return Plots(self.path, self._about, self._connection, self.cells)

    def view(self, name: str) -> DuckDBPyRelation:
        """A view by its name; UserError where this run has none of that name."""
        if name not in self._views:
            if name == "link_packets":
                raise UserError(f"{self.path}: no view 'link_packets'; it is there of captured trials only (--capture)")
            from trifecta.design.document import did_you_mean

            raise UserError(f"{self.path}: no view {name!r}; {did_you_mean(name, self._views)}")
        return self._connection.sql(f'FROM "{name}"')

    def sql(self, query: str) -> DuckDBPyRelation:
        """The answer to a query over the views, as a relation; UserError with DuckDB's complaint in one line."""
        import duckdb

        try:
            answer: DuckDBPyRelation | None = self._connection.sql(query)
        except duckdb.Error as error:
            raise UserError(f"query: {' '.join(str(error).split())}") from None
        if answer is None:
            raise UserError("query: it selects nothing; begin it with SELECT or FROM")
        return answer

    def verdict(
        self, arm: str | None = None, reference: str | None = None, *, metric: str | None = None, **levels: Level
    ) -> Verdict:
        """The verdict on an arm against a reference in the cell with these levels.

        ``verdict("h3", "h2", path="far", connection="new")``. Arms are named as in the column ``arm``, protocols also
        ``HTTP/3``. What need not be said because there is no choice can be left out. ``metric``: the study's, or a
        column of ``trials``. UserError where no verdict fits, or several do, with what would distinguish them.
        """
        from trifecta.api.cells import arm_of, fitting

        wanted = {"arm": arm_of(arm), "reference": arm_of(reference), "metric": metric or self._about.metric}
        found_verdicts = self._verdicts()
        for name, value in wanted.items():
            known = dict.fromkeys(str(getattr(one, name)) for one in found_verdicts)
            if value is not None and value not in known:
                there = ", ".join(known) or "no verdict yet"
                raise UserError(f"{self.path}: no verdict with {name} {value!r}; there is {there}")
            found_verdicts = [one for one in found_verdicts if value is None or getattr(one, name) == value]
        if arm is None:
            found_verdicts = [one for one in found_verdicts if not one.arm.endswith(AA_SUFFIX)]
        if levels:
            cells = fitting(self.path, list(dict.fromkeys(one.cell for one in found_verdicts)), levels)
            found_verdicts = [one for one in found_verdicts if one.cell in cells]
        if len(found_verdicts) == 1:
            return found_verdicts[0]
        if not found_verdicts:
            raise UserError(f"{self.path}: has no verdict yet that fits; open it again later")
        fits = [f"{one.arm} against {one.reference} in {one.cell}" for one in found_verdicts]
        more = f" and {len(fits) - _MOST} more" if len(fits) > _MOST else ""
        raise UserError(f"{self.path}: {len(fits)} verdicts fit: {'; '.join(fits[:_MOST])}{more}; name one")

    def answer(self) -> str:
        """What the run says in a sentence or two, as the terminal and the report begin."""
        from trifecta.report import terminal

        with damage.naming_damaged_file(self.path):
            return str(terminal.as_data(self.path)["answer"])

    def close(self) -> None:
        """Give back what is held open; relations of this run cannot be read afterwards."""
        self._connection.close()

    @cached_property
    def _about(self) -> RunFacts:
        from trifecta.conclude import facts

        return facts.read(self.path)

    @cached_property
    def _views(self) -> list[str]:
        rows = self._connection.execute("SELECT table_name FROM information_schema.tables ORDER BY 1").fetchall()
        return [str(name) for (name,) in rows]

    def _verdicts(self) -> list[Verdict]:
        names = [one.name for one in fields(Verdict)]
        columns = ", ".join(f'"{name}"' for name in names)
        rows = self._connection.execute(f"SELECT {columns} FROM verdicts").fetchall()  # noqa: S608 - fields
        return [Verdict(**dict(zip(names, row, strict=True))) for row in rows]

    def __repr__(self) -> str:
        trials = len(self._directory.trial_names())
        going = ", not over" if self.facts.get("state") == "running" else ""
        return f"Run({str(self.path)!r}): {self.study.title or self.study.name}, {trials} trials{going}"

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open(path: str | os.PathLike[str], *, threads: int | None = None) -> Run:
    """Open the folder of a run, finished or not; ``threads``: the most that DuckDB may use.

    Every file is compared with what the run wrote. UserError in one line for a folder that is no run (and says what it
    is, and what to open), and for a damaged one; a warning where verdicts were changed and are worked out again.
    """
    directory = RunDirectory.open(Path(path))
    folder = directory.path
    with damage.naming_damaged_file(folder):
        digest_prefetch.read(folder)
        connection = views.connect(folder, threads=threads)
        try:
            notes = _attach_results(directory, connection)
            results_manifest.check_derived(folder, path)
        except BaseException:
            connection.close()
            raise
    for one in notes:
        warnings.warn(f"{folder}: {one}", stacklevel=2)
    return Run(directory, connection, notes)


def _attach_results(directory: RunDirectory, connection: DuckDBPyConnection) -> list[str]:
    """Verdicts and checks as the trials give them, where those in the folder do not stand.

    What works them out is imported in that case only: it takes longer than all the rest.
    """
    if not directory.trial_names():
        return []
    if directory.manifest.exists() and not manifest.results_changed(directory.path):
        return []
    from trifecta.conclude import results

    return results.attach(connection, directory.path).said
