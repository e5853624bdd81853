"""Reads the folder of a reproduction: its evaluated claims, its threats, and of some runs what stands behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trifecta import studies
from trifecta.analysis.reconciling import Found, Pair, Place, parse, reconcile
from trifecta.analysis.resampling import Change, Concluded
from trifecta.analysis.success import clopper_pearson
from trifecta.design.errors import TrifectaError, UserError
from trifecta.report import facts, queries
from trifecta.report.explain import resampled
from trifecta.report.explain.chain import Chain, explain
from trifecta.report.facts import RunFacts
from trifecta.threats import THREATS

DATA_FILE = "reproduction.json"
PROCEDURES = ("single-load", "no-noise-floor", "retries-hidden", "different-work")
_FOLDER = Path(studies.__file__).parent


@dataclass(frozen=True)
class Explained:
    """A place of one side with the chain of evidence of its run's verdict."""

    pair: Pair
    place: Place
    about: RunFacts
    chain: Chain


@dataclass(frozen=True)
class Procedure:
    """What a study's own procedure would have concluded on our data, over the cells that its claims are about."""

    study: str
    name: str
    cells: int
    draws: int
    wrong: int
    rate: float | None
    low: float | None
    high: float | None
    least: float | None  # of a cell
    most: float | None
    ratio_low: float | None  # the widest of the cells
    ratio_high: float | None


@dataclass(frozen=True)
class PairFound:
    """A pair with what the runs say of it: one explained place a side, and its threats as they were measured."""

    found: Found
    explained: tuple[Explained | None, Explained | None]
    threats: tuple[Mapping[str, Any], ...]


@dataclass
class Reconciled:
    """All of it. ``problems``: what could not be read, with the reason."""

    folder: Path
    asked: Mapping[str, Any]
    claims: dict[str, Mapping[str, Any]]
    runs: list[dict[str, Any]]
    missing: list[Mapping[str, Any]]
    pairs: list[PairFound] = field(default_factory=list)
    procedures: list[Procedure] = field(default_factory=list)
    retries: list[tuple[Place, str, Change]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)


def pairs() -> tuple[Pair, ...]:
    """The contradictions that Trifecta knows."""
    from ruamel.yaml import YAML

    return parse(YAML(typ="safe", pure=True).load(_FOLDER / "contradictions" / "pairs.yaml"))


def read(folder: Path, *, draws: int = 200) -> Reconciled:
    """Reconcile what a folder of ``trifecta reproduce`` holds; ``UserError`` when it is none."""
    document = _document(folder)
    claims = {str(one["id"]): one for one in (*document["claims"], *document.get("figures", ()))}
    made = Reconciled(
        folder=folder,
        asked=document["reproduction"],
        claims=claims,
        runs=[dict(one) for one in document.get("runs", ())],
        missing=list(document.get("missing", ())),
        titles=_titles(),
    )
    for run in made.runs:
        run["seed"] = _seed(folder, run)
    measured = {str(one.get("threat")): one for one in document.get("threats", ())}
    for pair in pairs():
        found = reconcile(pair, claims)
        sides = tuple(_explained(made, pair, places) for places in found.places)
        threats = tuple(measured.get(name) or _unmeasured(name) for name in pair.threats)
        made.pairs.append(PairFound(found, (sides[0], sides[1]), threats))
    _procedures(made, draws)
    return made


def _document(folder: Path) -> Mapping[str, Any]:
    path = folder / DATA_FILE
    if not path.is_file():
        raise UserError(f"{folder}: no {DATA_FILE} here; give the folder of 'trifecta reproduce all'")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}; run 'trifecta resume {folder}'") from None
    wanted = {"reproduction": dict, "claims": list}
    if not isinstance(document, dict) or any(not isinstance(document.get(key), kind) for key, kind in wanted.items()):
        raise UserError(f"{path}: is not what 'trifecta reproduce' writes; run 'trifecta resume {folder}'")
    return document


def _titles() -> dict[str, str]:
    """``bourbon2020`` -> its title and year."""
    return {name: f"{one.title}, {one.year}" for name, one in studies.published().items()}


