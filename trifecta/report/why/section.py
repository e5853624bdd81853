"""Searches for causes in the report of their run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trifecta.conclude.why.result import PAIR, SEARCH
from trifecta.contract.why import NotMeasured, WhyDocument
from trifecta.report.ladder.words import ratio
from trifecta.report.sections import Run, Section
from trifecta.report.why import picture, words
from trifecta.store import why

_RUNS = {SEARCH: "each cause alone", PAIR: "together, in rounds of their own"}


@dataclass(frozen=True)
class ShownCause:
    """A row of the table of causes."""

    title: str
    exchanged: str
    suspected: str
    remains: str
    share: str
    state: str
    named: bool
    cannot: str


@dataclass(frozen=True)
class ShownWhy:
    """A search as a page has it; ``page`` leads to its own, empty there."""

    id: str
    answer: str
    quantity: str
    picture: str
    causes: tuple[ShownCause, ...]
    lines: tuple[str, ...]
    missing: tuple[NotMeasured, ...]
    runs: tuple[tuple[str, str], ...]
    page: str


def why_view(document: WhyDocument, identity: str, folder: str) -> ShownWhy:
    """A search for a page from which its folder is reached by ``folder``, empty or with a slash at its end. Ask within
    ``svg.drawing()``.
    """
    causes = [
        ShownCause(
            title=one["title"],
            exchanged=words.removed_words(one),
            suspected=one["suspected"],
            remains=ratio(one),
            share=words.share(one),
            state=words.STATES[one["state"]],
            named=one["state"] in ("explains", "hides"),
            cannot=one["cannot"],
        )
        for one in document["causes"]
    ]
    if document["nearest"] is not None:
        as_is = ShownCause(words.AS_NEAREST, "", "", ratio(document["nearest"]), "", "", named=False, cannot="")
        causes.insert(words.first_nearest(document), as_is)
    lines = [*words.closing(document), words.method(document)]
    if lost := words.left_out(document):
        lines.append(lost)
    return ShownWhy(
        id=identity,
        answer=words.answer(document),
        quantity=words.quantity(document),
        picture=picture.draw(document).svg(f"{identity}-picture"),
        causes=tuple(causes),
        lines=tuple(lines),
        missing=(*document["not_switched"], *document["not_measured"]),
        runs=tuple((_RUNS[name], f"{folder}{name}/report.html") for name in document["runs"]),
        page=f"{folder}why.html" if folder else "",
    )


def _derive(run: Run) -> list[tuple[Path, WhyDocument]] | None:
    return why.of_run(run.about.folder) or None


def _draw(_: Run, documents: Sequence[tuple[Path, WhyDocument]]) -> list[ShownWhy]:
    return [
        why_view(one, f"why-{number}", f"{why.FOLDER}/{folder.name}/")
        for number, (folder, one) in enumerate(documents, 1)
    ]


SECTION = Section("why", "Why?", derive=_derive, draw=_draw, rows=lambda _: {}, page="why.html.j2")
