"""Makes runs of browsers: invented page loads with their requests and film strips, invented watches of a video.

The world is built so that the report has something to find: HTTP/1.1 queues behind six connections a host, HTTP/3 saves
a round trip in every handshake but costs the machine more; a visit now and then fails; a watch over HTTP/1.1 stalls.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, ImageDraw

from tests.report.synthetic import ARMS, STEP_NS
from tests.report.synthetic_parts import CIPHER, checks_of, trial_row, write_facts
from trifecta.design import plan
from trifecta.design.model import Cell, CheckResult, PageWorkload, PathSpec, Study, VideoWorkload
from trifecta.design.study_file import parse_study
from trifecta.store import schema
from trifecta.store.visits import FETCHES, PLAYBACK, VISITS

MS = 1_000_000
PATHS = """
  bare: {rtt: 20 ms, rate: 20 Mbit/s}
"""
PAGE = "kind: page\n  visits: 3\n  warmup_visits: 1"
VIDEO = "kind: video\n  watch: 30 s\n  visits: 2"
PAGE_FACTORS = {"path": "[bare]", "client": "[chromium, firefox]", "page": "[light, heavy]"}
VIDEO_FACTORS = {"path": "[bare]", "client": "[chromium]"}
REQUESTS = {"light": 30, "heavy": 122, "vast": 1000}
KINDS = ("stylesheet", "script", "font", "image", "image", "image", "image", "xhr")
SUFFIX = {"stylesheet": "css", "script": "js", "font": "woff2", "image": "webp", "xhr": "json"}
PRIORITY = {"document": "VeryHigh", "stylesheet": "VeryHigh", "script": "High", "font": "High", "xhr": "High"}


@dataclass
class VisitsShape:
    """How large the invented run is, and what it asks."""

    workload: str = PAGE
    factors: dict[str, str] = field(default_factory=lambda: dict(PAGE_FACTORS))
    blocks: int = 10
    seed: int = 5
    title: str = "A real page in real browsers"
    frames: bool = True
    failing: bool = True
    name: str = "browsers"
    study: Study = field(init=False)

    def __post_init__(self) -> None:
        factors = "\n".join(f"  {name}: {levels}" for name, levels in self.factors.items())
        text = f"""study: {self.name}
title: {json.dumps(self.title)}
workload:
  {self.workload}
