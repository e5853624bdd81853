"""Which file of a Rust crate names what of which other, read from its text: `use` trees and paths written out.

A crate's macros and methods are not followed; a `pub use` counts as an arrow to what it hands on. A module that is
inside another may name it (`super::`): they are one, as far as circles go. Code that is compiled for tests alone is no
part of the crate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

Module = tuple[str, ...]
"""Names below the crate; the crate's own root is ()."""

_LEXICAL = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | r(?P<hashes>\#*)".*?"(?P=hashes) | "(?:\\.|[^"\\])*" | '(?:\\.[^']*|[^'\\])'""",
    re.DOTALL | re.VERBOSE,
)
_TEST_MODULE = re.compile(
    r"#\[cfg\((?:test|all\(test\b[^]]*\))\)\]\s*(?:#\[[^]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*([;{])"
)
_USE = re.compile(r"\buse\s+([^;]+);")
_PATH = re.compile(r"\b(?:crate|super|self)(?:\s*::\s*\w+)+")


def modules(source: Path) -> dict[Module, Path]:
    """The modules of a crate that are files of their own, by the folder with its `lib.rs` or `main.rs`."""
    found: dict[Module, Path] = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        if any(part == "tests" or part == "testing" or part.endswith("_tests") for part in parts):
            continue
        found[() if parts in (("lib",), ("main",)) else parts[:-1] if parts[-1] == "mod" else parts] = path
    return found


def arrows(source: Path) -> dict[Module, set[Module]]:
    """Module -> the modules it names, without itself and those that it is inside of."""
    there = modules(source)
    made: dict[Module, set[Module]] = {}
    for module, path in there.items():
        text = _code(path.read_text(encoding="utf-8"))
        named = (_target(name, module, there) for name in _names(text))
        made[module] = {one for one in named if one is not None and one != module[: len(one)]}
    return made


def _code(text: str) -> str:
    """The text without comments, literals and modules of tests."""
    text = _LEXICAL.sub(" ", text)
    while (found := _TEST_MODULE.search(text)) is not None:
        end = found.end()
        if found[1] == "{":
            depth = 1
            while depth:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
        text = text[: found.start()] + text[end:]
    return text


def _names(text: str) -> Iterator[list[str]]:
    """Every path that the text names, in parts."""
    for statement in _USE.findall(text):
        for path in _expanded(re.sub(r"\s+as\s+\w+|\s", "", statement)):
            yield path.split("::")
    for path in _PATH.findall(_USE.sub(" ", text)):
        yield re.sub(r"\s", "", path).split("::")


def _expanded(tree: str) -> Iterator[str]:
    """`a::{b, c::{d}}` as `a::b`, `a::c::d`."""
    opened = tree.find("{")
    if opened < 0:
        yield tree
        return
    head, depth, start = tree[:opened], 0, opened + 1
    for place in range(opened, len(tree)):
        letter = tree[place]
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if (letter == "," and depth == 1) or (letter == "}" and depth == 0):
            if tree[start:place]:
                yield from _expanded(head + tree[start:place])
            start = place + 1
        if not depth:
            return


def _target(path: list[str], module: Module, there: dict[Module, Path]) -> Module | None:
    """The file that holds what the path names, or hands it on; None: it is of another crate."""
    if path[0] == "crate":
        place, rest = (), path[1:]
    elif path[0] in ("self", "super"):
        place, rest = module, path
        while rest and rest[0] in ("self", "super"):
            place, rest = (place[:-1] if rest[0] == "super" else place), rest[1:]
    elif (*module, path[0]) in there:
        place, rest = module, path
    else:
        return None
    while rest and (*place, rest[0]) in there:
        place, rest = (*place, rest[0]), rest[1:]
    return place
