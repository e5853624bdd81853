"""The chain of evidence of a verdict: what differed, what was ruled out, where the time is, what overturns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypedDict

import duckdb

from trifecta.analysis.causes import Causes, causes
from trifecta.analysis.challenges import Challenge, challenges
from trifecta.analysis.checks import RUN_CHECKS, TRIAL_CHECKS
from trifecta.analysis.interactions import Interaction
from trifecta.analysis.programs import PROGRAMS
from trifecta.conclude import catalogue, facts, programs, queries
from trifecta.conclude.cells import cells_in_order, comparisons_of
from trifecta.conclude.comparisons import Comparison, levels
from trifecta.conclude.explain import parts
from trifecta.conclude.explain.switched import Switch, Switchboard
from trifecta.conclude.facts import RunFacts
from trifecta.contract.trial import TrialRow
from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.metrics import METRICS
from trifecta.design.model import Cell, Study
from trifecta.design.study_file import parse_study
from trifecta.store.run import RunDirectory


@dataclass(frozen=True)
class Checked:
    """A check over the trials of a comparison: how often it said what, and the evidence of its worst outcome.

    ``arm``: whose trial that evidence is of; empty where it is of the cell or the run.
    """

    check: str
    question: str
    status: str
    counts: Mapping[str, int]
    evidence: str
    arm: str = ""

    @property
    def trials(self) -> int:
        """How many it looked at."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Setting:
    """What was read back of both arms: equal, or each its own."""

    name: str
    arm: str
    reference: str

    @property
    def same(self) -> bool:
        """Whether both have it."""
        return self.arm == self.reference


@dataclass(frozen=True)
class Split:
    """The parts of the difference, and whose time was split (`parts`)."""

    parts: parts.Parts
    causes: Causes


@dataclass(frozen=True)
class Chain:
    """Everything that stands behind one verdict. ``cpu_ns``: how much more CPU a request costs the arm, by program.

    ``neighbours`` are comparisons of the same pair in cells that differ in one factor, with that factor's name.
    ``apart``: where this cell's server, or the other one, makes the protocol slow behind itself only.
    """

    comparison: Comparison
    settings: list[Setting]
    checked: list[Checked]
    splits: list[Split]
    cpu_ns: Mapping[str, float]
    challenge: Challenge
    neighbours: list[tuple[str, Comparison]]
    switches: list[Switch]
    apart: list[Interaction] = field(default_factory=list)


@dataclass
class Explained:
    """A run explained: its facts and its chains, cell by cell."""

    about: RunFacts
    study: Study
    chains: list[Chain] = field(default_factory=list)


def explain(run: Path, cell: str | None = None, arm: str | None = None, *, packets: bool = True) -> Explained:
    """Explain the verdicts of a run, of one cell or arm if given; ``UserError`` where there is no such one.

    ``packets``: split the time of captured trials, which takes a while.
    """
    about = facts.read(run)
    with about.naming(), queries.connect(run) as connection:
        queries.hold(connection, "request_sums")
        verdicts = queries.ask(connection, catalogue.VERDICTS)
        cells = cells_in_order(about, (row["cell"] for row in verdicts))
        comparisons = comparisons_of(about, verdicts, cells)
        chosen = [one for one in comparisons if arm in (None, one.arm)]
        if cell is not None:
            chosen = [one for one in chosen if one.cell == _cell(cell, cells)]
        if arm is not None and not chosen:
            known = ", ".join(dict.fromkeys(one.arm for one in comparisons))
            raise UserError(
                f"option --arm: no verdict about {arm!r}; choose from {known or 'none: there is no verdict'}"
            )
        return chains(connection, about, comparisons, chosen, packets=packets)


def chains(
    connection: duckdb.DuckDBPyConnection,
    about: RunFacts,
    comparisons: Sequence[Comparison],
    chosen: Sequence[Comparison],
    *,
    packets: bool = True,
    metrics: bool = True,
) -> Explained:
    """The chains of the ``chosen`` ones among all ``comparisons``.

    ``packets``: split the time of captured trials; ``metrics``: give verdicts by other metrics. Both take a while.
    """
    study = parse_study(RunDirectory.open(about.folder).study_text, str(about.folder / "study.yaml"))
    explanation, board = Explained(about, study), Switchboard(study, _measured(study, comparisons))
    known = {one.key: one for one in plan.cells(study)}
    cells = list(dict.fromkeys(one.cell for one in chosen))
    apart = programs.derive(about.folder, connection, about).apart
    split, settings = parts.of_cells(connection, about, cells, packets=packets), _settings(connection, cells)
    for cell in cells:
        here = [one for one in chosen if one.cell == cell]
        rows = queries.select(connection, TrialRow, _TRIALS, [cell])
        own = known.get(cell) or Cell(cell, dict(levels(cell)))
        challenged = challenges(study, rows, own, [(one.arm, one.reference) for one in here], metrics=metrics)
        results = queries.select(connection, CheckRow, _CHECKS, [cell, cell])
        for one in here:
            pair = (one.arm, one.reference)
            checked = _checked(results, pair)
            explanation.chains.append(
                Chain(
                    comparison=one,
                    settings=[
                        Setting(name, state_and_evidence[0], state_and_evidence[1])
                        for name, state_and_evidence in _read_back(settings.get(cell, {}), pair).items()
                    ],
                    checked=checked,
                    splits=_splits(split[cell], one, about.confidence),
                    cpu_ns=_cpu(rows, pair),
                    challenge=challenged[pair],
                    neighbours=_neighbours(one, comparisons),
                    apart=[each for each in apart if _is_about(each, one)],
                    switches=board.states(own, {each.check: (each.status, each.evidence) for each in checked}),
                )
            )
    return explanation


