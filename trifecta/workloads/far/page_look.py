"""A browser's look at a page: how many requests and octets a visit takes, and which hosts it asks."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trifecta.analysis.polite_planner import retry_after_ns
from trifecta.contract.codec import plain
from trifecta.contract.far import PageObservation
from trifecta.contract.load import LoadSummary
from trifecta.design import manners, numbers
from trifecta.design.errors import CannotError
from trifecta.design.far import MOST_HOSTS, is_host
from trifecta.design.manners import PATIENCE, Manners
from trifecta.design.stat import Target
from trifecta.design.workloads.far_page import FarPageWorkload
from trifecta.implementations.browsers.visit_traffic import NEVER_SENT
from trifecta.lab.engine import EngineError, as_user_error
from trifecta.lab.place import DrivingPlace
from trifecta.workloads.far.page_configs import VisitOptions, addresses_of, page_config, spawn
from trifecta.workloads.far.rate_limiter import RateLimiter
from trifecta.workloads.visits.configs import START_NS, Drafts

GRACE_S = 15.0  # beyond its own total timeout a driver is taken for hung
_NO_NAME = "browser:name"


@dataclass(frozen=True)
class Spot:
    """Where a page is looked at: its URL, an address of its host, and over which protocol."""

    target: Target
    address: str
    protocol: str


class PageLooker:
    """Looks at pages; every visit keeps to the manners of the run."""

    def __init__(
        self,
        here: DrivingPlace,
        workload: FarPageWorkload,
        keeper: RateLimiter,
        log: Path,
        *,
        authorities: Path | None,
        cpus: frozenset[int] | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """``here`` is where browsers are started, ``log`` what they say is appended to; one visit of ``workload``."""
        self._here = here
        self._workload = replace(workload, visits=1, warmup_visits=0, filmstrip=False)
        self._keeper = keeper
        self._log = log
        self._authorities = authorities
        self._cpus = cpus
        self._stop = stop

    def visit_with_hosts(
        self, spot: Spot, browser: str, known: Sequence[str]
    ) -> tuple[PageObservation, tuple[str, ...]]:
        """Visit the page until it names no host that did not exist for the browser; with those that were asked.

        `manners.PAGE_LOOKS` visits at most: a page that names others each time is looked at no further, and those of
        the last time stay unasked, as names do that lead nowhere. CannotError where a visit fails, somebody asks for
        patience, or a visit is more than a minute may have.
        """
        hosts = tuple(known)
        for _ in range(manners.PAGE_LOOKS):
            observation = self.see(spot, browser, hosts)
            refuse(observation, self._keeper.manners)
            new = [host for host in observation["unnamed"] if host not in hosts]
            if not new:
                break
            hosts = (*hosts, *new)
            if len(hosts) > MOST_HOSTS:
                what = f"the page asks {len(hosts)} hosts and more, and {MOST_HOSTS} at most are told to a browser"
                raise CannotError(f"{spot.target.url}: {what}; choose a simpler page")
        return observation, tuple(host for host in hosts if host not in observation["unnamed"])

    def see(self, spot: Spot, browser: str, others: Sequence[str]) -> PageObservation:
        """One visit, in which the host of the URL and ``others`` exist. CannotError from the driver."""
        addresses = addresses_of(spot.target, spot.address, others)
        options = VisitOptions("t00000", spot.target, spot.protocol, addresses, self._authorities, 0)
        self._keeper.wait()
        with tempfile.TemporaryDirectory(prefix="trifecta-page-") as name:
            folder = Path(name)
            samples, visits, fetches = (folder / f"{table}.parquet" for table in ("samples", "visits", "fetches"))
            drafts = Drafts(samples, visits, fetches, None, folder / "har", None)
            config = page_config(options, self._workload, drafts, folder)
            since_ns = time.monotonic_ns()
            with spawn(self._here, browser, self._log, self._cpus) as driver:
                try:
                    driver.configure(config)
                    limit_s = (START_NS + config.total_timeout_ns) / 1e9 + GRACE_S
                    summary = driver.wait_summary(LoadSummary, limit_s, self._stop)
                except EngineError as error:
                    self._keeper.record_requests(0)
                    raise as_user_error(error) from error
                for path in drafts.files:
                    driver.get(path)
            page = _observation(spot, browser, summary, visits, fetches)
        self._keeper.record_requests(page["octets"], max(1, page["requests"]), max(since_ns, summary.started_ns))
        if page["impatient"]:
            self._keeper.turned_away(retry_after_ns(plain(summary), datetime.now(UTC).isoformat()))
        return page


def refuse(page: PageObservation, own: Manners) -> None:
    """CannotError for a page that cannot be measured, with what helps."""
    where = f"{page['url']} at {page['address']} in {page['browser']}"
    if page["impatient"]:
        who = ", ".join(page["impatient"])
        raise CannotError(f"{where}: {who} answered 429 or 503, which asks to slow down; try another day")
    if page["error"] is not None:
        raise CannotError(f"{where}: the visit failed with {page['error']}; look at it with `trifecta stat`")
    if page["octets"] > own.volume_bytes:
        limit = numbers.without_zeros(numbers.size(own.volume_bytes))
        what = f"a visit took {numbers.size(page['octets'])}, and the limit is {limit} a minute"
        raise CannotError(f"{where}: {what}; choose a smaller page")


def no_room(page: PageObservation, turns: int, own: Manners) -> str:
    """Why one block, of so many visits, is more than is asked for in all; empty where it fits."""
    requests, octets = turns * page["requests"], turns * page["octets"]
    if requests > own.most_requests:
        what = f"a visit makes {page['requests']} requests, and the {turns} visits of a block would be more than"
        return f"{what} {own.most_requests:,}, the most in all; choose a smaller page, or fewer visits"
    if octets > own.most_bytes:
        most = numbers.without_zeros(numbers.size(own.most_bytes))
        what = f"a visit took {numbers.size(page['octets'])}, and the {turns} visits of a block would be more than"
        return f"{what} {most}, the most in all; choose a smaller page, or fewer visits"
    return ""


def _observation(spot: Spot, browser: str, summary: LoadSummary, visits: Path, fetches: Path) -> PageObservation:
    from trifecta.store import parquet

    (visit,) = parquet.read(visits, ["error", "load_ns"])
    rows = parquet.read(fetches, ["url", "status", "error", "from_cache"])
    sent = [row for row in rows if not row["from_cache"] and row["error"] not in NEVER_SENT]
    requests_by_host = Counter(host for row in sent if (host := _host(row)) != spot.target.host)
    unnamed = Counter(host for row in rows if row["error"] == _NO_NAME and is_host(host := _host(row)))
    return {
        "url": spot.target.url,
        "address": spot.address,
        "browser": browser,
        "protocol": spot.protocol,
        "error": visit["error"],
        "requests": len(sent),
        "octets": int(summary.octets_about or 0),
        "load_ns": visit["load_ns"],
        "third_parties": dict(requests_by_host.most_common()),
        "unnamed": dict(unnamed.most_common()),
        "impatient": list(dict.fromkeys(_host(row) for row in sent if row["status"] in PATIENCE)),
    }


def _host(row: Mapping[str, Any]) -> str:
    return (urlsplit(str(row["url"])).hostname or "").lower()
