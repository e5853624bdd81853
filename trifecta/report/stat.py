"""One URL over every protocol, in a terminal: the phases of the request side by side, as numbers and as bars."""

from __future__ import annotations

import errno
import os
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict

from rich import box
from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trifecta.contract.values import JsonObject
from trifecta.design import failures, numbers
from trifecta.design.model import PROTOCOL_NAMES
from trifecta.design.stat import PHASES, Attempt, RequestOptions, Target

Attempts = Mapping[str, Sequence[Attempt]]

_NAMES = {
    "dns": "name (DNS)",
    "tcp": "TCP connect",
    "tls": "TLS handshake",
    "quic": "QUIC handshake",
    "send": "request sent",
    "wait": "server (TTFB)",
    "transfer": "content",
}
# Sign and colour of a phase in a bar: the signs differ, so that colour never stands alone.
_SIGNS = {
    "dns": ("·", "white"),
    "tcp": ("░", "yellow"),
    "tls": ("▒", "magenta"),
    "quic": ("▓", "bright_magenta"),
    "send": ("▸", "blue"),
    "wait": ("─", "cyan"),
    "transfer": ("█", "green"),
}
_LABEL = max(map(len, PROTOCOL_NAMES.values()))
_SHORTEST, _LONGEST = 8, 72  # characters of a bar


def waiting(protocol: str, number: int, count: int) -> str:
    """What is shown while a request is under way."""
    return f"{PROTOCOL_NAMES[protocol]}, request {number + 1} of {count}"


def as_data(target: Target, request_options: RequestOptions, attempts: Attempts) -> JsonObject:
    """The same as plain data; keys are stable, times in nanoseconds."""
    return {
        "url": target.url,
        "host": target.host,
        "port": target.port,
        "path": target.path,
        **asdict(request_options),
        "protocols": {
            protocol: {
                "answered": sum(attempt.error is None for attempt in protocol_attempts),
                "asked": len(protocol_attempts),
                "median_ns": {
                    name: _median(_values(protocol_attempts, value))
                    for name, value in _VALUES.items()
                    if _values(protocol_attempts, value)
                },
                "attempts": [asdict(attempt) for attempt in protocol_attempts],
            }
            for protocol, protocol_attempts in attempts.items()
        },
    }


def show(out: Console, target: Target, request_options: RequestOptions, attempts: Attempts) -> None:
    """Print the view: numbers, bars, what failed and why, and what this cannot say."""
    count = max(len(protocol_attempts) for protocol_attempts in attempts.values())
    times = "one request" if count == 1 else f"{count} requests"
    out.print(f"{request_options.method} {target.url}", style="bold", soft_wrap=True, markup=False)
    out.print(f"{times} over each protocol, from this machine, over its own network\n")
    if any(attempt.phases_ns for protocol_attempts in attempts.values() for attempt in protocol_attempts):
        out.print(_table(attempts, count))
    _print_bars(out, attempts)
    for protocol, protocol_attempts in attempts.items():
        for line in _failures(protocol, protocol_attempts, target):
            out.print(Text(line, "red" if not any(one.error is None for one in protocol_attempts) else "yellow"))
    for line in _notes(attempts, count):
        out.print(Text(line, "dim"))


def _phase(name: str) -> Callable[[Attempt], int | None]:
    return lambda attempt: attempt.phases_ns.get(name)


_VALUES: dict[str, Callable[[Attempt], int | None]] = {
    **{name: _phase(name) for name in PHASES},
    "total": lambda attempt: attempt.total_ns,
}


def _values(attempts: Sequence[Attempt], value: Callable[[Attempt], int | None]) -> list[int]:
    """Of the requests that were answered; of none answered, of those that failed, as far as they came."""
    good = [attempt for attempt in attempts if attempt.error is None]
    return [number for attempt in good or attempts if (number := value(attempt)) is not None]


def _median(values: Sequence[int]) -> float:
    return float(statistics.median(values))


def _times(values: Sequence[int]) -> str:
    if not values:
        return numbers.NO_VALUE
    if len(values) == 1:
        return numbers.duration(values[0])
    return f"{numbers.duration(_median(values))}\n{_range(min(values), max(values))}"