def _measured(study: Study, found: Sequence[Comparison]) -> Study:
    """The study with those of its servers and clients alone of which there is a usable block."""
    there = [levels(one.cell) for one in found if one.row["blocks"]]
    factors = dict(study.factors)
    for name in PROGRAMS:
        if name in factors and name != study.compare:
            factors[name] = tuple(level for level in factors[name] if any(one.get(name) == str(level) for one in there))
    return replace(study, factors=factors)


def _is_about(interaction: Interaction, comparison: Comparison) -> bool:
    """Of this pair; or, where the pair is without the baseline, about the arm of it that stands apart."""
    program, pair = programs.program_at(comparison.cell), {comparison.arm, comparison.reference}
    return (
        interaction.place == comparison.place
        and interaction.client == program.client
        and program.server in (interaction.server, interaction.other)
        and (
            {interaction.arm, interaction.reference} == pair
            or (interaction.odd.arm in pair and interaction.reference not in pair)
        )
    )


def _cell(wanted: str, cells: Sequence[str]) -> str:
    """The cell of this key, or the only one whose levels include those given (``path=far,connection=new``)."""
    if wanted in cells:
        return wanted
    wanted_levels = levels(wanted)
    fits = [cell for cell in cells if wanted_levels.items() <= levels(cell).items()]
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise UserError(f"option --cell: {wanted!r} fits {len(fits)} cells: {'; '.join(fits)}; say which")
    raise UserError(f"option --cell: no cell {wanted!r}; choose from {'; '.join(cells) or 'none: there is no verdict'}")


_COLUMNS = ", ".join(["cell", "arm", "block", "node", "valid", "samples", *METRICS])
_TRIALS = f"SELECT {_COLUMNS} FROM trials WHERE cell = ? ORDER BY block, trial"  # noqa: S608 - known columns
# What was read back of each arm, as the report's parity has it, of one cell.
_SETTINGS = """
SELECT cell, arm, string_agg(DISTINCT key_exchange, ', ' ORDER BY key_exchange) AS key_exchange,
       string_agg(DISTINCT congestion, ', ' ORDER BY congestion) AS congestion_control_of_the_client,
       string_agg(DISTINCT server_congestion, ', ' ORDER BY server_congestion) AS congestion_control_of_the_server,
       string_agg(DISTINCT initial_window, ', ' ORDER BY initial_window) AS initial_window_bytes,
       string_agg(DISTINCT segment, ', ' ORDER BY segment) AS largest_segment_bytes,
       string_agg(DISTINCT server_version, ', ' ORDER BY server_version) AS version_of_the_server
FROM (SELECT cell, level AS arm, json_extract_string(load_json, 'key_exchange') AS key_exchange,
             json_extract_string(transport, 'congestion_control') AS congestion,
             json_extract_string(json_extract(server_json, 'congestion_control'), layer) AS server_congestion,
             json_extract_string(transport, 'initial_window_bytes') AS initial_window,
             coalesce(json_extract_string(transport, 'mss_bytes'),
                      json_extract_string(transport, 'mtu_bytes')) AS segment,
             json_extract_string(server_json, 'version') AS server_version
      FROM (SELECT *, json_extract(load_json, layer) AS transport
            FROM (SELECT *, CASE WHEN protocol = 'h3' THEN 'quic' ELSE 'tcp' END AS layer
                  FROM trials WHERE list_contains(?, cell) AND valid)))
GROUP BY cell, arm
"""
_TLS = """
SELECT t.cell, t.level AS arm, string_agg(DISTINCT s.tls_version, ', ' ORDER BY s.tls_version) AS version_of_tls,
       string_agg(DISTINCT s.cipher, ', ' ORDER BY s.cipher) AS cipher
FROM request_sums AS s JOIN trials AS t USING (trial)
WHERE list_contains(?, t.cell) AND t.valid AND NOT s.warmup AND s.success GROUP BY t.cell, t.level
"""


