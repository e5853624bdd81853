"""A program that can be services in the place of the engine's own. The table is in ``registry.py``.

It speaks the engine's contract (docs/architecture.md, sections 1.1 and 1.2): ``PROGRAM load -`` is the client,
``PROGRAM origin -`` a service. Of the configurations it follows what `trifecta.contract.services` says; its samples and
spans are lines of JSON, which `rows` makes the files of a trial of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from trifecta.contract.common import Declared
from trifecta.design.protocols import Protocol


class ServicesProgram(ABC):
    """One program for all services of a trial and for the client that asks them."""

    name: str
    """The level of the factor ``server``."""
    source: str
    """Where the program comes from and how to install it."""
    protocols: frozenset[Protocol] = frozenset({"h1", "h2", "h3"})
    quic_congestion_control: str
    """Over TCP it is the route's."""

    @abstractmethod
    def find(self) -> str:
        """Look for the program and return its version; Unsupported, with the command that installs it, when missing."""

    @abstractmethod
    def program(self) -> Path:
        """The program, which needs no other file but its own; Unsupported when it is missing."""

    def declared(self) -> Declared:
        """What is known of it from its documentation or source: TLS library, congestion control, build options."""
        return {}
