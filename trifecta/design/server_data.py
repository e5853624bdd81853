"""Adapters as data: the fields of ``server.yaml``, of ``servers`` in a study, and a command line of one line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from trifecta.design import quantity
from trifecta.design.builds import PLACEHOLDER, PLACEHOLDERS, FindProgram, ServerProgram
from trifecta.design.document import Place, Section, did_you_mean, one_of, parse_flag, parse_text
from trifecta.design.fields import CONGESTION_CONTROLS, parse_protocol
from trifecta.design.protocols import METHODS, PROTOCOLS, SAFE_METHODS
from trifecta.design.quantity import QuantityError

KNOWN = (
    "protocols",
    "methods",
    "ready",
    "congestion_control",
    "tcp_nodelay",
    "zero_rtt",
    "tls_library",
    "files",
)
"""What is said of a program, however it is started."""
FIELDS = ("command", "version", "environment", *KNOWN)
NEEDED = ("port", "cert", "key")  # a server that is not told them serves nobody here
EXAMPLE = "./my-server --port {port} --cert {cert} --key {key}"
LONGEST_WAIT_NS = 600_000_000_000
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_RELATIVE = ("./", "../")


def parse_command(text: str, find: FindProgram) -> ServerProgram:
    """A server from its command line alone; QuantityError for what is wrong with it."""
    words = _located(split_words(text), find)
    _refuse_unknown(words)
    program = ServerProgram(words)
    lacking = _lacking(program)
    if lacking:
        raise QuantityError(lacking)
    return _with_control(program)


def read_program(section: Section, find: FindProgram) -> ServerProgram:
    """A server from its fields; UserError, with file, field and remedy, for the first that is wrong."""
    section.allow(*FIELDS)
    if "command" not in section:
        raise section.error("command", f"is missing; give the line that starts the server, as in {EXAMPLE!r}")
    program = ServerProgram(
        command=_words(section, "command", find),
        version=_version(section),
        environment=_pairs(section, "environment", VARIABLE, "a variable: letters, digits and '_'"),
    )
    return read_known(section, program, at=section)


def read_known(section: Section, program: ServerProgram, *, at: Section) -> ServerProgram:
    """The program with what the fields ``KNOWN`` say of it.

    UserError for the first that is wrong, and at the command of ``at`` where it is not told what it needs.
    """
    completed = replace(
        program,
        protocols=tuple(sorted(_unique_values(section, "protocols", parse_protocol, PROTOCOLS))),
        methods=_unique_values(section, "methods", one_of("a method", *METHODS), SAFE_METHODS),
        ready_says=_ready(section).parse("says", _word, ""),
        ready_within_ns=_ready(section).parse("within", _wait, None),
        congestion_control=_congestion_control(section),
        tcp_nodelay=section.parse("tcp_nodelay", parse_flag, None),
        zero_rtt=section.parse("zero_rtt", parse_flag, False),
        tls_library=section.parse("tls_library", _word, ""),
        files=_pairs(section, "files", _FILE, "a file's name: letters, digits and ._-, no folder"),
    )
    lacking = _lacking(completed)
    if lacking:
        raise at.error("command", lacking)
    _refuse_unsettable(section, completed)
    return _with_control(completed)


def split_words(text: str) -> tuple[str, ...]:
    """The words of a command line as a shell reads them; no shell runs it, so nothing else of a shell is there."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise QuantityError(f"{text!r} is not a command line ({error}); close the quotation mark") from None
    return words


def _located(words: tuple[str, ...], find: FindProgram) -> tuple[str, ...]:
    """The program in full, and what is named from here or from above: who resumes a run may be elsewhere."""
    if not words or not words[0]:
        raise QuantityError(f"there is no program in it; write for example {EXAMPLE!r}")
    if any("\0" in word for word in words):
        raise QuantityError("has an octet of value 0, which no program can be given; remove it")
    return (find(words[0]), *(find(word) if word.startswith(_RELATIVE) else word for word in words[1:]))


def _words(section: Section, key: str, find: FindProgram | None = None) -> tuple[str, ...]:
    """A field that is a command line, or the list of its words."""
    place: Place = (*section.place, key)
    written = section.raw(key)
    if isinstance(written, list):
        words = tuple(section.parse_value(where, item, _given) for where, item in section.items(key))
    else:
        words = section.parse(key, lambda value: split_words(parse_text(value)), ())
    try:
        _refuse_unknown(words)
        return words if find is None else _located(words, find)
    except QuantityError as error:
        raise section.document.error(place, str(error)) from None


