"""The session of requests to servers elsewhere: no lab, but looks at every place, and one address for every block."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Generic, Literal, TypeVar

from trifecta.contract.far import AddressObservation, Look
from trifecta.contract.probe import MeasureSummary
from trifecta.contract.run import RunDocument
from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.design.far import FAMILIES
from trifecta.design.machine import HERE, from_where
from trifecta.design.manners import MOST_ADDRESSES
from trifecta.design.model import PROTOCOL_FACTOR, Cell, FarBaseWorkload, Levelled, Trial
from trifecta.design.workloads.far import FarWorkload
from trifecta.implementations.running import ServerFailed
from trifecta.lab import sandbox
from trifecta.lab.host import LocalHost, pin_table
from trifecta.lab.place import LocalPlace, Place
from trifecta.workloads.far import names
from trifecta.workloads.far.addresses import AddressFacts, no_room, spot_of, why_not
from trifecta.workloads.far.configs import Request
from trifecta.workloads.far.look import Looker
from trifecta.workloads.far.rate_limiter import OF_THIS_PROCESS, RateLimiter
from trifecta.workloads.far.supported import authorities, targets
from trifecta.workloads.far.vantages import DistantLooker, Vantages
from trifecta.workloads.session import Session, SessionContext

Work = TypeVar("Work", bound=FarBaseWorkload)
FarKey = tuple[str, str, str]
"""A URL, a level of the factor ``address``, and from where it is asked: ``here``, or a host by SSH."""


@dataclass(frozen=True)
class Chosen:
    """Where the arms of a block go, or why nobody knows."""

    spot: AddressFacts | None
    resolved: tuple[str, ...] = ()
    problem: str = ""


class FarBaseSession(Session[Work, FarKey], Generic[Work]):
    """Nothing of it runs in a lab: what asks is started in this machine's own network."""

    def __init__(self, common: SessionContext, kind: type[Work], pins: Mapping[str, frozenset[int] | None]) -> None:
        """Prepare; nothing is asked before ``begin``."""
        super().__init__(common, kind, pins)
        self.here = LocalPlace(LocalHost(), self.engine)
        self.targets = targets(self.study)
        self.authorities = authorities(self.study)
        first = self.workload(plan.treatments(self.study)[0])
        self.keeper = RateLimiter(first.manners, self.stop, sent=OF_THIS_PROCESS)
        self.spots: dict[FarKey, dict[str, AddressFacts]] = {}
        """By address, those where every protocol of the study was answered."""
        self._looker = Looker(self.here, first, self.keeper, self.log("look"), self.stop)
        self._protocols = [str(one) for one in self.study.factors[PROTOCOL_FACTOR]]
        self._chosen: dict[tuple[str, int, FarKey], Chosen] = {}
        self._begun: dict[tuple[str, int, FarKey], str] = {}
        """Addresses of blocks that an earlier part of the run began."""

    def _raise(self) -> None:
        if sandbox.entered():
            raise CannotError(
                "a lab has no way out to a server elsewhere; measure it by `trifecta race URL` or `trifecta run`"
            )

    def begin(self, cells: Sequence[Cell], versions: Mapping[str, str], more_sizes: Iterable[int] = ()) -> None:
        """Look at every place; where a protocol of the study is not answered is in ``failed``."""
        first = self.workload(plan.treatments(self.study)[0])
        rows = self.run.rows()
        for row in rows:
            server, levels = json.loads(row["server_json"] or "{}"), json.loads(row["factors_json"])
            if server.get("address"):
                address, vantage = levels.get("address", first.address), levels.get("vantage", first.asked_from)
                key = server["url"], str(address), str(vantage)
                self._begun[row["cell"], int(row["block"]), key] = server["address"]
        keys = dict.fromkeys(key for cell in cells for key in self.keys_of(cell))
        self._look("again" if rows else "before", list(keys))

    def last_look(self) -> None:
        """Look once more at every place that was not given up; not at a server that asked to be left alone."""
        if not self.keeper.backing_off:
            self._look("after", [key for key in self.spots if key not in self.failed])

    def _look(self, when: Literal["before", "again", "after"], keys: Sequence[FarKey]) -> None:
        places: list[AddressObservation] = []
        for key in keys:
            try:
                observations = self._look_at(key)
            except CannotError as error:
                if when != "after":
                    self.fail(key, str(error))
                continue
            places += observations
            if when != "after":
                self._judge(key, observations)
        looked: Look = {"when": when, "utc": datetime.now(UTC).isoformat(timespec="seconds"), "places": places}
        facts = self.run.facts
        self.run.write_facts({**facts, "elsewhere": [*facts.get("elsewhere", []), looked]})

    def _look_at(self, key: FarKey) -> list[AddressObservation]:
        """The places of a level; CannotError where it stands for none."""
        url, level, vantage = key
        target = self.targets[url]
        # An address that is given needs no name: a server may be asked before its name leads there.
        resolved = self._resolve(key) if level in FAMILIES else names.Resolved((level,), None)
        addresses = resolved.of(level)
        if not addresses:
            raise CannotError(f"{target.host} has no {level} address; leave {level} out")
        record = names.https_record(target.host, target.port)  # from here, wherever it is asked from
        looker = self._looker_of(vantage)
        observations = [
            # HTTP/3 too where it is not compared: what becomes of UDP is a result of its own.
            looker.see(Request(target, address, "", self.authorities), level, resolved, record)
            for address in sorted(addresses)[:MOST_ADDRESSES]
        ]
        for place in observations if vantage != HERE else ():
            place["vantage"] = vantage
        return observations

    def _resolve(self, key: FarKey) -> names.Resolved:
        """What the name of a key stands for where it is asked from; CannotError where that is nothing."""
        target = self.targets[key[0]]
        return names.resolve(target.host, target.port)

    def _looker_of(self, vantage: str) -> Looker:
        """Who looks from there."""
        return self._looker

    def _judge(self, key: FarKey, observations: Sequence[AddressObservation]) -> None:
        """Keep the addresses where every protocol was answered rightly; fail the key where there is none."""
        good = {
            place["address"]: spot for place in observations if (spot := spot_of(place, self._protocols)) is not None
        }
        if good:
            self.spots[key] = good
            if reason := self._too_much(max(spot.answer_bytes for spot in good.values())):
                self.fail(key, f"{key[0]} at {key[1]}: {reason}")
            return
        self.fail(key, "; ".join(dict.fromkeys(why_not(place, self._protocols) for place in observations)))

    def _too_much(self, answer_bytes: int) -> str:
        """Why answers of so many octets are more than is asked for in all; empty where a block of them fits."""
        return ""

    def chosen(self, trial: Trial) -> Chosen:
        """Where the arms of a trial's block go: resolved once, by the seed where there are several addresses."""
        key = self.keys(trial)[0]
        place = trial.cell.key, trial.block, key
        if place not in self._chosen:
            self._chosen[place] = self._choose(key, trial.block, self._begun.get(place))
        return self._chosen[place]

    def _choose(self, key: FarKey, block: int, begun: str | None) -> Chosen:
        url, level, vantage = key
        known, target = self.spots[key], self.targets[url]
        if level not in FAMILIES:
            return Chosen(known[level], (level,))
        if begun is not None:
            return Chosen(self._like(key, begun), (begun,))
        try:
            resolved = self._resolve(key)
        except CannotError as error:
            return Chosen(None, (), str(error))
        addresses = sorted(resolved.of(level))
        if not addresses:
            return Chosen(None, resolved.addresses, f"{target.host} has no {level} address any more")
        where = (url, level) if vantage == HERE else (url, level, vantage)
        drawn = plan.stable_seed("address", self.study.seed, *where, block) % len(addresses)
        return Chosen(self._like(key, addresses[drawn]), resolved.addresses)

    def _like(self, key: FarKey, address: str) -> AddressFacts:
        """What is known of an address; one that was not looked at is taken to be like its siblings.

        Where it is not, the checks of its trials say so.
        """
        known = self.spots[key]
        usual = max(known.values(), key=lambda spot: spot.answer_bytes)
        return known.get(address) or replace(usual, address=address)

    def keys(self, at: Levelled) -> tuple[FarKey, ...]:
        """The URL of a treatment, and where it is asked for."""
        workload = self.workload(at)
        return ((workload.url, workload.address, workload.asked_from),)

    def level(self, key: FarKey) -> tuple[str, str]:
        """The address is given up, of this URL."""
        url, address, vantage = key
        return "address", f"{address} of {url}{from_where(vantage)}"

    def probe_key(self, at: Levelled) -> Hashable:
        """The place."""
        return self.keys(at)[0]

    def probe_due(self, at: Levelled, every_s: float) -> bool:
        """There is no reflector at the other end: looks and trials measure the path."""
        return False

    def _measure(self, at: Levelled, seed: int, *, first: bool) -> MeasureSummary:
        raise CannotError(
            "the path to a server elsewhere has no reflector at its end; looks at the server take its place"
        )


