"""Threats in a terminal: the list, one in full, and what was measured of them; and the same as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypedDict

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trifecta.contract.threats import (
    DecompositionDocument,
    EffectDocument,
    EffectRow,
    KneeDocument,
    RoundTripsDocument,
    ThreatDocument,
)
from trifecta.design import numbers
from trifecta.design.metrics import BY_DIFFERENCE
from trifecta.design.model import PROTOCOL_NAMES
from trifecta.report import grids
from trifecta.threats import Threat
from trifecta.threats.threat import Change


class ThreatData(TypedDict):
    """A threat for a program to read; ``on`` and ``off`` are in the words of ``--set``."""

    id: str
    title: str
    fact: str
    studies: list[str]
    check: str | None
    undetected: str
    on: list[str] | str | None
    off: list[str] | str | None
    no_switch: str
    experiment: str | None
    elsewhere: str


_OUTCOMES = {
    "effect": "an effect",
    "no effect": "no effect on this machine",
    "not decided": "not decided",
    "not measured": "not measured",
}
_MODELS = {
    "round-trips": "the ratios measured beside those of the round trips alone",
    "decomposition": "which share of the effect is the protocol's, and which the program's",
    "knee": "at which request rate a program becomes the bottleneck",
}
_CHANGED = ("more", "less")
_NAMED = 3  # of what differs in a table, in its sentence
_COLOURS = {"more": "red", "less": "green", "same": "", "undecided": "yellow"}


def as_data(threat: Threat) -> ThreatData:
    """A threat for a program to read."""
    return {
        "id": threat.id,
        "title": threat.title,
        "fact": threat.fact,
        "studies": list(threat.studies),
        "check": threat.check,
        "undetected": threat.undetected,
        "on": _change(threat.on),
        "off": _change(threat.off),
        "no_switch": threat.no_switch,
        "experiment": f"threats/{threat.experiment}" if threat.experiment else None,
        "elsewhere": threat.elsewhere,
    }


def _change(change: Change | None) -> list[str] | str | None:
    """What a switch does, in the words of ``--set``, or that it changes what it finds."""
    if change is None:
        return None
    return (change.__doc__ or "changes what it finds in the study") if callable(change) else list(change)


def _switch(threat: Threat) -> str:
    positions = [position for position, change in (("on", threat.on), ("off", threat.off)) if change is not None]
    return ", ".join(positions) or "none"


def print_list(threats: Sequence[Threat]) -> None:
    """All threats, a line each."""
    out = Console(highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for title in ("threat", "what it is", "studies", "detected by", "switch"):
        table.add_column(title, overflow="fold", no_wrap=title == "threat")
    for threat in threats:
        name = Text(threat.id, "bold")
        table.add_row(name, threat.title, "\n".join(threat.studies), threat.check or "no check", _switch(threat))
    grids.show(out, table)
    out.print(
        "\nOne in full: trifecta threats ID. Switched in a study: trifecta run STUDY --with ID, or --without ID. "
        "Its effect here: trifecta threats measure ID --quick",
        soft_wrap=True,
    )


def print_threat(threat: Threat) -> None:
    """One threat in full."""
    out = Console(highlight=False)
    out.print(Text(f"{threat.id}: {threat.title}", "bold"))
    out.print(threat.fact, markup=False)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("studies", ", ".join(threat.studies) or "none: Trifecta's own")
    table.add_row("detected by", f"the check {threat.check}" if threat.check else f"no check: {threat.undetected}")
    for option, change in (("--with", threat.on), ("--without", threat.off)):
        if change is not None:
            change_words = _change(change)
            table.add_row(
                f"{option} {threat.id}",
                change_words if isinstance(change_words, str) else "; ".join(change_words or ()),
            )
    if threat.on is None and threat.off is None:
        table.add_row("switch", f"none: {threat.no_switch}")
    if threat.experiment:
        table.add_row("experiment", f"trifecta threats measure {threat.id} --quick")
        for effect in threat.effects:
            what = f"{effect.title or threat.title}: {effect.factor} {effect.off} against {effect.on}"
            table.add_row("", Text(what))
        if threat.model:
            table.add_row("", _MODELS[threat.model])
    else:
        table.add_row("its effect", threat.elsewhere)
    out.print(table)


def print_measured(threats: Sequence[ThreatDocument], folder: Path) -> None:
    """What the experiments showed: a table for each, and what that says in words."""
    out = Console(highlight=False)
    for one in threats:
        out.print(Text(f"{one['threat']}: {one['title']}", "bold"))
        for line in sentences(one):
            out.print(line, markup=False)
        for effect in one["effects"]:
            out.print(_table(effect))
        for line in _model_lines(one["model"]):
            out.print(f"  {line}", markup=False)
        for run in one["runs"]:
            out.print(f"report: {run}/report.html", soft_wrap=True, markup=False)
        out.print("")
    out.print(f"all of it: {folder}/threats.json", soft_wrap=True, markup=False)


def sentences(threat: ThreatDocument) -> list[str]:
    """What was found of a threat, in words: what it does to the comparison, and whether it was noticed."""
    if threat["outcome"] == "not measured":
        return [f"not measured here: {threat['reason']}"]
    if "resampled" in threat or threat["outcome"] == "resampled":  # there is no traffic of its own
        return [*([_OUTCOMES[threat["outcome"]]] if threat["outcome"] in _OUTCOMES else []), str(threat["reason"])]
    lines = [f"{_OUTCOMES[threat['outcome']]}"]
    for effect in threat["effects"]:
        if effect["metric"] in BY_DIFFERENCE:
            lines.append(_rates(effect))
            continue
        compared = [row for row in effect["rows"] if row["reference"]]
        known = [row for row in compared if row["ratio"] is not None]
        lines += [
            line for row in (known or compared)[:1] for line in (_comparison(effect, row), *_elsewhere(effect, row))
        ]
    if threat["reason"]:
        lines.append(f"left out: {threat['reason']}")
    lines += _detections(threat["effects"])
    if not threat["check"]:
        lines.append(f"no check detects it: {threat['undetected']}")
    return lines


def _detections(effects: Sequence[EffectDocument]) -> list[str]:
    """In how many trials the threat's check said so, once for the same trials, with what they are where they differ."""
    first: dict[tuple[object, ...], tuple[EffectDocument, str]] = {}
    for effect in effects:
        if found := effect["detected"]:
            said = (
                f"the check {found['check']} warned or failed in {found['on']} of {found['on_trials']} trials with it, "
                f"in {found['off']} of {found['off_trials']} without"
            )
            first.setdefault(tuple(found.values()), (effect, said))
    return [_titled(effect, said) if len(first) > 1 else said for effect, said in first.values()]


