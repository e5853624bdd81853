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

_COLOURS = {DIFFERS: "bold red", SAME: "green", OPEN_IN_BOTH: "dim"}
_APART = timedelta(hours=12)  # sessions nearer than this share what a day has: load, temperature, boot
_STATED = ("studies", "depth", "version", "seed", "machine", "programs")


def differences(made: Comparison) -> list[str]:
    """What is not the same of the two beside their dates: ``seed: 1, 2``."""
    said = []
    for name in _STATED:
        one, other = made.first[name], made.second[name]
        if isinstance(one, dict) and isinstance(other, dict):
            keys = [key for key in dict.fromkeys([*one, *other]) if one.get(key) != other.get(key)]
            said += [f"{key}: {one.get(key, 'none')}, {other.get(key, 'none')}" for key in keys]
        elif one != other:
            said.append(f"{name}: {_words(one)}, {_words(other)}")
    return said


def warnings(made: Comparison) -> list[str]:
    """Why agreement or disagreement of these two may say less than it seems."""
    said = [days(made.first["began"], made.second["began"])]
    sides = [side["programs"] for side in (made.first, made.second)]
    differ = ["trifecta"] if made.first["version"] != made.second["version"] else []
    differ += [name for name in sides[0] if name in sides[1] and sides[0][name] != sides[1][name]]
    if differ:
        said.append(f"not the same versions ({', '.join(differ)}): differences may come from them")
    if not all(any(name.startswith(CODE) for name in side) for side in sides):
        said.append("runs of earlier versions do not record which code made them, and a version number does not tell")
    if made.first["machine"] != made.second["machine"]:
        said.append("not the same machine: differences may come from it")
    return [one for one in said if one]


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


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def as_data(made: Comparison) -> JsonObject:
    """The same for a program; keys are stable (docs/reproduce.md)."""
    kinds = {"claims": made.claims, "figures": made.figures, "threats": made.threats}
    return {
        "agree": made.agree,
        "first": dict(made.first),
        "second": dict(made.second),
        "differences": differences(made),
        "warnings": warnings(made),
        "counts": made.counts,
        "moved": None if made.moved is None else asdict(made.moved),
        **{kind: [_row(one) for one in pairs] for kind, pairs in kinds.items()},
    }


def _row(pair: Pair) -> dict[str, Any]:
    sides = {"first": pair.first, "second": pair.second}
    kept = ("state", "reason", "form", "ratio", "difference", "low", "high", "blocks")
    return {
        "id": pair.id,
        "text": pair.text,
        "relation": pair.relation,
        "changed": list(pair.changed),
        **{
            name: None if side is None else {key: side.get(key) for key in kept if key in side}
            for name, side in sides.items()
        },
    }


def print_comparison(made: Comparison, console: Console | None = None) -> None:
    """Print what differs first, then the rest, and last whether they agree."""
    out = console or Console(highlight=False)
    for name, about in (("first", made.first), ("second", made.second)):
        machine = ", ".join(str(value) for value in about["machine"].values() if value is not None)
        said = f"{about['folder']}: begun {about['began']}, {about['depth']}, version {about['version']}"
        out.print(Text(f"{name:7} {said}, seed {about['seed']}{f' ({machine})' if machine else ''}"), soft_wrap=True)
    for line in differences(made):
        out.print(Text(f"not the same: {line}", style="yellow"), soft_wrap=True)
    for line in warnings(made):
        out.print(Text(f"! {line}", style="bold yellow"), soft_wrap=True)
    out.print()
    for what, pairs in (
        ("claim", made.claims),
        ("published figure", made.figures),
        ("effect of a threat", made.threats),
    ):
        if pairs:
            out.print(_grid(out, pairs, what))
            out.print()
    out.print(Text(_counts(made.counts["claims"], "claim"), style="bold"))
    out.print(Text(_counts(made.counts["figures"], "published figure")))
    if made.threats:
        out.print(Text(_counts(made.counts["threats"], "effect of a threat", "effects of threats")))
    if made.moved is not None:
        out.print(Text(moved_words(made.moved)), soft_wrap=True)
    verdict = "Everything that both decided is decided alike." if made.agree else "The two contradict each other."
    out.print(Text(verdict, style="bold green" if made.agree else "bold red"))


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


def _counts(found: Mapping[str, int], what: str, several: str = "") -> str:
    total = sum(found.values())
    said = ", ".join(f"{number} {relation}" for relation, number in found.items() if number)
    return f"Of {total} {what if total == 1 else several or what + 's'}: {said or 'none'}."


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
        ends = f"[{_signed(side.get('low'))}, {_signed(side.get('high'))}]"
        return f"{side['state']} {_signed(side.get('difference'))} {ends}"
    return f"{side['state']} {numbers.ratio(side.get('ratio'))} {numbers.interval((side.get('low'), side.get('high')))}"


def _signed(value: float | None) -> str:
    return numbers.NO_VALUE if value is None else f"{value:+.3g}"
