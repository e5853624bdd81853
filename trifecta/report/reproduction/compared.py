"""Two reproductions side by side, in words: what differs, what warns, the printed tables, the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from trifecta.analysis.agreement import DIFFERS, OPEN_IN_BOTH, RELATIONS, SAME, Pair, RatioSpread
from trifecta.conclude.reproduction.compared import Comparison
from trifecta.conclude.reproduction.programs import CODE
from trifecta.contract.values import JsonObject
from trifecta.design import numbers
from trifecta.report import grids
from trifecta.report.visits.published import difference_words

_COLOURS = {DIFFERS: "bold red", SAME: "green", OPEN_IN_BOTH: "dim"}
_APART = timedelta(hours=12)  # sessions nearer than this share what a day has: load, temperature, boot
_STATED = ("studies", "depth", "version", "seed", "machine", "programs")


def differences(comparison: Comparison) -> list[str]:
    """What is not the same of the two beside their dates: ``seed: 1, 2``."""
    sentences = []
    for name in _STATED:
        one, other = comparison.first[name], comparison.second[name]
        if isinstance(one, dict) and isinstance(other, dict):
            keys = [key for key in dict.fromkeys([*one, *other]) if one.get(key) != other.get(key)]
            sentences += [f"{key}: {one.get(key, 'none')}, {other.get(key, 'none')}" for key in keys]
        elif one != other:
            sentences.append(f"{name}: {_value_words(one)}, {_value_words(other)}")
    return sentences


def warnings(comparison: Comparison) -> list[str]:
    """Why agreement or disagreement of these two may say less than it seems."""
    sentences = [days(comparison.first["began"], comparison.second["began"])]
    sides = [side["programs"] for side in (comparison.first, comparison.second)]
    differ = ["trifecta"] if comparison.first["version"] != comparison.second["version"] else []
    differ += [name for name in sides[0] if name in sides[1] and sides[0][name] != sides[1][name]]
    if differ:
        sentences.append(f"not the same versions ({', '.join(differ)}): differences may come from them")
    if not all(any(name.startswith(CODE) for name in side) for side in sides):
        sentences.append(
            "runs of earlier versions do not record which code made them, and a version number does not tell"
        )
    if comparison.first["machine"] != comparison.second["machine"]:
        sentences.append("not the same machine: differences may come from it")
    return [one for one in sentences if one]


def days(first: object, second: object) -> str:
    """That two sessions, by when they began (ISO 8601), are not of different days, or that it is not known; empty
    where they are.
    """
    began = [_time(side) for side in (first, second)]
    if began[0] is None or began[1] is None:
        return "when they began is not known of both, so whether they ran on different days is open"
    apart = abs(began[0] - began[1])
    dates = [f"{when:%Y-%m-%d}" for when in began if when is not None]
    if dates[0] == dates[1]:
        head = f"both began on one day, {dates[0]} (UTC)"
    elif apart < _APART:
        head = "they began on two days (UTC), but in one night"
    else:
        return ""
    far = numbers.wall(round(apart.total_seconds()) * 1_000_000_000) if apart else "at the same time"
    return f"{head}, {far}{' apart' if apart else ''}: the effect of another day is not shown"


def _time(text: Any) -> datetime | None:
    try:
        when = datetime.fromisoformat(str(text))
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _value_words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def as_data(comparison: Comparison) -> JsonObject:
    """The same for a program; keys are stable (docs/reproduce.md)."""
    kinds = {"claims": comparison.claims, "figures": comparison.figures, "threats": comparison.threats}
    return {
        "agree": comparison.agree,
        "first": dict(comparison.first),
        "second": dict(comparison.second),
        "differences": differences(comparison),
        "warnings": warnings(comparison),
        "counts": comparison.counts,
        "moved": None if comparison.session_spread is None else asdict(comparison.session_spread),
        **{kind: [_row(one) for one in pairs] for kind, pairs in kinds.items()},
    }


def _row(pair: Pair) -> dict[str, Any]:
    sides = {"first": pair.first, "second": pair.second}
    columns = ("state", "reason", "form", "ratio", "difference", "low", "high", "blocks")
    return {
        "id": pair.id,
        "text": pair.text,
        "relation": pair.relation,
        "changed": list(pair.changed),
        **{
            name: None if side is None else {key: side.get(key) for key in columns if key in side}
            for name, side in sides.items()
        },
    }


def print_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print what differs first, then the rest, and last whether they agree."""
    out = console or Console(highlight=False)
    for name, about in (("first", comparison.first), ("second", comparison.second)):
        machine = ", ".join(str(value) for value in about["machine"].values() if value is not None)
        sentence = f"{about['folder']}: begun {about['began']}, {about['depth']}, version {about['version']}"
        out.print(
            Text(f"{name:7} {sentence}, seed {about['seed']}{f' ({machine})' if machine else ''}"), soft_wrap=True
        )
    for line in differences(comparison):
        out.print(Text(f"not the same: {line}", style="yellow"), soft_wrap=True)
    for line in warnings(comparison):
        out.print(Text(f"! {line}", style="bold yellow"), soft_wrap=True)
    out.print()
    for what, pairs in (
        ("claim", comparison.claims),
        ("published figure", comparison.figures),
        ("effect of a threat", comparison.threats),
    ):
        if pairs:
            out.print(_grid(out, pairs, what))
            out.print()
    out.print(Text(_counts(comparison.counts["claims"], "claim"), style="bold"))
    out.print(Text(_counts(comparison.counts["figures"], "published figure")))
    if comparison.threats:
        out.print(Text(_counts(comparison.counts["threats"], "effect of a threat", "effects of threats")))
    if comparison.session_spread is not None:
        out.print(Text(moved_words(comparison.session_spread)), soft_wrap=True)
    verdict = "Everything that both decided is decided alike." if comparison.agree else "The two contradict each other."
    out.print(Text(verdict, style="bold green" if comparison.agree else "bold red"))