def _range(least: int, most: int) -> str:
    """Both ends in the unit of the greater one, so that they stay narrow: ``0.22–4.39 ms``."""
    if not most:  # content that came with the first octet takes no time of its own
        return numbers.duration(most)
    number, unit = numbers.duration(most).split(" ")
    scale = most / float(number.replace(",", ""))
    return f"{numbers.significant(least / scale, 2)}–{number} {unit}"


def _table(attempts: Attempts, count: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("median, range" if count > 1 else "", overflow="fold")
    for protocol in attempts:
        table.add_column(PROTOCOL_NAMES[protocol], justify="right", overflow="fold")
    for name, value in _VALUES.items():
        columns = [_values(protocol_attempts, value) for protocol_attempts in attempts.values()]
        if any(columns):
            last = name == "total"
            label = _NAMES.get(name, "total")
            table.add_row(label, *map(_times, columns), style="bold" if last else None, end_section=last)
    for label, write in _FACTS.items():
        texts = [
            ", ".join(dict.fromkeys(write(attempt) for attempt in protocol_attempts))
            for protocol_attempts in attempts.values()
        ]
        if any(text != numbers.NO_VALUE for text in texts):
            table.add_row(label, *texts)
    return table


def _spoken(attempt: Attempt) -> str:
    if attempt.spoken is not None:
        return PROTOCOL_NAMES[attempt.spoken]
    if attempt.error is None:
        return "none"  # a server without ALPN speaks HTTP/1.1 (RFC 7301, 3.1)
    if attempt.error == "tls:alpn":
        return "not spoken"
    return "not agreed" if attempt.error.startswith("tls") else "not reached"


_FACTS: dict[str, Callable[[Attempt], str]] = {
    "negotiated (ALPN)": _spoken,
    "status": lambda attempt: numbers.text(attempt.status),
    "content": lambda attempt: numbers.NO_VALUE if attempt.status is None else numbers.size(attempt.bytes_in),
    "response header": lambda attempt: (
        numbers.NO_VALUE if attempt.status is None else numbers.size(attempt.header_bytes_in)
    ),
    "TLS": lambda attempt: numbers.text(attempt.tls_version),
    "cipher": lambda attempt: (attempt.cipher or numbers.NO_VALUE).removeprefix("TLS_"),
    "session resumed": lambda attempt: (
        numbers.NO_VALUE if attempt.tls_version is None else "yes" if attempt.resumed else "no"
    ),
    "address": lambda attempt: attempt.address or numbers.NO_VALUE,
}


def _print_bars(out: Console, attempts: Attempts) -> None:
    """A bar a protocol, all on one time axis."""
    shown = {
        protocol: middle
        for protocol, protocol_attempts in attempts.items()
        if (middle := _middle(protocol_attempts)) is not None
    }
    longest = max((attempt.total_ns or 0 for attempt in shown.values()), default=0)
    out.print()
    if not longest:
        return
    width = max(_SHORTEST, min(_LONGEST, out.width - _LABEL - 12))
    for protocol, attempt in shown.items():
        line = Text(f"{PROTOCOL_NAMES[protocol]:{_LABEL}} ")
        for name, signs in bar(attempt.phases_ns, width / longest):
            line.append(signs, _SIGNS[name][1])
        line.append(f" {numbers.duration(attempt.total_ns)}")
        out.print(line, no_wrap=True, overflow="crop")
    used = [name for name in PHASES if any(name in attempt.phases_ns for attempt in shown.values())]
    out.print(Columns([Text.assemble(_SIGNS[name], f" {_NAMES[name]}") for name in used], padding=(0, 3)))
    if max(len(protocol_attempts) for protocol_attempts in attempts.values()) > 1:
        out.print("Each bar is its protocol's median request by total time.")
    out.print()


def _middle(attempts: Sequence[Attempt]) -> Attempt | None:
    """The answered request with the median total, the lower one of two."""
    good = sorted((attempt for attempt in attempts if attempt.error is None), key=lambda attempt: attempt.total_ns or 0)
    return good[(len(good) - 1) // 2] if good else None


def bar(phases: Mapping[str, float], scale: float) -> list[tuple[str, str]]:
    """The signs of each phase, so many a nanosecond; ends are rounded and not lengths, so that the whole is right."""
    drawn, begun, at = [], 0, 0.0
    for name, length in phases.items():
        at += length
        end = round(at * scale)
        drawn.append((name, _SIGNS[name][0] * (end - begun)))
        begun = end
    return drawn


def _failures(protocol: str, attempts: Sequence[Attempt], target: Target) -> list[str]:
    """A line for each class of failure: what it is, how often, and what to do."""
    lines = []
    for error in dict.fromkeys(attempt.error for attempt in attempts if attempt.error is not None):
        number = sum(attempt.error == error for attempt in attempts)
        often = "" if len(attempts) == 1 else f" ({number} of {len(attempts)} requests)"
        lines.append(f"{PROTOCOL_NAMES[protocol]}: {error}{often}: {reason(protocol, error, target)}")
    return lines


def reason(protocol: str, error: str, target: Target) -> str:
    """What an error class means for somebody who asked a server of theirs, and the remedy."""
    if error.startswith("socket"):
        return _has_local_refusal(error.partition(":")[2])
    name, what = PROTOCOL_NAMES[protocol], failures.failure(error)
    place = f"{'UDP' if protocol == 'h3' else 'TCP'} port {target.port}"
    advice = (what.ask or what.remedy).format(protocol=name)
    return f"{what.said.format(protocol=name)} ({place}); {advice}"


def _has_local_refusal(number: str) -> str:
    """``number`` is the name of an errno, or empty."""
    why = f" ({os.strerror(getattr(errno, number))})" if hasattr(errno, number) else ""
    remedy = {
        "EMFILE": "raise the limit of open files (ulimit -n)",
        "ENFILE": "end programs that hold many files (sysctl fs.file-max)",
        "EPERM": "check the firewall rules for outgoing packets and this user's permissions",
        "EAFNOSUPPORT": "this machine lacks that version of IP; give an --address of the other",
    }.get(number, "check the limits and the firewall of this machine")
    return f"this machine refused the socket{why}, the server was not contacted; {remedy}"


# What is said of a status where all responses have it, and where only some have.
_REDIRECT = (
    "The response is a redirect and was not followed: give the URL it points to.",
    "Some responses are redirects and were not followed: give the URL they point to.",
)
_REFUSAL = (
    "The server refused the request; what was timed is its refusal.",
    "The server refused some of the requests; what was timed of these is its refusal.",
)
_ERROR = (
    "The server answered with an error of its own; what was timed is that answer.",
    "The server answered some of the requests with an error of its own; what was timed of these is that answer.",
)


def _unexpected(statuses: Collection[int], kind: Callable[[int], bool], said: tuple[str, str]) -> list[str]:
    """What is said of a kind of status, if there is any of it: of all responses, or of some."""
    found = [status for status in statuses if kind(status)]
    return [said[len(found) < len(statuses)]] if found else []


def _notes(attempts: Attempts, count: int) -> list[str]:
    statuses = {
        attempt.status
        for protocol_attempts in attempts.values()
        for attempt in protocol_attempts
        if attempt.status is not None
    }
    sizes = {
        attempt.bytes_in
        for protocol_attempts in attempts.values()
        for attempt in protocol_attempts
        if attempt.error is None
    }
    notes = []
    notes += _unexpected(statuses, lambda status: 300 <= status < 400 and status != 304, _REDIRECT)
    notes += _unexpected(statuses, lambda status: 400 <= status < 500, _REFUSAL)
    notes += _unexpected(statuses, lambda status: status >= 500, _ERROR)
    by_protocol = [{one.status for one in made if one.status is not None} for made in attempts.values()]
    if len(statuses) > 1:
        alike = all(found == statuses for found in by_protocol if found)
        who = "requests" if alike else "protocols"
        notes.append(f"The {who} got different status codes: the times are not of the same work.")
    elif len(sizes) > 1:
        notes.append("The responses differ in length: the times are not of the same work.")
    if count == 1 and statuses:
        notes.append("A single request says little: --count 10 shows how much it varies.")
    return [
        *notes,
        "This is no verdict. What a protocol is worth on a path is decided by `trifecta run`, with equal conditions.",
    ]
