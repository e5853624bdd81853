"""Does the link do what it is asked? Each impairment over 500,000 wire packets, counted at the receiver.

Every share has to lie within the 99 % interval of its exact distribution. The seeds are fixed: a link that draws
rightly gives the same counts on every machine, whatever else the machine does.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from bench.link.measure import TRAFFIC
from tests.engine.netns import SERVER, Hosts

PACKETS = 500_000
PAYLOAD = 1_000
MS = 1_000_000
Rows = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Outcome:
    """One share: asked, given, and the interval in which it must lie."""

    name: str
    asked: float
    given: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether what was given lies within the interval."""
        return self.low <= self.given <= self.high


def binomial(name: str, count: int, of: int, probability: float) -> Outcome:
    """A count of independent events."""
    low, high = stats.binom.interval(0.99, of, probability)
    return Outcome(name, probability, count / of, low / of, high / of)


def send(hosts: Hosts, count: int, rate: float, segments: int = 32) -> Rows:
    """Send numbered datagrams; rows of (number, one-way delay in ns) as they arrived."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows"
        receive = ["--address", SERVER, "--gro", "--file", str(file), "--idle", "2"]
        receiver = hosts.python("server", TRAFFIC, "udp-receive", *receive)
        assert receiver.stdout is not None
        receiver.stdout.readline()
        options = {"address": SERVER, "count": count, "payload": PAYLOAD, "segments": segments, "rate": rate}
        sender = hosts.python("client", TRAFFIC, "udp-send", *(f"--{name}={value}" for name, value in options.items()))
        _, errors = sender.communicate(timeout=300)
        assert sender.returncode == 0, errors
        out, errors = receiver.communicate(timeout=300)
        assert receiver.returncode == 0, errors
        rows = np.fromfile(file, dtype=np.int64).reshape(-1, 2)
        assert json.loads(out.splitlines()[-1])["received"] == len(rows)
        return rows


Judge = Callable[[Rows, dict[str, Any]], Iterator[Outcome]]


def _loss(rows: Rows, _: dict[str, Any]) -> Iterator[Outcome]:
    yield binomial("loss 2 %", PACKETS - len(rows), PACKETS, 0.02)


CHANNEL = {"good_to_bad": 0.005, "bad_to_good": 0.2, "loss_good": 0.001, "loss_bad": 0.6}


def _gilbert_elliott(rows: Rows, _: dict[str, Any]) -> Iterator[Outcome]:
    """The count of losses is asymptotically normal; its variance exceeds the binomial one by the bursts."""
    p, r, good, bad = CHANNEL.values()
    share = p / (p + r)
    loss = share * bad + (1 - share) * good
    between = share * (1 - share) * (bad - good) ** 2
    variance = PACKETS * (loss * (1 - loss) + 2 * between * (1 - p - r) / (p + r))
    reach = stats.norm.ppf(0.995) * math.sqrt(variance) / PACKETS
    yield Outcome("Gilbert-Elliott loss", loss, 1 - len(rows) / PACKETS, loss - reach, loss + reach)


def _corrupt(rows: Rows, summary: dict[str, Any]) -> Iterator[Outcome]:
    yield binomial("corruption 1 %, link's count", summary["a_to_b"]["corrupted"], PACKETS, 0.01)
    yield binomial("corruption 1 %, refused by UDP's checksum", PACKETS - len(rows), PACKETS, 0.01)


def _duplicate(rows: Rows, _: dict[str, Any]) -> Iterator[Outcome]:
    counts = np.bincount(rows[:, 0], minlength=PACKETS)
    assert (counts >= 1).all()
    yield binomial("duplication 1 %", int((counts == 2).sum()), PACKETS, 0.01)


def _reorder(rows: Rows, summary: dict[str, Any]) -> Iterator[Outcome]:
    yield binomial("reordering 1 %, link's count", summary["a_to_b"]["reordered"], PACKETS, 0.01)
    yield binomial("reordering 1 %, early at the receiver", int((rows[:, 1] < 60 * MS).sum()), PACKETS, 0.01)


RATE_BITS_PER_S = 400_000_000


def _rate(rows: Rows, summary: dict[str, Any]) -> Iterator[Outcome]:
    """Deterministic: what limits it is how late a packet may leave, 1 ms at either end."""
    frame = PAYLOAD + 42
    last_ns, first_ns = rows[-1, 1], rows[0, 1]
    assert len(rows) == PACKETS, "the queue is unlimited"
    given = float(summary["a_to_b"]["rate_given_bits_per_s"])
    duration_ns = PACKETS * frame * 8e9 / RATE_BITS_PER_S
    reach = RATE_BITS_PER_S * 2 * MS / duration_ns
    assert last_ns > first_ns, "the link was never the bottleneck"
    yield Outcome("rate 400 Mbit/s", RATE_BITS_PER_S, given, RATE_BITS_PER_S - reach, RATE_BITS_PER_S + reach)


CASES: list[tuple[list[dict[str, Any]], float, Judge]] = [
    ([{"kind": "loss", "probability": 0.02}], 100_000, _loss),
    ([{"kind": "gilbert_elliott", **CHANNEL}], 100_000, _gilbert_elliott),
    ([{"kind": "corrupt", "probability": 0.01}], 100_000, _corrupt),
    ([{"kind": "duplicate", "probability": 0.01}], 100_000, _duplicate),
    (
        [{"kind": "delay", "delay_ns": 100 * MS}, {"kind": "reorder", "probability": 0.01, "gap_ns": 80 * MS}],
        50_000,
        _reorder,
    ),
    # Faster than the link: one busy period from the first packet to the last.
    ([{"kind": "rate", "bits_per_s": RATE_BITS_PER_S}], 60_000, _rate),
]


def run() -> list[Outcome]:
    """Every case in a lab of its own."""
    outcomes: list[Outcome] = []
    for number, (impairments, rate, judge) in enumerate(CASES):
        with Hosts() as hosts:
            with hosts.link(impairments, seed=2026 + number) as link:
                rows = send(hosts, PACKETS, rate)
            summary = link.stop()
            assert summary["a_to_b"]["device_drops"] == 0, "the link missed packets"
            assert summary["a_to_b"]["wire_packets"] == PACKETS
            outcomes.extend(judge(rows, summary))
    return outcomes


def table(outcomes: list[Outcome]) -> str:
    """A Markdown table."""
    lines = ["| impairment | asked | given | 99 % interval | holds |", "|---|---|---|---|---|"]
    lines += [
        f"| {o.name} | {o.asked:.6g} | {o.given:.6g} | {o.low:.6g} to {o.high:.6g} | {'yes' if o.holds else '**no**'} |"
        for o in outcomes
    ]
    return "\n".join(lines)
