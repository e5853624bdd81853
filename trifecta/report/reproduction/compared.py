"""Two reproductions side by side: claim by claim, figure by figure, threat by threat, and what else differed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from trifecta import studies
from trifecta.analysis import agreement
from trifecta.analysis.agreement import Moved, Pair
from trifecta.analysis.statements import Statement
from trifecta.contract.reproduction import Judged
from trifecta.contract.values import JsonObject
from trifecta.design.errors import UserError
from trifecta.report import grids, numbers
from trifecta.report.reproduction import again, switches
from trifecta.report.reproduction.programs import CODE, programs_of
from trifecta.report.reproduction.result import DATA_FILE
from trifecta.store import documents, noted

_COLOURS = {agreement.DIFFERS: "bold red", agreement.SAME: "green", agreement.OPEN_IN_BOTH: "dim"}
_APART = timedelta(hours=12)  # sessions nearer than this share what a day has: load, temperature, boot
_STATED = ("studies", "depth", "version", "seed", "machine", "programs")


@dataclass(frozen=True)
class Comparison:
    """What two reproductions say of the same statements."""

    first: Mapping[str, Any]
    second: Mapping[str, Any]
    claims: list[Pair]
    figures: list[Pair]
    threats: list[Pair]
    moved: Moved | None

    @property
    def agree(self) -> bool:
        """Whether every claim, figure and effect of a threat that both decided is decided alike."""
        return agreement.agree([*self.claims, *self.figures, *self.threats])


def compare(first: Path, second: Path) -> Comparison:
    """Read two folders of `trifecta reproduce`, or their reproduction.json, and compare them."""
    documents = [_document(path) for path in (first, second)]
    claims, figures, threats = (
        agreement.compare(documents[0][kind], documents[1][kind]) for kind in ("claims", "figures", "threats")
    )
    abouts = [_about(path, document) for path, document in zip((first, second), documents, strict=True)]
    return Comparison(abouts[0], abouts[1], claims, figures, threats, agreement.moved([*claims, *figures]))


def _document(path: Path) -> dict[str, Any]:
    file = path / DATA_FILE if path.is_dir() else path
    if not file.exists():
        raise UserError(f"{file} does not exist; give two folders that `trifecta reproduce` made")
    document = documents.read_json(file, "give a folder of `trifecta reproduce`")
    noted.check(file.parent, [file.name], f"`trifecta resume {file.parent}` writes it again")
    for field in ("claims", "figures"):
        rows = document.get(field) if isinstance(document, dict) else None
        if not isinstance(rows, list) or not all(
            isinstance(row, dict) and {"id", "kind", "text", "state"} <= row.keys() for row in rows
        ):
            raise UserError(f"{file}: '{field}' is not a list of statements; give a folder of `trifecta reproduce`")
    if not isinstance(document.get("reproduction"), dict):
        raise UserError(f"{file}: 'reproduction' is missing; give a folder of `trifecta reproduce`")
    today = {one.id: one for study in studies.published().values() for one in study.statements}
    judged = {kind: [_today(row, today) for row in document[kind]] for kind in ("claims", "figures")}
    return {**document, **judged, "threats": switches.statements(file, document.get("threats"))}


def _today(row: Judged, today: Mapping[str, Statement]) -> Judged:
    """By today's rule, where it is today's statement: two rules would differ where two runs do not."""
    statement = today.get(str(row["id"]))
    if statement is None or row.get("defined") != statement.defined:
        return row
    return again.judged(row, statement)


def _about(path: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """When it was made, of what, and with what."""
    said = document["reproduction"]
    facts = said.get("machine") or {}
    machine = facts.get("machine") or {}
    return {
        "folder": str(path),
        "began": said.get("began"),
        "studies": said.get("studies"),
        "depth": said.get("depth"),
        "version": said.get("version"),
        "seed": facts.get("seed"),
        "machine": {name: machine.get(name) for name in ("cpu_model", "cpus", "kernel", "distribution")},
        "programs": _programs(path, document),
    }


def _programs(path: Path, document: Mapping[str, Any]) -> dict[str, str]:
    """As the document says, which needs no runs beside it; else, of an earlier version, as its runs say."""
    told = document["reproduction"].get("programs")
    if isinstance(told, dict):
        return {str(name): str(version) for name, version in told.items()}
    folders = [str(run.get("folder", "")) for run in document.get("runs") or ()]
    return programs_of(path if path.is_dir() else path.parent, folders)


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
    said = [_days(made)]
    sides = [side["programs"] for side in (made.first, made.second)]
    differ = ["trifecta"] if made.first["version"] != made.second["version"] else []
    differ += [name for name in sides[0] if name in sides[1] and sides[0][name] != sides[1][name]]
    if differ:
        said.append(f"not the same versions ({', '.join(differ)}): what differs may be theirs")
    if not all(any(name.startswith(CODE) for name in side) for side in sides):
        said.append("runs of earlier versions do not say which code made them, and a version number does not report")
    if made.first["machine"] != made.second["machine"]:
        said.append("not the same machine: what differs may be its")
    return [one for one in said if one]


def _days(made: Comparison) -> str:
    """That the two are not of different days, or that it is not known; empty where they are."""
    began = [_time(side["began"]) for side in (made.first, made.second)]
    if began[0] is None or began[1] is None:
        return "when they were begun is not known of both: whether they are of different days is open"
    apart = abs(began[0] - began[1])
    days = [f"{when:%Y-%m-%d}" for when in began if when is not None]
    if days[0] == days[1]:
        head = f"both are of one day, {days[0]} (UTC)"
    elif apart < _APART:
        head = "they are of two days (UTC), but of one night"
    else:
        return ""
    far = numbers.wall(round(apart.total_seconds()) * 1_000_000_000) if apart else "at the same time"
    return f"{head}, begun {far}{' apart' if apart else ''}: what another day does to the figures is not shown"


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
        "counts": {kind: agreement.counted(pairs) for kind, pairs in kinds.items()},
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
    out.print(Text(_counts(made.claims, "claim"), style="bold"))
    out.print(Text(_counts(made.figures, "published figure")))
    if made.threats:
        out.print(Text(_counts(made.threats, "effect of a threat", "effects of threats")))
    if made.moved is not None:
        out.print(Text(moved_words(made.moved)), soft_wrap=True)
    verdict = "Everything that both decided is decided alike." if made.agree else "The two contradict each other."
    out.print(Text(verdict, style="bold green" if made.agree else "bold red"))


def moved_words(moved: Moved) -> str:
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


def _counts(pairs: Sequence[Pair], what: str, several: str = "") -> str:
    found = agreement.counted(pairs)
    said = ", ".join(f"{number} {relation}" for relation, number in found.items() if number)
    return f"Of {len(pairs)} {what if len(pairs) == 1 else several or what + 's'}: {said or 'none'}."


def _grid(out: Console, pairs: Sequence[Pair], what: str) -> Grid:
    grid = grids.grid(out)
    grid.add_column(what, overflow="fold", ratio=4)
    grid.add_column("first", overflow="fold", ratio=3)
    grid.add_column("second", overflow="fold", ratio=3)
    grid.add_column("", overflow="fold", ratio=2)
    for pair in sorted(pairs, key=lambda one: agreement.RELATIONS.index(one.relation)):
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