def moved_words(moved: RatioSpread) -> str:
    """How far apart the ratios of the two lie, and how much of it their blocks do not explain."""
    between = "That is what blocks vary by."
    if moved.between:
        between = (
            "In addition to what blocks vary by, sessions differ with a standard deviation of "
            f"{numbers.percent(moved.between)}."
        )
    return (
        f"Half of the {moved.count} ratios lie within {numbers.percent(moved.median)} of each other, the farthest "
        f"{numbers.percent(moved.most)} apart ({moved.most_id}). {between}"
    )


def _counts(counts: Mapping[str, int], what: str, several: str = "") -> str:
    total = sum(counts.values())
    sentence = ", ".join(f"{number} {relation}" for relation, number in counts.items() if number)
    return f"Of {total} {what if total == 1 else several or what + 's'}: {sentence or 'none'}."


def _grid(out: Console, pairs: Sequence[Pair], what: str) -> Grid:
    grid = grids.grid(out)
    grid.add_column(what, overflow="fold", ratio=4)
    grid.add_column("first", overflow="fold", ratio=3)
    grid.add_column("second", overflow="fold", ratio=3)
    grid.add_column("", overflow="fold", ratio=2)
    for pair in sorted(pairs, key=lambda one: RELATIONS.index(one.relation)):
        relation = pair.relation + (f"; not the same statement: {', '.join(pair.changed)}" if pair.changed else "")
        grid.add_row(
            Text(pair.id if pair.kind == "threat" else f"{pair.text} ({pair.id})"),
            Text(_side(pair.first)),
            Text(_side(pair.second)),
            Text(relation, _COLOURS.get(pair.relation, "yellow")),
        )
    return grid


def _side(side: Mapping[str, Any] | None) -> str:
    if side is None:
        return "not there"
    if not side.get("blocks"):
        return f"{side['state']}: {side.get('reason') or 'no block that counts'}"
    if side.get("form") == "difference":
        ends = (side.get("difference"), side.get("low"), side.get("high"))
        return f"{side['state']} {difference_words(str(side.get('metric') or ''), *ends)}"
    return f"{side['state']} {numbers.ratio(side.get('ratio'))} {numbers.interval((side.get('low'), side.get('high')))}"