class FarSession(FarBaseSession[FarWorkload]):
    """Of single requests."""

    def __init__(self, common: SessionContext) -> None:
        """Prepare."""
        super().__init__(common, FarWorkload, pin_table())
        first = self.workload(plan.treatments(self.study)[0])
        self._requests = len(plan.arms(self.study)) * first.every_request("reused")  # of a block, at most
        self.vantages = Vantages((self.workload(one).asked_from for one in plan.treatments(self.study)), self.engine)
        self._samples = self.run.path / "samples"
        self._distant: dict[str, Looker] = {}

    def _raise(self) -> None:
        """Connect to every vantage point."""
        super()._raise()
        self.vantages.connect(self._stack, self.authorities, self._samples)

    def facts(self) -> RunDocument:
        """What the vantage points say of themselves."""
        vantage_facts = self.vantages.facts()
        return {**super().facts(), "hosts": vantage_facts} if vantage_facts else super().facts()

    def place(self, vantage: str) -> Place:
        """Where loads are started that ask from there."""
        return self.here if vantage == HERE else self.vantages.place(vantage)

    def problem(self, key: FarKey) -> str | None:
        """Which vantage point is lost; None while it stands. Of the server trials say it."""
        return self.vantages.lost(key[2])

    def _restart(self, key: FarKey) -> None:
        try:
            self.vantages.reopen(key[2])
        except CannotError as error:
            raise ServerFailed(str(error)) from error

    def _resolve(self, key: FarKey) -> names.Resolved:
        url, _, vantage = key
        return super()._resolve(key) if vantage == HERE else self.vantages.resolve(vantage, self.targets[url])

    def _looker_of(self, vantage: str) -> Looker:
        if vantage == HERE:
            return super()._looker_of(vantage)
        if vantage not in self._distant:
            first = self.workload(plan.treatments(self.study)[0])
            self._distant[vantage] = DistantLooker(
                self.place(vantage), first, self.keeper, self.log("look"), self.stop, samples=self._samples
            )
        return self._distant[vantage]

    def _too_much(self, answer_bytes: int) -> str:
        return no_room(answer_bytes, self._requests, self.keeper.manners)
