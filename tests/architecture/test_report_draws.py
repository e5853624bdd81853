"""The report words and draws what `trifecta.conclude` worked out: it neither computes nor dissects by itself."""

import ast
import importlib
import inspect
import typing
from pathlib import Path

import trifecta.report

ROOT = Path(trifecta.report.__file__).parent
COMPUTING = ("trifecta.analysis.", "trifecta.trace.")
# The only file with arrays, and the only functions of the packages that compute, that the report may import, and why.
ARRAYS = {"figures/panels.py": "a million points are thinned to the pixels that they fall on before they are drawn"}
FUNCTIONS = {
    ("trifecta.analysis.scaling", "verdict_changes"): "between which levels verdicts change, of words alone",
    ("trifecta.analysis.statements", "given"): "a published number is looked up",
}


def _computes(module, name):
    """Whether a name is a module or a function; types and constants may be imported."""
    found = getattr(importlib.import_module(module), name, importlib)  # a module that nobody imported yet
    typed = inspect.isclass(found) or typing.get_origin(found) is not None
    return inspect.ismodule(found) or (callable(found) and not typed)


def _imported(path):
    """(module, name) of every import, wherever in the file it stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module, one.name) for one in node.names)


def _found():
    arrays, functions = set(), set()
    for path in sorted(ROOT.rglob("*.py")):
        for module, name in _imported(path):
            if module.split(".")[0] in ("numpy", "scipy"):
                arrays.add(str(path.relative_to(ROOT)))
            if f"{module}.{name}.".startswith(COMPUTING) and (not name or _computes(module, name)):
                functions.add((module, name))
    return arrays, functions


def test_the_report_computes_nothing():
    arrays, functions = _found()
    assert arrays == set(ARRAYS)
    assert functions == set(FUNCTIONS)
