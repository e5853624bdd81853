"""The types of `trifecta.contract` are those of the engine's schemas: names, types, what may be left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trifecta.contract import common, link, load, origin, probe
from trifecta.contract.errors import CLASSES, ENGINE_CLASSES
from trifecta.design.failures import failure

SCHEMAS = Path(__file__).resolve().parents[2] / "engine" / "schemas"
CONFIGS: dict[str, Any] = {
    "load.config": load.LoadConfig,
    "origin.config": origin.OriginConfig,
    "link.config": link.LinkConfig,
    "probe.config": probe.ReflectConfig | probe.MeasureConfig,
}
LINES: dict[str, Any] = {
    "load.ready": load.LoadReady,
    "load.summary": load.LoadSummary,
    "origin.ready": origin.OriginReady,
    "origin.summary": origin.OriginSummary,
    "link.ready": link.LinkReady,
    "link.summary": link.LinkSummary,
    "probe.ready": probe.ReflectReady | probe.MeasureReady,
    "probe.summary": probe.ReflectSummary | probe.MeasureSummary,
    "version": common.EngineVersion,
}
# Written in Rust as alternatives of one key each; here as one record whose fields exclude each other.
MERGED = {"load.config": {"message"}}
# Of the load's summary: what only the engine's own load knows. Other clients say null, or leave it out.
OF_THE_ENGINE_ALONE = {
    "clients", "max_rss_bytes", "missed_slots", "longest_gap_ns", "not_started", "connections_opened",
    "connections_lost_idle", "wire_bytes_out", "wire_bytes_in", "handshakes", "response_fields", "udp_receive_errors",
    "versions",
}  # fmt: skip
# Of which nobody else asks: a client of another kind ends otherwise.
MORE_VALUES = {("load.summary", "ended"): {"crashed"}}


def form(schema: dict[str, Any], whole: dict[str, Any]) -> Any:
    """A schema without what does not change what fits: a set of alternatives."""
    if "$ref" in schema:
        found = form(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
        more = schema.get("properties")
        return found if not more else {_with(each, schema, whole) for each in found}
    if "anyOf" in schema or "oneOf" in schema:
        found = frozenset().union(*(form(each, whole) for each in (schema.get("anyOf") or schema["oneOf"])))
        return {_with(each, schema, whole) for each in found} if "properties" in schema else found
    if "const" in schema:
        return frozenset({schema["const"]})
    if "enum" in schema:
        return frozenset(schema["enum"])
    kinds = schema.get("type", "any")
    return frozenset(_form_of(kind, schema, whole) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _form_of(kind: str, schema: dict[str, Any], whole: dict[str, Any]) -> Any:
    if kind == "array":
        return ("list", form(schema["items"], whole) if schema.get("items") else frozenset({"any"}))
    if kind == "object" and "properties" in schema:
        return Record.of(schema, whole)
    if kind == "object":
        inner = schema.get("patternProperties") or {}
        value = next(iter(inner.values()), schema.get("additionalProperties", {}))
        return ("map", form(value, whole) if isinstance(value, dict) and value else frozenset({"any"}))
    return kind


class Record:
    """An object with names: what each fits, whether it must be there, what it is else."""

    def __init__(self, fields: dict[str, tuple[Any, bool, str]], tags: dict[str, str]) -> None:
        self.fields, self.tags = fields, tags

    @classmethod
    def of(cls, schema: dict[str, Any], whole: dict[str, Any]) -> Record:
        needed = set(schema.get("required", ()))
        fields = {
            name: (form(inner, whole), name in needed, json.dumps(inner["default"]) if "default" in inner else "")
            for name, inner in schema["properties"].items()
        }
        tags = {name: fits for name, (fits, _, _) in fields.items() if name in ("kind", "role")}
        single = {name: str(*fits) for name, fits in tags.items() if len(fits) == 1 and fits != {"string"}}
        return cls(fields, single)

    @property
    def key(self) -> str:
        """What distinguishes alternatives: the values of its tag."""
        return " ".join(f"{name}={value}" for name, value in self.tags.items())


def _with(each: Any, schema: dict[str, Any], whole: dict[str, Any]) -> Any:
    assert isinstance(each, Record)
    more = Record.of(schema, whole)
    return Record({**more.fields, **each.fields}, more.tags | each.tags)


def differences(place: str, ours: Any, theirs: Any, *, line: bool) -> list[str]:
    """Where the two forms differ, a line each; of a line that is read ours may allow and hold more."""
    records = {each.key: each for each in ours if isinstance(each, Record)}
    their_records: dict[str, list[Record]] = {}
    for each in theirs:
        if isinstance(each, Record):
            their_records.setdefault(each.key, []).append(each)
    found = []
    if set(records) != set(their_records):
        return [f"{place}: alternatives {sorted(records)} instead of {sorted(their_records)}"]
    for key, alternatives in their_records.items():
        found += _of_records(f"{place}[{key}]" if key else place, records[key], alternatives, line=line)
    plain, their_plain = _plain(ours), _plain(theirs)
    name = place.rpartition(".")[2]
    allowed = {"null"} if line and name in OF_THE_ENGINE_ALONE else set()
    allowed |= MORE_VALUES.get((place.rpartition(".")[0], name), set())
    if set(plain) - allowed != set(their_plain) - allowed and set(their_plain) != {"any"}:
        found.append(f"{place}: {sorted(map(str, plain))} instead of {sorted(map(str, their_plain))}")
    for kind in {"list", "map"} & set(plain) & set(their_plain):
        found += differences(f"{place}.*", plain[kind], their_plain[kind], line=line)
    return found


def _plain(forms: Any) -> dict[Any, Any]:
    return {each[0] if isinstance(each, tuple) else each: each[1] if isinstance(each, tuple) else None
            for each in forms if not isinstance(each, Record)}  # fmt: skip


def _of_records(place: str, ours: Record, alternatives: list[Record], *, line: bool) -> list[str]:
    theirs: dict[str, tuple[Any, bool, str]] = {}
    for each in alternatives:  # of one tag: a field of some alternatives only may be left out
        for name, (fits, needed, default) in each.fields.items():
            before = theirs.get(name)
            theirs[name] = (fits | before[0], needed and before[1], default) if before else (fits, needed, default)
    everywhere = set.intersection(*(set(each.fields) for each in alternatives))
    theirs = {name: (fits, needed and name in everywhere, default) for name, (fits, needed, default) in theirs.items()}
    found = [f"{place}.{name}: is missing here" for name in theirs if name not in ours.fields]
    for name, (fits, needed, default) in ours.fields.items():
        if name not in theirs:
            if not line or needed:
                found.append(f"{place}.{name}: the engine has no such field")
            continue
        their_fits, their_needed, their_default = theirs[name]
        if name in MERGED.get(place, ()):
            continue
        if line and not their_needed:
            found += differences(f"{place}.{name}", fits | {"null"}, their_fits | {"null"}, line=line)
        else:
            found += differences(f"{place}.{name}", fits, their_fits, line=line)
        # Unset: the engine's own default. schemars names none of a record whose defaults are its type's.
        same = default == their_default or not default or not their_default
        if not line and (needed != their_needed or not same):
            found.append(f"{place}.{name}: {needed, default} instead of {their_needed, their_default}")
        if line and needed and not their_needed:
            found.append(f"{place}.{name}: may be missing")
    return found


def _pair(name: str, kind: Any) -> tuple[Any, Any]:
    theirs = json.loads((SCHEMAS / f"{name}.json").read_text())
    ours = msgspec.json.schema(kind)
    return form(ours, ours), form(theirs, theirs)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_is_that_of_the_engine(name: str) -> None:
    assert differences(name, *_pair(name, CONFIGS[name]), line=False) == []


@pytest.mark.parametrize("name", LINES)
def test_a_line_is_that_of_the_engine(name: str) -> None:
    assert differences(name, *_pair(name, LINES[name]), line=True) == []


def test_every_schema_has_its_type() -> None:
    assert {path.stem for path in SCHEMAS.glob("*.json")} == {*CONFIGS, *LINES, "error_class"}


def test_error_classes_are_those_of_the_engine_and_all_have_words() -> None:
    theirs = json.loads((SCHEMAS / "error_class.json").read_text())
    assert set(ENGINE_CLASSES) == set(form(theirs, theirs))
    wordless = {each for each in CLASSES if failure(each).said.startswith("it failed")}
    assert {each for each in wordless if not each.startswith("video:")} == set()
