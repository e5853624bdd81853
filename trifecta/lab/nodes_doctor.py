"""What the nodes of a cluster can do: `trifecta doctor` is run at each, and a program of the engine started there."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from trifecta.contract.probe import ReflectConfig, ReflectReady, ReflectSummary
from trifecta.design.errors import CannotError
from trifecta.lab import static_engine
from trifecta.lab.doctor import Finding
from trifecta.lab.engine import EngineError, find_engine, rebuild
from trifecta.lab.launcher import TalkingLauncher

_DOCTOR = ("-P", "-m", "trifecta", "doctor", "--json")
_LONGEST_S = 300.0  # a busy cluster's CPUs are waited for
_START_S = 20.0


class _Told(msgspec.Struct):
    findings: list[Finding]


def examine(launcher: TalkingLauncher, log: Path) -> Mapping[str, Sequence[Finding]]:
    """Everything about each node, by name; CannotError where there is none. What programs say goes to ``log``."""
    places = launcher.places()
    if not places:
        raise CannotError("the cluster has no node that offers a CPU; start one: `ray start --address HOST:PORT`")
    told = _told_by_all(launcher, list(places))
    return {places[key]: [*told[key], _engine(launcher, key, log)] for key in places}


def _told_by_all(launcher: TalkingLauncher, keys: Sequence[str]) -> dict[str, list[Finding]]:
    """What `trifecta doctor` says at each place; they run beside each other."""
    said, ended = dict.fromkeys(keys, b""), dict.fromkeys(keys, "")
    for key in keys:
        launcher.start(key, _DOCTOR)
    until = time.monotonic() + _LONGEST_S
    while not all(ended.values()) and (left := until - time.monotonic()) > 0:
        for key, one in launcher.read(min(left, 1.0)).items():
            said[key] += one.octets
            ended[key] = ended[key] or one.ended or ""
    for key in keys:
        launcher.end(key)
    return {key: _read(said[key], ended[key] or f"no answer within {_LONGEST_S:.0f} s") for key in keys}


def _read(said: bytes, ended: str) -> list[Finding]:
    try:
        return msgspec.json.decode(said, type=_Told).findings
    except msgspec.MsgspecError:
        remedy = "install there what is installed here; see the node's own `trifecta doctor`"
        return [Finding("doctor", "missing", f"`trifecta doctor` says nothing there: {ended}", remedy, required=True)]


def _engine(launcher: TalkingLauncher, key: str, log: Path) -> Finding:
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
        same = place.engine() == static_engine.told(find_engine())
    except (CannotError, EngineError) as error:
        return Finding(name, "missing", str(error), rebuild(), required=True)
    finally:
        launcher.end(key)
    said = f"answers {took_s * 1e3:.0f} ms after it is asked for; "
    if same:
        return Finding(name, "ok", said + "it is the build that is here", required=True)
    said += "it is another build than the one here"
    return Finding(name, "warn", said, "install there what is installed here", required=True)
