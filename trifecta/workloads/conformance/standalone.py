"""The probe by itself, without a study: ``trifecta conformance``."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from trifecta.design.conformance import ConformanceResult, cases
from trifecta.design.document import did_you_mean
from trifecta.design.errors import UserError
from trifecta.design.ip import version_of
from trifecta.design.model import PROTOCOL_NAMES

ANY = "any"


@dataclass(frozen=True)
class Chosen:
    """What a user asked for, by name; ``named`` are those asked for one by one, which therefore must be there."""

    servers: tuple[str, ...]
    clients: tuple[str, ...]
    named: frozenset[str]


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    results: list[ConformanceResult]
    document: dict[str, Any]
    file: Path
    passed: bool
    interrupted: bool


def choose(servers: Sequence[str], clients: Sequence[str]) -> Chosen:
    """The implementations to probe; UserError for a name that no adapter has. Nothing named: all of them."""
    from trifecta.design.factors import DEFAULT_CLIENT as LOAD
    from trifecta.implementations.registry import CLIENTS, SERVERS

    everything = not servers and not clients
    names = list(servers)
    if LOAD in clients and "origin" not in names:
        names.append("origin")  # the engine's load is the client of every server: this is its row against the origin
    return Chosen(
        _pick("server", names, SERVERS, everything),
        _pick("client", [name for name in clients if name != LOAD], CLIENTS, everything),
        frozenset((*servers, *clients)) - {ANY, LOAD},
    )


def _pick(kind: str, names: Sequence[str], table: Mapping[str, Any], everything: bool) -> tuple[str, ...]:
    from trifecta.implementations.registry import ONLY_BY_NAME

    if everything or ANY in names:
        return tuple(name for name in table if name not in ONLY_BY_NAME)
    for name in names:
        if name not in table:
            raise UserError(f"no {kind} {name!r}; {did_you_mean(name, table)}")
    return tuple(dict.fromkeys(names))


def check_folder(folder: Path) -> None:
    """UserError when a folder cannot be used for new results."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not an empty folder; choose another with --out")


def run(
    chosen: Chosen,
    folder: Path,
    tell: Callable[[str], None],
    stop: Callable[[], bool],
    *,
    large: bool = False,
    ipv6: bool = False,
) -> Outcome:
    """Probe into ``folder``, over IPv4 or IPv6; must run inside the sandbox.

    What was finished is kept when the user stops it.
    """
    from trifecta.contract.codec import plain
    from trifecta.implementations.registry import CLIENTS, SERVERS
    from trifecta.lab.engine import Stopped, engine_versions, find_engine
    from trifecta.store import files
    from trifecta.workloads.conformance.probe import Probe, Subjects, standalone_bench

    began, started = time.monotonic(), datetime.now(UTC)
    engine = find_engine()
    subjects = Subjects(
        {name: SERVERS[name] for name in chosen.servers},
        {name: CLIENTS[name] for name in chosen.clients},
        cases("full", large=large),
    )
    interrupted = False
    with files.disk_errors(folder), standalone_bench(engine, folder, chosen.servers, stop, ipv6=ipv6) as bench:
        probe = Probe(bench, subjects, lambda role, name, results: tell(summary(role, name, results)))
        try:
            probe.run()
        except Stopped:
            interrupted = True
    results = probe.results
    document = {
        "trifecta": version("trifecta"),
        "engine": plain(engine_versions(engine)),
        "argv": sys.argv,
        "started_utc": started.isoformat(timespec="seconds"),
        "elapsed_s": round(time.monotonic() - began, 3),
        "interrupted": interrupted,
        "ip": version_of(bench.address),
        "folder": str(folder),
        "results": [dataclasses.asdict(one) for one in results],
    }
    file = folder / "conformance.json"
    files.write_text(file, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    missing = {one.name for one in results if one.protocol is None and one.outcome == "unsupported"}
    passed = not any(one.outcome in ("fail", "not_run") for one in results) and not missing & chosen.named
    return Outcome(results, document, file, passed, interrupted)


def summary(role: str, name: str, results: Sequence[ConformanceResult]) -> str:
    """One line for an implementation that is done: ``server caddy 2.11.7: 15 passed, 12 not offered``."""
    counts: dict[str, int] = {}
    for one in results:
        counts[one.outcome] = counts.get(one.outcome, 0) + 1
    words = {"pass": "passed", "fail": "failed", "not_offered": "not offered", "not_run": "not run"}
    sentence = ", ".join(f"{number} {words.get(outcome, outcome)}" for outcome, number in counts.items())
    failed = list(dict.fromkeys(PROTOCOL_NAMES[str(o.protocol)] for o in results if o.outcome == "fail" and o.protocol))
    label = f"{role} {name} {results[0].version}".rstrip() if results else f"{role} {name}"
    decision = next((one.reason for one in results if one.protocol is None), "")
    return (
        f"{label}: {sentence}"
        + (f" (over {', '.join(failed)})" if failed else "")
        + (f": {decision}" if decision else "")
    )