factors:
  protocol: [HTTP/1.1, HTTP/2, HTTP/3]
{factors}
baseline: HTTP/2
paths:{PATHS}
metric: latency_p50
margin: 5 %
blocks: {{at_least: 4, at_most: 200}}
budget: 10 h
seed: {self.seed}
"""
        self.study = parse_study(text, "synthetic.yaml")


@dataclass
class _Trial:
    rng: np.random.Generator
    name: str
    protocol: str
    browser: str
    view: str
    path: PathSpec
    weather: float

    @property
    def rtt(self) -> float:
        return float(self.path.rtt_ns or 200_000)

    @property
    def ns_per_byte(self) -> float:
        return 8e9 / (self.path.rate_bits_per_s or 1e9)

    def spread(self, mean: float, sigma: float = 0.08) -> float:
        return float(self.rng.lognormal(np.log(mean), sigma)) * self.weather

    def handshake(self) -> tuple[float | None, float]:
        """(TCP, TLS or QUIC) in ns."""
        cost = {"h1": 0.9e6, "h2": 0.95e6, "h3": 1.6e6}[self.protocol]
        return (None if self.protocol == "h3" else self.spread(self.rtt, 0.02)), self.rtt + self.spread(cost, 0.15)


def _resources(page: str) -> list[tuple[str, str, int]]:
    """(URL, kind, octets) of a page, the same every time."""
    count = REQUESTS[page]
    rng = np.random.default_rng(len(page) + count)
    total = {"light": 3.5e6, "heavy": 7.3e6, "vast": 9e6}[page]
    found = [(f"https://www.{page}.lab/", "document", 106_200)]
    sizes = rng.lognormal(0, 1.0, count - 1)
    sizes *= (total - 106_200) / sizes.sum()
    for number in range(1, count):
        kind = (
            KINDS[(number - 1) % len(KINDS)] if number > 4 else ("stylesheet", "script", "font", "script")[number - 1]
        )
        host = "www" if number % 3 else "cdn"
        url = f"https://{host}.{page}.lab/assets/{kind}-{number}.{SUFFIX[kind]}?v={number}"
        found.append((url, kind, int(sizes[number - 1])))
    return found


def _load(it: _Trial, page: str, start: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The requests of one page load, and what the visit says of them."""
    lanes: dict[str, list[dict[str, float]]] = {}
    rows: list[dict[str, Any]] = []
    link_free = html_done = 0.0
    connections = 0
    for number, (url, kind, size) in enumerate(_resources(page)):
        host = url.split("/")[2]
        parse = {"stylesheet": 4, "script": 8, "font": 60, "image": 35, "xhr": 90, "document": 0}[kind] * MS
        ready = 3 * MS if not number else html_done * 0.6 + it.spread(parse + number * 0.25 * MS, 0.2)
        most = 6 if it.protocol == "h1" else 1
        known = lanes.setdefault(host, [])
        row: dict[str, Any] = {}
        free = min(known, key=lambda lane: lane["free"], default=None)
        if free is None or (len(known) < most and free["free"] > ready):
            dns = it.spread(1.2 * MS, 0.2) if not known else 0.0
            tcp, secure = it.handshake()
            row |= {"dns_start_ns": start + ready, "dns_end_ns": start + ready + dns} if dns else {}
            at = ready + dns
            row["connect_start_ns"] = start + at
            if tcp is not None:
                at += tcp
                row["tcp_connected_ns"] = start + at
            at += secure
            row["secured_ns"] = start + at
            lane = {"number": connections, "free": at}
            connections += 1
            known.append(lane)
            reused = False
        else:
            lane, reused = free, True
        sent = max(ready, lane["free"]) + it.spread(0.3 * MS, 0.3)
        first = sent + it.rtt + it.spread(1.2 * MS if it.protocol == "h3" else 0.8 * MS, 0.3)
        first = max(first, link_free)
        done = first + size * it.ns_per_byte * 1.05 + it.spread(0.4 * MS, 0.3)
        link_free = done
        if it.protocol == "h1":
            lane["free"] = done
        html_done = done if not number else html_done
        cached = it.view == "repeat" and number and kind == "image"
        row |= {
            "trial": it.name, "fetch": number, "url": url, "origin": f"{host}:443", "method": "GET", "kind": kind,
            "initiator": "parser", "priority": PRIORITY.get(kind, "Low"), "render_blocking": kind == "stylesheet",
            "connection": lane["number"], "connection_reused": reused, "protocol": it.protocol, "status": 200,
            "started_ns": start + ready, "request_sent_ns": start + sent, "first_byte_ns": start + first,
            "done_ns": start + done, "request_header_bytes": 300, "header_bytes": 120, "wire_bytes": size + 120,
            "body_bytes": size, "decoded_bytes": size * 2 if kind in ("document", "script") else size,
            "from_cache": bool(cached), "resumed": it.view == "repeat" and not reused,
            "zero_rtt": it.view == "repeat" and not reused and it.protocol == "h3", "tls_version": "1.3",
            "cipher": CIPHER, "missing": False, "error": None,
        }  # fmt: skip
        rows.append({name: int(value) if isinstance(value, float) else value for name, value in row.items()})
    last = max(row["done_ns"] for row in rows) - start
    document = rows[0]
    load = last + it.spread(14 * MS * (1.4 if it.browser == "firefox" else 1.0), 0.15)
    fcp = max(row["done_ns"] for row in rows if row["render_blocking"]) - start + it.spread(22 * MS, 0.2)
    facts = {
        "dns_ns": document["dns_end_ns"] - document["dns_start_ns"],
        "connect_ns": document["secured_ns"] - document["connect_start_ns"],
        "tls_ns": document["secured_ns"] - document.get("tcp_connected_ns", document["connect_start_ns"]),
        "request_ns": document["first_byte_ns"] - document["request_sent_ns"],
        "ttfb_ns": document["first_byte_ns"] - start,
        "response_ns": document["done_ns"] - document["first_byte_ns"],
        "dom_content_loaded_ns": fcp * 1.1,
        "load_ns": load,
        "fcp_ns": fcp,
        "lcp_ns": fcp + 0.7 * (load - fcp),
        "speed_index_ns": fcp + 0.4 * (load - fcp),
        "visually_complete_ns": load * 0.98,
        "requests": len(rows),
        "failed_requests": 0,
        "missing_requests": 1 if page == "heavy" else 0,
        "connections": connections,
        "tcp_connections": 0 if it.protocol == "h3" else connections,
        "quic_connections": connections if it.protocol == "h3" else 0,
        "resumed_connections": sum(row["resumed"] for row in rows),
        "zero_rtt_connections": sum(row["zero_rtt"] for row in rows),
        "origins": len(lanes),
        "wire_bytes": sum(row["wire_bytes"] for row in rows),
        "header_bytes": 120 * len(rows),
        "body_bytes": sum(row["body_bytes"] for row in rows),
        "decoded_bytes": sum(row["decoded_bytes"] for row in rows),
        "work": f"{page}-digest",
        "browser_cpu_ns": load * 0.6,
    }
    return rows, {name: int(value) if isinstance(value, float) else value for name, value in facts.items()}