def _rates(effect: EffectDocument) -> str:
    """Success rates off and on, by protocol."""
    words = []
    for row in effect["rows"]:
        if row["off"] and row["on"]:
            off, on = numbers.rate(row["off"]["value"]), numbers.rate(row["on"]["value"])
            still = " (open)" if row["outcome"] == "undecided" else ""
            words.append(f"{PROTOCOL_NAMES[row['arm']]} {off} without, {on} with{still}")
    return f"{effect['title'] or 'requests that succeed'}: {'; '.join(words)}"


def _model_lines(model: Sequence[RoundTripsDocument | KneeDocument | DecompositionDocument]) -> list[str]:
    """Measured ratios beside those that round trips alone make, the rate a program reaches, or a decomposition."""
    sentences = []
    for item in model:
        if "trips" in item:
            levels = item["levels"]
            shown = ("path", "connection", "tls_version", "zero_rtt")
            place = ", ".join(f"{name} {levels[name]}" for name in shown if name in levels)
            arms = f"{PROTOCOL_NAMES[item['arm']]} : {PROTOCOL_NAMES[item['reference']]}"
            ends = numbers.interval((item["low"], item["high"]))
            round_trips = f"{item['trips'][0]} : {item['trips'][1]} round trips = {numbers.ratio(item['expected'])}"
            sentences.append(f"{place}: {arms} {numbers.ratio(item['ratio'])} {ends}; {round_trips}")
        elif "steps" in item:
            sentences += _knee_lines(item)
        elif item["shares"]:
            shares = (
                f"{one['part']} {numbers.percent(one['share'])} "
                f"[{numbers.percent(one['low'])}, {numbers.percent(one['high'])}]"
                for one in item["shares"]
            )
            sentences.append(f"{item['place']}: of the effect {', '.join(shares)}")
    return sentences


def _knee_lines(item: KneeDocument) -> list[str]:
    """Where a program becomes the bottleneck, and its sweep."""
    from trifecta.analysis.knee import Knee
    from trifecta.report import sweep  # draws, which takes a while to load

    knee = msgspec.convert(item, Knee)
    most = f"{numbers.per_second(knee.most_per_s)} {numbers.interval((knee.most_low, knee.most_high))}"
    sentences = [f"{sweep.sentence(knee)} It did {most} at most."]
    for step in knee.steps:
        compared = ""
        if step.ratio is not None:
            ends = numbers.interval((step.low, step.high))
            compared = f", {numbers.ratio(step.ratio)} {ends} times that {knee.against}"
        missing = "no answer in time" if step.trials else "no trial that counts"
        latency = missing if step.latency_ns is None else numbers.duration(step.latency_ns)
        used = "" if step.used is None else f", {numbers.percent(step.used)} of its CPU time"
        notes = f"the check warned or failed in {step.loud} of {step.trials}"
        sentences.append(f"  {numbers.per_second(step.rate_per_s)}: {latency}{compared}{used}; {notes}: {step.state}")
    return sentences


def _comparison(effect: EffectDocument, row: EffectRow) -> str:
    what = _compared(row)
    if row["outcome"] in _CHANGED:
        change = f"it multiplies {what} ({effect['metric_label']}) by {_measured(row)}"
        return _titled(effect, f"{change}{_changed_verdict(row)}")
    same = f"{what} stays within {numbers.percent(effect['margin'])}"
    sentence = same if row["outcome"] == "same" else f"whether {what} changes is open"
    if row["ratio"] is not None:
        sentence += f": times {_measured(row)}"
    if row["outcome"] == "undecided":
        sentence += f" ({_why_open(effect, row)})"
    return _titled(effect, sentence)


