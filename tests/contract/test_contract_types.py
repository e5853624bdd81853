"""`trifecta/contract/impairments.py` is what `scripts/contract_types.py` writes of the engine's schema now."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trifecta.contract import impairments

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location("contract_types", ROOT / "scripts/contract_types.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where msgspec looks for the names in its annotations
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def schema(script: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(script.SCHEMA.read_bytes())
    return found


def test_the_types_are_what_the_schema_says(script: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--check"]) == 0, capsys.readouterr().out


def test_a_stale_file_is_named_and_left_alone(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "impairments.py"
    stale.write_text("old")
    monkeypatch.setattr(script, "WRITTEN", stale)
    assert script.main(["--check"]) == 1
    said = "impairments.py: is not what the schema says; run: python scripts/contract_types.py"
    assert capsys.readouterr().out.strip() == said
    assert stale.read_text() == "old"
    assert script.main([]) == 0
    assert script.main(["--check"]) == 0


def made(script: Any, schema: dict[str, Any], kind: dict[str, Any]) -> dict[str, Any]:
    """The module's names when the engine has one more kind."""
    form = {"type": "object", **kind, "properties": {"kind": {"const": "fade"}, **kind.get("properties", {})}}
    schema["$defs"]["Form"]["oneOf"].append(form)
    names: dict[str, Any] = {"__name__": impairments.__name__}
    exec(script.module(json.dumps(schema).encode()), names)
    return names


def test_a_new_kind_of_the_engine_gets_its_type_and_its_fields(script: Any, schema: dict[str, Any]) -> None:
    schema["$defs"]["Shape"] = {"type": "string", "enum": ["sine", "square"], "description": "Of shapes."}
    unsigned = {"type": "integer", "minimum": 0}
    kind = {
        "description": "The level goes\nup and \\ down.",
        "required": ["kind", "period_ns", "shape_of"],
        "properties": {
            "floor": {"type": ["number", "null"], "default": None, "description": "A share. " * 20},
            "period_ns": unsigned,
            "shape_of": {"$ref": "#/$defs/Shape"},
            "levels": {"type": "array", "items": {"type": "integer"}},
        },
    }
    names = made(script, schema, kind)
    fade = names["Fade"]
    assert fade.__doc__ == "The level goes up and \\ down."
    annotations = list(fade.__annotations__.items())
    assert annotations == [
        ("period_ns", "Unsigned"),
        ("shape_of", "Literal['sine', 'square']"),
        ("floor", "float | UnsetType | None"),
        ("levels", "list[int] | UnsetType"),
    ]
    assert names["ImpairmentDocument"].__annotations__.keys() >= {"floor", "period_ns", "shape_of", "levels"}
    assert fade in names["Impairment"].__args__


def test_alternatives_of_one_kind_become_one_type(script: Any, schema: dict[str, Any]) -> None:
    def way(name: str, **fields: dict[str, Any]) -> dict[str, Any]:
        return {"required": ["way", *fields], "properties": {"way": {"const": name}, **fields}}

    kind = {"required": ["kind"], "oneOf": [way("up"), way("down", steps={"type": "integer"})]}
    fade = made(script, schema, kind)["Fade"]
    assert fade.__annotations__ == {"way": "Literal['up', 'down']", "steps": "int | UnsetType"}


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"reorder": {"type": "integer"}}, "reorder is bool in one kind and int in another (fade)"),
        ({"level": {"type": ["integer", "string"]}}, "no type is known for"),
        ({"level": {"type": "object"}}, "no type is known for"),
    ],
)
def test_what_it_cannot_write_is_said(script: Any, schema: dict[str, Any], field: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as raised:
        made(script, schema, {"properties": field})
    assert said in str(raised.value)


def test_a_document_has_the_fields_of_the_types_and_no_others() -> None:
    fields = {each.encode_name for kind in impairments.Impairment.__args__ for each in msgspec.structs.fields(kind)}
    assert impairments.ImpairmentDocument.__annotations__.keys() == fields | {"kind"}
