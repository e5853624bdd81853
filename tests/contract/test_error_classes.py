"""A failure has a class that there is: in the programs of clients, in their drivers, in the row."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.implementations.jobs import job
from trifecta import implementations
from trifecta.contract.errors import CLASSES, is_error_class, of_client
from trifecta.implementations.client import Output
from trifecta.implementations.clients import records

PROGRAMS = Path(implementations.__file__).parent / "programs"
FAMILIES = {name.partition(":")[0] for name in CLASSES if ":" in name}


def of_go(source: str) -> set[str]:
    """What the functions of a Go program return as text."""
    return {text for text in re.findall(r'return "([^"]*)"', source) if text}


def of_python(source: str) -> set[str]:
    """What the functions of a module return as text, from tables too; and all that has the form of a class."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        returned = isinstance(node, ast.Return) and node.value is not None
        for part in ast.walk(node) if returned else (node,):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                family, colon, rest = part.value.partition(":")
                if colon and rest and family in FAMILIES and " " not in rest:
                    found.add(part.value)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant | ast.IfExp):
            parts = [node.value] if isinstance(node.value, ast.Constant) else [node.value.body, node.value.orelse]
            found |= {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    return found


def test_those_of_the_go_client_exist() -> None:
    said = of_go((PROGRAMS / "go-client" / "classify.go").read_text("utf-8"))
    assert len(said) > 20
    assert said - CLASSES == set()


def test_those_of_the_python_client_exist() -> None:
    files = {path.name: of_python(path.read_text("utf-8")) for path in (PROGRAMS / "python-client").glob("*.py")}
    failures = files["failures.py"]
    assert {"tls:alpn", "goaway", "quic:transport", "malformed:http3"} <= failures
    assert failures - CLASSES == set()
    assert {text for said in files.values() for text in said if ":" in text} - CLASSES == set()


def test_one_that_is_none_is_seen() -> None:
    assert of_go('func class() string { return "tls:aplert" }') - CLASSES == {"tls:aplert"}
    assert of_python('def of(x):\n    return "resset" if x else "tls:alpn"') - CLASSES == {"resset"}
    assert of_python('TABLE = {1: "quic:tranport"}') - CLASSES == {"quic:tranport"}


@pytest.mark.parametrize("error", ["conect_refused", "tls:", "tls:other", "client:", "client:Not One", "", "browser:x"])
def test_a_row_with_a_class_that_does_not_exist_is_refused(tmp_path: Path, error: str) -> None:
    asked = job(tmp_path, requests=1)
    output = Output(0, tmp_path / "out", tmp_path / "err", began_ns=0, began_wall_ns=0, ended_ns=2_000_000)
    with pytest.raises(ValueError, match="is no error class"):
        records.complete("t00000", asked, output, [{"started_ns": 1_000, "error": error}], killed=False)


@pytest.mark.parametrize("error", [*sorted(CLASSES), "client:curl_7"])
def test_a_row_with_one_that_does_is_taken(tmp_path: Path, error: str) -> None:
    assert is_error_class(error)
    asked = job(tmp_path, requests=1)
    output = Output(0, tmp_path / "out", tmp_path / "err", began_ns=0, began_wall_ns=0, ended_ns=2_000_000)
    (row,) = records.complete("t00000", asked, output, [{"started_ns": 1_000, "error": error}], killed=False)
    assert row["error"] == error


def test_a_client_names_its_own() -> None:
    assert of_client("curl_7") == "client:curl_7"
    with pytest.raises(ValueError, match="names no error class"):
        of_client("Curl 7")
