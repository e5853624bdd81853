"""The cells of the threats' experiments, each put to both sides of a pair: at what a claim becomes true."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from trifecta.analysis.conditions import Cell, estimates, put
from trifecta.analysis.intervals import Estimate
from trifecta.analysis.places import Place, paired
from trifecta.analysis.reconciling import Pair
from trifecta.analysis.statements import Assertion
from trifecta.conclude import comparisons
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.facts import read as read_facts
from trifecta.conclude.reproduction import places
from trifecta.contract.threats import ThreatDocument
from trifecta.design.errors import TrifectaError, UserError
from trifecta.design.metrics import find

FOLDER = "threats"


@dataclass(frozen=True)
class Experiment:
    """One experiment on a threat as it was run."""

    name: str
    about: RunFacts
    places: Sequence[Place]

    @property
    def of_time(self) -> bool:
        """Whether its ratio is one of times, or of rates, which is one upside down."""
        return self.about.metric.startswith("latency_") or _is_rate(self.about.metric)


@dataclass
class Experiments:
    """Reads each experiment once. ``problems``: what could not be read, with the reason."""

    folder: Path
    model: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """By experiment and cell the ratio that round trips alone make, where it is known."""
    problems: list[str] = field(default_factory=list)
    known: dict[str, Experiment | None] = field(default_factory=dict)

    def get(self, name: str) -> Experiment | None:
        """The experiment of a name; None where it was not run, or cannot be read."""
        if name not in self.known:
            self.known[name] = self._read(name)
        return self.known[name]

    def _read(self, name: str) -> Experiment | None:
        run = self.folder / FOLDER / name
        if not (run / "run.json").is_file():
            return None
        try:
            return Experiment(name, read_facts(run), places.read(run, f"{FOLDER}/{name}"))
        except TrifectaError as error:
            self.problems.append(str(error))
            return None

    def cells(self, pair: Pair) -> list[Cell]:
        """Every cell of the pair's experiments, with what it says to either side."""
        pair_cells = []
        for name in pair.experiments:
            experiment = self.get(name)
            if experiment is not None and experiment.of_time:
                pair_cells += self._cells(pair, experiment)
        return pair_cells

    def missing(self, pair: Pair) -> list[str]:
        """Experiments of a pair that the folder does not have."""
        return [name for name in pair.experiments if self.get(name) is None]

    def _cells(self, pair: Pair, experiment: Experiment) -> list[Cell]:
        metric = experiment.about.metric
        assertion = Assertion(metric, (pair.arm,), (pair.to,))
        logs = [paired(assertion, place, pair.to) for place in experiment.places]
        cells = []
        for place, estimate in zip(experiment.places, estimates(logs, experiment.about.confidence), strict=True):
            time = _upside_down(estimate) if _is_rate(metric) else estimate
            ratio, low, high = (None if end is None else math.exp(end) for end in (time.value, time.low, time.high))
            first, second = (put(side.test, time, experiment.about.margin) for side in pair.sides)
            cells.append(
                Cell(
                    experiment=experiment.name,
                    cell=place.cell,
                    levels=levels(experiment.about, place.cell),
                    ratio=ratio,
                    low=low,
                    high=high,
                    blocks=time.blocks,
                    truths=(first, second),
                    expected=self.model.get((experiment.name, place.cell)),
                )
            )
        return cells


def _is_rate(metric: str) -> bool:
    known = find(metric)
    return known is not None and known.unit == "1/s"


def _upside_down(estimate: Estimate) -> Estimate:
    ends = [None if end is None else -end for end in (estimate.value, estimate.high, estimate.low)]
    return Estimate(ends[0], ends[1], ends[2], estimate.blocks)


def levels(about: RunFacts, cell: str) -> dict[str, str]:
    """The levels of a cell in words a reader knows without the study: a path by what it does.

    Where that does not report it from another path of the study, its name stands before.
    """
    named = comparisons.levels(cell)
    path = named.get("path", "")
    words = about.path_words(path)
    alike = [name for name in about.study.get("paths") or {} if about.path_words(name) == words]
    if len(alike) > 1:
        words = f"{path}: {words}"
    other_levels = {
        name: value for name, value in named.items() if name != "path" and (name, value) not in comparisons.UNTOLD
    }
    return {"path": words or path, **other_levels} if path else other_levels


def model(threats: Sequence[ThreatDocument]) -> dict[tuple[str, str], float]:
    """What round trips alone make in each cell, as the measured threats have it."""
    expected_ratios = {}
    for threat in threats:
        names = [Path(str(run)).name for run in threat.get("runs") or ()]
        for item in threat.get("model") or ():
            expected = item.get("expected") if "cell" in item else None
            if "cell" not in item or expected is None or not np.isfinite(expected):
                continue
            for name in names:
                expected_ratios[(name, str(item["cell"]))] = float(expected)
    return expected_ratios


def subfolder(folder: Path, name: str) -> Path:
    """A folder below that of the reproduction; a name never leaves it."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise UserError(f"{folder / 'reproduction.json'}: run {name!r} is outside of the folder; fix the file")
    return path
