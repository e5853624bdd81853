"""What the files of a cluster's blocks cost the head: from the octets of a node to trials in the head's run.

    python -m bench.gathering [--blocks 600] [--requests 1000] [--store]

A race of one cell is measured for one block. Its rows and samples are sent again and again under the names of further
blocks, as a node sends them: taken apart (`cluster.wire`), staged and synced, committed with their digests
(`store.node_blocks`). CPU time is this process's, of which making what is sent is no part. With ``--store`` nodes put
all but the rows into an object store, and the head gets digests of it; what it is brought in the end is not measured.
1,000 nodes with blocks of 60 s send 16.7 blocks a second; limit: with planning
(`tests/workloads/test_cluster_dispatch.py`) less than a core.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BLOCKS_PER_S = 1000 / 60
LIMIT = 1.0
PIECE_BYTES = 65_536  # as they come from a node
CORE_OF_PLANNING = 0.24  # bench/RESULTS.md, "Clusters"


def measured(folder: Path, requests: int) -> Path:
    """A race of one block."""
    changes = ("connection=reused", "server=origin", "path=clean", f"workload.requests={requests}", "blocks.at_most=1")
    words = [word for change in (*changes, "blocks.at_least=1") for word in ("--set", change)]
    command = [sys.executable, "-m", "trifecta", "race", *words, "--out", str(folder), "--quiet"]
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        raise SystemExit(done.returncode)
    return folder


def main() -> int:
    """Measure and print; 1 where the figure is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=600)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--store", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        spent_s, octets = gather(Path(scratch), asked.blocks, asked.requests, stored=asked.store)
    parts = {"first": spent_s[: len(spent_s) // 4], "all": spent_s, "last": spent_s[-(len(spent_s) // 4) :]}
    print(f"{len(spent_s)} blocks of 4 trials, {asked.requests} requests each, {octets / 1e3:.0f} kB a block")
    print("| blocks | CPU ms a block, median | mean |\n|---|---|---|")
    for name, some in parts.items():
        print(f"| {name} {len(some)} | {statistics.median(some) * 1e3:.1f} | {statistics.mean(some) * 1e3:.1f} |")
    core = statistics.mean(parts["last"]) * BLOCKS_PER_S
    whole = core + CORE_OF_PLANNING
    met = "met" if whole < LIMIT else "missed"
    print(
        f"\n{BLOCKS_PER_S:.1f} blocks a second: {core:.2f} of a core, with planning {whole:.2f}; below {LIMIT:g}: {met}"
    )
    return 0 if whole < LIMIT else 1


def gather(scratch: Path, blocks: int, requests: int, *, stored: bool = False) -> tuple[list[float], int]:
    """CPU time of each block, in s, and how many octets one has; ``stored``: only rows come, and digests."""
    from trifecta.design import plan
    from trifecta.design.study_file import parse_study
    from trifecta.store import node_blocks, parquet, schema
    from trifecta.store.manifest import belongs
    from trifecta.store.run import RunDirectory
    from trifecta.workloads.cluster.wire import Decoder, Message, encode

    source = RunDirectory.open(measured(scratch / "source", requests))
    rows: list[Any] = source.rows()
    study = parse_study(source.study_text, str(source.path / "study.yaml"))
    (cell,) = plan.cells(study)
    kept = {
        name: path.read_bytes() for name, path in node_blocks.of_trials(source.path, [row["trial"] for row in rows])
    }
    head = scratch / "head"
    about: Any = {"stored": "file:///nowhere"} if stored else {}
    RunDirectory.create(head, about, study.source).close()
    run, decoder = RunDirectory.open(head, write=True), Decoder()
    spent_s: list[float] = []
    octets = b""
    draft = scratch / "row.parquet"
    for block in range(blocks):
        trials = plan.block_trials(study, cell, block, len(rows) * block)
        files: dict[str, bytes] = {}
        for trial, row in zip(trials, rows, strict=True):
            own = {
                "trial": trial.trial,
                "cell": cell.key,
                "block": block,
                "arm": trial.arm,
                "seed": trial.seed,
                "node": "n1",
            }
            parquet.write([row | own], schema.trials_of(row), draft)
            files[f"trials/{trial.trial}.parquet"] = draft.read_bytes()
            for name, content in kept.items():
                folder, _, file = name.partition("/")
                if folder != "trials" and file.startswith(row["trial"]):
                    files[f"{folder}/{trial.trial}{file.removeprefix(row['trial'])}"] = content
        away = {name: hashlib.sha256(files.pop(name)).hexdigest() for name in list(files) if stored and belongs(name)}
        octets = encode(Message("ran", cell=cell.key, block=block, files=files, stored=away))
        began_s = time.process_time()
        for at in range(0, len(octets), PIECE_BYTES):
            for message in decoder.feed(octets[at : at + PIECE_BYTES]):
                node_blocks.stage(head, trials, message.files, "n1", message.stored)
                node_blocks.finish(head, run.is_committed, run.take_trial)
        spent_s.append(time.process_time() - began_s)
    run.close()
    assert len(RunDirectory.open(head).rows()) == blocks * len(rows)
    return spent_s, len(octets)


if __name__ == "__main__":
    raise SystemExit(main())
