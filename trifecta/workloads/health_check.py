"""Asks a server one real question with the engine's load: is it there, and does it answer rightly?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from trifecta.contract.load import LoadSummary
from trifecta.design.model import Cell, PathSpec, RequestsWorkload, Trial
from trifecta.lab.certificates import Certificates
from trifecta.lab.engine import EngineError, EngineProgram, as_user_error
from trifecta.workloads.aggregate import aggregate, error_summary
from trifecta.workloads.load_configs import load_config

TIMEOUT_NS = 2_000_000_000
# The server is there, but what it speaks or answers is not what is asked: no waiting helps, and the checks will say it.
_ANSWERED_OTHERWISE = {"tls:alpn", "tls:version", "length", "content"}


def ask(
    load: EngineProgram,
    where: tuple[str, int, str],
    protocol: str,
    certificates: Certificates,
    *,
    draft: Path,
    stop: Callable[[], bool],
    tls_version: str = "1.3",
    path: str,
    body_bytes: int | None,
    status: int = 200,
) -> str | None:
    """One request to (address, port, name) over a protocol; None when it was answered, else what went wrong.

    ``path`` is asked for, so many octets and this status are expected. The load is ended.
    """
    address, port, name = where
    workload = RequestsWorkload(
        requests=1,
        in_flight=1,
        tls_version=tls_version,
        connect_timeout_ns=TIMEOUT_NS,
        request_timeout_ns=TIMEOUT_NS,
    )
    config = load_config(
        Trial("t00000", 0, Cell("ready", {"connection": "reused"}), protocol, 0, 0),
        workload,
        PathSpec("setup"),
        address=address,
        port=port,
        server_name=name,
        certificates=certificates,
        samples_file=draft,
    )
    config = replace(config, path=path, expect_body_bytes=body_bytes, expect_status=status)
    with load:
        try:
            load.configure(config)
            summary = load.wait_summary(LoadSummary, 2 * TIMEOUT_NS / 1e9 + 10, stop)
            if summary.errors == 0:
                return None
            load.get(draft)
            errors = aggregate(draft).errors
            return None if set(errors) <= _ANSWERED_OTHERWISE else f"{protocol}: {error_summary(errors)}"
        except EngineError as error:
            raise as_user_error(error) from error
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()
