"""Where objects without a type cross a module's edge: parameters and returns of public functions.

Counted are `dict[str, Any]`, `Mapping[str, Any]` and the like, also with `object`, inside any annotation, and by the
names that modules give them. Programs that run with a Python of their own (`implementations/programs`) are no modules.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNTYPED = re.compile(r"\b(?:dict|Dict|Mapping|MutableMapping)\[\w+, (?:typing\.)?(?:Any|object)\]")


@dataclass(frozen=True, order=True)
class Edge:
    """One parameter, or the return, of a public function."""

    module: str
    function: str
    what: str

    def __str__(self) -> str:
        return f"{self.module}:{self.function}:{self.what}"


@dataclass
class _Module:
    name: str
    tree: ast.Module
    untyped_names: set[str]


def edges(root: Path = ROOT / "trifecta") -> list[Edge]:
    """All of them, in order."""
    modules = {module.name: module for module in _modules(root)}
    for module in modules.values():
        module.untyped_names |= _imported(module, modules)
    return sorted(edge for module in modules.values() for edge in _of_body(module, module.tree.body, ""))


def _modules(root: Path) -> Iterator[_Module]:
    for path in sorted(root.rglob("*.py")):
        if "programs" in path.parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
        yield _Module(name, tree, {alias for alias, value in _aliases(tree) if UNTYPED.search(ast.unparse(value))})


def _aliases(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _imported(module: _Module, modules: dict[str, _Module]) -> set[str]:
    found = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            there = {name for name, value in _aliases(modules[node.module].tree) if UNTYPED.search(ast.unparse(value))}
            found |= {alias.asname or alias.name for alias in node.names if alias.name in there}
    return found


def _of_body(module: _Module, body: list[ast.stmt], prefix: str) -> Iterator[Edge]:
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _of_body(module, node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_public(node.name):
            asked = node.args
            arguments = [*asked.posonlyargs, *asked.args, *asked.kwonlyargs, asked.vararg, asked.kwarg]
            annotated = [(each.arg, each.annotation) for each in arguments if each is not None]
            for what, annotation in [*annotated, ("return", node.returns)]:
                if annotation is not None and _is_untyped(module, annotation):
                    yield Edge(module.name, f"{prefix}{node.name}", what)


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__call__")


def _is_untyped(module: _Module, annotation: ast.expr) -> bool:
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    return bool(UNTYPED.search(ast.unparse(annotation)) or names & module.untyped_names)


if __name__ == "__main__":
    everything = edges()
    print(*everything, sep="\n")
    print(f"{sum(edge.what != 'return' for edge in everything)} parameters, "
          f"{sum(edge.what == 'return' for edge in everything)} returns")  # fmt: skip
