"""``python -m bench.capture [--turns N]``: what capturing a trial costs, and whether it misses packets.

The same trial with and without capture, in turns, for each protocol: 10 requests of 1 kB in flight on a clean link
(latency, CPU time of client and link, lateness of the link), then downloads of 10 MB over 200 Mbit/s (packets missed).
Last, how long a capture of a million packets takes to put together. There is no peer: dumpcap sees one side only.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trifecta.contract.link import LinkSummary
    from trifecta.workloads.trial import Outcome

BUSY = ["path=clean", "response=1 kB", "requests=20000", "warmup=1000 requests", "in_flight=10"]
FULL = [
    "path=fast", "paths.fast={rtt: 10 ms, rate: 200 Mbit/s, queue: 1 bdp, trial: {requests: 12}}", "response=10 MB",
    "in_flight=2",
]  # fmt: skip
COMMON = ["server=origin", "connection=reused", "protocol=h1,h2,h3", "budget=none", "conformance=off"]
FIGURES: dict[str, Callable[[Outcome], float | None]] = {
    "latency p50, us": lambda outcome: (outcome.row["latency_p50_ns"] or 0) / 1e3,
    "latency p99, us": lambda outcome: (outcome.row["latency_p99_ns"] or 0) / 1e3,
    "requests/s": lambda outcome: outcome.row["requests_per_s"],
    "client CPU a request, us": lambda outcome: (outcome.row["client_cpu_ns_per_request"] or 0) / 1e3,
    "link CPU a packet, us": lambda outcome: link_cpu_us(link_of(outcome)),
    "link lateness p99, us": lambda outcome: lateness_us(link_of(outcome)),
}


def link_of(outcome: Outcome) -> LinkSummary:
    """What the one link of a trial did."""
    from trifecta.contract.link import LinkSummary

    link = outcome.details.link
    assert isinstance(link, LinkSummary)
    return link


def counted(packets: int | None) -> int:
    """What a link counts that captures."""
    assert packets is not None, "the link did not capture"
    return packets


def link_cpu_us(link: LinkSummary) -> float:
    """CPU time of the link by wire packet."""
    packets = link.a_to_b.wire_packets + link.b_to_a.wire_packets
    return (link.cpu_user_ns + link.cpu_system_ns) / max(1, packets) / 1e3


def lateness_us(link: LinkSummary) -> float:
    """How late the link sent a packet, 99th percentile of the worse direction."""
    return max(way.lateness_ns.p99 or 0 for way in (link.a_to_b, link.b_to_a)) / 1e3


def trials(overrides: list[str], turns: int, folder: Path) -> dict[tuple[str, bool], list[Outcome]]:
    """Outcomes by arm and whether captured; needs the sandbox."""
    from trifecta import studies
    from trifecta.design import plan
    from trifecta.implementations.registry import SERVERS
    from trifecta.lab.engine import find_engine
    from trifecta.store.run import RunDirectory
    from trifecta.workloads.requests.session import RequestsSession
    from trifecta.workloads.requests.supported import requests_supported
    from trifecta.workloads.requests.trial import RequestsTrialRunner
    from trifecta.workloads.session import SessionContext

    study = studies.load("race", [*COMMON, *overrides])
    captured = dataclasses.replace(study, capture=True)
    here = requests_supported(study, SERVERS, {})
    run = RunDirectory.create(folder, {}, study.source)
    found: dict[tuple[str, bool], list[Outcome]] = {}
    with RequestsSession(SessionContext(find_engine(), run, study, lambda: False)) as session:
        session.begin(here.cells, {name: str(facts["version"]) for name, facts in here.servers.items()})
        runner = RequestsTrialRunner(session)
        try:
            for turn in range(turns):
                for trial in plan.block_trials(study, here.cells[0], turn, 0):
                    for capture in (True, False) if turn % 2 else (False, True):
                        session.study = captured if capture else study
                        outcome = runner.run(trial)
                        run.discard_trial(trial.trial)
                        if outcome.row["error"] is not None:
                            raise SystemExit(f"{trial.arm}: {outcome.row['error']}")
                        found.setdefault((trial.protocol, capture), []).append(outcome)
        finally:
            runner.close()
    run.close()
    return found


def cost(turns: int, folder: Path) -> None:
    """Print what each figure is without and with capture, as medians of the turns."""
    found = trials(BUSY, turns, folder)
    print("| protocol | figure | not captured | captured | ratio |\n|---|---|---|---|---|")
    for protocol in ("h1", "h2", "h3"):
        for name, figure in FIGURES.items():
            without, with_it = (
                statistics.median(float(figure(each) or 0) for each in found[protocol, capture])
                for capture in (False, True)
            )
            ratio = f"{with_it / without:.2f}" if without else ""
            print(f"| {protocol} | {name} | {without:.1f} | {with_it:.1f} | {ratio} |")


def missed(turns: int, folder: Path) -> bool:
    """Print what a capture misses at 200 Mbit/s; whether it is nothing."""
    print("\n| protocol | rate, Mbit/s | packets captured | missed | not seen by the link |\n|---|---|---|---|---|")
    good = True
    for (protocol, capture), outcomes in trials(FULL, turns, folder).items():
        if not capture:
            continue
        links = [link_of(outcome) for outcome in outcomes]
        lost = sum(counted(link.capture_missed) for link in links)
        unseen = sum(way.device_drops for link in links for way in (link.a_to_b, link.b_to_a))
        packets = sum(counted(link.captured_packets) for link in links)
        rate = statistics.median(link.b_to_a.rate_given_bits_per_s or 0 for link in links) / 1e6
        print(f"| {protocol} | {rate:.0f} | {packets} | {lost} | {unseen} |")
        good &= lost == unseen == 0
    return good


def assembly(folder: Path, packets: int = 1_000_000) -> None:
    """Print how long a link's file of so many packets takes to put together."""
    import struct

    from trifecta.trace.assemble import assemble

    raw, size = folder / "raw", 800
    ending = struct.pack("=HHI", 2, 4, 1)
    with raw.open("wb") as file:
        for kind, body in ((0x0A0D0D0A, struct.pack("=IHHq", 0x1A2B3C4D, 1, 0, -1)), *([(1, bytes(8))] * 2)):
            file.write(struct.pack("=II", kind, 12 + len(body)) + body + struct.pack("=I", 12 + len(body)))
        total = 32 + size + 8 + 12 + 4
        for number in range(packets):
            at = number * 1000 + (number % 3) * 2500  # out of order as those of a link are
            head = struct.pack("=7I", 6, total, number % 2, at >> 32, at & 0xFFFFFFFF, size, size)
            identity = struct.pack("=HHQ", 5, 8, number // 2)
            file.write(head + bytes(size) + ending + identity + bytes(4) + struct.pack("=I", total))
    began = time.monotonic()
    assemble(raw, folder / "whole")
    print(f"\n{packets} packets of {size} octets are put together in {time.monotonic() - began:.1f} s")


def main() -> int:
    """Print the tables; 1 when a capture missed a packet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=6)
    asked = parser.parse_args()
    from trifecta.lab import sandbox

    sandbox.enter()
    print(f"{asked.turns} turns, load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="trifecta-bench-") as scratch:
        folder = Path(scratch)
        cost(asked.turns, folder / "busy")
        good = missed(max(1, asked.turns // 3), folder / "full")
        assembly(folder)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
