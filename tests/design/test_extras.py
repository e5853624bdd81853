"""Extras: those of pyproject.toml are those that commands name, and what is missing is named in one line."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from trifecta.design import extras
from trifecta.design.errors import CannotError

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
OPTIONAL: dict[str, list[str]] = PROJECT["optional-dependencies"]
MODULES = {
    "opentelemetry-sdk": "opentelemetry",
    "opentelemetry-exporter-otlp-proto-common": "opentelemetry",
}
"""Packages whose module has another name."""


def packages(extra: str) -> set[str]:
    """The modules that an extra brings, with the extras that it names."""
    found = set()
    for requirement in OPTIONAL[extra]:
        of_ours = re.match(r"trifecta\[(.*)\]", requirement)
        if of_ours:
            found |= {each for name in of_ours[1].split(",") for each in packages(name)}
        else:
            package = re.match(r"[\w-]+", requirement)[0]  # type: ignore[index]
            found.add(MODULES.get(package, package))
    return found


def test_the_extras_are_those_of_the_package() -> None:
    assert set(extras.EXTRAS) == set(OPTIONAL) - {"all", "dev"}
    for name, extra in extras.EXTRAS.items():
        assert set(extra.modules) == packages(name)
    assert packages("all") == {module for extra in extras.EXTRAS.values() for module in extra.modules}
    plain = {re.match(r"[\w.-]+", each)[0] for each in PROJECT["dependencies"]}  # type: ignore[index]
    assert not plain & packages("all")


@pytest.mark.parametrize("module", ["pyarrow", "pyarrow.compute", "websockets.exceptions", "docker"])
def test_a_missing_module_is_named_with_its_extra(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = module.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    extra = next(name for name, one in extras.EXTRAS.items() if package in one.modules)
    with pytest.raises(CannotError, match=rf"the package {package} .*; run: pip install 'trifecta\[{extra}\]'") as said:
        extras.load(module)
    assert "\n" not in str(said.value)
    later = extras.LazyModule(module)
    with pytest.raises(CannotError, match=package):
        later.anything  # noqa: B018 - it is imported here


def test_a_fault_inside_a_module_is_not_taken_for_a_missing_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brotli.py").write_text("import what_brotli_lacks\n")
    monkeypatch.delitem(sys.modules, "brotli", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="what_brotli_lacks"):
        extras.load("brotli")
    monkeypatch.delitem(sys.modules, "brotli", raising=False)
