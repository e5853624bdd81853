"""One look at a server elsewhere: every protocol once, the round trip while idle and while content comes."""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from trifecta.analysis import far
from trifecta.analysis.polite_planner import retry_after_ns
from trifecta.contract.codec import plain
from trifecta.contract.far import AddressObservation, HttpsRecord, RequestOutcome
from trifecta.contract.load import LoadSummary
from trifecta.design import numbers
from trifecta.design.errors import CannotError
from trifecta.design.manners import MOST_CONNECTS, PATIENCE
from trifecta.design.model import PROTOCOLS, FarBaseWorkload
from trifecta.lab.engine import EngineError, as_user_error
from trifecta.lab.place import Place
from trifecta.workloads.far.configs import SMALL_UDP_PAYLOAD_BYTES, Request, RequestSchedule, load_config
from trifecta.workloads.far.names import Resolved
from trifecta.workloads.far.rate_limiter import RateLimiter

_GRACE_S = 5.0
_CONNECT_TIMEOUT_S = 2.0


class Looker:
    """Looks at places; every request of it keeps to the manners of the run."""

    def __init__(
        self,
        here: Place,
        workload: FarBaseWorkload,
        keeper: RateLimiter,
        log: Path,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """``here`` is where the load is started, ``log`` what it says is appended to."""
        self._here = here
        self._workload = workload
        self._keeper = keeper
        self._log = log
        self._stop = stop

    def see(
        self,
        request: Request,
        level: str,
        resolved: Resolved,
        record: HttpsRecord | None,
        protocols: Sequence[str] = PROTOCOLS,
    ) -> AddressObservation:
        """One address, of ``request``, over these protocols, HTTP/3 last. UserError and CannotError from the engine.

        Where HTTP/3 is announced and nobody answers, it is asked once more with the smallest packets. CannotError also
        for an answer that by itself is more than a minute may have: the others are not asked for then.
        """
        answers: list[RequestOutcome] = []
        loaded: list[int] = []
        alpn = record["alpn"] if record is not None else []
        announcements: list[str] = []
        for protocol in (one for one in PROTOCOLS if one in protocols):
            connects = loaded if protocol != "h3" else None
            answers.append(self.once(replace(request, protocol=protocol), connects))
            self._refuse_huge(request, answers[-1]["wire_bytes"])
            announcements = list(dict.fromkeys([*announcements, *far.announced(answers[-1]["fields"], alpn)]))
            if answers[-1]["status"] in PATIENCE:
                break
        if "h3" in protocols and announcements and far.udp_of(answers, announcements) == "blocked":
            answers.append(self.once(replace(request, protocol="h3", udp_payload_bytes=SMALL_UDP_PAYLOAD_BYTES), None))
        return {
            "url": request.target.url,
            "level": level,
            "address": request.address,
            "resolved": list(resolved.addresses),
            "dns_ns": resolved.took_ns,
            "https_record": record,
            "announced": announcements,
            "answers": answers,
            "idle_rtt_ns": min((one["connect_ns"] for one in answers if one["connect_ns"] is not None), default=None),
            "loaded_rtt_ns": round(median(loaded)) if loaded else None,
            "udp": far.udp_of(answers, announcements),
        }

    def _refuse_huge(self, request: Request, octets: int) -> None:
        """How large an answer is, nobody knows before it comes; that one was enough."""
        most = self._keeper.manners.volume_bytes
        if octets > most:
            limit = numbers.without_zeros(numbers.size(most))
            what = f"a response took {numbers.size(octets)}, and the limit is {limit} a minute"
            raise CannotError(f"{request.target.url} at {request.address}: {what}; request something smaller")

    @contextmanager
    def _draft(self) -> Iterator[Path]:
        """Where the samples of a request are written; gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="trifecta-look-") as folder:
            yield Path(folder) / "samples.parquet"

    def once(self, request: Request, connects: list[int] | None = None) -> RequestOutcome:
        """One request; how long TCP took to connect meanwhile, while content came, is added to ``connects``."""
        self._keeper.wait()
        with self._draft() as samples:
            config = load_config(request, self._workload, RequestSchedule("look", "new", 1, 0, 0), samples)
            tries: list[tuple[int, int]] = []
            begun = 0

            def meanwhile() -> None:
                nonlocal begun
                if connects is not None and begun < MOST_CONNECTS and self._keeper.may_now():
                    begun += 1
                    tries.extend(_connect(request))
                    self._keeper.record_requests(0)

            with self._here.start("load", self._log) as load:
                try:
                    load.configure(config)
                    self._keeper.record_requests(0)
                    limit_s = config.total_timeout_ns / 1e9 + _GRACE_S
                    summary = load.wait_summary(LoadSummary, limit_s, self._stop, meanwhile)
                    load.get(samples)
                except EngineError as error:
                    raise as_user_error(error) from error
            row = _only_row(samples)
        octets = (summary.wire_bytes_in or 0) + (summary.wire_bytes_out or 0)
        self._keeper.record_requests(octets)
        if row["status"] in PATIENCE:
            self._keeper.turned_away(retry_after_ns(plain(summary), datetime.now(UTC).isoformat()))
        if connects is not None and row["first_byte_ns"] and row["done_ns"]:
            connects += [end - begin for begin, end in tries if row["first_byte_ns"] <= begin and end <= row["done_ns"]]
        return _outcome(request, summary, row, octets)


def _connect(request: Request) -> list[tuple[int, int]]:
    """When TCP began to connect, and when it had; nothing where it did not."""
    began_ns = time.monotonic_ns()
    try:
        with socket.create_connection((request.address, request.target.port), timeout=_CONNECT_TIMEOUT_S):
            return [(began_ns, time.monotonic_ns())]
    except OSError:
        return []


def _only_row(samples: Path) -> Mapping[str, Any]:
    from trifecta.store import parquet

    names = (
        "connect_start_ns", "tcp_connected_ns", "secured_ns", "request_sent_ns", "first_byte_ns", "done_ns", "status",
        "bytes_in", "error",
    )  # fmt: skip
    rows = parquet.read(samples)
    return rows[-1] if rows else {name: "timeout" if name == "error" else None for name in names}


def _outcome(request: Request, summary: LoadSummary, row: Mapping[str, Any], octets: int) -> RequestOutcome:
    own = summary.tcp or summary.quic
    lost = summary.tcp.retransmits if summary.tcp else summary.quic.lost_packets if summary.quic else None
    shaken_from = row["tcp_connected_ns"] or row["connect_start_ns"]
    fields = {name: ", ".join(field.values) for name, field in (summary.response_fields or {}).items() if field.values}
    return {
        "protocol": request.protocol,
        "error": row["error"],
        "status": row["status"],
        "content_bytes": int(row["bytes_in"] or 0),
        "wire_bytes": octets,
        "connect_ns": _between(row["connect_start_ns"], row["tcp_connected_ns"]),
        "handshake_ns": _between(shaken_from, row["secured_ns"]),
        "wait_ns": _between(row["request_sent_ns"], row["first_byte_ns"]),
        "transfer_ns": _between(row["first_byte_ns"], row["done_ns"]),
        "min_rtt_ns": None if own is None else own.min_rtt_ns,
        "lost": lost,
        "udp_payload_bytes": request.udp_payload_bytes if request.protocol == "h3" else None,
        "fields": fields,
    }


def _between(begin: int | None, end: int | None) -> int | None:
    return None if begin is None or end is None else int(end - begin)
