"""Deliberate faults, to show that every check fails when it should. Never used unless asked for, always recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trifecta.contract.values import JsonObject


@dataclass(frozen=True)
class Faults:
    """Changes to the engine's configurations, by the arm or role they hit. Named in ``run.json``."""

    load: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Arm (or ``*``) to fields of the load's configuration."""
    link: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the link's configuration; its summary is compared with the path as the study has it."""
    services: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Service to fields of its origin's configuration."""
    client_competitors: int = 0
    """So many programs that only count share the client's CPU."""
    browser_driver: tuple[str, ...] = ()
    """The command of a program that speaks the driver's contract in a browser's place."""

    def describe(self) -> JsonObject:
        """As recorded; empty when there are none."""
        document: dict[str, Any] = {}
        if self.load:
            document["load"] = {arm: dict(changes) for arm, changes in self.load.items()}
        if self.link:
            document["link"] = dict(self.link)
        if self.services:
            document["services"] = {name: dict(changes) for name, changes in self.services.items()}
        if self.client_competitors:
            document["client_competitors"] = self.client_competitors
        if self.browser_driver:
            document["browser_driver"] = list(self.browser_driver)
        return document

    def load_changes(self, arm: str) -> dict[str, Any]:
        """The changes to the load of one arm."""
        return {**self.load.get("*", {}), **self.load.get(arm, {})}

    def service_changes(self, service: str) -> dict[str, Any]:
        """The changes to one service."""
        return dict(self.services.get(service, {}))


NO_FAULTS = Faults()
