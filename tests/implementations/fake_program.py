"""A program on PATH that only tells its version, and a site for an adapter's configuration."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trifecta.implementations.server import Site
from trifecta.lab.certificates import make_certificates

# Root without capabilities has to make a user namespace for the lab, as an ordinary user has.
IN_A_USER_NAMESPACE = ("setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all")


def put_on_path(name: str, says: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program ``name`` that prints ``says``; the cache is empty, so it is the one to be found."""
    program = folder / "programs" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\ncat << 'END'\n{says}\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("TRIFECTA_CACHE", str(folder / "empty-cache"))
    return program


def make_site(folder: Path, name: str, port: int) -> Site:
    """A site on loopback, with its certificates and an object of 1000 octets."""
    state = folder / "state"
    state.mkdir()
    objects = folder / "site" / "bytes"
    objects.mkdir(parents=True)
    (objects / "1000").write_bytes(bytes(0x61 + i % 26 for i in range(1000)))
    return Site(folder / "site", make_certificates(folder / "pki", [f"{name}.lab"], []), "127.0.0.1", port, state)
