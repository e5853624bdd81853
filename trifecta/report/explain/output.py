"""Chains of evidence in a terminal and as plain data."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from trifecta.analysis.resampling import Concluded
from trifecta.conclude.comparisons import levels
from trifecta.conclude.explain.chain import Chain, Explained
from trifecta.contract.values import JsonObject
from trifecta.report import grids
from trifecta.report.explain import experiments, words
from trifecta.report.explain.resampled import summary
from trifecta.report.figures.style import name
from trifecta.report.verdict_words import place_words


def print_chains(explanation: Explained, concluded: list[Concluded], console: Console | None = None) -> None:
    """Print each chain, link by link; ``concluded`` is what published procedures would have said."""
    with explanation.about.naming():
        _print(explanation, concluded, console or Console(highlight=False))


def _print(explanation: Explained, concluded: list[Concluded], out: Console) -> None:
    out.print(Text(explanation.about.title, style="bold"))
    if not explanation.chains:
        out.print("There is no verdict to explain.")
    answered = experiments.answers(explanation)
    for chain in explanation.chains:
        one = chain.comparison
        out.print()
        out.print(Text(f"{place(one.cell)}: {name(one.arm)} against {name(one.reference)}", style="bold"))
        out.print(Text(grids.plain(out, words.conclusion(explanation.about, chain))))
        if by_experiment := experiments.summary(answered, one):
            out.print(Text(grids.plain(out, by_experiment)))
        for link in words.links(explanation.about, chain):
            out.print(Text(link.heading, style="bold cyan"))
            for sentence in link.sentences:
                head, _, command = grids.plain(out, sentence).partition("`trifecta resume ")
                out.print(Padding(Text(f"- {head.rstrip()}"), (0, 0, 0, 2)))
                if command:  # not wrapped: a command must stay in one piece to be copied
                    out.print(Text(f"    trifecta resume {command.rstrip('`.')}"), soft_wrap=True)
        mine = [
            each for each in concluded if (each.cell, each.arm, each.reference) == (one.cell, one.arm, one.reference)
        ]
        if mine:
            out.print(Text("What a published procedure would have concluded", style="bold cyan"))
            for each in mine:
                out.print(Padding(Text(grids.plain(out, f"- {summary(each)}")), (0, 0, 0, 2)))


def place(cell: str) -> str:
    """A cell in words, its path first."""
    path = levels(cell).get("path", "")
    return ", ".join(filter(None, (path, place_words(cell))))


def as_data(explanation: Explained, concluded: list[Concluded]) -> JsonObject:
    """The same for a program."""
    with explanation.about.naming():
        answered = experiments.answers(explanation)
        return {
            "run": str(explanation.about.folder),
            "title": explanation.about.title,
            "metric": explanation.about.metric,
            "compare": explanation.about.compare,
            "chains": [_chain(explanation, chain, concluded, answered) for chain in explanation.chains],
        }


def _chain(
    explanation: Explained, chain: Chain, concluded: list[Concluded], answered: experiments.Answers
) -> dict[str, Any]:
    one = chain.comparison
    pair = (one.cell, one.arm, one.reference)
    return {
        "cell": one.cell,
        "arm": one.arm,
        "reference": one.reference,
        "verdict": {key: _finite(value) for key, value in one.row.items()},
        "said": words.conclusion(explanation.about, chain),
        "by_experiment": answered.get(pair, ""),
        "links": [asdict(link) for link in words.links(explanation.about, chain)],
        "settings": [asdict(each) | {"same": each.same} for each in chain.settings],
        "checks": [asdict(each) | {"counts": dict(each.counts)} for each in chain.checked],
        "causes": [
            {
                "of": split.parts.of,
                "blocks": split.causes.whole.blocks,
                "told_apart": split.causes.told_apart,
                "whole": asdict(split.causes.whole.whole),
                "parts": [
                    asdict(each.found)
                    | {"share": each.share, "share_low": each.share_low, "share_high": each.share_high}
                    for each in split.causes.causes
                ],
                "round_trips": dict(split.parts.round_trips),
                "rtt_ns": split.parts.rtt_ns,
            }
            for split in chain.splits
        ],
        "cpu_ns": dict(chain.cpu_ns),
        "overturn": {
            "blocks": chain.challenge.blocks,
            "opposed": chain.challenge.opposed,
            "without_one": chain.challenge.without_one,
            "halves": chain.challenge.halves,
        },
        "threats": [asdict(each) for each in chain.switches],
        "resampled": [asdict(each) for each in concluded if (each.cell, each.arm, each.reference) == pair],
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
