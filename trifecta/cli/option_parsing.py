"""From options of the command line to the design's records."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from trifecta.design.builds import COMMAND, COMPOSE, ENDINGS
from trifecta.design.errors import UserError
from trifecta.design.gate import SERVER_FACTOR, Refs
from trifecta.design.model import PathSpec
from trifecta.design.quantity import QuantityError, parse_time_ns

_LAST_COMMAND = re.compile(r"(?:^|,)\s*((?:[\w.-]+=)?cmd:.*)", re.DOTALL)


def own_servers(values: Sequence[str], option: str = "--server") -> tuple[list[str], dict[str, str]]:
    """The levels that ``--server`` names, in order, and what those of them are that it brings itself, by name.

    ``NAME=...`` has the name that it says; a command has that of its program, a file and a service their own. A command
    takes all that follows it: it may have commas. ``option``: the one that a message names.
    """
    levels: list[str] = []
    own: dict[str, str] = {}
    for value in values:
        command = _LAST_COMMAND.search(value)
        head, tail = (value[: command.start()], [command[1]]) if command else (value, [])
        for text in [*(part.strip() for part in head.split(",") if part.strip()), *tail]:
            name, equals, written = text.partition("=")
            if text.startswith(COMMAND):
                name, written = _program_of(text, option), text
            elif text.startswith(COMPOSE):
                name, written = (text.rpartition("#")[2] if "#" in text else "") or "service", text
            elif text.endswith(ENDINGS) and not equals:
                name, written = PurePath(text).stem, text
            elif not equals:
                name = text
            if written and own.setdefault(name, written) != written:
                what = f"another one is called {name!r} too"
                raise UserError(f"{_quoted(text, option)}: {what}; write NAME={_one_line(written)}")
            levels += [name] if name not in levels else []
    return levels, own


def own_refs(refs: Refs) -> Refs:
    """The two levels of a gate under the names that results have, with the servers among them that it brings itself.

    UserError where one of them names no server, or several.
    """
    if refs.factor != SERVER_FACTOR:
        return refs
    texts = {"--baseline": refs.baseline, "--candidate": refs.candidate}
    names = []
    for option, text in texts.items():
        levels, _ = own_servers([text], option)
        if len(levels) != 1:
            raise UserError(f"{_quoted(text, option)}: names {len(levels)} servers; give one")
        names += levels
    _, own = own_servers([*texts.values()], "--candidate")  # which refuses two of one name
    return Refs(refs.factor, names[0], names[1], own)


def _program_of(text: str, option: str) -> str:
    try:
        words = shlex.split(text.removeprefix(COMMAND))
    except ValueError as error:
        raise UserError(f"{_quoted(text, option)}: is not a command line ({error}); close the quotation mark") from None
    if not words:
        raise UserError(f"{_quoted(text, option)}: names no program; write cmd:./my-server --port {{port}} ...")
    return PurePath(words[0]).name


def _quoted(text: str, option: str) -> str:
    return f"option {option} {_one_line(text)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def time_ns(option: str, text: str) -> int:
    """A time given to an option, above zero."""
    try:
        value = parse_time_ns(text)
    except QuantityError as error:
        raise UserError(f"option {option}: {error}") from None
    if value == 0:
        raise UserError(f"option {option}: {text!r} is zero; give more than 0")
    return value


def address(option: str, text: str | None) -> str | None:
    """An IP address given to an option, or none."""
    try:
        return None if text is None else str(ipaddress.ip_address(text))
    except ValueError:
        raise UserError(
            f"option {option}: {text!r} is not an IP address; give one like 192.0.2.1 or 2001:db8::1"
        ) from None


def one_of(option: str, names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names given to an option, each once and one of those known, in the order of these."""
    for name in names:
        if name not in known:
            raise UserError(f"option {option}: {name!r} is none of {', '.join(known)}")
    if not names:
        raise UserError(f"option {option}: is empty; give some of {', '.join(known)}")
    return [name for name in known if name in names]


def is_ipv6(given: str | None, study: str | None = None) -> bool:
    """Whether it is done over IPv6: as an option says, else where every workload of a study is over it."""
    from trifecta import studies
    from trifecta.design import plan
    from trifecta.design.ip import IPV6

    if given is not None or study is None:
        return given == IPV6
    return plan.over_ipv6_alone(studies.load(study))


def path_of(study: str | None, path: str | None, fields: Mapping[str, str | None]) -> PathSpec:
    """The path that a study names or that options describe, field by field; options change the study's path."""
    from trifecta import studies
    from trifecta.design.document import Document, did_you_mean
    from trifecta.design.paths import read_path
    from trifecta.design.yaml_text import parse_value

    given = {name.replace("-", "_"): text for name, text in fields.items() if text is not None}
    if study is not None:
        if path is None:
            raise UserError("option --study: needs the name of one of its paths; add --path NAME")
        overrides = [f"paths.{path}.{name}={text}" for name, text in given.items()]
        known = studies.load(study).paths
        if path not in known:
            raise UserError(f"option --path: no path {path!r} in {study}; {did_you_mean(path, known)}")
        return studies.load(study, overrides).paths[path]
    if path is not None:
        raise UserError("option --path: needs the study that defines it; add --study STUDY")
    option = {name: f"--{name.replace('_', '-')}" for name in given}
    tree = {name: parse_value(text, f"option {option[name]}") for name, text in given.items()}
    document = Document(tree=tree, name="link", options={(name,): option[name] for name in given})
    return read_path("asked", document.root())[0]
