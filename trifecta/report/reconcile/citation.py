"""What makes the page fit to be cited: methods, references, versions, seeds, dates, commands, and how to cite it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from trifecta import __version__, studies
from trifecta.conclude.reconcile.read import Reconciled, run_facts
from trifecta.design import numbers
from trifecta.design.phrases import counted, listed

FOLDER = "FOLDER"
AUTHORS = "The Trifecta contributors"  # as CITATION.cff has them
TITLE = "Four studies of HTTP/3, reconciled"


def command(reconciliation: Reconciled) -> str:
    """The command that makes all of it again, into a folder of the reader's own."""
    argv = [str(word) for word in reconciliation.invocation.get("argv") or ()][1:] or ["reproduce", "all", "--quick"]
    words, skip = [], False
    for word in argv:
        if skip or word == "--out" or word.startswith("--out="):
            skip = word == "--out"
            continue
        words.append(word)
    return f"{shlex.join(['trifecta', *words])} --out {FOLDER}"


def methods(reconciliation: Reconciled) -> str:
    """A paragraph on how it was measured, fit to be quoted."""
    trials = sum(int(run.get("trials") or 0) for run in reconciliation.runs)
    valid = sum(int(run.get("valid") or 0) for run in reconciliation.runs)
    seconds = sum(float(value) for value in (reconciliation.invocation.get("elapsed_s") or {}).values())
    version = reconciliation.invocation.get("version", __version__)
    studied = counted(len(reconciliation.invocation.get("studies") or ()), "published study").replace(
        "studys", "studies"
    )
    threats = sum(place.trials for one in reconciliation.experiments for place in one.places)
    beside = (
        f", and {counted(len(reconciliation.experiments), 'experiment')} on threats with {numbers.count(threats)} "
        "trials"
    )
    sentences = [
        f"Trifecta {version} ran the treatments of {studied} at the depth "
        f"“{reconciliation.invocation.get('depth', 'unknown')}” on "
        f"one machine, {_period(reconciliation)}, for {_lasted(seconds)} in all: "
        f"{counted(len(reconciliation.runs), 'run')} with "
        f"{numbers.count(trials)} trials, of which {numbers.count(valid)} passed every check and count"
        f"{beside if reconciliation.experiments else ''}.",
        "A block held every protocol once and the baseline twice (HTTP/2 unless a study says otherwise), in an order "
        "drawn from the seed, over the same emulated path with the same impairment seed.",
        "One trial gives one value (by default the median over its requests); ratios are geometric means over blocks, "
        "paired within them. Intervals are at 95 % (Student's t on the logarithms of the blocks' ratios, or the run's "
        "own confidence sequence where it may end early); those of the cells of one claim, or of one experiment, hold "
        "together (Bonferroni).",
        "A published claim is confirmed in a cell when the whole interval lies beyond the margin (5 % unless said "
        "otherwise) on the claimed side, contradicted when all of it lies short of that, and open otherwise; “about” a "
        "ratio means within a factor of 1.25 of it.",
        "Failed requests count as infinitely long; nothing is retried. A conjecture is an explanation, no result.",
    ]
    return " ".join(sentences)


def _period(reconciliation: Reconciled) -> str:
    """``from DATE to DATE``, by the runs themselves."""
    began = str(reconciliation.invocation.get("began") or "")
    last = max((str(run.get("started_utc") or "") for run in reconciliation.runs), default="")
    if not began and not last:
        return "on an unknown day"
    until = f" (its last run began {_date(last)})" if last else ""
    return f"from {_date(began or last)} on{until}"


def _date(text: str) -> str:
    """``2026-11-22 12:24 UTC``."""
    return f"{text[:10]} {text[11:16]} UTC" if len(text) >= 16 else text


def _lasted(seconds: float) -> str:
    """``23 min 30 s``."""
    whole_seconds = round(seconds)
    hours, minutes, rest = whole_seconds // 3600, whole_seconds % 3600 // 60, whole_seconds % 60
    parts = [f"{number} {unit}" for number, unit in ((hours, "h"), (minutes, "min"), (rest, "s")) if number]
    return " ".join(parts) or "an unknown time"


def seeds(reconciliation: Reconciled) -> list[int]:
    """The seeds of all runs."""
    known = (run.get("seed") for run in reconciliation.runs)
    return sorted({int(seed) for seed in known if seed is not None})


def _seeded(every: list[int]) -> str:
    """``seed 1``, ``seeds 7, 8``."""
    return f"seed{'s' if len(every) > 1 else ''} {', '.join(map(str, every))}" if every else ""


