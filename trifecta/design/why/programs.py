"""Causes in the programs: who serves, who asks, and how much CPU they have."""

from __future__ import annotations

from trifecta.design.model import CLIENT_FACTOR, DEFAULT_CLIENT
from trifecta.design.why.cause import CERTAIN, LIKELY, POSSIBLE, CellEvidence, Suspect, cause

OWN_SERVER = "origin"


def _cpu(evidence: CellEvidence, name: str) -> Suspect | None:
    own = evidence.value(name)
    if own in ("", "none"):
        return None
    loud = evidence.struck.get("headroom", 0) > 0
    why = f"it has {own} of a core" + (", and the check headroom warned" if loud else "")
    return Suspect(CERTAIN if loud else LIKELY, why, {name: ("none",)})


@cause("client-cpu", check="headroom")
def client_cpu(evidence: CellEvidence) -> Suspect | None:
    """the client's share of a core

    ## Removed by
    `client_cpu: none`: it has its core to itself.

    ## Suspected when
    the study limits it, surely where the check headroom warned.

    ## Cannot
    give a program more than the core that this machine has.
    """
    return _cpu(evidence, "client_cpu")


@cause("server-cpu", check="headroom")
def server_cpu(evidence: CellEvidence) -> Suspect | None:
    """the server's share of a core

    ## Removed by
    `server_cpu: none`: it has its core to itself.

    ## Suspected when
    the study limits it, surely where the check headroom warned.

    ## Cannot
    give a program more than the core that this machine has.
    """
    return _cpu(evidence, "server_cpu")


@cause("server-program")
def server_program(evidence: CellEvidence) -> Suspect | None:
    """the server

    ## Removed by
    `server: origin`, the engine's own, whose HTTP/2 and HTTP/3 are one program's.

    ## Suspected when
    the server is another project's.

    ## Cannot
    say what of that server it is: the further causes are then measured on `origin`, the nearest server in which they
    can be switched.
    """
    own = evidence.value("server")
    if own in ("", OWN_SERVER) or own.startswith("engine"):
        return None
    return Suspect(LIKELY, f"{own} is another program", {"server": (OWN_SERVER,)})


@cause("client-program", check="headroom")
def client_program(evidence: CellEvidence) -> Suspect | None:
    """the client

    ## Removed by
    `client: load`, the engine's own.

    ## Suspected when
    the client is another project's.

    ## Cannot
    say what of that client it is.
    """
    own = evidence.value(CLIENT_FACTOR)
    if own in ("", DEFAULT_CLIENT):
        return None
    loud = evidence.struck.get("headroom", 0) > 0
    return Suspect(LIKELY if loud else POSSIBLE, f"{own} is another program", {CLIENT_FACTOR: (DEFAULT_CLIENT,)})