LADDER = (400_000, 1_200_000, 2_800_000)
SEGMENT_NS = 3_000 * MS


def _watch(it: _Trial, watch_ns: int, start: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
    """The segments of one watch, what the player did, and what the visit says of it."""
    rows: list[dict[str, Any]] = []
    played: list[dict[str, Any]] = []
    startup = it.spread({"h1": 520, "h2": 610, "h3": 560}[it.protocol] * MS, 0.1)
    position = at = 0.0
    buffer, rung, number, downloading, pending = 0.0, 0, 0, 0.0, False
    stalled: float | None = None
    stalls, stall_ns, switches, weighted, started = 0, 0.0, 0, 0.0, False
    step = 250.0 * MS
    rough = it.protocol == "h1" and it.rng.random() < 0.6

    def event(name: str) -> None:
        played.append(
            {
                "trial": it.name, "time_ns": int(start + at), "event": name, "position_ns": int(position),
                "buffer_ns": int(buffer), "rung": rung, "bitrate_bits_per_s": LADDER[rung],
                "frames_shown": int(position / 40e6), "frames_dropped": int(position / 4e9), "live_latency_ns": None,
            }
        )  # fmt: skip

    event("play")
    while at < watch_ns:
        if pending and downloading <= at:
            pending, buffer = False, buffer + SEGMENT_NS
        if not pending and buffer < 7_000 * MS:
            rate = it.spread(5e6 * (0.02 if rough and 9e9 < at < 17e9 else 1.0), 0.3)
            wanted = max((place for place, bits in enumerate(LADDER) if bits < 0.7 * rate), default=0)
            wanted = min(wanted, rung + 1) if number else 0
            if number and wanted != rung:
                switches, rung = switches + 1, wanted
                event("switch")
            size = int(LADDER[rung] / 8 * SEGMENT_NS / 1e9)
            took = size * 8e9 / rate + it.rtt
            began, first = start + at, start + at + it.rtt
            rows.append(
                {
                    "trial": it.name, "fetch": number, "url": f"https://video.light.lab/{rung}/segment-{number}.m4s",
                    "origin": "video.light.lab:443", "method": "GET", "kind": "media", "priority": "High",
                    "connection": 0, "connection_reused": bool(number), "protocol": it.protocol, "status": 200,
                    "started_ns": int(began), "request_sent_ns": int(began + 4e5), "first_byte_ns": int(first),
                    "done_ns": int(began + took), "header_bytes": 120, "wire_bytes": size + 120, "body_bytes": size,
                    "decoded_bytes": size, "from_cache": False, "resumed": False, "zero_rtt": False,
                    "missing": False, "rung": rung, "segment": number, "media_ns": SEGMENT_NS, "error": None,
                }
            )  # fmt: skip
            number, downloading, pending = number + 1, at + took, True
        if not started and at >= startup and buffer > 0:
            started = True
            event("first_frame")
        if started:
            if buffer <= 0 and stalled is None:
                stalled, stalls = at, stalls + 1
                event("stall")
            elif stalled is not None and buffer > 0:
                stall_ns, stalled = stall_ns + at - stalled, None
                event("resume")
            if stalled is None:
                position, buffer = position + step, max(0.0, buffer - step)
                weighted += LADDER[rung] * step
        event("sample")
        at += step
    event("ended")
    body = sum(row["body_bytes"] for row in rows)
    shown = int(position / 40e6)
    facts = {
        "ttfb_ns": int(it.rtt * 3), "requests": len(rows) + 4, "failed_requests": 0, "missing_requests": 0,
        "connections": 2, "tcp_connections": 0 if it.protocol == "h3" else 2, "origins": 2, "wire_bytes": body,
        "body_bytes": body, "decoded_bytes": body, "startup_ns": int(startup), "rebuffers": stalls,
        "rebuffer_ns": int(stall_ns), "bitrate_bits_per_s": weighted / max(position, 1.0), "switches": switches,
        "frames_shown": shown, "frames_dropped": int(it.rng.integers(3, 30)), "frames_dropped_floor": 9,
        "watched_ns": watch_ns, "played_ns": int(position), "segments": len(rows), "browser_cpu_ns": 7_000 * MS,
    }  # fmt: skip
    return rows, played, facts


def _pictures() -> list[bytes]:
    """A page that fills: blank, head, text, pictures."""
    made = []
    for step in range(8):
        image = Image.new("RGB", (400, 279), "white")
        draw = ImageDraw.Draw(image)
        if step > 0:
            draw.rectangle((0, 0, 400, 34), fill=(30, 60, 110))
        if step > 1:
            for line in range(6):
                draw.rectangle((16, 48 + 10 * line, 220 + 10 * (line % 3), 53 + 10 * line), fill=(120, 120, 120))
        for place in range(max(0, step - 2)):
            left, top = 16 + 124 * (place % 3), 120 + 76 * (place // 3)
            draw.rectangle((left, top, left + 112, top + 66), fill=(60 + 30 * place, 150, 210 - 30 * place))
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=60)
        made.append(buffer.getvalue())
    return made


def _write_frames(folder: Path, pictures: list[bytes], visit: dict[str, Any]) -> None:
    folder.mkdir(parents=True)
    first, last = visit["fcp_ns"], visit["visually_complete_ns"]
    times = [0.0, *np.linspace(first, last, len(pictures) - 1)]
    for at, picture in zip(times, pictures, strict=True):
        (folder / f"{int(at / MS)}.jpg").write_bytes(picture)


def _sample(visit: dict[str, Any], fetches: list[dict[str, Any]], protocol: str) -> dict[str, Any]:
    first = fetches[0]
    latency = visit["load_ns"] if visit["kind"] == "page" else visit["startup_ns"]
    failed = visit["error"] is not None
    row = {name: first.get(name) for name in ("connect_start_ns", "tcp_connected_ns", "secured_ns", "request_sent_ns")}
    if row["secured_ns"] is None:
        row |= {"connect_start_ns": first["started_ns"], "secured_ns": first["request_sent_ns"]}
        row["tcp_connected_ns"] = None if protocol == "h3" else first["started_ns"] + 1
    return row | {
        "trial": visit["trial"], "worker": 0, "connection": 0, "client": 0, "request": visit["visit"],
        "warmup": visit["warmup"], "started_ns": visit["started_ns"], "protocol": protocol, "tls_version": "1.3",
        "cipher": CIPHER, "resumed": False, "zero_rtt": False, "status": 200, "bytes_out": 0,
        "first_byte_ns": None if failed else first["first_byte_ns"], "error": visit["error"],
        "done_ns": None if failed else visit["started_ns"] + latency, "bytes_in": visit["body_bytes"],
        "header_bytes_in": 120,
    }  # fmt: skip


def _row(
    it: _Trial, rng: np.random.Generator, head: dict[str, Any], samples: pa.Table, visits: list[dict[str, Any]]
) -> dict[str, Any]:
    """The row of the trial: that of requests, with what a browser adds and does not have."""
    row = trial_row(rng, samples, head, it.path, "closed")
    measured = [one for one in visits if not one["warmup"] and one["error"] is None]

    def middle(name: str) -> int | None:
        known = [one[name] for one in (visits if name == "speed_index_ns" else measured) if one.get(name) is not None]
        return int(np.median(known)) if known else None

    for name in ("dom_content_loaded", "fcp", "lcp", "speed_index", "live_latency"):
        row[f"{name}_p50_ns"] = middle(f"{name}_ns")
    if measured and measured[0]["kind"] == "video":
        row["rebuffer_mean_ns"] = float(np.mean([one["rebuffer_ns"] for one in measured]))
        row["bitrate_mean_bits_per_s"] = float(np.mean([one["bitrate_bits_per_s"] for one in measured]))
        row["frames_dropped_rate"] = 0.01
    load = json.loads(row["load_json"]) | {"tcp": None, "quic": None, "key_exchange": None, "wire_bytes_in": None}
    load |= {"schedule_lag_ns": None, "client": it.browser, "visits": len(visits), "stray_lookups": 0}
    row["load_json"] = json.dumps(load | {"wire_bytes_out": None, "left_out": {}})
    row["link_json"] = json.dumps({"links": {"client-router": json.loads(row["link_json"])}})
    return row


def _trial(
    it: _Trial, shape: VisitsShape, cell: Cell, clock: int, failing: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    workload = plan.workload_for(shape.study, plan.treatments_of(shape.study, cell)[0])
    assert isinstance(workload, PageWorkload | VideoWorkload)
    it.view = workload.view
    visits: list[dict[str, Any]] = []
    fetches: list[dict[str, Any]] = []
    playback: list[dict[str, Any]] = []
    at = clock
    for number in range(workload.warmup_visits + workload.visits):
        warmup = number < workload.warmup_visits
        played: list[dict[str, Any]] = []
        if isinstance(workload, PageWorkload):
            rows, facts = _load(it, workload.page, at)
            url, kind = f"https://www.{workload.page}.lab/", "page"
        else:
            rows, played, facts = _watch(it, workload.watch_ns, at)
            url, kind = "https://web.light.lab/player.html", "video"
        error = "timeout" if failing and not warmup and number == workload.warmup_visits else None
        if error:
            facts |= dict.fromkeys(("load_ns", "lcp_ns", "startup_ns"))
        if not (shape.frames and number == workload.warmup_visits - 1):
            facts |= dict.fromkeys(("speed_index_ns", "visually_complete_ns"))
        own = {"visit": number, "warmup": warmup}
        visits.append(
            {"trial": it.name, "kind": kind, "view": workload.view, "browser": it.browser, "protocol": it.protocol}
            | {"url": url, "started_ns": at, "error": error}
            | own
            | facts
        )
        fetches += [row | own for row in rows]
        playback += [row | own for row in played]
        at = max(row["done_ns"] for row in rows) + 1_000 * MS
    return visits, fetches, playback


def write_visits_run(run: Path, shape: VisitsShape | None = None) -> Path:
    """Make the run directory ``run`` and return it."""
    shape = shape or VisitsShape()
    rng = np.random.default_rng(shape.seed)
    for folder in ("trials", "samples", "visits", "fetches", "playback", "frames", "link", "resources", "logs"):
        (run / folder).mkdir(parents=True)
    pictures = _pictures() if shape.frames else []
    rows: list[dict[str, Any]] = []
    checks: list[CheckResult] = []
    number, clock = 0, 1_000_000_000_000
    for block in range(shape.blocks):
        for cell in plan.cells(shape.study):
            for position, arm in enumerate(rng.permutation(ARMS).tolist()):
                trial, protocol = f"t{number:05d}", arm.removesuffix("#aa")
                levels = {name: str(level) for name, level in cell.levels.items()}
                path = shape.study.paths[levels["path"]]
                it = _Trial(rng, trial, protocol, levels["client"], "", path, float(rng.lognormal(0, 0.02)))
                visits, fetches, playback = _trial(it, shape, cell, clock, shape.failing and number in (6, 23))
                by_visit = {one["visit"]: [row for row in fetches if row["visit"] == one["visit"]] for one in visits}
                samples = pa.Table.from_pylist(
                    [_sample(one, by_visit[one["visit"]], protocol) for one in visits], schema.SAMPLES.arrow()
                )
                pq.write_table(samples, run / "samples" / f"{trial}.parquet")
                pq.write_table(pa.Table.from_pylist(visits, VISITS.arrow()), run / "visits" / f"{trial}.parquet")
                pq.write_table(pa.Table.from_pylist(fetches, FETCHES.arrow()), run / "fetches" / f"{trial}.parquet")
                if playback:
                    pq.write_table(
                        pa.Table.from_pylist(playback, PLAYBACK.arrow()), run / "playback" / f"{trial}.parquet"
                    )
                for one in visits:
                    if one.get("visually_complete_ns") is not None:
                        _write_frames(run / "frames" / trial / str(one["visit"]), pictures, one)
                bad = shape.failing and number == 9
                head = {
                    "trial": trial,
                    "block": block,
                    "cell": cell.key,
                    "treatment": f"protocol={protocol},{cell.key}",
                    "arm": arm,
                    "is_aa": arm.endswith("#aa"),
                    "position": position,
                    "seed": 1000 + block,
                    "factors_json": json.dumps({"protocol": protocol, **levels}),
                    "wall_started_utc": "2026-01-02T03:04:05Z",
                    "valid": not bad,
                    "protocol": protocol,
                    **{name: levels[name] for name in ("path", "connection", "server", "client")},
                }
                row = _row(it, rng, head, samples, visits)
                found = checks_of(trial, bad, warned=False)
                row |= {"checks_json": json.dumps([asdict(check) for check in found]), "error": None}
                pq.write_table(pa.Table.from_pylist([row], schema.TRIALS.arrow()), run / "trials" / f"{trial}.parquet")
                rows.append(row)
                checks += found
                number += 1
                clock += 10 * STEP_NS
    write_facts(run, shape.study, rows, checks, troubles=False)
    return run
