"""The section on servers elsewhere: its numbers are those of SQL, and its sentences those of the looks."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report import pages
from tests.report.synthetic import Shape, _samples
from tests.report.synthetic_parts import PATHS, checks_of, trial_row, write_facts
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.facts import read
from trifecta.conclude.far import arms_over_places, derive, hour_of
from trifecta.conclude.queries import connect
from trifecta.design import plan
from trifecta.design.manners import TO_OTHERS
from trifecta.design.metrics import METRICS
from trifecta.design.model import CheckResult, PathSpec
from trifecta.design.study_file import parse_study
from trifecta.report import terminal
from trifecta.report.far.words import coming_line, here_lines, place_lines, together_lines, vantage_line
from trifecta.report.html import render, write_report
from trifecta.store import schema

URL = "https://a.example/x?y=1&z=2"
NEAR, FAR = "192.0.2.1", "2001:db8::1"
TEXT = f"""study: far
title: a.example, from here
workload: {{kind: far, requests: 4, url: '{URL}'}}
factors: {{connection: [new, reused], address: [{NEAR}, '{FAR}']}}
"""
LARGE = 300_000
SHORT = (
    "Not measured while content arrived: responses over TCP were too short for a connect meanwhile at this pace; "
    "use a larger URL, or --i-own-this for your own server."
)


def answered(protocol: str, took_ns: int, error: str | None = None) -> dict[str, Any]:
    known = error is None
    return {
        "protocol": protocol,
        "error": error,
        "status": 200 if known else None,
        "content_bytes": 3000 if known else 0,
        "wire_bytes": 7_000,
        "connect_ns": None if protocol == "h3" else took_ns,
        "handshake_ns": took_ns + 1_000_000 if known else None,
        "wait_ns": took_ns + 2_000_000 if known else None,
        "transfer_ns": 300_000 if known else None,
        "min_rtt_ns": took_ns if known else None,
        "lost": 1 if known else None,
        "udp_payload_bytes": 1452 if protocol == "h3" else None,
        "fields": {},
    }


def place(address: str, took_ns: int, h3: str | None = None) -> dict[str, Any]:
    """What was seen of an address; ``h3`` is how HTTP/3 failed there."""
    return {
        "url": URL,
        "level": address,
        "address": address,
        "resolved": [address],
        "dns_ns": None,
        "https_record": {"found": False, "alpn": [], "error": None},
        "announced": ["Alt-Svc"],
        "answers": [answered("h1", took_ns), answered("h2", took_ns + 5), answered("h3", took_ns + 9, h3)],
        "idle_rtt_ns": took_ns,
        "loaded_rtt_ns": None,
        "udp": "blocked" if h3 else "open",
    }


LOOKS = [
    {"when": "before", "utc": "2026-01-02T03:00:00+00:00", "places": [place(NEAR, 30_000_000), place(FAR, 90_000_000)]},
    {
        "when": "after",
        "utc": "2026-01-02T04:00:00+00:00",
        "places": [place(NEAR, 31_000_000), place(FAR, 95_000_000, "connect_timeout")],
    },
]


def write(run: Path) -> Path:
    """A run of six blocks at two addresses; at the second HTTP/3 brings content much slower than TCP."""
    study = parse_study(TEXT, "far.yaml")
    shape = Shape(samples_per_trial=4, in_flight=1, troubles=False, paths=("far",), connections=("new",))
    for folder in ("trials", "samples", "link", "resources", "logs"):
        (run / folder).mkdir(parents=True)
    rng, clock = np.random.default_rng(3), 1_000_000_000_000
    rows: list[dict[str, Any]] = []
    checks: list[CheckResult] = []
    for block in range(6):
        for cell in plan.cells(study):
            for trial in plan.block_trials(study, cell, block, len(rows)):
                levels = {name: str(level) for name, level in trial.levels.items()}
                samples = _samples(rng, shape, trial.trial, trial.arm, levels, clock)
                pq.write_table(samples, run / "samples" / f"{trial.trial}.parquet")
                head = {
                    "trial": trial.trial,
                    "block": block,
                    "cell": cell.key,
                    "treatment": f"protocol={levels['protocol']},{cell.key}",
                    "arm": trial.arm,
                    "is_aa": trial.is_aa,
                    "position": trial.position,
                    "seed": trial.seed,
                    "client": "load",
                    "factors_json": json.dumps(levels),
                    "wall_started_utc": f"2026-01-02T03:{len(rows) // 60:02d}:{len(rows) % 60:02d}Z",
                    "valid": True,
                    **levels,
                }
                row = trial_row(rng, samples, head, PATHS["as-is"], "closed")
                slow = levels["protocol"] == "h3" and levels["address"] == FAR
                server = {"name": "elsewhere", "url": URL, "address": levels["address"], "cpu_ns": None}
                row |= {
                    "bytes_in": LARGE * (row["samples"] - row["errors"]),
                    "transfer_p50_ns": 900_000_000 if slow else 100_000_000,
                    "server_json": json.dumps(server),
                    "link_json": None,
                    "probe_json": None,
                    "error": None,
                }
                found = checks_of(trial.trial, False, False)
                row["checks_json"] = json.dumps([asdict(check) for check in found])
                pq.write_table(
                    pa.Table.from_pylist([row], schema.TRIALS.arrow()), run / "trials" / f"{trial.trial}.parquet"
                )
                rows.append(row)
                checks += found
                clock += 20_000_000_000
    write_facts(run, study, rows, checks, troubles=False)
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"elsewhere": LOOKS}))
    return run


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PATHS, "as-is", PathSpec("as-is", rtt_ns=30_000_000))
        run = write(tmp_path_factory.mktemp("runs") / "far")
    write_report(run)
    return run


def section(run: Path) -> pages.Element:
    root = pages.read((run / "report.html").read_text()).root
    return next(one for one in root.all("section") if one.attributes.get("id") == "elsewhere")


def test_every_number_is_what_the_sql_beside_it_gives(raced: Path) -> None:
    found = pages.numbers(section(raced))
    columns = {number.column for number in found}
    assert columns >= {"connect_ns", "min_rtt_ns", "idle_rtt_ns", "latency_ns", "lost", "baseline_ns", "content_bytes"}
    assert "loaded_rtt_ns" not in columns, "nothing was asked while content arrived"
    # Two looks at two addresses over three protocols, twelve places and arms, 24 blocks: each with several numbers.
    assert len(found) > 12 * 8 + 12 * 5 + 24 * 3
    pages.assert_sql_gives(raced, found)


def test_the_numbers_are_those_of_the_run(raced: Path) -> None:
    with connect(raced) as connection:
        (row,) = connection.execute(
            "SELECT count(*), count(DISTINCT moment), max(connect_ns), count(error) FROM looks"
        ).fetchall()
        assert row == (12, 2, 95_000_005, 1)
        blocks = connection.execute(hour_of("h2").text()).fetchall()
        cells = {cell for cell, *_ in blocks}
        assert (len(blocks), len(cells)) == (24, 4)
        assert {(cell, address) for cell, _, _, _, address in blocks} == {
            (cell, NEAR if NEAR in cell else FAR) for cell in cells
        }
        derived = derive(connection, read(raced))
    assert derived is not None
    assert derived.slow_udp == [FAR]


def test_the_sentences_are_those_of_the_looks(raced: Path) -> None:
    text = section(raced).text.replace("\u00a0", " ")
    assert f"Before: {URL} at {NEAR}: HTTP/1.1 200 with 3.00 kB, HTTP/2 200 with 3.00 kB, HTTP/3 200 with" in text
    assert (
        f"Round trip 30.0 ms idle. {SHORT} UDP passes "
        "(its rate is not judged: that takes responses of 100 kB over both)"
        "; HTTP/3 is announced by Alt-Svc."
    ) in text
    assert "After:" in text
    assert "HTTP/3 connect_timeout" in text
    assert f"Over all trials at {FAR}: UDP is slow" in text


def test_the_first_screen_says_over_which_path_it_was_and_what_of_udp(raced: Path) -> None:
    said = json.loads(terminal.as_json(raced))["elsewhere"]["said"]
    first = f"Nothing is emulated: this is the path from this machine to a.example at {NEAR} (31.0 ms), {FAR} (95.0 ms)"
    assert said[0] == f"{first}, as it was from 2026-01-02 03:00 to 03:02 UTC."
    assert said[1] == f"a.example at {FAR}: UDP is blocked: HTTP/3 is announced, and no packet came back."
    assert said[-1].startswith("One side cannot know")
    whole = pages.read((raced / "report.html").read_text()).root.text.replace("\u00a0", " ")
    assert all(line in whole for line in said)


def test_every_place_is_named_from_which_it_was_asked() -> None:
    there: Any = place(NEAR, 90_000_000, "connect_timeout") | {"vantage": "ssh://a"}
    looks: Any = LOOKS
    look: Any = {"when": "before", "utc": "2026-01-02T03:00:00+00:00", "places": [place(NEAR, 30_000_000), there]}
    said = [line.replace("\u00a0", " ") for line in here_lines([look], None)]
    assert said[:2] == [
        f"Nothing is emulated: this is the path from this machine to a.example at {NEAR} (30.0 ms).",
        f"Nothing is emulated: this is the path from ssh://a to a.example at {NEAR} (90.0 ms).",
    ]
    assert said[2].startswith("Every block was measured from one place")
    assert said[3].startswith(f"a.example at {NEAR} from ssh://a: UDP is blocked")
    assert place_lines(there)[0].startswith(f"{URL} at {NEAR} from ssh://a: ")
    assert len(here_lines(looks, None)) == 3, "one place needs no word of several"
    assert vantage_line(["here"]) == []
    assert vantage_line(["here", "ssh://a"])[0].startswith("They come from here, ssh://a, never from two at once")


def test_why_there_is_no_round_trip_while_content_came_is_said_and_how_it_is_had(raced: Path) -> None:
    seen: Any = place(NEAR, 30_000_000)
    away: Any = seen | {"vantage": "ssh://a"}
    quic: Any = seen | {"answers": [answered("h1", 1, "reset"), answered("h2", 1, "tls"), answered("h3", 1)]}
    empty: Any = seen | {"answers": [one | {"content_bytes": 0} for one in seen["answers"]]}
    measured: Any = seen | {"loaded_rtt_ns": 45_000_000}
    found = [place_lines(one)[1].replace("\u00a0", " ") for one in (seen, away, quic, empty, measured)]
    idle, nothing = "Round trip 30.0 ms idle. ", "Not measured while content arrived: no content arrived over TCP. UDP"
    assert found[0].startswith(f"{idle}{SHORT} UDP passes")
    assert found[1].startswith(f"{idle}Not measured while content arrived: it is only measured from this machine. UDP")
    assert found[2].startswith(idle + nothing)
    assert found[3].startswith(idle + nothing)
    assert found[4].startswith("Round trip 30.0 ms idle, 45.0 ms while content arrived. UDP passes")
    unasked: Any = seen | {"udp": None}
    assert place_lines(unasked)[1].endswith("your own server."), "no word of UDP, and no space in its place"
    whole = pages.read((raced / "report.html").read_text()).root.text.replace("\u00a0", " ")
    assert SHORT in whole


def test_what_each_place_decided_is_side_by_side_and_nothing_is_pooled() -> None:
    def one(connection: str, vantage: str, kind: str) -> Comparison:
        cell = f"path=as-is,connection={connection},server=elsewhere,vantage={vantage}"
        return Comparison(cell, "h3", "h2", kind, {"metric": "latency_p50_ns"})

    found = arms_over_places(
        [
            one("new", "ssh://a", "faster"),
            one("new", "ssh://b", "undecided"),
            one("new", "ssh://c", "faster"),
            one("reused", "ssh://a", "same"),
        ]
    )
    assert together_lines(found, METRICS["latency_p50_ns"]) == [
        "HTTP/3 against HTTP/2, new connections: faster from ssh://a, ssh://c; undecided from ssh://b.",
        "HTTP/3 against HTTP/2, reused connections: same from ssh://a.",
    ]
    assert arms_over_places([Comparison("path=as-is,connection=new", "h3", "h2", "faster", {})]) == []


def test_a_run_in_a_lab_has_nothing_of_it(small: Path) -> None:
    assert 'id="elsewhere"' not in render(small)
    assert json.loads(terminal.as_json(small))["elsewhere"] == {"said": [], "looks": []}


def test_what_is_coming_is_said_with_what_it_may_be_at_most() -> None:
    times_ns = (300_000_000_000, 900_000_000_000)
    assert coming_line(("a.example",), (240, 1000), 5_000_000, times_ns, TO_OTHERS) == (
        "This sends 240 to 1,000 requests to a.example, and up to 5 MB both ways if responses keep their size "
        "(200 MB at most), in 5 min to 15 min: no more than 2/s and 20 MB a minute, less when the server asks "
        "to slow down."
    )
    assert "and 200 MB both ways at most, in" in coming_line(("b",), (1, 1), 200_000_000, times_ns, TO_OTHERS)
