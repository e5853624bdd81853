"""The session of pages elsewhere: robots.txt and a visit by each browser before the first block, and addresses."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence

from trifecta.contract.far import AddressObservation, Look, PageObservation, RobotsObservation
from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.design.far import FAMILIES
from trifecta.design.manners import MOST_ADDRESSES
from trifecta.design.model import Cell, Levelled, Trial
from trifecta.design.workloads.far_page import FarPageWorkload
from trifecta.lab.engine import EngineProgram
from trifecta.workloads.far import names, page_look, robots
from trifecta.workloads.far.page_configs import addresses_of, spawn
from trifecta.workloads.far.page_look import PageLooker, Spot
from trifecta.workloads.far.session import FarBaseSession, FarKey
from trifecta.workloads.far.supported import given_authorities
from trifecta.workloads.session import SessionContext
from trifecta.workloads.visits.session import STATE

PageKey = tuple[str, str]
"""A URL, and a browser."""
SEEN_IN_THIS_PROCESS: dict[PageKey, PageObservation] = {}
"""By a look before a run, which the run need not make again."""


def page_pins() -> Mapping[str, frozenset[int] | None]:
    """A browser has every core; of three or more one is left to what watches it. There is no server here."""
    available = sorted(os.sched_getaffinity(0))
    return {"client": frozenset(available[1:]) if len(available) > 2 else None}


def look_protocol(protocols: Sequence[str]) -> str:
    """Over which of these protocols a browser looks: HTTP/2, which needs nothing forced."""
    return "h2" if "h2" in protocols else protocols[-1]


class FarPageSession(FarBaseSession[FarPageWorkload]):
    """Of visits."""

    def __init__(self, common: SessionContext) -> None:
        """Prepare."""
        super().__init__(common, FarPageWorkload, page_pins())
        self.state = self.run.path / STATE
        self.given = given_authorities(self.study)
        """Authorities that a browser is given besides its own."""
        self.pages: dict[PageKey, PageObservation] = {}
        self._read: dict[str, RobotsObservation] = {}
        """What robots.txt says, by URL."""
        self._where: dict[tuple[str, int, FarKey], dict[str, str]] = {}
        self._pages = PageLooker(
            self.here,
            self.workload(plan.treatments(self.study)[0]),
            self.keeper,
            self.log("look"),
            authorities=self.given,
            cpus=self.pins["client"],
            stop=self.stop,
        )

    def _raise(self) -> None:
        super()._raise()
        self.state.mkdir(exist_ok=True)
        self._stack.callback(shutil.rmtree, self.state, ignore_errors=True)

    def begin(self, cells: Sequence[Cell], versions: Mapping[str, str], more_sizes: Iterable[int] = ()) -> None:
        """Look at every place that robots.txt does not forbid, and have every browser visit every page once.

        What is forbidden, does not load or is more than may be asked is in ``failed``.
        """
        super().begin(cells, versions, more_sizes)
        for at in plan.treatments(self.study, cells):
            (key,) = self.keys(at)
            page = key[0], at.client
            if key in self.failed:
                continue
            try:
                if page not in self.pages:
                    self.pages[page] = self._visit(key, at)
                page_look.refuse(self.pages[page], self.keeper.manners)
            except CannotError as error:
                self.fail(key, str(error))
                continue
            turns = len(plan.arms(self.study)) * self.workload(at).turns(at.connection)
            if reason := page_look.no_room(self.pages[page], turns, self.keeper.manners):
                self.fail(key, f"{key[0]} in {at.client}: {reason}")
        self._keep(list(self.pages.values()), list(self._read.values()))

    def _look_at(self, key: FarKey) -> list[AddressObservation]:
        """As of single requests, but only where robots.txt lets us."""
        url, level, _ = key
        target = self.targets[url]
        if url not in self._read:
            addresses = names.resolve(target.host, target.port).of(level) if level in FAMILIES else [level]
            if not addresses:
                raise CannotError(f"{target.host} has no {level} address; leave {level} out")
            read = robots.read(target, sorted(addresses)[:MOST_ADDRESSES], self.authorities, self.keeper)
            self._read[url] = read.about(target)
        robots.refuse_forbidden(self._read[url])
        return super()._look_at(key)

    def _visit(self, key: FarKey, at: Levelled) -> PageObservation:
        """What a look before the run saw, or a visit now."""
        known = SEEN_IN_THIS_PROCESS.get((key[0], at.client))
        if known is not None and known["address"] in self.spots[key]:
            return known
        protocol = look_protocol(self._protocols)
        spot = Spot(self.targets[key[0]], min(self.spots[key]), protocol)
        return self._pages.see(spot, at.client, self.workload(at).hosts_beside)

    def _keep(self, pages: list[PageObservation], read: list[RobotsObservation]) -> None:
        """Beside what was seen of the places at the same time."""
        facts = self.run.facts
        *earlier, last = facts.get("elsewhere", [])
        look: Look = {**last, "pages": pages, "robots": read}
        self.run.write_facts({**facts, "elsewhere": [*earlier, look]})

    def page(self, at: Levelled) -> PageObservation:
        """What a visit of a treatment takes, as a look saw it."""
        return self.pages[self.keys(at)[0][0], at.client]

    def addresses(self, trial: Trial) -> dict[str, str]:
        """Where every host of the page is for the arms of a trial's block; empty where nobody knows."""
        key = self.keys(trial)[0]
        place = trial.cell.key, trial.block, key
        if place not in self._where:
            spot, beside = self.chosen(trial).spot, self.workload(trial).hosts_beside
            self._where[place] = {} if spot is None else addresses_of(self.targets[key[0]], spot.address, beside)
        return self._where[place]

    def spawn_browser(self, browser: str) -> EngineProgram:
        """Start the driver of a browser; it waits for its configuration."""
        return spawn(self.here, browser, self.log(f"client-{browser}"), self.pins["client"])
