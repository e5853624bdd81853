"""Programs that make a study wrong, through the whole lab: what they do is detected, and only where it is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.implementations.errands import need
from tests.workloads import drive
from trifecta.implementations.registry import CLIENTS
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
    found = judged(tmp_path / "run", "threats/alpn-mismatch", "protocol", "client", ["requests=20"])
    wrong = "go-client-own-tls"
    assert found == {
        ("go-client", "h2"): {"pass"}, ("go-client", "h3"): {"pass"}, (wrong, "h2"): {"fail"}, (wrong, "h3"): {"pass"},
    }  # fmt: skip