def _seed(folder: Path, run: Mapping[str, Any]) -> int | None:
    try:
        found = json.loads((_inside(folder, str(run["folder"])) / "run.json").read_text(encoding="utf-8")).get("seed")
    except (OSError, ValueError):
        return None
    return None if found is None else int(found)


def _inside(folder: Path, name: str) -> Path:
    """A folder below that of the reproduction; a name never leaves it."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise UserError(f"{folder / DATA_FILE}: run {name!r} is outside of the folder; mend the file")
    return path


def _unmeasured(name: str) -> Mapping[str, Any]:
    known = THREATS.get(name)
    reason = known.elsewhere if known is not None else "this version of Trifecta has no such threat"
    title = known.title if known is not None else name
    return {"threat": name, "title": title, "outcome": "not measured", "reason": reason or "it was not run"}


def _explained(made: Reconciled, pair: Pair, places: Sequence[Place]) -> Explained | None:
    """The place that stands for a side: one where it is confirmed, else one that is decided, with the most blocks."""
    order = ("confirmed", "contradicted", "open")
    ranked = sorted(places, key=lambda one: (order.index(one.state) if one.state in order else 9, -one.blocks))
    for place in ranked[:1]:
        run = _inside(made.folder, place.run)
        if not (run / "run.json").is_file():
            continue
        try:
            found = explain(run, place.cell)
        except TrifectaError as error:
            made.problems.append(str(error))
            continue
        for chain in found.chains:
            if {chain.comparison.arm, chain.comparison.reference} == {pair.arm, pair.to}:
                return Explained(pair, place, found.about, chain)
    return None


def _procedures(made: Reconciled, draws: int) -> None:
    """Carry the studies' own procedures out on every cell that their claims are about."""
    found: dict[tuple[str, str], list[Concluded]] = {}
    done: set[tuple[str, ...]] = set()
    places = [(one.found.pair, place) for one in made.pairs for side in one.found.places for place in side]
    for pair, place in places:
        study = place.levels["study"]
        names = [name for name in PROCEDURES if name in THREATS and study in THREATS[name].studies]
        key = (place.run, place.cell, pair.arm, pair.to)
        run = _inside(made.folder, place.run)
        if not names or key in done or not (run / "run.json").is_file() or place.metric.endswith(("_bytes", "_count")):
            continue
        done.add(key)
        try:
            about = facts.read(run)
            with queries.connect(run) as connection:
                winner = _winner(pair, place)
                concluded = resampled.of_cell(
                    connection, about, place.cell, [(pair.arm, pair.to, winner)], names, draws=draws
                )
                if "retries-hidden" in names:
                    blocks = resampled.times(connection, about, place.cell)
                    change = resampled.retry_change(blocks, about, pair.arm, pair.to)
                    if change is not None:
                        made.retries.append((place, pair.id, change))
        except TrifectaError as error:
            made.problems.append(str(error))
            continue
        for one in concluded:
            if one.draws:
                found.setdefault((study, one.procedure), []).append(one)
    made.procedures = [_together(study, name, every) for (study, name), every in sorted(found.items())]


def _winner(pair: Pair, place: Place) -> str | None:
    """Who is faster there by the interval over all blocks; None where it holds 1."""
    if place.high is not None and place.high < 1:
        return pair.arm
    return pair.to if place.low is not None and place.low > 1 else None


def _together(study: str, name: str, every: Sequence[Concluded]) -> Procedure:
    draws, wrong = sum(one.draws for one in every), sum(one.wrong for one in every)
    low, high = clopper_pearson(wrong, draws, 0.95)
    rates = [one.rate for one in every if one.rate is not None]
    return Procedure(
        study=study,
        name=name,
        cells=len(every),
        draws=draws,
        wrong=wrong,
        rate=wrong / draws,
        low=low,
        high=high,
        least=min(rates),
        most=max(rates),
        ratio_low=min((one.ratio_low for one in every if one.ratio_low is not None), default=None),
        ratio_high=max((one.ratio_high for one in every if one.ratio_high is not None), default=None),
    )
