"""Hosts that SSH reaches over IPv6: `ssh://root@[fd78::2]:2222`, and the measured path over it as well."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.three_hosts import missing
from tests.workloads.test_checks_fail import _engine_missing
from tests.workloads.test_failures import assert_whole
from tests.workloads.test_hosts import amiss, inside, private_in, rows

WHY = missing() or _engine_missing()
pytestmark = [pytest.mark.lab, pytest.mark.skipif(bool(WHY), reason=WHY or "there")]


def test_client_and_server_are_reached_and_measured_over_ipv6(tmp_path: Path) -> None:
    code, errors, left, urls, listening = inside(
        tmp_path,
        """
        with three_hosts(folder, over_ipv6=True) as hosts:
            urls = [hosts.url(CLIENT), hosts.url(SERVER)]
            code, _, errors = hosts.run(*race(hosts, folder / "run", "protocol=h2,h3"))
            left = hosts.wait_clean(30)
            logged = (folder / CLIENT / "sshd.log").read_text().splitlines()
            listening = [line for line in logged if "listening" in line]
        print(json.dumps([code, errors, left, urls, listening]))
        """,
    )
    assert code == 0, errors
    assert urls == ["ssh://root@[fd78::2]:2222", "ssh://root@[fd78::3]:2222"]
    assert listening == ["Server listening on :: port 2222."], "of IPv4 there is none"
    assert left == {"client": [], "server": []}
    found = rows(tmp_path / "run")
    assert len(found) == 2 * 3
    assert amiss(found) == []
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    assert {one["address"] for one in document["hosts"].values()} == {"fd78::2", "fd78::3"}
    for row in found:
        for counted in json.loads(row["machine_json"])["transport"].values():
            six, four = (counted["counters"][name] for name in ("Ip6OutRequests", "IpOutRequests"))
            assert six >= 20, "some packets of QUIC acknowledge two of the 40 requests"
            assert four < 16
    assert_whole(tmp_path / "run")
    assert private_in(tmp_path / "run", tmp_path / "home") == []