def _version(section: Section) -> tuple[str, ...] | None:
    if "version" not in section:
        return None
    return () if section.raw("version") == "none" else _words(section, "version")


def _ready(section: Section) -> Section:
    ready = section.section("ready")
    ready.allow("says", "within")
    return ready


def _unique_values(section: Section, key: str, parse: Callable[[Any], Any], usual: tuple[Any, ...]) -> tuple[Any, ...]:
    """Each once, in the order of the list; all that is usual where nothing is listed."""
    if key not in section:
        return usual
    values = [section.parse_value(place, item, parse) for place, item in section.items(key)]
    if not values:
        raise section.error(key, "lists nothing; list at least one, or remove the field")
    return tuple(dict.fromkeys(values))


def _congestion_control(section: Section) -> str | dict[str, str]:
    if not isinstance(section.raw("congestion_control"), dict):
        return section.parse("congestion_control", _word, "")
    inner = section.section("congestion_control")
    inner.allow(*CONGESTION_CONTROLS)
    return {name: inner.parse(name, _word, "") for name in CONGESTION_CONTROLS if name in inner} or ""


def _pairs(section: Section, key: str, names: re.Pattern[str], what: str) -> dict[str, str]:
    inner = section.section(key)
    for name in inner.mapping:
        if not names.fullmatch(name):
            raise inner.error(name, f"is not the name of {what}; rename it")
    # A file may have braces of its own: what stands for nothing of ours stays as it is there.
    return {name: inner.parse(name, parse_text if key == "files" else parse_template, "") for name in inner.mapping}


def _refuse_unsettable(section: Section, program: ServerProgram) -> None:
    is_settable = any("{congestion_control}" in text for text in program.texts())
    control = program.congestion_control
    if isinstance(control, str) and control and is_settable:
        what = "says that QUIC always has it, and {congestion_control} stands elsewhere, which would set it"
        raise section.error("congestion_control", f"{what}; list its names, as in {{cubic: cubic, bbr: bbr2}}")
    if not isinstance(control, str) and control and not is_settable:
        what = "lists names, and {congestion_control} stands nowhere in command, environment or files"
        raise section.error("congestion_control", f"{what}; put it there, or give the one that QUIC always has")


def _with_control(program: ServerProgram) -> ServerProgram:
    """One that is told the congestion control, and does not say how it calls them, calls them as we do."""
    is_settable = any("{congestion_control}" in text for text in program.texts())
    if program.congestion_control or not is_settable:
        return program
    return replace(program, congestion_control={name: name for name in CONGESTION_CONTROLS})


def _lacking(program: ServerProgram) -> str:
    """What is wrong where a server is not told what it needs; empty when it is told."""
    sentences = [text.replace("{endpoint}", "{address}:{port}") for text in program.texts()]
    missing = [f"{{{name}}}" for name in NEEDED if not any(f"{{{name}}}" in text for text in sentences)]
    return f"says nowhere {', '.join(missing)}; put it where the server reads it, as in {EXAMPLE!r}" if missing else ""


def _refuse_unknown(words: tuple[str, ...]) -> None:
    for word in words:
        parse_template(word)


def parse_template(value: Any) -> str:
    """A text in which placeholders may stand; QuantityError for one that stands for nothing."""
    text = parse_text(value)
    for name in PLACEHOLDER.findall(text):
        if name not in PLACEHOLDERS:
            raise QuantityError(f"{{{name}}} is not a placeholder; {did_you_mean(name, PLACEHOLDERS)}")
    return text


def _given(value: Any) -> str:
    if value is None:
        raise QuantityError('is empty; write "" for an empty word, or remove it')
    return parse_text(value)


def _word(value: Any) -> str:
    text = parse_text(value)
    if not text.strip():
        raise QuantityError("is empty; give a text, or remove the field")
    return text


def _wait(value: Any) -> int:
    time_ns = quantity.parse_time_ns(value)
    if not 0 < time_ns <= LONGEST_WAIT_NS:
        raise QuantityError(f"{value!r} is not a time to wait; give more than 0 and at most 10 min")
    return time_ns
