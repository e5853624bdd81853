"""A study with and without a load balancer, through the whole lab: flows of all three protocols pass it, and count."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.workloads import drive
from trifecta.store.run import RunDirectory

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin") is None, reason="nft is missing"),
]
EVERY = 16
SETTINGS = [
    "path=clean", "server=origin", "connection=new", "in_flight=2", "load_balancer=true,false", "budget=2 min",
    "blocks.at_least=1", "blocks.at_most=1", "requests=12", "warmup=4 requests",
]  # fmt: skip


def test_flows_of_all_protocols_pass_it_and_none_where_it_is_not_asked_for(tmp_path: Path) -> None:
    code, _, outcome, errors = drive.finish(tmp_path / "run", set=SETTINGS)
    assert code == 0, errors
    assert outcome["trials"] == 8
    passed = {}
    for row in RunDirectory.open(tmp_path / "run").rows():
        assert (row["error"], row["error_classes_json"]) == (None, "{}")
        failed = {one["check"]: one["evidence"] for one in json.loads(row["checks_json"]) if one["status"] == "fail"}
        assert not failed.keys() & {"drops", "conntrack", "parity", "protocol", "errors"}, failed
        # On a busy machine packets are late, whatever way they take.
        assert not any(word in failed.get("path", "") for word in ("load balancer", "came back", "payload")), failed
        hosts = json.loads(row["machine_json"])["transport"]
        flows = json.loads(row["server_json"]).get("load_balancer")
        balanced = json.loads(row["factors_json"])["load_balancer"]
        assert (flows is not None) == ("balancer" in hosts) == balanced
        if flows is not None:
            passed[row["protocol"]] = {transport for transport, count in flows.items() if count}
            # A new connection for every request is a flow for each.
            assert max(flows.values()) >= EVERY
            assert hosts["balancer"]["devices"]["eth1"]["tx_packets"] >= 2 * EVERY
            assert hosts["balancer"]["conntrack"]["entries"] >= EVERY
    assert passed == {"h1": {"tcp"}, "h2": {"tcp"}, "h3": {"udp"}}
