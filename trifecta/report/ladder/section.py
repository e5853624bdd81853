"""Ladders in the page of a reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trifecta.conclude.ladder import ORDERS, STEPS
from trifecta.contract.ladder import LadderFound
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


def of_ladders(found: Sequence[LadderFound]) -> list[ShownLadder]:
    """Those of a reproduction."""
    with svg.drawing():
        return [_shown(one) for one in found]


def _shown(found: LadderFound) -> ShownLadder:
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
        for step, rung in zip(found["steps"], found["rungs"][1:], strict=True)
    )
    lines = [words.closing(found), *(f"{words.order(one)}." for one in found["orders"])]
    if found["no_orders"]:
        lines.append(f"Two steps in the other order: {found['no_orders']}.")
    if lost := words.left_out(found):
        lines.append(lost)
    if found["lacks"]:
        lines.append(f"Not as published: {'; '.join(found['lacks'])}.")
    folder = f"{LADDERS_FOLDER}/{found['ladder']}"
    return ShownLadder(
        ladder=found["ladder"],
        title=found["title"],
        text=found["text"],
        claim=found["claim"],
        answer=words.answer(found),
        quantity=words.quantity(found),
        picture=picture.draw(found).svg(f"ladder-{found['ladder']}"),
        first=words.ratio(found["rungs"][0]),
        steps=steps,
        lines=tuple(lines),
        runs=tuple((_RUNS[name], f"{folder}/{name}/report.html") for name in found["runs"]),
    )