class ArmRow(TypedDict):
    """Of ``_SETTINGS`` and ``_TLS``: an arm in a cell; the other columns are what was read back."""

    cell: str
    arm: str


ReadBack = Mapping[str, Mapping[str, object]]
"""By arm and setting what was read back."""


def _settings(connection: duckdb.DuckDBPyConnection, cells: Sequence[str]) -> dict[str, ReadBack]:
    settings_by_cell: dict[str, dict[str, dict[str, object]]] = {}
    for sql in (_TLS, _SETTINGS):
        for row in queries.select(connection, ArmRow, sql, [list(cells)]):
            settings = {name: value for name, value in row.items() if name not in ("cell", "arm")}
            settings_by_cell.setdefault(row["cell"], {}).setdefault(row["arm"], {}).update(settings)
    return {**settings_by_cell}


def _read_back(settings: ReadBack, pair: tuple[str, str]) -> dict[str, tuple[str, str]]:
    """By setting what both arms had; what is not known of one is left out."""
    first, second = (settings.get(one, {}) for one in pair)
    return {
        name.replace("_", " ").replace("tls", "TLS"): (str(first[name]), str(second[name]))
        for name in first
        if first[name] is not None and second.get(name) is not None
    }


class CheckRow(TypedDict):
    """Of ``_CHECKS``: what a check said of a trial, with its arm, of the cell or of the run."""

    name: str
    status: str
    evidence: str
    scope: str
    level: str | None


_CHECKS = """
SELECT k."check" AS name, k.status, k.evidence, k.scope, t.level
FROM checks AS k LEFT JOIN trials AS t ON t.trial = k.scope
WHERE t.cell = ? OR k.scope IN (?, 'run') ORDER BY k.scope
"""
_WORST = ("fail", "warn", "unknown", "pass")


def _checked(results: Sequence[CheckRow], pair: tuple[str, str]) -> list[Checked]:
    """The checks of both arms' trials and of the cell, in the order of the table."""
    questions = {name: entry.question for name, entry in TRIAL_CHECKS.items()}
    questions |= {name: entry.question for name, entry in RUN_CHECKS.items()}
    by_name: dict[str, list[CheckRow]] = {}
    for row in results:
        if row["level"] is None or row["level"] in pair:
            by_name.setdefault(row["name"], []).append(row)
    order = sorted(by_name, key=lambda name: list(questions).index(name) if name in questions else len(questions))
    checks = []
    for name in order:
        by_trial: dict[str, CheckRow] = {}
        for row in by_name[name]:  # a check may say several things of a trial: the worst counts
            worst = by_trial.setdefault(row["scope"], row)
            if _WORST.index(row["status"]) < _WORST.index(worst["status"]):
                by_trial[row["scope"]] = row
        counts = {status: sum(row["status"] == status for row in by_trial.values()) for status in _WORST}
        status = next(one for one in _WORST if counts[one])
        shown = next(row for row in by_trial.values() if row["status"] == status)
        question = questions.get(name, name.replace("_", " "))
        checks.append(Checked(name, question, status, counts, shown["evidence"], shown["level"] or ""))
    return checks


def _splits(trial_parts: Sequence[parts.Parts], comparison: Comparison, confidence: float) -> list[Split]:
    pair, excludes_one = (comparison.arm, comparison.reference), comparison.excludes_one
    with_causes = [
        (one, causes(one.trials, *pair, one.names, confidence, excludes_one=excludes_one)) for one in trial_parts
    ]
    return [Split(one, shared) for one, shared in with_causes if shared is not None]


def _cpu(rows: Sequence[TrialRow], pair: tuple[str, str]) -> dict[str, float]:
    """How many ns of CPU a request costs the arm more than the reference, by program; means over valid trials."""
    differences = {}
    costs = {
        "client": [(row["arm"], row["client_cpu_ns_per_request"]) for row in rows if row["valid"]],
        "server": [(row["arm"], row["server_cpu_ns_per_request"]) for row in rows if row["valid"]],
    }
    for program, of_trials in costs.items():
        means = []
        for arm in pair:
            values = [cost for whose, cost in of_trials if whose.split("#")[0] == arm and cost is not None]
            means.append(sum(values) / len(values) if values else None)
        if means[0] is not None and means[1] is not None:
            differences[program] = means[0] - means[1]
    return differences


def _neighbours(comparison: Comparison, comparisons: Sequence[Comparison]) -> list[tuple[str, Comparison]]:
    own = levels(comparison.cell)
    neighbours = []
    for other in comparisons:
        if (other.arm, other.reference) == (comparison.arm, comparison.reference) and other.cell != comparison.cell:
            its = levels(other.cell)
            differs = [name for name in own if own[name] != its.get(name)]
            if len(differs) == 1 and own.keys() == its.keys():
                neighbours.append((differs[0], other))
    return neighbours
