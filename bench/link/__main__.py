"""The link against a bare cable and its peers, in turns: ``python -m bench.link [rounds]``; root.

``python -m bench.link fidelity`` sends 500,000 wire packets through each impairment and judges what arrives.
Peers are measured where they are found: rattan (``cargo install rattan --version 0.1.1 --root .cache/rattan``).
"""

from __future__ import annotations

import contextlib
import functools
import platform
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from bench.link import fidelity, measure, rattan
from tests.engine.netns import Hosts

DELAY_MS = 25
DELAY = [{"kind": "delay", "delay_ns": DELAY_MS * 1_000_000}]
# So rare that cubic is hardly slowed down, but decided for each wire packet.
LOSS = [{"kind": "loss", "probability": 1e-7}]
Path = Callable[[int, bool], "contextlib.AbstractContextManager[tuple[Hosts, float]]"]


@contextlib.contextmanager
def _bare(_delay_ms: int, _loss: bool) -> Iterator[tuple[Hosts, float]]:
    with Hosts(direct=True) as hosts:
        yield hosts, 0.0


def _link(**more: Any) -> Path:
    @contextlib.contextmanager
    def path(delay_ms: int, loss: bool) -> Iterator[tuple[Hosts, float]]:
        impairments = (LOSS if loss else []) + (DELAY if delay_ms else [])
        with Hosts() as hosts, hosts.link(impairments, DELAY if delay_ms else [], **more):
            yield hosts, delay_ms * 1e3

    return path


PATHS: dict[str, Path] = {
    "bare veth": _bare,
    "link, merge": _link(),
    "link, real": _link(split="real"),
    "link, merge, not real-time": _link(realtime=False),
}
COLUMNS = {
    "delay_p50": "one-way delay above asked, p50 us",
    "delay_p99": "p99 us",
    "tcp": f"TCP Gbit/s at {DELAY_MS} ms, loss per wire packet",
    "tcp_0": "TCP Gbit/s at 0 ms",
    "kpps": "64 B packets arriving, 1000/s",
    "kpps_delay": f"the same at {DELAY_MS} ms",
}


def _measure(path: Path) -> dict[str, float]:
    figures = {}
    with path(DELAY_MS, False) as (hosts, delay_us):
        delay = measure.one_way_delay_us(hosts)
        figures["delay_p50"], figures["delay_p99"] = delay["p50"] - delay_us, delay["p99"] - delay_us
    with path(DELAY_MS, True) as (hosts, _):
        figures["tcp"] = measure.tcp_gbit_per_s(hosts)
    with path(0, False) as (hosts, _):
        figures["tcp_0"] = measure.tcp_gbit_per_s(hosts)
        figures["kpps"] = measure.small_packets_per_s(hosts)["received"] / 1e3
    with path(DELAY_MS, False) as (hosts, _):
        figures["kpps_delay"] = measure.small_packets_per_s(hosts)["received"] / 1e3
    return figures


def race(rounds: int) -> int:
    """Every path in every round, the order turned round each time; medians."""
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    measurements = {name: functools.partial(_measure, path) for name, path in PATHS.items()}
    if rattan.found():
        measurements["rattan 0.1.1"] = functools.partial(_measure, rattan.path)
    else:
        print(f"rattan: not found at {rattan.BINARY}; left out")
    for number in range(rounds):
        names = list(measurements)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            for key, value in measurements[name]().items():
                figures[name][key].append(value)
            print(f"round {number + 1}, {name}: done", file=sys.stderr, flush=True)
    medians = {n: {k: statistics.median(v) for k, v in columns.items()} for n, columns in figures.items()}
    print(
        f"\n{platform.release()}, {time.strftime('%Y-%m-%d')}, {rounds} rounds in turns, medians; "
        f"{measure.engine_version()}\n"
    )
    print("| path | " + " | ".join(COLUMNS.values()) + " |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for name, columns in medians.items():
        print(f"| {name} | " + " | ".join(_shown(columns.get(key)) for key in COLUMNS) + " |")
    return _judge(medians)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _judge(medians: dict[str, dict[str, float]]) -> int:
    """The figures to reach."""
    bare, ours = medians["bare veth"], medians["link, merge"]
    targets = [
        ("one-way delay error above a bare veth, p50 us", ours["delay_p50"] - bare["delay_p50"], 20.0, False),
        ("one-way delay error above a bare veth, p99 us", ours["delay_p99"] - bare["delay_p99"], 70.0, False),
        (f"TCP at {DELAY_MS} ms with loss per wire packet, Gbit/s", ours["tcp"], 8.0, True),
        ("64 B packets, 1000/s", max(ours["kpps"], ours["kpps_delay"]), 250.0, True),
    ]
    print("\n| figure | measured | to reach | reached |\n|---|---|---|---|")
    reached_all = True
    for name, value, target, at_least in targets:
        reached = value >= target if at_least else value <= target
        reached_all &= reached
        print(f"| {name} | {value:.1f} | {'>=' if at_least else '<='} {target:g} | {'yes' if reached else '**no**'} |")
    return 0 if reached_all else 1


def main() -> int:
    """Run what the command line asks for."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["fidelity"]:
        outcomes = fidelity.run()
        print(fidelity.table(outcomes))
        return 0 if all(outcome.holds for outcome in outcomes) else 1
    return race(int(arguments[0]) if arguments else 5)


if __name__ == "__main__":
    raise SystemExit(main())
