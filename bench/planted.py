"""Whether `trifecta why` names a planted cause first, and none where there is no difference.

``python -m bench.planted [--only NAME ...] [--budget "5 min"] [--keep DIR]`` runs a study of two arms for each cause
that is planted, asks `trifecta why` for the cause of what it finds, and prints a table for RESULTS.md. Leave the
machine alone: each takes its budget, and half a minute more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

TRIFECTA = Path(sys.executable).with_name("trifecta")
STUDY = """
study: planted-{name}
title: "Planted: {title}"
workload: {{kind: requests, response: {response}, in_flight: 1, requests: {requests}, warmup: {warmup} requests{load}}}
factors:
  protocol: [HTTP/2, HTTP/3]
  path: [far]
  connection: [{connection}]
  server: [origin]
{more}
baseline: HTTP/2
paths:
  far: {{rtt: {rtt}, rate: 100 Mbit/s, queue: 1 bdp{path}}}
metric: {metric}
blocks: {{at_least: 8, at_most: 8}}
"""


@dataclass(frozen=True)
class Planted:
    """What is planted, the causes that are this one by another name, and how; levels are TCP's and QUIC's."""

    title: str
    causes: tuple[str, ...]
    levels: str = ""
    response: str = "30 kB"
    connection: str = "new"
    rtt: str = "40 ms"
    requests: int = 6  # fewer where each takes long: a budget has to have room for four rounds
    warmup: int = 6  # of reused connections
    path: str = ""
    load: str = ""
    metric: str = "latency_p50"


PLANTED = {
    "initial-window": Planted("QUIC begins with two packets", ("initial-window",), "initial_window: [10/2]"),
    "pacing": Planted(
        "TCP is paced, QUIC is not", ("pacing",), "pacing: [on/off]", response="100 kB", connection="reused"
    ),
    "stream-window": Planted(
        "QUIC's stream window is 16 kB", ("stream-window",), "stream_window: [none/16 kB]", response="100 kB"
    ),
    "tls-records": Planted(
        "records of 16 KiB, in a window that is four packets again after each rest",
        ("tls-records", "idle-window"),
        "tls_record: [16 KiB]\n  initial_window: [4]\n  idle_window: [restart]",
        response="20 kB",
        connection="reused",  # a new one has its handshake, a larger difference than its records
        requests=3,
        warmup=1,
        load=", loop: open, rate: 1.5/s",  # a rest of several retransmission timeouts
        metric="ttfb_p50",  # a record is read when all of it is there
    ),
    "packet-threshold": Planted(
        "QUIC takes what three packets overtook for lost",
        ("packet-threshold",),
        "packet_threshold: [300/3]",
        response="300 kB",
        connection="reused",
        path=", reorder: {probability: 5 %, gap: 2 ms}",
    ),
    "ack-delay": Planted(
        "QUIC's client acknowledges after 200 ms",
        ("ack-delay",),
        "ack_delay: [200 ms]\n  ack_packets: [60]",
        response="300 kB",
        requests=2,
        rtt="200 ms",  # no longer than the path's round trip may be asked of a peer
    ),
    "none": Planted("nothing: HTTP/2 and HTTP/3 alike", (), "pacing: [off]", response="1 kB", connection="reused"),
}


def study(name: str, one: Planted) -> str:
    """The study file."""
    more = f"  {one.levels}" if one.levels else ""
    warmup = one.warmup if one.connection == "reused" else 0
    return STUDY.format(
        name=name, title=one.title, response=one.response, warmup=warmup, connection=one.connection, more=more,
        rtt=one.rtt, path=one.path, requests=one.requests, load=one.load, metric=one.metric,
    )  # fmt: skip


def told(*words: str | Path) -> tuple[int, str]:
    """What a command of Trifecta prints, and its exit code; it ends us where it could not do what it was asked."""
    done = subprocess.run([TRIFECTA, *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"trifecta {words[0]} ended with {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.returncode, done.stdout


def row(name: str, one: Planted, run: Path, budget: str) -> str:
    """Run the study and search; a row of the table."""
    file = run.with_suffix(".yaml")
    file.write_text(study(name, one))
    told("run", file, "--out", run, "--quiet")
    _, said = told("why", run, "--cell", "path=far", "--arm", "h3", "--budget", budget, "--quiet", "--json")
    found = json.loads(said)
    named = [cause for cause in found["causes"] if cause["state"] in ("explains", "hides")]
    first = named[0] if named else None
    right = first is None if not one.causes else first is not None and first["cause"] in one.causes
    if found["effect"]["ratio"] is None:
        return f"| {one.title} | no round has a value | | | | {found['rounds']} | NO |"
    ends = "{ratio:.2f} [{low:.2f}, {high:.2f}]"
    remains = "" if first is None else ends.format(**first)
    others = ", ".join(cause["cause"] for cause in named[1:]) or "none"
    return (
        f"| {one.title} | {ends.format(**found['effect'])} | {'none' if first is None else first['cause']} | {remains} "
        f"| {others} | {found['rounds']} | {'yes' if right else 'NO'} |"
    )


def main() -> int:
    """Search for each planted cause; 1 where another one is named first."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--only", nargs="+", choices=list(PLANTED), default=list(PLANTED))
    reader.add_argument("--budget", default="5 min")
    reader.add_argument("--keep", type=Path, metavar="DIR", help="keep the runs there")
    asked = reader.parse_args()
    wrong = 0
    print("| planted | h3 : h2 | named first | what remains | named too | rounds | right |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name in asked.only:
            line = row(name, PLANTED[name], folder / name, asked.budget)
            wrong += line.endswith("NO |")
            print(line, flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
