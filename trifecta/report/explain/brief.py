"""The chains of evidence on one screen: where the time of each verdict is, what would overturn it, what is open."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from trifecta.conclude.explain.chain import Chain, Explained
from trifecta.design.phrases import counted, listed
from trifecta.report import grids, next_commands
from trifecta.report.explain import experiments, words
from trifecta.report.explain.output import place
from trifecta.report.figures.style import name
from trifecta.report.open_verdicts import reach

LINES = 50
"""A screen."""

_THREATS = 4  # named; the others are counted


def print_brief(explanation: Explained, console: Console | None = None) -> None:
    """Print the decided verdicts, as many as a screen of `LINES` lines has room for; of one cell also the open ones."""
    with explanation.about.naming():
        _print(explanation, console or Console(highlight=False))


def _print(explanation: Explained, out: Console) -> None:
    answered = experiments.answers(explanation)
    head, tail = list(_head(explanation)), list(_tail(out, explanation, has_answers=bool(answered)))
    left = LINES - _lines(out, head) - _lines(out, tail) - 1
    chains = [one for one in explanation.chains if one.comparison.decided]
    if len({one.comparison.cell for one in explanation.chains}) == 1:
        chains = explanation.chains  # one cell was asked for: its open verdicts, too
    shown: list[RenderableType] = []
    for number, chain in enumerate(chains):
        entry = list(_verdict(out, explanation, chain, answered, brief=len(chains) > 3))
        size = _lines(out, entry)
        more = len(chains) - number
        if size > left - (more > 1):
            shown.append(Text(f"And {counted(more, 'more decided verdict')}.", style="dim"))
            break
        left -= size
        shown += entry
    for part in (*head, *shown, *tail):
        out.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))


def _lines(out: Console, parts: Sequence[RenderableType]) -> int:
    return sum(
        1 if isinstance(part, Text) and part.no_wrap else len(out.render_lines(part, pad=False)) for part in parts
    )


def _head(explanation: Explained) -> Iterator[RenderableType]:
    yield Text(explanation.about.title, style="bold")
    decided = sum(one.comparison.decided for one in explanation.chains)
    yield Text(
        f"{decided} of {counted(len(explanation.chains), 'verdict')} decided."
        if explanation.chains
        else "There is no verdict to explain."
    )
    yield Text()


def _verdict(
    out: Console, explanation: Explained, chain: Chain, answered: experiments.Answers, *, brief: bool
) -> Iterator[RenderableType]:
    one = chain.comparison
    pair = (name(one.arm), name(one.reference))
    yield Text(f"{place(one.cell)}: {pair[0]} against {pair[1]}", style="bold")
    yield _indented(out, words.conclusion(explanation.about, chain))
    if sentence := experiments.summary(answered, one):
        yield _indented(out, sentence)
    failed = [
        f"{each.check.replace('_', ' ')} ({each.counts['fail']})" for each in chain.checked if each.status == "fail"
    ]
    if failed and not brief:
        yield _indented(out, f"Failed checks: {listed(failed)}.")
    if one.decided:
        yield _indented(out, f"What would overturn it: {words.overturn(explanation.about, chain, pair)[0]}")
        for sentence in () if brief else words.steadiness(chain.challenge):
            yield _indented(out, sentence)


def _indented(out: Console, text: str) -> Padding:
    return Padding(Text(grids.plain(out, text.replace("`", ""))), (0, 0, 0, 2))


def _tail(out: Console, explanation: Explained, *, has_answers: bool) -> Iterator[RenderableType]:
    opened = [one.comparison for one in explanation.chains if not one.comparison.decided]
    yield Text()
    if opened:
        yield Text.assemble((f"Open: {len(opened)}. ", "bold"), grids.plain(out, reach(opened)))
    on: dict[str, list[str]] = {}
    for chain in explanation.chains:
        for switch in chain.switches:
            if switch.state == "on":
                on.setdefault(f"{switch.title} ({switch.id})", []).append(switch.why)
    if on:
        yield Text("Threats to validity that are on:", style="bold")
        worst = sorted(on.items(), key=lambda each: -len(each[1]))
        for sentence, where in worst[:_THREATS]:
            yield _indented(out, f"in {len(where)} of {counted(len(explanation.chains), 'verdict')}: {sentence}")
        if len(worst) > _THREATS:
            yield _indented(out, f"and {len(worst) - _THREATS} more")
    line = next_commands.causes(explanation.about, [one.comparison for one in explanation.chains])
    if line and not has_answers:
        yield Text(f"Causes, by experiment: {line}", no_wrap=True)
    folder = shlex.quote(next_commands.relative_folder(explanation.about.folder))
    yield Text(f"All evidence: trifecta explain {folder} --full", no_wrap=True)
    if len(explanation.chains) > 3:
        cell = shlex.quote(explanation.chains[0].comparison.cell)
        yield Text(f"One cell: trifecta explain {folder} --cell {cell}", no_wrap=True)
