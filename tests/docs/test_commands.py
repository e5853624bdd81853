"""Every example of every ``--help`` and every command in the documentation is one that Trifecta takes.

Options and arguments are parsed, and what a command would measure is planned; nothing runs. (`test_examples` runs the
console examples of the documentation.)
"""

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from tests.docs.examples import PAGES, ROOT
from trifecta import studies
from trifecta.cli import campaigns, far, reproducing, running, threats
from trifecta.cli import gate as gates
from trifecta.cli import ladder as ladders
from trifecta.cli import map as maps
from trifecta.cli.main import COMMANDS, cli

_FENCED = re.compile(r"((?:^<!--[^\n]*-->\n)*)^```[a-z]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"<!-- file: (\S+) -->")
_INLINE = re.compile(r"`(trifecta [^`\n]+)`")
_ENDS = ("|", ">", ">>", ";", "&&", "2>")
_WORDS = re.compile(r"\b(STUDY|CLAIM|RUN|FOLDER|URL|NAME|FILE|ID|N|TIME|DIR|THREAT|KEY=VALUE)\b")  # stand for something


def lines_of(text: str) -> Iterator[list[str]]:
    for line in text.replace("\\\n", " ").splitlines():
        found = re.match(r"\s*(?:\$ )?(?:\.venv/bin/)?(trifecta\b.*)", line)
        if found and not found[1].startswith("trifecta: "):
            yield words_of(found[1])


def words_of(command: str) -> list[str]:
    words = shlex.split(command, comments=True)
    ends = [place for place, word in enumerate(words) if word in _ENDS]
    return words[: ends[0] if ends else None][1:]


def of_help() -> Iterator[tuple[str, list[str]]]:
    waiting: list[tuple[str, click.Command]] = [("trifecta", cli)]
    while waiting:
        name, command = waiting.pop()
        for arguments in lines_of((command.epilog or "") + (command.help or "")):
            yield f"{name} --help", arguments
        if isinstance(command, click.Group):
            context = click.Context(command)
            inner = ((one, command.get_command(context, one)) for one in command.list_commands(context))
            waiting += [(f"{name} {one}", found) for one, found in inner if found is not None]


def of_pages() -> Iterator[tuple[str, list[str]]]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        name = str(page.relative_to(ROOT))
        for match in _FENCED.finditer(text):
            for arguments in lines_of("" if "exit:" in match[1] else match[2]):
                yield name, arguments
        for match in _INLINE.finditer(_FENCED.sub("", text)):
            if not _WORDS.search(match[1]) and "..." not in match[1] and "|" not in match[1] and "," not in match[1]:
                yield f"{name} in a sentence", words_of(match[1])


EXAMPLES = [
    pytest.param(place, arguments, id=f"{place}: {' '.join(arguments)}"[:150])
    for place, arguments in {f"{p} {a}": (p, a) for p, a in (*of_help(), *of_pages())}.values()
    if arguments
]


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """The studies that commands would have measured, in a folder where what examples name is there."""
    monkeypatch.chdir(tmp_path)
    found = []
    race = studies.read_text(studies.find("race"))
    assert "    loss: 1 %\n" in race
    jitter = "    loss: 1 %\n    jitter: {distribution: normal, sigma: 5 ms}\n"
    (tmp_path / "my-study.yaml").write_text(race.replace("    loss: 1 %\n", jitter))
    for name in ("my-page", "build-a", "build-b"):
        (tmp_path / name).mkdir()
    (tmp_path / "my-server").write_text("")
    (tmp_path / "my-page" / "page.json").write_text("{}")
    for text in (page.read_text(encoding="utf-8") for page in PAGES):
        for marks, written in _FENCED.findall(text):
            for name in _FILE.findall(marks):
                if name != "my-study.yaml":  # of which there are several
                    (tmp_path / name).write_text(written)
    servers, clients = studies.known_servers(), studies.known_clients()  # and those that the documentation writes
    monkeypatch.setattr(studies, "known_servers", lambda: [*servers, "stdlib-server", "example"])
    monkeypatch.setattr(studies, "known_clients", lambda: [*clients, "stdlib-client"])
    monkeypatch.setattr(running, "carry_out", lambda study, *_, **__: found.append(study) or 0)
    monkeypatch.setattr(far, "race_urls", lambda urls, **_: found.extend(urls) or 0)
    monkeypatch.setattr(campaigns, "begin", lambda asked, *_, **__: found.append(campaigns.read_asked(asked)) or 0)
    monkeypatch.setattr(maps, "_carry_out", lambda plan, study, *_, **__: found.append(study) or 0)
    monkeypatch.setattr(gates, "_carry_out", lambda gate, *_, **__: found.append(gate.study) or 0)
    monkeypatch.setattr(reproducing, "carry_out", lambda part, *_, **__: found.append(part.campaigns) or 0)

    monkeypatch.setattr(ladders, "_carry_out", lambda folder, asked, read, **__: found.extend(read.values()) or 0)

    def measure(chosen, folder, *, quick, overrides, quiet, as_json):
        from trifecta.workloads.experiments import studies_of

        for threat, without in chosen.items():
            found.extend(studies_of(threat, quick=quick, overrides=overrides, without=without))
        return 0

    monkeypatch.setattr(threats, "_measure", measure)
    # Runs and captures are not made here: their names are taken as they are.
    monkeypatch.setattr(click.Path, "convert", lambda self, value, *_: (self.type or str)(value))
    return found


MEASURE = ("run", "race", "map", "reproduce", "ladder", "gate")


@pytest.mark.parametrize(("place", "arguments"), EXAMPLES)
def test_an_example_is_taken(place, arguments, planned):
    try:
        carry_out(arguments, planned)
    except (click.MissingParameter, click.BadOptionUsage, click.UsageError) as error:
        if place.endswith("in a sentence") and re.search("issing|requires an argument", str(error)):
            return  # a sentence may name a command without its arguments
        raise


def carry_out(arguments, planned):
    if {"--help", "-h", "--version", "-V"} & {*arguments}:
        return
    context = cli.make_context("trifecta", list(arguments))
    name, command, rest = cli.resolve_command(context, list(arguments))
    inner = command.make_context(name, rest, parent=context)
    if (
        name in MEASURE
        and not inner.params.get("compared")
        and not inner.params.get("place")
        and not inner.params.get("listed")
    ):
        assert command.invoke(inner) == 0
        assert planned
    if rest and isinstance(command, click.Group):
        sub, found, words = command.resolve_command(inner, rest)
        deepest = found.make_context(sub, words, parent=inner)
        if (name, sub) == ("threats", "measure"):
            assert found.invoke(deepest) == 0
            assert planned


def test_there_are_examples_of_every_command():
    shown = {arguments[0] for _, arguments in (*of_help(), *of_pages()) if arguments}
    assert {*COMMANDS} <= shown
