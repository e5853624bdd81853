"""Writes the files of a browser's visits in one trial."""

import pyarrow as pa
import pyarrow.parquet as pq

from trifecta.store.visits import FETCHES, PLAYBACK, VISITS

MS = 1_000_000


def visit(number, **changes):
    row = {
        "trial": "t00001", "visit": number, "warmup": False, "kind": "page", "view": "cold", "browser": "chromium",
        "protocol": "h3", "url": "https://www.light.lab/", "started_ns": 10**9 * number, "load_ns": 900 * MS,
        "dom_content_loaded_ns": 500 * MS, "fcp_ns": 300 * MS, "lcp_ns": 600 * MS, "speed_index_ns": 450 * MS,
        "connections": 2, "resumed_connections": 0, "browser_cpu_ns": 400 * MS, "error": None,
    }  # fmt: skip
    return row | changes


def watch(number, **changes):
    row = {
        "kind": "video", "startup_ns": 700 * MS, "watched_ns": 20_000 * MS, "played_ns": 18_300 * MS, "rebuffers": 1,
        "rebuffer_ns": 1000 * MS, "bitrate_bits_per_s": 1.2e6, "switches": 1, "frames_shown": 540, "frames_dropped": 10,
        "frames_dropped_floor": 2, "live_latency_ns": None, "segments": 6, "load_ns": 200 * MS,
    }  # fmt: skip
    return visit(number) | row | changes


def fetch(number, of=0, **changes):
    row = {
        "trial": "t00001", "visit": of, "warmup": False, "fetch": number, "url": f"https://www.light.lab/{number}",
        "origin": "www.light.lab:443", "method": "GET", "kind": "image", "protocol": "h3", "status": 200,
        "started_ns": 10**9 * of + number, "done_ns": 10**9 * of + 100 * MS + number, "decoded_bytes": 1000 + number,
        "from_cache": False, "missing": False, "error": None,
    }  # fmt: skip
    return row | changes


def event(of, at_ms, name):
    return {"trial": "t00001", "visit": of, "warmup": False, "time_ns": at_ms * MS, "event": name}


def write(folder, visits, fetches=(), playback=()):
    """The three files, in the order in which they are read."""
    paths = []
    for name, schema, rows in (
        ("visits", VISITS.arrow(), visits),
        ("fetches", FETCHES.arrow(), fetches),
        ("playback", PLAYBACK.arrow(), playback),
    ):
        path = folder / f"{name}.parquet"
        pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
        paths.append(path)
    return paths
