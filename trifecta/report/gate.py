"""A gate told: in a terminal, as Markdown for a pull request, and as JUnit XML for the pages of a CI."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.text import Text

from trifecta.contract.gate import GateDocument, OutcomeDocument
from trifecta.design import numbers, quantity
from trifecta.report import grids

_WORDS = {"pass": "PASS", "fail": "FAIL", "undecided": "UNDECIDED", "open": "open"}
_STYLES = {"pass": "green", "fail": "red", "undecided": "yellow", "open": "yellow"}
_SIGNS = {"pass": "✅", "fail": "❌", "undecided": "❔", "open": "❔"}
_HEADS = ("where", "what", "ratio", "interval", "limit", "verdict")


def show(document: GateDocument, out: Console | None = None) -> None:
    """Print a gate: its verdict, a row a test, and what it rests on."""
    out = out or Console(highlight=False)
    state = document["state"]
    out.print(Text.assemble((_WORDS[state], f"bold {_STYLES[state]}"), f" {grids.plain(out, document['said'])}"))
    out.print()
    table = grids.grid(out)
    where, what, *rest = _HEADS
    for head in (where, what, document["baseline"], document["candidate"], *rest):
        table.add_column(head, overflow="fold", no_wrap=head in rest)
    for one in document["tests"]:
        cells = [Text(grids.plain(out, sentence)) for sentence in _row(one)]
        table.add_row(*cells, Text(_WORDS[one["state"]].lower(), style=_STYLES[one["state"]]))
    grids.show(out, table)
    out.print()
    for sentence in (*_open(document), *document["warnings"], *document["notes"]):
        out.print(Text(grids.plain(out, sentence), style="yellow"))
    out.print(Text(grids.plain(out, " ".join((*_rests_on(document), _ratio_words(document)))), style="dim"))
    # Not wrapped: a path must stay in one piece to be copied.
    out.print(f"Run: {document['run']}", soft_wrap=True, markup=False)


def markdown(document: GateDocument) -> str:
    """The gate as Markdown, as GitHub and GitLab show it."""
    state, rest = document["state"], _HEADS[2:]
    heads = (*_HEADS[:2], document["baseline"], document["candidate"], *rest)
    rows = [[*_row(one), f"{_SIGNS[one['state']]} {_WORDS[one['state']].lower()}"] for one in document["tests"]]
    lines = [
        f"### {_SIGNS[state]} {_WORDS[state]}: {_escaped(document['said'])}",
        "",
        *(f"| {' | '.join(map(_escaped, cells))} |" for cells in (heads, ["---"] * len(heads), *rows)),
        "",
        *(f"- {_escaped(line)}" for line in (*_open(document), *document["warnings"], *document["notes"])),
        "",
        f"<sub>{_escaped(' '.join((*_rests_on(document), _ratio_words(document))))}</sub>",
    ]
    return "\n".join(lines) + "\n"


def junit(document: GateDocument) -> str:
    """The gate as JUnit XML: a test case a test. One that is open is an error; or skipped, where another has failed."""
    states = [one["state"] for one in document["tests"]]
    ended = document["state"] == "fail"
    counts = {
        "tests": len(states),
        "failures": states.count("fail"),
        "errors": 0 if ended else states.count("open"),
        "skipped": states.count("open") if ended else 0,
    }
    suite = ElementTree.Element(
        "testsuite",
        {"name": f"trifecta gate {document['study']}", **{name: str(number) for name, number in counts.items()},
         "time": f"{document['elapsed_ns'] / 1e9:.3f}", "timestamp": document["started_utc"]},
    )  # fmt: skip
    for one in document["tests"]:
        name = {"classname": f"trifecta.gate.{document['study']}", "name": f"{one['place']}: {one['condition']}"}
        case = ElementTree.SubElement(suite, "testcase", name)
        evidence = _evidence(one)
        if one["state"] == "fail":
            ElementTree.SubElement(case, "failure", {"message": evidence}).text = one["reason"]
        elif one["state"] == "open" and ended:
            ElementTree.SubElement(case, "skipped", {"message": f"the gate ended when another test failed; {evidence}"})
        elif one["state"] == "open":
            ElementTree.SubElement(case, "error", {"message": evidence, "type": "undecided"}).text = one["reason"]
        ElementTree.SubElement(case, "system-out").text = evidence
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def write(document: GateDocument, *, summary: Path | None, xml: Path | None) -> None:
    """Write the files that were asked for. CannotError on a bad disk."""
    from trifecta.store import files

    for path, text in ((summary, markdown), (xml, junit)):
        if path is not None:
            with files.disk_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            files.write_text(path, text(document))


def _row(outcome: OutcomeDocument) -> list[str]:
    return [
        outcome["place"],
        outcome["label"],
        numbers.in_unit(outcome["baseline"], outcome["unit"]),
        numbers.in_unit(outcome["candidate"], outcome["unit"]),
        _ratio(outcome["ratio"]),
        _interval(outcome),
        outcome["condition"],
    ]


def _ratio(value: float | None) -> str:
    """With three decimals: a limit may be a percent."""
    return numbers.NO_VALUE if value is None else f"{value:.3f}"


def _interval(outcome: OutcomeDocument) -> str:
    low, high = outcome["low"], outcome["high"]
    return f"[{'0' if low is None else _ratio(low)}, {'∞' if high is None else _ratio(high)}]"


def _evidence(outcome: OutcomeDocument) -> str:
    values = (numbers.in_unit(outcome[arm], outcome["unit"]) for arm in ("candidate", "baseline"))
    ratio = f"{_ratio(outcome['ratio'])} {_interval(outcome)}"
    return f"{outcome['label']} {' against '.join(values)}, ratio {ratio}, {outcome['blocks']} blocks"


def _open(document: GateDocument) -> list[str]:
    """Why tests are open, and what was left out; of a gate that failed the former does not matter."""
    sentences = []
    for one in document["tests"] if document["state"] == "undecided" else ():
        if one["state"] == "open":
            more = f"; about {one['blocks_needed']} blocks would decide" if one["blocks_needed"] else ""
            sentences.append(f"open: {one['condition']} in {one['place']}: {one['reason']}{more}")
    return sentences + [f"left out: {one['factor']} {one['level']}: {one['reason']}" for one in document["left_out"]]


def _rests_on(document: GateDocument) -> list[str]:
    of = "" if document["budget_ns"] is None else f" of {quantity.format_time(document['budget_ns'])}"
    trials, out = document["trials"], document["excluded_trials"]
    checks = ", ".join(f"{name} {count}" for name, count in document["failed_checks"].items())
    without = f", {out} of which do not count ({checks or 'errors'})" if out else ""
    return [
        f"{trials} trials{without} in {numbers.wall(document['elapsed_ns'])}{of}; seed {document['seed']}.",
        *(f"{_versioned(name, version)}." for name, version in document["servers"].items() if version),
    ]


def _versioned(name: str, version: str) -> str:
    """``nginx@./build-a 1.28.0``; ``caddy@2.10.0`` says it already."""
    return name if name.endswith(f"@{version}") else f"{name} {version}"


def _ratio_words(document: GateDocument) -> str:
    error = numbers.percent(1 - document["confidence"])
    return (
        f"Ratio: {document['candidate']} / {document['baseline']}, the median over blocks. A gate fails with a "
        "probability of "
        f"at most {error} where no test is beyond its limit, and passes with at most {error} where one is."
    )


def _escaped(text: str) -> str:
    """As it is shown where Markdown is read: no mark, no tag, no end of a cell."""
    for sign, shown in (("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;"), ("*", "\\*"), ("`", "\\`")):
        text = text.replace(sign, shown)
    return text
