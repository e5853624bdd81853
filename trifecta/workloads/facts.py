"""What ``run.json`` says of a run: study, versions, machine, parity, and what was left out."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from trifecta.contract.codec import plain
from trifecta.contract.run import InstalledProgram, LeftOut, RunDocument
from trifecta.contract.values import JsonObject
from trifecta.design import plan, quinn
from trifecta.design.errors import UserError
from trifecta.design.model import Study
from trifecta.design.transports import BETWEEN
from trifecta.lab.engine import engine_versions
from trifecta.lab.host import describe_pins
from trifecta.lab.hosts import MTU
from trifecta.observers.machine import static_facts
from trifecta.store.facts import SCHEMA_VERSION
from trifecta.workloads import code
from trifecta.workloads.faults import Faults
from trifecta.workloads.load_configs import CIPHER, MAX_UDP_PAYLOAD_BYTES, UDP_RECEIVE_BUFFER_BYTES
from trifecta.workloads.supported import Supported


def study_digest(study: Study) -> str:
    """The identity of a study: SHA-256 of its canonical text."""
    return hashlib.sha256(study.source.encode()).hexdigest()


def first_facts(
    study: Study,
    engine: Path,
    here: Supported,
    faults: Faults,
    pins: Mapping[str, frozenset[int] | None],
) -> RunDocument:
    """What is known before the first trial."""
    versions = engine_versions(engine)
    return {
        "schema": SCHEMA_VERSION,
        "trifecta": version("trifecta"),
        "python": sys.version.split()[0],
        "engine": plain(versions),
        "code": code.digests(engine),
        "study": {"name": study.name, "title": study.title, "sha256": study_digest(study), "metric": study.metric},
        "seed": study.seed,
        "argv": sys.argv,
        "started_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "servers": dict(here.servers),
        "clients": dict(here.clients),
        "unsupported": list(here.left_out),
        "machine": static_facts(),
        "pins": describe_pins(pins),
        "parity": _parity(study),
        # Of the engine's own client and server: what is not as the library comes, and which of it the study asks for.
        "quinn": {
            "library": f"{quinn.LIBRARY} {versions.quinn_proto}",
            "asked": sorted({plan.workload_for(study, one).quinn for one in plan.treatments(study, here.cells)}),
            "adaptations": dict(quinn.ADAPTATIONS),
        },
        "faults": faults.describe(),
        "state": "running",
    }


def _parity(study: Study) -> JsonObject:
    """What is the same for every arm by construction; each trial's checks compare what was really used."""
    workload = study.workload
    document: JsonObject = {
        "tls_version": workload.tls_version,
        "cipher": BETWEEN.join(CIPHER[part] for part in workload.tls_version.split(BETWEEN)),
        "key_exchange": workload.key_exchange,
        "certificate": "of the server, verified" if workload.outside else "ECDSA P-256, verified",
        "congestion_control": workload.congestion_control,
        "tcp_nodelay": workload.tcp_nodelay,
        "max_udp_payload_bytes": MAX_UDP_PAYLOAD_BYTES,
        "udp_receive_buffer_bytes": UDP_RECEIVE_BUFFER_BYTES,
    }
    if workload.ip is not None:  # else left out: that of runs from before stays
        document = {**document, "ip": workload.ip}
    # A path that is none of ours has the MTU that it has, and UDP payloads that pass.
    return document if workload.outside or study.hosts else {**document, "mtu_bytes": MTU}


def check_same_study(facts: RunDocument, study: Study, unsupported: Sequence[LeftOut]) -> None:
    """Refuse to resume a run with another study, or with other levels left out: its blocks would not compare."""
    if facts["study"]["sha256"] != study_digest(study):
        raise UserError("the study is not the one this run began with; start a new run with --out")
    before = {(item["factor"], item["level"]) for item in facts["unsupported"]}
    now = {(item["factor"], item["level"]) for item in unsupported}
    if before != now:
        changed = ", ".join(f"{factor} {level}" for factor, level in sorted(before ^ now))
        raise UserError(f"what is supported here changed since the run began ({changed}); start a new run with --out")


def check_same_builds(facts: RunDocument, study: Study, servers: Mapping[str, InstalledProgram]) -> None:
    """Refuse to resume a run with another program behind the name of a build: its blocks would not compare."""
    for level in study.servers:
        before = facts.get("servers", {}).get(level, {}).get("sha256")
        now = servers.get(level, {}).get("sha256")
        if before and now and before != now:
            what = f"server {level} is another program than this run began with (sha256 {before[:12]}, now {now[:12]})"
            raise UserError(f"{what}; restore that one, or start a new run with --out")