def _elsewhere(effect: EffectDocument, shown: EffectRow) -> list[str]:
    """What differs where the comparison that is shown does not: single protocols, or the comparison in one place."""
    if shown["outcome"] in _CHANGED:
        return _not_everywhere(effect, shown)
    differing = [row for row in effect["rows"] if row["outcome"] in _CHANGED and row["blocks"]]
    if not differing:
        return []
    differing.sort(key=lambda row: row["reference"] is None)  # what is compared first
    words = []
    for row in differing[:_NAMED]:
        where = f" ({row['place']})" if row["place"] else ""
        words.append(f"of {_compared(row)}{where} by {_measured(row)}")
    more = len(differing) - len(words)
    rest = f" and {more} more in the table" if more else ""
    return [_titled(effect, f"it multiplies the {effect['metric_label']} {', '.join(words)}{rest}")]


def _not_everywhere(effect: EffectDocument, shown: EffectRow) -> list[str]:
    """The places where a comparison stays the same, or changes the other way, while all together it changes."""
    others = [
        f"{row['place']} {_measured(row)}"
        for row in effect["rows"]
        if (row["arm"], row["reference"]) == (shown["arm"], shown["reference"])
        and row["outcome"] not in (shown["outcome"], "undecided")
    ]
    return [_titled(effect, f"not in every place: {'; '.join(others)}")] if others else []


def _titled(effect: EffectDocument, sentence: str) -> str:
    """A sentence about one of several effects, which have titles."""
    return f"{effect['title']}: {sentence}" if effect["title"] else sentence


def _compared(row: EffectRow) -> str:
    """``HTTP/3``, or ``HTTP/3 : HTTP/2`` of a comparison."""
    arm = PROTOCOL_NAMES[row["arm"]]
    return f"{arm} : {PROTOCOL_NAMES[row['reference']]}" if row["reference"] else arm


def _measured(row: EffectRow) -> str:
    """``1.50 [1.47, 1.53]``."""
    return f"{numbers.ratio(row['ratio'])} {numbers.interval((row['low'], row['high']))}"


def _changed_verdict(row: EffectRow) -> str:
    """What a study would have concluded without it and with it, where both are decided and not the same."""
    sides = [(_side(mean["low"], mean["high"]), mean) for mean in (row["off"], row["on"]) if mean]
    if len(sides) < 2 or None in (sides[0][0], sides[1][0]) or sides[0][0] == sides[1][0]:
        return ""
    ends = [f"{numbers.ratio(mean['value'])} {numbers.interval((mean['low'], mean['high']))}" for _, mean in sides]
    return f", which reverses the comparison: {ends[0]} without it, {ends[1]} with it"


def _side(low: float | None, high: float | None) -> bool | None:
    """Whether a ratio lies above 1; None where its interval holds 1, or there is none."""
    if low is None or high is None or low <= 1 <= high:
        return None
    return low > 1


def _why_open(effect: EffectDocument, row: EffectRow) -> str:
    """Why an effect is not decided: trials that do not count, or too few for their variation."""
    missing = effect.get("left_out")
    none = row["low"] is None or row["high"] is None
    why = "too few for an interval" if none else "too few for their variation"
    if row["ratio"] is None and row["blocks"]:
        why = "without a value where most requests failed"
    elif _side(row["low"], row["high"]) is not None:
        why = "too few to hold among all that the threat's experiments compare"
    sentence = f"blocks: {row['blocks']}, {why}"
    if missing and missing["count"]:
        checks = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in missing["checks"].items())
        sentence += f"; trials that do not count: {missing['count']} of {missing['trials']}, by {checks}"
    return sentence


def _table(effect: EffectDocument) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    places = any(row["place"] for row in effect["rows"])
    counts = "trials" if effect["metric"] in BY_DIFFERENCE else "blocks"  # of success rates trials are counted
    heads = [f"{effect['metric_label']}", effect["off"], effect["on"], "with : without", "interval", counts]
    for number, title in enumerate((["place"] if places else []) + heads):
        table.add_column(title, justify="right" if number > places else "left", overflow="fold")
    write: Callable[[float | None], str] = partial(numbers.in_unit, unit=effect["unit"])
    if effect["metric"] in BY_DIFFERENCE:
        write = numbers.rate  # of a share of requests every failure tells
    last = None
    for row in effect["rows"]:
        what, show = _compared(row), numbers.ratio if row["reference"] else write
        values = [show(mean["value"]) if mean else "" for mean in (row["off"], row["on"])]
        cells: list[str | Text] = [what, *values, Text(numbers.ratio(row["ratio"]), _COLOURS[row["outcome"]])]
        cells += [numbers.interval((row["low"], row["high"])), str(row["blocks"])]
        if places:
            cells.insert(0, row["place"] if row["place"] != last else "")
            last = row["place"]
        table.add_row(*cells)
    return table