def cite(reconciliation: Reconciled) -> str:
    """How to cite the page, as a sentence."""
    every = seeds(reconciliation)
    seeded = f", {_seeded(every)}" if every else ""
    day = str(reconciliation.invocation.get("began") or "")[:10] or "of an unknown day"
    return (
        f"{AUTHORS}, “{TITLE}”, reproduction of {day}, Trifecta "
        f"{reconciliation.invocation.get('version', __version__)}{seeded}, "
        f"made by “{command(reconciliation)}” and “trifecta reconcile {FOLDER}”."
    )


def bibtex(reconciliation: Reconciled) -> str:
    """The page as an entry of BibTeX."""
    day = str(reconciliation.invocation.get("began") or "")[:10]
    note = (
        f"Reproduction of {day or 'an unknown day'} with Trifecta "
        f"{reconciliation.invocation.get('version', __version__)}, "
        f"depth {reconciliation.invocation.get('depth', 'unknown')}, {_seeded(seeds(reconciliation)) or 'seed unknown'}"
    )
    year = f"  year         = {{{day[:4]}}},\n" if day else ""
    month = f"  date         = {{{day}}},\n" if day else ""
    return (
        f"@misc{{trifecta-reconciliation-{day or 'undated'},\n"
        f"  author       = {{{{{AUTHORS}}}}},\n"
        f"  title        = {{{TITLE.replace('HTTP/3', '{HTTP/3}')}}},\n{year}{month}"
        f"  howpublished = {{Report made by \\texttt{{{command(reconciliation).replace('_', chr(92) + '_')}}}}},\n"
        f"  note         = {{{note}}}\n}}\n"
    )


def references(reconciliation: Reconciled) -> list[dict[str, str]]:
    """The studies, as far as what was published names them; ``left`` says what is not known."""
    entries = []
    for name, one in studies.published().items():
        fields = {key: one.document.get(key) for key in ("authors", "doi", "url")}
        known = {key: str(value) for key, value in fields.items() if value}
        head = ". ".join(filter(None, (known.get("authors", ""), f"{one.title}, {one.year}")))
        tail = [f"doi:{known['doi']}" if "doi" in known else "", known.get("url", "")]
        left = [word for key, word in (("authors", "authors"), ("doi", "DOI")) if key not in known]
        entries.append(
            {
                "id": name,
                "text": ". ".join(filter(None, (head, *tail))),
                "stack": one.stack,
                "facts": one.facts,
                "left": f"{listed(left)} not recorded" if left else "",
                "ran": ""
                if name in (reconciliation.invocation.get("studies") or ())
                else "not part of this reproduction",
            }
        )
    return entries


def versions(reconciliation: Reconciled) -> list[tuple[str, str]]:
    """Every program, library, the kernel and the machine; where runs differ, all that there were."""
    runs: list[Mapping[str, Any]] = [*reconciliation.runs]
    runs += [run_facts(reconciliation.folder, f"threats/{one.name}") for one in reconciliation.experiments]
    rows = [
        (
            "Trifecta",
            _unique(run.get("trifecta") for run in runs) or str(reconciliation.invocation.get("version") or ""),
        )
    ]
    rows += [(f"engine: {name}", _part(runs, "engine", name)) for name in _names(runs, "engine")]
    rows.append(("Python", _unique(run.get("python") for run in runs)))
    for kind in ("servers", "clients"):
        for name in sorted({name for run in runs for name in run.get(kind) or {}}):
            own = [(run.get(kind) or {}).get(name) or {} for run in runs]
            sentences = [
                ", ".join(filter(None, (str(one.get("version") or ""), str(one.get("source") or "")))) for one in own
            ]
            rows.append((f"{kind[:-1]}: {name}", _unique(sentences)))
    machines = [run.get("machine") or {} for run in runs] or [
        (reconciliation.invocation.get("machine") or {}).get("machine") or {}
    ]
    machine = ("kernel", "distribution", "cpu_model", "cpus_allowed", "architecture", "virtual_machine", "clocksource")
    rows += [(f"machine: {name.replace('_', ' ')}", _unique(one.get(name) for one in machines)) for name in machine]
    rows.append(("machine: memory", _unique(numbers.size(one.get("memory_bytes")) for one in machines)))
    rows += [
        (f"asked of all: {name.replace('_', ' ')}", _part(runs, "parity", name)) for name in _names(runs, "parity")
    ]
    return [(name, text) for name, text in rows if text]


def _names(runs: Iterable[Mapping[str, Any]], part: str) -> list[str]:
    """What a part of ``run.json`` names, over all runs; the engine's own version is that of Trifecta."""
    return sorted({name for run in runs for name in run.get(part) or {}} - {"architecture", "engine"})


def _part(runs: Iterable[Mapping[str, Any]], part: str, name: str) -> str:
    return _unique((run.get(part) or {}).get(name) for run in runs)


def _unique(values: Iterable[Any]) -> str:
    """What there is, each once, in the order of its coming."""
    return "; ".join(dict.fromkeys(str(one) for one in values if one not in (None, "", {})))
