"""Reads the examples of a Markdown file: what to run, what it must say, and the files it needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(r"((?:^<!--[^\n]*-->\n)*)^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"<!-- (\w+)(?:: (.*?))? -->")
_IN_LAB = re.compile(r"\b(race|run|resume|link measure|doctor|conformance)\b")


@dataclass(frozen=True)
class Block:
    """A fenced block with the marks right above it: ``long``, ``exit: 2``, ``file: NAME``, ``run: FOLDER``, ``lab``."""

    page: Path
    line: int
    language: str
    text: str
    marks: dict[str, str]

    @property
    def long(self) -> bool:
        return "long" in self.marks

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Each ``$ trifecta`` command of a console block with the output shown for it."""
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        pairs = [part.partition("\n")[::2] for part in parts]
        return [(command, output) for command, output in pairs if command.startswith("trifecta")]

    @property
    def in_lab(self) -> bool:
        return any(_IN_LAB.search(command) for command, _ in self.commands)


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page=page,
            line=text.count("\n", 0, match.start(2)) + 1,
            language=match[2],
            text=match[3],
            marks={mark[1]: mark[2] or "" for mark in _MARK.finditer(match[1])},
        )
        for match in _BLOCK.finditer(text)
    ]
