"""Reads the folder of a reproduction: its evaluated claims, its threats, and of some runs what stands behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from trifecta import studies
from trifecta.analysis.conditions import Branch, Cell, branches, changes
from trifecta.analysis.reconciling import Pair, PairEvidence, Place, parse, reconcile
from trifecta.analysis.resampling import Change, Concluded
from trifecta.conclude.explain.chain import Chain, explain
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.facts import read as read_facts
from trifecta.conclude.reconcile.experiments import Experiment, Experiments, model, subfolder
from trifecta.conclude.reconcile.maps import Map
from trifecta.conclude.reconcile.maps import read as read_maps
from trifecta.conclude.reconcile.procedures import Procedure, carry_out
from trifecta.contract.reproduction import Judged, ReproductionRun, RunProvenance
from trifecta.contract.threats import ThreatDocument
from trifecta.design.errors import TrifectaError, UserError
from trifecta.store import documents, facts, results_manifest
from trifecta.store.reproduction import DATA_FILE
from trifecta.threats import THREATS

_FOLDER = Path(studies.__file__).parent


@dataclass(frozen=True)
class Explained:
    """A place of one side with the chain of evidence of its run's verdict."""

    pair: Pair
    place: Place
    about: RunFacts
    chain: Chain


@dataclass(frozen=True)
class PairResult:
    """A pair with what the runs say of it: one explained place a side, its threats as they were measured, and the
    cells of its experiments. ``not_run`` names experiments that the folder does not have.
    """

    evidence: PairEvidence
    explained: tuple[Explained | None, Explained | None]
    threats: tuple[ThreatDocument, ...]
    cells: tuple[Cell, ...] = ()
    not_run: tuple[str, ...] = ()
    paths: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By run and path what the path does, in words."""

    def branches(self, side: int) -> list[Branch]:
        """The cells of its experiments by what they say to a side."""
        return branches(self.cells, side)

    def changed(self, experiment: str) -> list[str]:
        """The factors of which an experiment has several levels."""
        return changes([cell for cell in self.cells if cell.experiment == experiment])


@dataclass
class Reconciled:
    """All of it. ``problems``: what could not be read, with the reason."""

    folder: Path
    invocation: Mapping[str, Any]
    claims: dict[str, Judged]
    runs: list[ReproductionRun]
    missing: list[Mapping[str, Any]]
    pairs: list[PairResult] = field(default_factory=list)
    procedures: list[Procedure] = field(default_factory=list)
    concluded: list[tuple[str, str, Concluded]] = field(default_factory=list)
    retries: list[tuple[Place, str, Change]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    experiments: list[Experiment] = field(default_factory=list)
    """Those on threats that the page uses."""
    maps: list[Map] = field(default_factory=list)


def pairs() -> tuple[Pair, ...]:
    """The contradictions that Trifecta knows."""
    from ruamel.yaml import YAML

    return parse(YAML(typ="safe", pure=True).load(_FOLDER / "contradictions" / "pairs.yaml"))


def read(folder: Path, *, draws: int = 200, maps: Sequence[Path] = ()) -> Reconciled:
    """Reconcile what a folder of ``trifecta reproduce`` holds; ``UserError`` when it is none.

    ``maps`` are folders of ``trifecta map``.
    """
    document = _document(folder)
    claims: dict[str, Judged] = {str(one["id"]): one for one in (*document["claims"], *document.get("figures", ()))}
    reconciliation = Reconciled(
        folder=folder,
        invocation=document["reproduction"],
        claims=claims,
        runs=[_with_provenance(folder, one) for one in document.get("runs", ())],
        missing=list(document.get("missing", ())),
        maps=read_maps(maps),
    )
    threats: list[ThreatDocument] = list(document.get("threats", ()))
    measured = {str(one.get("threat")): one for one in threats}
    experiments = Experiments(folder, model(threats))
    for pair in pairs():
        evidence = reconcile(pair, claims)
        for place in (place for side in evidence.places for place in side):
            subfolder(folder, place.run)
        sides = tuple(_explained(reconciliation, pair, places) for places in evidence.places)
        known = tuple(measured.get(name) or _unmeasured(name) for name in pair.threats)
        cells, missing = tuple(experiments.cells(pair)), tuple(experiments.missing(pair))
        words = {key: _path(folder, *key) for key in _paths(evidence)}
        reconciliation.pairs.append(PairResult(evidence, (sides[0], sides[1]), known, cells, missing, words))
    reconciliation.experiments = [one for one in experiments.known.values() if one is not None]
    drawn = carry_out(folder, [one.evidence for one in reconciliation.pairs], draws)
    reconciliation.procedures, reconciliation.concluded, reconciliation.retries = (
        drawn.procedures,
        drawn.cells,
        drawn.retries,
    )
    reconciliation.problems = list(dict.fromkeys([*reconciliation.problems, *experiments.problems, *drawn.problems]))
    return reconciliation


def _paths(pair: PairEvidence) -> list[tuple[str, str]]:
    """Run and path of every place of a pair."""
    places = [place for side in pair.places for place in side if "path" in place.levels]
    return list(dict.fromkeys((place.run, place.levels["path"]) for place in places))


def _path(folder: Path, run: str, path: str) -> str:
    """What a path does; empty where its run cannot be read."""
    try:
        return read_facts(subfolder(folder, run)).path_words(path)
    except TrifectaError:
        return ""


def _document(folder: Path) -> Mapping[str, Any]:
    path = folder / DATA_FILE
    if not path.is_file():
        raise UserError(f"{folder}: no {DATA_FILE} here; give the folder of 'trifecta reproduce all'")
    remedy = f"run 'trifecta resume {folder}'"
    document = documents.read_json(path, remedy)
    results_manifest.check(folder, [DATA_FILE], remedy)
    wanted = {"reproduction": dict, "claims": list}
    if not isinstance(document, dict) or any(not isinstance(document.get(key), kind) for key, kind in wanted.items()):
        raise UserError(f"{path}: is not what 'trifecta reproduce' writes; run 'trifecta resume {folder}'")
    return document


def _with_provenance(folder: Path, run: ReproductionRun) -> ReproductionRun:
    return {**run, **run_facts(folder, str(run.get("folder", "")))}


def run_facts(folder: Path, name: str) -> RunProvenance:
    """Of ``run.json`` what a reader needs to make the run again; nothing where it cannot be read."""
    run = subfolder(folder, name)
    if not (run / "run.json").is_file():
        return {"seed": None}
    try:
        document = facts.read(run)
    except UserError:  # a damaged run says so where its verdict is explained
        return {"seed": None}
    wanted = ("seed", "started_utc", "elapsed_ns", "engine", "servers", "clients", "python", "trifecta", "machine")
    study = (document.get("study") or {}).get("sha256", "")
    provenance = {name: document.get(name) for name in (*wanted, "parity", "network")} | {"sha256": str(study)}
    return cast(RunProvenance, provenance)


def _unmeasured(name: str) -> ThreatDocument:
    known = THREATS.get(name)
    reason = known.elsewhere if known is not None else "this version of Trifecta has no such threat"
    title = known.title if known is not None else name
    return {"threat": name, "title": title, "outcome": "not measured", "reason": reason or "it was not run"}


def _explained(reconciliation: Reconciled, pair: Pair, places: Sequence[Place]) -> Explained | None:
    """The place that stands for a side: one where it is confirmed, else one that is decided, with the most blocks."""
    order = ("confirmed", "contradicted", "open")
    ranked = sorted(places, key=lambda one: (order.index(one.state) if one.state in order else 9, -one.blocks))
    for place in [one for one in ranked[:1] if one.of_time]:  # the chain is one of times
        run = subfolder(reconciliation.folder, place.run)
        if not (run / "run.json").is_file():
            continue
        try:
            explanation = explain(run, place.cell)
        except TrifectaError as error:
            reconciliation.problems.append(str(error))
            continue
        for chain in explanation.chains:
            if {chain.comparison.arm, chain.comparison.reference} == {pair.arm, pair.to}:
                return Explained(pair, place, explanation.about, chain)
    return None
