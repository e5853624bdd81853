"""Programs that make a study wrong, through the whole lab: what they do is detected, and only where it is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.implementations.jobs import need
from tests.workloads import drive
from trifecta.implementations.registry import CLIENTS
from trifecta.lab import cpu_share
from trifecta.store.views import connect

pytestmark = [pytest.mark.lab, pytest.mark.long]


def judged(folder: Path, study: str, check: str, factor: str, changes: list[str]) -> dict[tuple[str, str], set[str]]:
    """Level of the factor and protocol -> what the check said of its trials."""
    settings = ["server=origin", "blocks.at_least=1", "blocks.at_most=1", *changes]
    code, _, _, errors = drive.finish(folder, study=study, set=settings)
    assert code == 0, errors
    with connect(folder) as connection:
        rows = connection.execute(
            f"SELECT json_extract_string(t.factors_json, '$.{factor}'), t.protocol, c.status "
            f"FROM checks AS c JOIN trials AS t ON t.trial = c.scope WHERE c.check = '{check}'"
        ).fetchall()
    found: dict[tuple[str, str], set[str]] = {}
    for level, protocol, status in rows:
        found.setdefault((level, protocol), set()).add(status)
    return found


def test_a_request_in_two_pieces_waits_for_the_timer_and_is_named(tmp_path: Path) -> None:
    need(CLIENTS["python-client"])
    changes = ["client=python-client", "requests=20"]
    found = judged(tmp_path / "run", "threats/delayed-ack", "delayed_ack", "tcp_nodelay", changes)
    assert found == {
        ("true", "h2"): {"pass"}, ("true", "h3"): {"pass"}, ("false", "h2"): {"warn"}, ("false", "h3"): {"pass"},
    }  # fmt: skip


def test_http1_under_the_name_of_http2_fails(tmp_path: Path) -> None:
    need(CLIENTS["go-client-own-tls"])
    found = judged(
        tmp_path / "run", "threats/alpn-mismatch", "protocol", "client", ["requests=20", "warmup=10 requests"]
    )
    wrong = "go-client-own-tls"
    assert found == {
        ("go-client", "h2"): {"pass"}, ("go-client", "h3"): {"pass"}, (wrong, "h2"): {"fail"}, (wrong, "h3"): {"pass"},
    }  # fmt: skip


def test_a_client_with_a_tenth_of_a_core_is_judged_by_that(tmp_path: Path) -> None:
    if cpu_share.problem() is not None:
        pytest.skip(f"this machine cannot: {cpu_share.problem()}")
    changes = ["rate=3200/s", "client_cpu=10 %", "duration=500 ms"]
    found = judged(tmp_path / "run", "threats/cpu-client", "headroom", "client_cpu", changes)
    assert found == {("10 %", "h2"): {"fail"}, ("10 %", "h3"): {"fail"}}
    with connect(tmp_path / "run") as connection:
        loads = connection.execute("SELECT load_json FROM trials").fetchall()
        said = connection.execute("SELECT evidence FROM checks WHERE \"check\" = 'headroom'").fetchall()
    for load in (json.loads(one) for (one,) in loads):
        assert load["cpu_share"] == 0.1
        assert load["throttled_ns"] > 50_000_000
        used_ns = load["cpu_user_ns"] + load["cpu_system_ns"]
        assert used_ns < 0.2 * load["wall_ns"], "a tenth, and what it used before it was limited"
    assert all("of the 10 % of a core it was given" in evidence for (evidence,) in said)
