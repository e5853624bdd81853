"""The part of ``drive`` that runs inside the sandbox, where heavy imports are allowed."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.implementations.proxying_caddy import ProxyingCaddy
from trifecta import studies
from trifecta.contract.codec import changed
from trifecta.contract.origin import OriginConfig
from trifecta.design.errors import TrifectaError
from trifecta.implementations import running
from trifecta.implementations.registry import SERVERS
from trifecta.implementations.server import ServerOptions, Site
from trifecta.implementations.servers.origin import Origin
from trifecta.workloads import load_configs
from trifecta.workloads.extending import RunExtension
from trifecta.workloads.faults import Faults
from trifecta.workloads.requests import trial
from trifecta.workloads.runner import run_study
from trifecta.workloads.stopping import StopFlag


@dataclass
class ChangedOrigin(Origin):
    """An origin with other settings than the study asks for."""

    changes: dict[str, Any] = field(default_factory=dict)

    def config(self, site: Site, options: ServerOptions) -> OriginConfig:
        return changed(super().config(site, options), self.changes)


def run(folder: Path, request: dict[str, Any], events: Any) -> int:
    """Run the study; the outcome is the last line."""
    adapters = dict(SERVERS)
    if request.get("origin"):
        adapters["origin"] = ChangedOrigin(changes=request["origin"])
    for name, changes in request.get("origins", {}).items():  # an origin in the place of another server
        adapters[name] = ChangedOrigin(changes=changes)
        adapters[name].name = name
    for name in request.get("proxies", []):  # Caddy in the place of another proxy
        adapters[name] = ProxyingCaddy(name)
    if "ready_timeout_s" in request:
        running.READY_TIMEOUT_S = request["ready_timeout_s"]
    if "grace_s" in request:
        trial._LOAD_GRACE_S = request["grace_s"]
        load_configs._TIMEOUT_SLACK_NS = int(request["grace_s"] * 1e9)
    try:
        study = studies.load(request.get("study", "race"), request.get("set", []), studies.known_servers())
        with StopFlag() as stop:
            outcome = run_study(
                study,
                folder,
                events,
                stop,
                resume=request.get("resume", False),
                adapters=adapters,
                faults=Faults(**request.get("faults", {})),
                more=RunExtension(**request.get("more", {})),
            )
    except TrifectaError as error:
        print(f"trifecta: {error}", file=sys.stderr)
        return error.exit_code
    print(
        json.dumps(
            {
                "kind": outcome.kind,
                "reason": outcome.reason,
                "trials": outcome.trials,
                "valid": outcome.valid_trials,
                "failed": [[c.scope, c.check, c.evidence] for c in outcome.checks if c.status == "fail"],
                "share": outcome.time_share,
                "elapsed_s": outcome.elapsed_ns / 1e9,
            }
        ),
        flush=True,
    )
    return 130 if outcome.interrupted else 0
