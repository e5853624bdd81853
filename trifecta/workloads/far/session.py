"""The session of requests to servers elsewhere: no lab, but looks at every place, and one address for every block."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Generic, Literal, TypeVar

from trifecta.contract.elsewhere import Answered, Look, PlaceSeen
from trifecta.contract.probe import MeasureSummary
from trifecta.design import numbers, plan
from trifecta.design.errors import CannotError
from trifecta.design.far import FAMILIES
from trifecta.design.manners import MOST_ADDRESSES, PATIENCE, Manners
from trifecta.design.model import PROTOCOL_FACTOR, PROTOCOL_NAMES, Cell, ElsewhereWorkload, Levelled, Trial
from trifecta.design.workloads.far import FarWorkload
from trifecta.lab import sandbox
from trifecta.lab.host import Here, pin_table
from trifecta.lab.place import LocalPlace
from trifecta.lab.topology import Topology
from trifecta.workloads.far import names
from trifecta.workloads.far.configs import Request
from trifecta.workloads.far.keeper import OF_THIS_PROCESS, Keeper
from trifecta.workloads.far.look import Looker
from trifecta.workloads.far.supported import authorities, targets
from trifecta.workloads.load_configs import MAX_UDP_PAYLOAD_BYTES
from trifecta.workloads.session import Common, Session

Work = TypeVar("Work", bound=ElsewhereWorkload)
FarKey = tuple[str, str]
"""A URL, and a level of the factor ``address``."""


@dataclass(frozen=True)
class Spot:
    """What is known of one address of a URL: what a right answer's status is, how large it is, and what passes."""

    address: str
    status: int
    answer_bytes: int
    udp_payload_bytes: int = MAX_UDP_PAYLOAD_BYTES


@dataclass(frozen=True)
class Chosen:
    """Where the arms of a block go, or why nobody knows."""

    spot: Spot | None
    resolved: tuple[str, ...] = ()
    problem: str = ""


class ElsewhereSession(Session[Work, FarKey], Generic[Work]):
    """Nothing of it runs in a lab: what asks is started in this machine's own network."""

    def __init__(self, common: Common, kind: type[Work], pins: Mapping[str, frozenset[int] | None]) -> None:
        """Prepare; nothing is asked before ``begin``."""
        super().__init__(common, kind, pins)
        self.here = LocalPlace(Here(), self.engine)
        self.targets = targets(self.study)
        self.authorities = authorities(self.study)
        first = self.workload(plan.treatments(self.study)[0])
        self.keeper = Keeper(first.manners, self.stop, sent=OF_THIS_PROCESS)
        self.spots: dict[FarKey, dict[str, Spot]] = {}
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
                key = server["url"], str(levels.get("address", first.address))
                self._begun[row["cell"], int(row["block"]), key] = server["address"]
        keys = dict.fromkeys(key for cell in cells for key in self.keys_of(cell))
        self._look("again" if rows else "before", list(keys))

    def last_look(self) -> None:
        """Look once more at every place that was not given up; not at a server that asked to be left alone."""
        if not self.keeper.backing_off:
            self._look("after", [key for key in self.spots if key not in self.failed])

    def _look(self, when: Literal["before", "again", "after"], keys: Sequence[FarKey]) -> None:
        places: list[PlaceSeen] = []
        for key in keys:
            try:
                seen = self._look_at(key)
            except CannotError as error:
                if when != "after":
                    self.fail(key, str(error))
                continue
            places += seen
            if when != "after":
                self._judge(key, seen)
        looked: Look = {"when": when, "utc": datetime.now(UTC).isoformat(timespec="seconds"), "places": places}
        facts = self.run.facts
        self.run.write_facts({**facts, "elsewhere": [*facts.get("elsewhere", []), looked]})

    def _look_at(self, key: FarKey) -> list[PlaceSeen]:
        """The places of a level; CannotError where it stands for none."""
        url, level = key
        target = self.targets[url]
        # An address that is given needs no name: a server may be asked before its name leads there.
        resolved = names.resolve(target.host, target.port) if level in FAMILIES else names.Resolved((level,), None)
        addresses = resolved.of(level)
        if not addresses:
            raise CannotError(f"{target.host} has no {level} address; leave {level} out")
        record = names.https_record(target.host, target.port)
        return [
            # HTTP/3 too where it is not compared: what becomes of UDP is a result of its own.
            self._looker.see(Request(target, address, "", self.authorities), level, resolved, record)
            for address in sorted(addresses)[:MOST_ADDRESSES]
        ]

    def _judge(self, key: FarKey, seen: Sequence[PlaceSeen]) -> None:
        """Keep the addresses where every protocol was answered rightly; fail the key where there is none."""
        good = {place["address"]: spot for place in seen if (spot := spot_of(place, self._protocols)) is not None}
        if good:
            self.spots[key] = good
            if reason := self._too_much(max(spot.answer_bytes for spot in good.values())):
                self.fail(key, f"{key[0]} at {key[1]}: {reason}")
            return
        self.fail(key, "; ".join(dict.fromkeys(why_not(place, self._protocols) for place in seen)))

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
        url, level = key
        known, target = self.spots[key], self.targets[url]
        if level not in FAMILIES:
            return Chosen(known[level], (level,))
        if begun is not None:
            return Chosen(self._like(key, begun), (begun,))
        try:
            resolved = names.resolve(target.host, target.port)
        except CannotError as error:
            return Chosen(None, (), str(error))
        addresses = sorted(resolved.of(level))
        if not addresses:
            return Chosen(None, resolved.addresses, f"{target.host} has no {level} address any more")
        drawn = plan.stable_seed("address", self.study.seed, url, level, block) % len(addresses)
        return Chosen(self._like(key, addresses[drawn]), resolved.addresses)

    def _like(self, key: FarKey, address: str) -> Spot:
        """What is known of an address; one that was not looked at is taken to be like its siblings.

        Where it is not, the checks of its trials say so.
        """
        known = self.spots[key]
        usual = max(known.values(), key=lambda spot: spot.answer_bytes)
        return known.get(address) or replace(usual, address=address)

    def keys(self, at: Levelled) -> tuple[FarKey, ...]:
        """The URL of a treatment, and where it is asked for."""
        workload = self.workload(at)
        return ((workload.url, workload.address),)

    def level(self, key: FarKey) -> tuple[str, str]:
        """The address is given up, of this URL."""
        url, address = key
        return "address", f"{address} of {url}"

    def problem(self, key: FarKey) -> str | None:
        """Nobody here can see that a server elsewhere has ended; the trials say it."""
        return None

    def _stand(self, key: FarKey) -> None:
        """Nothing can be started there."""

    def _end(self, key: FarKey) -> None:
        """Nor ended."""

    @property
    def topologies(self) -> Sequence[Topology]:
        """None of ours."""
        return ()

    def probe_key(self, at: Levelled) -> Hashable:
        """The place."""
        return self.keys(at)[0]

    def probe_due(self, at: Levelled, every_s: float) -> bool:
        """There is no reflector at the other end: looks and trials measure the path."""
        return False

    def _measure(self, at: Levelled, seed: int, *, first: bool) -> MeasureSummary:
        raise CannotError("the path to a server elsewhere has no reflector at its end; it is looked at instead")


