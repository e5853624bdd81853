"""Which server a client is probed with, where a study has several."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from trifecta.design.conformance import QUICK, own_cases
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.registry import SERVERS
from trifecta.workloads.conformance.bench import Target
from trifecta.workloads.conformance.clients import ClientProbe
from trifecta.workloads.conformance.judging import Finding
from trifecta.workloads.conformance.study import Answering, answers


def up(name: str, *protocols: str, tls_version: str = "1.3") -> Answering:
    target = Target(name, cast(Any, None), Path("log"), tls_version=tls_version)
    return Answering(SERVERS[name], target, frozenset(protocols))


def test_a_client_asks_the_first_server_that_answers_such_requests() -> None:
    """A file server refuses POST, and that is no fault of the client's."""
    both = [up(name, "h1", "h2", "h3") for name in ("caddy", "origin")]
    (post,) = own_cases([RequestsWorkload(method="POST", response_bytes=7, request_bytes=5)])
    assert [answers(case, "h2", both).name for case in (*QUICK, post)] == ["caddy", "origin"]
    assert answers(post, "h2", both[:1]).name == "caddy"


@pytest.mark.parametrize("turned", [False, True])
def test_a_client_asks_over_http3_a_server_that_has_tls_1_3(turned: bool) -> None:
    """A study with `tls_version: 1.2/1.3` has a server for each, and QUIC has 1.3 alone (RFC 9001, 4.2)."""
    two = [up("origin", "h1", "h2", tls_version="1.2"), up("origin", "h3")]
    asked = {one: answers(QUICK[0], one, two[::-1] if turned else two) for one in ("h1", "h2", "h3")}
    assert {one: target.tls_version for one, target in asked.items()} == {"h1": "1.2", "h2": "1.2", "h3": "1.3"}


def test_a_client_is_not_asked_over_http3_where_no_server_has_tls_1_3() -> None:
    (old,) = [up("origin", "h1", "h2", tls_version="1.2")]
    assert answers(QUICK[0], "h3", [old]) is old.target
    bench = cast(Any, SimpleNamespace(stop=lambda: False, observed=lambda *_: (Finding("pass", None, ""), None)))
    adapter = cast(Any, SimpleNamespace(name="any", protocols={"h1", "h2", "h3"}, check_workload=lambda *_: None))
    found = {one.protocol: one for one in ClientProbe(bench, adapter, "1", QUICK[:1], old.target, "quick").run()}
    assert {protocol: one.outcome for protocol, one in found.items()} == {"h1": "pass", "h2": "pass", "h3": "not_run"}
    assert "needs TLS 1.3 (RFC 9001, 4.2), and origin has 1.2 here" in found["h3"].reason
