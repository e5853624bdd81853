"""``--set KEY=VALUE``: any factor and any field of a study changed from the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from trifecta.contract.values import JsonValue
from trifecta.design.arms import factor_words
from trifecta.design.document import Document, Place, did_you_mean, dotted
from trifecta.design.errors import UserError
from trifecta.design.factors import (
    CLIENT_FACTOR,
    CONNECTION_LEVELS,
    CORE_FACTORS,
    KNOWN_FACTORS,
    LENGTH_FIELDS,
    WORKLOAD_FACTORS,
    WORKLOAD_FIELDS,
)
from trifecta.design.hosts import choose_direct
from trifecta.design.model import PROTOCOL_FACTOR


def apply_overrides(document: Document, overrides: Sequence[str], source: str | None = None) -> None:
    """Change the document as asked; each changed part remembers its option, so that later messages name it.

    A key is a factor (``path=clean``, ``connection=new,reused``), a field of the study (``budget=1 min``), a field of
    the workload (``response=10 kB``), or a place with dots (``paths.rough.loss=5 %``). Later ones win; a length of
    trials (``requests=100``) wins over those that the study's paths have. UserError where it undoes another option's.
    ``source``: the option that asked for it, where that is not ``--set``.
    """
    compared = document.tree.get("compare", PROTOCOL_FACTOR)
    for override in overrides:
        key, equals, text = override.partition("=")
        option = source or f"--set {override}"
        key = key.strip()
        if not equals or not key:
            raise UserError(f"option {option}: write KEY=VALUE, for example --set path=clean")
        place = _place(document, key, option)
        if len(place) == 2 and place[0] == "workload" and place[1] in WORKLOAD_FACTORS and "," in text:
            _forget(document, place)  # several levels: the field becomes a factor
            place = ("factors", str(place[1]))
        _refuse_undoing(document, place, option)
        _put(document, place, _value(text, place, option), option)
    if document.tree.get("compare", PROTOCOL_FACTOR) != compared:
        _forget_compared(document)
    _use_defined(document)
    choose_direct(document)
    _lengthen_paths(document)


def name_of(key: str) -> tuple[str, ...]:
    """What a key of ``--set`` changes, the same for every way to write it: ``path`` is ``factors.path``."""
    parts = tuple(part.strip() for part in key.split("."))
    return parts[1:] if len(parts) == 2 and parts[0] in ("factors", "workload") else parts


def refuse_twice(overrides: Sequence[str], options: Mapping[str, str]) -> None:
    """UserError where two of ``--set`` change the same, or one of them and an option (``blocks`` -> ``--blocks 3``)."""
    earlier_names: list[tuple[tuple[str, ...], str]] = []
    for override in overrides:
        key, equals, _ = override.partition("=")
        name = name_of(key.strip())
        for earlier, other in earlier_names:
            if equals and earlier[: len(name)] == name:  # what goes into details after the whole undoes nothing
                raise UserError(f"options --set {other} and --set {override}: both set {key.strip()}; leave one out")
        for field, option in options.items():
            if equals and name[0] == field:
                raise UserError(f"options {option} and --set {override}: both set {field}; leave one out")
        earlier_names.append((name, override))


def unused(document: Document) -> dict[str, str]:
    """The options that set a field of a path, or of its trials, which no cell has: what to say of each."""
    used, modes = _levels(document, "path"), _levels(document, "connection") or ["reused"]
    paths = document.tree.get("paths")
    used = used or list(paths if isinstance(paths, dict) else ())
    unused_options: dict[str, str] = {}
    for place, option in document.options.items():
        if place[0] != "paths" or len(place) < 2 or option in unused_options:
            continue
        path = str(place[1])
        if path not in used:
            remedy = did_you_mean(path, used)
            if not remedy.startswith("did"):
                remedy = f"add --set path={path}, or leave it out"
            unused_options[option] = f"option {option}: no cell has the path {path!r}; {remedy}"
        elif place[2:3] == ("trial",) and len(place) > 3 and place[3] in CONNECTION_LEVELS and place[3] not in modes:
            unused_options[option] = f"option {option}: no cell has {place[3]} connections; leave it out"
    return unused_options


def _refuse_undoing(document: Document, place: Place, option: str) -> None:
    """UserError where an option of another name (``--set``, ``--with``, ``--only``) has set this, or a part of it.

    A server that an option defines is a level by itself (`_use_defined`) only as long as nothing names levels.
    """
    defining = {other for known, other in document.options.items() if known[:1] == ("servers",)}
    for known, other in document.options.items():
        if known == ("factors", "server") and other in defining:
            continue
        if known[: len(place)] == place and other.split()[0] != option.split(maxsplit=1)[0]:
            raise UserError(f"option {option}: {other} sets {dotted(place)} too; leave one out")


def by_hand(document: Document) -> dict[Place, JsonValue]:
    """What options have set so far, by place; a copy."""
    values: dict[Place, JsonValue] = {}
    for place in document.options:
        value: Any = document.tree
        for part in place:
            value = value.get(part) if isinstance(value, dict) else None
        values[place] = deepcopy(value)
    return values


def refuse_changed(document: Document, before: Mapping[Place, JsonValue], option: str) -> None:
    """UserError where a change by ``option`` has undone what another had set; fields may have been added."""
    after = by_hand(document)
    for place, value in before.items():
        if not _holds(after.get(place), value):
            other = document.options[place]
            raise UserError(f"option {option}: changes {dotted(place)}, and so does {other}; leave one out")


def _holds(after: Any, before: Any) -> bool:
    if isinstance(before, dict) and isinstance(after, dict):
        return all(_holds(after.get(name), value) for name, value in before.items())
    return bool(after == before)


def _lengthen_paths(document: Document) -> None:
    """Lengths of trials that are asked for by hand go into the paths that have lengths of their own."""
    workload, paths = document.tree.get("workload"), document.tree.get("paths")
    if not isinstance(workload, dict) or not isinstance(paths, dict):
        return
    modes_used = {
        field: option
        for field in LENGTH_FIELDS
        if field in workload
        and (option := document.options.get(("workload", field)) or document.options.get(("workload",)))
    }
    used = _levels(document, "connection") or ["reused"]
    for path in _levels(document, "path") or list(paths):
        trial = paths[path].get("trial") if isinstance(paths.get(path), dict) else None
        if not isinstance(trial, dict):
            continue
        modes = [mode for mode in CONNECTION_LEVELS if mode in trial]
        trial_place: Place = ("paths", path, "trial")
        own = [((*trial_place, mode), trial[mode]) for mode in modes if mode in used and isinstance(trial[mode], dict)]
        for place, length in own if modes else [(trial_place, trial)]:
            for field, option in modes_used.items():
                here: Place = (*place, field)
                by_hand = (document.options.get(here[:end], "") for end in range(2, len(here) + 1))
                if not any(other and other not in modes_used.values() for other in by_hand):  # the nearer one wins
                    length[field] = workload[field]
                    document.options[here] = option


def _use_defined(document: Document) -> None:
    """Servers that options define are the levels, where neither the study nor an option has one of them as a level."""
    place: Place = ("factors", "server")
    servers = document.tree.get("servers")
    defined = [name for name in servers if ("servers", name) in document.options] if isinstance(servers, dict) else []
    if defined and place not in document.options and not {*defined} & {*_levels(document, "server")}:
        _put(document, place, list[str](defined), document.options["servers", defined[0]])


def _forget_compared(document: Document) -> None:
    """What a file says of another question than is asked now: its baseline, and the title that asks it."""
    if ("baseline",) not in document.options:
        document.tree.pop("baseline", None)
        _forget_places(document, ("baseline",))
    if ("title",) not in document.options and "title" in document.tree:
        factor = str(document.tree["compare"])
        switch = {level.lower() for level in _levels(document, factor)} == {"true", "false"}
        question = f"{factor_words(factor)} on or off?" if switch else f"which {factor_words(factor)}?"
        document.tree["title"] = f"{document.tree.get('study')}: {question}"


def _levels(document: Document, factor: str) -> list[str]:
    """The levels that a document lists of a factor, as they are written."""
    factors = document.tree.get("factors")
    levels = factors.get(factor) if isinstance(factors, dict) else None
    return [str(level) for level in (levels if isinstance(levels, list) else [levels]) if level is not None]


def _place(document: Document, key: str, option: str) -> Place:
    from trifecta.design.resolve import STUDY_FIELDS

    # Servers have names like my-server-1.2.
    parts = ("servers", key.removeprefix("servers.")) if key.startswith("servers.") else tuple(key.split("."))
    if not all(parts):
        raise UserError(f"option {option}: {key!r} has an empty part; write for example paths.rough.loss")
    # Services have a number of `hosts`; what a study says of machines is no single value.
    if len(parts) > 1 or (key in STUDY_FIELDS and key not in WORKLOAD_FIELDS):
        if parts[0] not in STUDY_FIELDS:
            raise UserError(
                f"option {option}: no field {parts[0]!r} in a study; {did_you_mean(parts[0], STUDY_FIELDS)}"
            )
        return parts
    factors = document.tree.get("factors")
    if key in (*CORE_FACTORS, CLIENT_FACTOR) or (isinstance(factors, dict) and key in factors):
        return ("factors", key)
    if key in WORKLOAD_FIELDS or key in LENGTH_FIELDS:
        return ("workload", key)
    known = dict.fromkeys((*KNOWN_FACTORS, *WORKLOAD_FIELDS, *LENGTH_FIELDS, *STUDY_FIELDS))
    raise UserError(f"option {option}: no factor or field {key!r}; {did_you_mean(key, known)}")


def _value(text: str, place: Place, option: str) -> Any:
    from trifecta.design.yaml_text import parse_value

    text = text.strip()
    if place[0] == "factors" and len(place) == 2 and not text.startswith("["):
        text = f"[{text}]"
    value = parse_value(text, f"option {option}")
    if value is None:
        raise UserError(f"option {option}: has no value; write KEY=VALUE")
    return value


def _put(document: Document, place: Place, value: Any, option: str) -> None:
    mapping = document.tree
    for depth, part in enumerate(place[:-1]):
        inner = mapping.get(str(part))
        if inner is None:
            inner = mapping[str(part)] = {}
            document.options[place[: depth + 1]] = option
        if not isinstance(inner, dict):
            raise document.error(place[: depth + 1], f"is a single value, so {option!r} finds no field in it")
        mapping = inner
    mapping[str(place[-1])] = value
    _forget_places(document, place)
    document.options[place] = option


def _forget(document: Document, place: Place) -> None:
    """Take a field of the workload out."""
    workload = document.tree.get("workload")
    if isinstance(workload, dict):
        workload.pop(str(place[1]), None)
    _forget_places(document, place)


def _forget_places(document: Document, place: Place) -> None:
    for known in [*document.lines, *document.options]:
        if known[: len(place)] == place:
            document.lines.pop(known, None)
            document.options.pop(known, None)