class FarSession(ElsewhereSession[FarWorkload]):
    """Of single requests."""

    def __init__(self, common: Common) -> None:
        """Prepare."""
        super().__init__(common, FarWorkload, pin_table())
        first = self.workload(plan.treatments(self.study)[0])
        self._requests = len(plan.arms(self.study)) * first.every_request("reused")  # of a block, at most

    def _too_much(self, answer_bytes: int) -> str:
        return no_room(answer_bytes, self._requests, self.keeper.manners)


def no_room(answer_bytes: int, requests: int, own: Manners) -> str:
    """Why one block, of so many requests, is more than is asked for in all; empty where it fits."""
    if answer_bytes * requests <= own.most_bytes:
        return ""
    most = numbers.plain(numbers.size(own.most_bytes))
    what = f"an answer took {numbers.size(answer_bytes)}, and the {requests} of a block would be more than {most}"
    return f"{what}, the most in all; ask for something smaller"


def spot_of(place: PlaceSeen, protocols: Sequence[str]) -> Spot | None:
    """What is known of an address; None where a protocol was not answered with success."""
    last = {one["protocol"]: one for one in place["answers"]}
    good = [last[protocol] for protocol in protocols if protocol in last and is_right(last[protocol])]
    if len(good) < len(protocols) or len({one["status"] for one in good}) > 1:
        return None
    payload = next((one["udp_payload_bytes"] for one in good if one["udp_payload_bytes"]), None)
    return Spot(
        place["address"],
        int(good[0]["status"] or 0),
        max(one["wire_bytes"] for one in good),
        payload or MAX_UDP_PAYLOAD_BYTES,
    )


def is_right(one: Answered) -> bool:
    """Whether it was answered, with success (RFC 9110, 15.3)."""
    return one["error"] is None and 200 <= (one["status"] or 0) < 300


def why_not(place: PlaceSeen, protocols: Sequence[str]) -> str:
    """Why a place cannot be measured over these protocols, in one sentence with what helps."""
    last = {one["protocol"]: one for one in place["answers"]}
    asked = [last[protocol] for protocol in protocols if protocol in last]
    where = f"{place['url']} at {place['address']}"
    for one in asked:
        name = PROTOCOL_NAMES[one["protocol"]]
        if one["status"] in PATIENCE:
            return f"{where}: {name} was answered {one['status']}, which asks for patience; ask another day"
        if one["status"] is not None and 300 <= one["status"] < 400:
            there = one["fields"].get("location", "another URL")
            return f"{where}: {name} was answered {one['status']}; give {there} instead"
        if not is_right(one):
            udp = f" (UDP: {place['udp']})" if one["protocol"] == "h3" and place["udp"] else ""
            what = one["error"] or f"status {one['status']}"
            return f"{where}: {name} failed with {what}{udp}; leave it out (--set protocol=...)"
    statuses = ", ".join(f"{PROTOCOL_NAMES[one['protocol']]} {one['status']}" for one in asked)
    return f"{where}: protocols were answered differently ({statuses}); give a URL that is answered alike"
