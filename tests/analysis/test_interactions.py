"""A server that is slow over one protocol only: named where a second server shows it, and seldom where none is."""

import math

import numpy as np
import pytest

from tests.analysis.worlds import make_study
from trifecta.analysis.interactions import interactions

STUDY = make_study(
    factors={
        "protocol": ("h1", "h2", "h3"),
        "path": ("far", "clean"),
        "connection": ("reused",),
        "server": ("origin", "caddy"),
    }
)


def rows_of(rng, blocks, *, late=None, noise=0.03, weather=0.1):
    """Trials of both servers; ``late``: (server, protocol, ns) whose answers wait."""
    rows = []
    for path, rtt in (("far", 80e6), ("clean", 20e6)):
        storms = rng.normal(0, weather, blocks)
        for server in ("origin", "caddy"):
            base = rtt * (1.0 if server == "origin" else 1.2)  # a slower program is no interaction
            for block in range(blocks):
                for arm in ("h1", "h2", "h2#aa", "h3"):
                    protocol = arm.removesuffix("#aa")
                    extra = late[2] if late and late[:2] == (server, protocol) else 0.0
                    factor = math.exp(storms[block] + rng.normal(0, noise))
                    wait = base * factor + extra
                    rows.append(
                        {"cell": f"path={path},connection=reused,server={server}", "arm": arm, "block": block,
                         "valid": True, "samples": 50, "success_rate": 1.0, "server": server, "client": "load",
                         "latency_p50_ns": wait + 1e6, "connect_p50_ns": None, "tls_p50_ns": None,
                         "wait_p50_ns": wait, "transfer_p50_ns": 1e6 * math.exp(rng.normal(0, noise))}
                    )  # fmt: skip
    return rows


@pytest.mark.parametrize("protocol", ["h3", "h2", "h1"])
def test_answers_that_wait_40_ms_over_one_protocol_of_one_server(protocol):
    rows = rows_of(np.random.default_rng(1), 10, late=("caddy", protocol, 40e6))
    found = interactions(STUDY, rows)
    assert {one.place for one in found} == {"path=far,connection=reused", "path=clean,connection=reused"}
    for one in found:
        assert (one.server, one.other) == ("caddy", "origin")
        assert one.odd.arm == protocol
        assert one.odd.part == "wait_p50_ns"
        assert 40e6 < one.odd.more < 62e6  # of them up to 16 ms the slower program's
        assert abs(one.even.more) < 20e6
        assert (one.low or 0) > 1.05 or (one.high or 9) < 1 / 1.05
    # Where the baseline is late, both others differ from it; else the one that is late.
    assert len(found) == (4 if protocol == "h2" else 2)


def test_one_server_alone_shows_nothing():
    rows = rows_of(np.random.default_rng(1), 10, late=("caddy", "h3", 40e6))
    rows = [one for one in rows if one["server"] == "caddy"]
    assert interactions(STUDY, rows) == []


def test_five_blocks_are_too_few():
    assert interactions(STUDY, rows_of(np.random.default_rng(1), 5, late=("caddy", "h3", 40e6))) == []


def test_nothing_is_named_where_servers_differ_alike():
    """Two servers of different speed, heavy noise, a look after every block: fewer than 5 in 100 studies name one."""
    named = 0
    for seed in range(40):
        rows = rows_of(np.random.default_rng(seed), 20, noise=0.15)
        named += any(interactions(STUDY, [row for row in rows if row["block"] < last]) for last in range(6, 21, 2))
    assert named <= 2


def test_a_trial_that_does_not_count_is_left_out():
    rows = rows_of(np.random.default_rng(2), 10, late=("caddy", "h3", 40e6))
    for row in rows:
        row["valid"] = row["arm"] != "h3"
    assert interactions(STUDY, rows) == []
