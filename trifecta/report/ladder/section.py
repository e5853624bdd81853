"""Ladders in the page of a reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trifecta.conclude.ladder import ORDERS, STEPS
from trifecta.contract.ladder import LadderDocument
from trifecta.report.figures import svg
from trifecta.report.ladder import picture, words
from trifecta.store.ladders import LADDERS_FOLDER

_RUNS = {STEPS: "steps", ORDERS: "the two largest steps in both orders"}


@dataclass(frozen=True)
class ShownStep:
    """A row of the table of steps."""

    title: str
    why: str
    exchanged: str
    change: str
    ratio: str
    counts: bool
    source: str
    threat: str


@dataclass(frozen=True)
class ShownLadder:
    """A ladder as the page has it."""

    ladder: str
    title: str
    text: str
    claim: str
    answer: str
    quantity: str
    picture: str
    first: str
    steps: tuple[ShownStep, ...]
    lines: tuple[str, ...]
    runs: tuple[tuple[str, str], ...]


def shown_ladders(ladders: Sequence[LadderDocument]) -> list[ShownLadder]:
    """Those of a reproduction."""
    with svg.drawing():
        return [_shown(one) for one in ladders]


def _shown(document: LadderDocument) -> ShownLadder:
    steps = tuple(
        ShownStep(
            title=step["title"],
            why=step["why"],
            exchanged=words.exchanged(step),
            change=words.ratio(step),
            ratio=words.ratio(rung),
            counts=step["counts"],
            source=step["source"],
            threat=step["threat"],
        )
        for step, rung in zip(document["steps"], document["rungs"][1:], strict=True)
    )
    lines = [words.closing(document), *(f"{words.order(one)}." for one in document["orders"])]
    if document["no_orders"]:
        lines.append(f"Two steps in the other order: {document['no_orders']}.")
    if lost := words.left_out(document):
        lines.append(lost)
    if document["lacks"]:
        lines.append(f"Not as published: {'; '.join(document['lacks'])}.")
    folder = f"{LADDERS_FOLDER}/{document['ladder']}"
    return ShownLadder(
        ladder=document["ladder"],
        title=document["title"],
        text=document["text"],
        claim=document["claim"],
        answer=words.answer(document),
        quantity=words.quantity(document),
        picture=picture.draw(document).svg(f"ladder-{document['ladder']}"),
        first=words.ratio(document["rungs"][0]),
        steps=steps,
        lines=tuple(lines),
        runs=tuple((_RUNS[name], f"{folder}/{name}/report.html") for name in document["runs"]),
    )
