"""Protocol or program over several places: one arm at a time, by path, and with each place and program left out.

Places differ: on one path the protocol can make nearly all of an effect, on another the programs. What is said of all
of them together is therefore said only where it does not turn when any one path, server or client is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.layout import PROTOCOL, Term
from trifecta.analysis.mean_squares import DRAWS, NOISE, MeanSquares, estimates_of
from trifecta.analysis.programs import Program
from trifecta.analysis.shares import Decomposition, Share, shares_of

Floats = NDArray[np.float64]
Estimates = Mapping[str, float]

EVERYWHERE = "all places"
_PATH = "path"


@dataclass(frozen=True)
class PlaceSplit:
    """One arm in one place: what came out, and what it came from."""

    decomposition: Decomposition
    parts: MeanSquares | None
    effects: Mapping[Program, Floats]

    @property
    def levels(self) -> dict[str, str]:
        """Factor to level of the place."""
        return dict(part.split("=", 1) for part in self.decomposition.place.split(",") if "=" in part)


def pooled(splits: Sequence[PlaceSplit], confidence: float) -> list[Decomposition]:
    """Every arm over all places, then by path where a path has several; each place counts the same."""
    known = [one for one in splits if one.parts is not None]
    arms = list(dict.fromkeys(one.decomposition.arm for one in known))
    decompositions = []
    for arm in arms:
        here = [one for one in known if one.decomposition.arm == arm]
        decompositions.append(_steady(_pool_places(EVERYWHERE, here, confidence), here))
    for arm in arms:
        here = [one for one in known if one.decomposition.arm == arm]
        paths = list(dict.fromkeys(one.levels.get(_PATH) for one in here))
        for path in paths if len(paths) > 1 else ():
            there = [one for one in here if one.levels.get(_PATH) == path]
            if len(there) > 1:
                decompositions.append(_pool_places(f"{_PATH}={path}", there, confidence))
    return decompositions


def _pool_places(place: str, here: Sequence[PlaceSplit], confidence: float) -> Decomposition:
    """The programs are the same everywhere, so there is no statement for any such programs."""
    all_parts = [one.parts for one in here if one.parts is not None]
    order = (PROTOCOL, *(name for name in Term.NAMES if any(name in one.names for one in all_parts)), NOISE)
    estimates = np.zeros(len(order))
    draws = np.zeros((len(order), DRAWS))
    for one in all_parts:
        for i, name in enumerate(one.names):
            estimates[order.index(name)] += one.estimates[i]
            draws[order.index(name)] += one.draws[i]
    used = [one.decomposition for one in here]
    return Decomposition(
        place=place,
        arm=used[0].arm,
        reference=used[0].reference,
        shares=shares_of(order, estimates, draws, None, confidence),
        ratio=None,
        elsewhere_low=None,
        elsewhere_high=None,
        servers=_union(one.servers for one in used),
        clients=_union(one.clients for one in used),
        cells=sum(one.cells for one in used),
        blocks=sum(one.blocks for one in used),
        pooled=True,
    )


def _union(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in lists for name in names))


def _steady(decomposition: Decomposition, here: Sequence[PlaceSplit]) -> Decomposition:
    """The whole with the range of each share over all that can be left out, and what weighs more if that stays so."""
    variants = without_each(here)
    known_variants = [one for one in variants.values() if one is not None]
    shares = []
    for share in decomposition.shares:
        ends = [one.get(share.part, 0.0) for one in known_variants]
        shares.append(replace(share, without_low=min(ends), without_high=max(ends)) if ends else share)
    return replace(decomposition, shares=tuple(shares), weighs=_weighs(decomposition.shares, list(variants.values())))


def without_each(here: Sequence[PlaceSplit]) -> dict[str, Estimates | None]:
    """The shares with one level of a factor of the places, one server or one client left out, by what is left out.

    None where too little is left to split anything. A place whose programs cannot be distinguished any more does not
    count in that variant.
    """
    estimates: dict[str, Estimates | None] = {}
    for factor in dict.fromkeys(name for one in here for name in one.levels):
        levels = dict.fromkeys(one.levels.get(factor, "") for one in here)
        for level in levels if len(levels) > 1 else ():
            left = [one.effects for one in here if one.levels.get(factor, "") != level]
            estimates[f"{factor} {level}"] = _shares_without(left)
    for side in ("server", "client"):
        names = dict.fromkeys(getattr(program, side) for one in here for program in one.effects)
        for name in names if len(names) > 1 else ():
            left = [{p: values for p, values in one.effects.items() if getattr(p, side) != name} for one in here]
            estimates[f"{side} {name}"] = _shares_without(left)
    return estimates


def _shares_without(left: Sequence[Mapping[Program, Floats]]) -> Estimates | None:
    sums: dict[str, float] = {}
    for effects in left:
        if len(effects) > 1:
            for name, value in estimates_of(effects).items():
                sums[name] = sums.get(name, 0.0) + value
    least = {name: max(0.0, value) for name, value in sums.items()}
    total = sum(least.values())
    return {name: value / total for name, value in least.items()} if total > 0 else None


def _weighs(shares: Sequence[Share], variants: Sequence[Estimates | None]) -> Literal["protocol", "program"] | None:
    """Which is larger, by intervals that do not meet, and larger in every variant, too.

    A variant that splits nothing, as one of two servers alone, shows nothing of programs.
    """
    protocol = next((one for one in shares if one.part == PROTOCOL), None)
    programs = [one for one in shares if one.part in Term.NAMES]
    if protocol is None or not programs:
        return None
    if sum(one.low for one in programs) > protocol.high:
        return "program" if all(one is not None and _surplus(one) < 0 for one in variants) else None
    if protocol.low > sum(one.high for one in programs):
        return "protocol" if all(one is None or _surplus(one) > 0 for one in variants) else None
    return None


def _surplus(estimates: Estimates) -> float:
    """Share of the protocol less that of all programs."""
    return estimates.get(PROTOCOL, 0.0) - sum(estimates.get(name, 0.0) for name in Term.NAMES)
