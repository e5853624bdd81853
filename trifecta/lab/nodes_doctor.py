"""What the nodes of a cluster can do: `trifecta doctor` is run at each, and a program of the engine started there."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from trifecta.contract.probe import ReflectConfig, ReflectReady, ReflectSummary
from trifecta.design.errors import CannotError
from trifecta.lab.doctor import PRIORITY, Finding
from trifecta.lab.engine import EngineError
from trifecta.lab.launcher import StreamLauncher

_DOCTOR = ("-P", "-m", "trifecta", "doctor", "--json")
_LONGEST_S = 300.0  # a busy cluster's CPUs are waited for
_START_S = 20.0
_SAME = "install there the versions installed here"


class _DoctorOutput(msgspec.Struct):
    findings: list[Finding]
    code: dict[str, str]


def examine(launcher: StreamLauncher, log: Path, code: Mapping[str, str]) -> Mapping[str, Sequence[Finding]]:
    """Everything about each node, by name; CannotError where there is none.

    What programs say goes to ``log``; ``code`` are the digests of Trifecta and of the engine here: a run compares them.
    """
    places = launcher.places()
    if not places:
        raise CannotError("the cluster has no node that offers a CPU; start one: `ray start --address HOST:PORT`")
    findings = _findings_of_all(launcher, list(places), code)
    known = sorted(places, key=lambda key: [(len(part), part) for part in re.split(r"(\d+)", places[key])])
    return {places[key]: [*findings[key], _engine(launcher, key, log)] for key in known}


def _findings_of_all(
    launcher: StreamLauncher, keys: Sequence[str], code: Mapping[str, str]
) -> dict[str, list[Finding]]:
    """What `trifecta doctor` says at each place; they run beside each other."""
    outputs, ended = dict.fromkeys(keys, b""), dict.fromkeys(keys, "")
    for key in keys:
        launcher.start(key, _DOCTOR)
    until = time.monotonic() + _LONGEST_S
    while not all(ended.values()) and (left := until - time.monotonic()) > 0:
        for key, one in launcher.read(min(left, 1.0)).items():
            outputs[key] += one.octets
            ended[key] = ended[key] or one.ended or ""
    for key in keys:
        launcher.end(key)
    return {key: list(_read(outputs[key], ended[key], code)) for key in keys}


def _read(output: bytes, ended: str, code: Mapping[str, str]) -> Iterator[Finding]:
    """What a node said of itself, and what a run would refuse it for."""
    try:
        report = msgspec.json.decode(output, type=_DoctorOutput)
    except msgspec.MsgspecError as error:
        if not ended:
            problem = f"no answer within {_LONGEST_S:.0f} s: others use its CPUs, or it hangs"
            yield Finding("doctor", "missing", problem, "ask again when the node is free", required=True)
        else:
            problem = f"its answer cannot be read ({error})" if output else f"it sent nothing: {ended}"
            yield Finding("doctor", "missing", problem, _SAME, required=True)
        return
    for finding in report.findings:
        refused = finding.name == PRIORITY and finding.status == "warn"
        yield replace(finding, status="missing", required=True) if refused else finding
    other = [name for name, own in code.items() if report.code.get(name) != own]
    if other:
        named = " and ".join(f"{name} {report.code.get(name)}, not {code[name]}" for name in other)
        yield Finding("same code", "missing", f"no run takes it: it has {named}", _SAME, required=True)
    else:
        yield Finding("same code", "ok", "Trifecta and its engine are those that are here", required=True)


def _engine(launcher: StreamLauncher, key: str, log: Path) -> Finding:
    """Whether a program of the engine works there, and is the one that is here."""
    name = "engine program"
    try:
        place = launcher.place(key)
        began = time.monotonic()
        with place.start("probe", log) as program:
            program.configure(ReflectConfig(address="127.0.0.1", port=0))
            program.wait_ready(ReflectReady, _START_S)
            took_s = time.monotonic() - began
            program.finish(ReflectSummary, _START_S)
    except (CannotError, EngineError) as error:
        return Finding(name, "missing", str(error), "see the node's own `trifecta doctor`", required=True)
    finally:
        launcher.end(key)
    return Finding(name, "ok", f"answers {took_s * 1e3:.0f} ms after it is asked for", required=True)
