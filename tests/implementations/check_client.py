"""What each of our own client programs must do; the tests of their adapters ask it of them."""

from __future__ import annotations

import signal
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.implementations.jobs import (
    PROTOCOLS,
    SECOND,
    carry_out,
    classes,
    closed_port,
    job,
    need,
    origin,
    output,
    talking,
)  # fmt: skip
from tests.workloads import drive
from trifecta.design.model import Protocol, RequestsWorkload
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.server import Unsupported
from trifecta.lab.certificates import Certificates, make_certificates
from trifecta.store.views import connect

PATTERN = bytes(0x61 + index % 26 for index in range(1000))
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + PATTERN


def _read_request(tls: ssl.SSLSocket) -> bool:
    received = b""
    while b"\r\n\r\n" not in received:
        octets = tls.recv(4096)
        if not octets:
            return False
        received += octets
    return True


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A frame of HTTP/2 (RFC 9113, section 4.1)."""
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def _answer_and_go_away(tls: ssl.SSLSocket) -> None:
    """Answer one request over HTTP/2, after the word that there will be no more."""
    received, at = b"", 24  # the preface
    while True:
        while len(received) < at + 9 or len(received) < at + 9 + int.from_bytes(received[at : at + 3]):
            octets = tls.recv(4096)
            if not octets:
                return
            received += octets
        if received[at + 3] == 1:  # HEADERS
            break
        at += 9 + int.from_bytes(received[at : at + 3])
    going = _frame(7, 0, 0, (1).to_bytes(4) + bytes(4))
    tls.sendall(_frame(4, 0, 0, b"") + going + _frame(1, 4, 1, b"\x88") + _frame(0, 1, 1, PATTERN))
    while tls.recv(4096):
        pass


class CheckClient:
    """The tests, once for a client."""

    adapter: ClientAdapter

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        need(self.adapter)

    @pytest.fixture
    def certificates(self, tmp_path: Path) -> Certificates:
        return make_certificates(tmp_path / "pki", ["origin.lab"], ["127.0.0.1"])

    def do(self, folder: Path, certificates: Certificates, port: int, **changes: Any) -> list[dict[str, Any]]:
        return carry_out(self.adapter, job(folder, ca_file=certificates.authority, port=port, **changes))

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_requests_share_as_many_connections_as_were_asked_for(
        self, tmp_path: Path, certificates: Certificates, protocol: Protocol
    ) -> None:
        with origin(certificates) as port:
            streams = 1 if protocol == "h1" else 4
            rows = self.do(tmp_path, certificates, port, protocol=protocol, connections=2, streams=streams, requests=40)
        assert classes(rows) == {None}
        assert {row["protocol"] for row in rows} == {protocol}
        assert {(row["tls_version"], row["cipher"]) for row in rows} == {("1.3", "TLS_AES_128_GCM_SHA256")}
        assert {row["connection"] for row in rows} == {0, 1}
        # The first request on a connection carries its times, which end before it starts; HTTP/3 has no TCP.
        firsts = [row for row in rows if row["connect_start_ns"] is not None]
        assert len(firsts) == 2
        for row in firsts:
            between = row["tcp_connected_ns"] or row["connect_start_ns"]
            assert row["connect_start_ns"] <= between < row["secured_ns"] <= row["started_ns"]
            assert (row["tcp_connected_ns"] is None) == (protocol == "h3")
        for row in rows:
            # That the request was sent may be noted after the answer came; then the time is not known.
            assert row["started_ns"] <= (row["request_sent_ns"] or row["started_ns"]) <= row["first_byte_ns"]
            assert row["first_byte_ns"] <= row["done_ns"]
            assert (row["status"], row["bytes_in"], row["bytes_out"]) == (200, 1000, 0)
            assert (row["resumed"], row["zero_rtt"]) == (False, False)
        assert sum(row["request_sent_ns"] is not None for row in rows) > 30

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_a_new_connection_for_every_request(
        self, tmp_path: Path, certificates: Certificates, protocol: Protocol
    ) -> None:
        with origin(certificates) as port:
            rows = self.do(
                tmp_path, certificates, port, protocol=protocol, connections=3, requests=9, connection_mode="new"
            )
        assert classes(rows) == {None}
        assert sorted(row["connection"] for row in rows) == list(range(9))
        for row in rows:
            assert row["started_ns"] == row["connect_start_ns"] < row["secured_ns"] <= row["first_byte_ns"]
            assert not row["resumed"]
        in_flight = [sum(a["started_ns"] < b["done_ns"] and b["started_ns"] < a["done_ns"] for b in rows) for a in rows]
        assert max(in_flight) > 1

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    @pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE"])
    def test_every_method_and_its_content(
        self, tmp_path: Path, certificates: Certificates, protocol: Protocol, method: str
    ) -> None:
        body, status, content = (300_000 if method[0] == "P" else 0), 200, 1000
        if method in ("HEAD", "DELETE"):
            content, status = 0, 200 if method == "HEAD" else 204
        with origin(certificates) as port:
            rows = self.do(
                tmp_path, certificates, port, protocol=protocol, method=method, request_body_bytes=body,
                expect_status=status, expect_body_bytes=content,
            )  # fmt: skip
        assert classes(rows) == {None}
        assert {(row["bytes_out"], row["bytes_in"]) for row in rows} == {(body, content)}

    def test_nagles_algorithm_holds_back_what_is_written_in_two_pieces(
        self, tmp_path: Path, certificates: Certificates
    ) -> None:
        asked: dict[str, Any] = {"protocol": "h2", "method": "POST", "request_body_bytes": 600, "requests": 30}
        with origin(certificates) as port:
            quick = self.do(tmp_path, certificates, port, **asked)
            held = self.do(tmp_path, certificates, port, **asked, tcp_nodelay=False)
        assert classes(quick) == classes(held) == {None}
        took = [sorted(row["done_ns"] - row["started_ns"] for row in rows)[15] for rows in (quick, held)]
        # The receiver's timer, TCP_DELACK_MIN of Linux, is 40 ms.
        assert took[0] < 20_000_000 < 38_000_000 < took[1] < 60_000_000

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_more_than_flow_control_lets_through_at_once(
        self, tmp_path: Path, certificates: Certificates, protocol: Protocol
    ) -> None:
        octets = 5_000_000
        with origin(certificates) as port:
            rows = self.do(
                tmp_path, certificates, port, protocol=protocol, requests=2, method="POST", path=f"/bytes/{octets}",
                request_body_bytes=octets, expect_body_bytes=octets,
            )  # fmt: skip
        assert classes(rows) == {None}
        assert {(row["bytes_out"], row["bytes_in"]) for row in rows} == {(octets, octets)}

    @pytest.mark.parametrize("protocol", ["h2", "h3"])
    def test_more_streams_than_the_server_allows_wait(
        self, tmp_path: Path, certificates: Certificates, protocol: Protocol
    ) -> None:
        with origin(certificates, max_concurrent_streams=7) as port:
            rows = self.do(tmp_path, certificates, port, protocol=protocol, streams=30, requests=120)
        assert classes(rows) == {None}
        assert {row["connection"] for row in rows} == {0}

    @pytest.mark.parametrize("mode", ["new", "reused"])
    @pytest.mark.parametrize("protocol", ["h1", "h2"])
    def test_nobody_listens(self, tmp_path: Path, certificates: Certificates, protocol: Protocol, mode: str) -> None:
        rows = self.do(tmp_path, certificates, closed_port(), protocol=protocol, connection_mode=mode, requests=30)
        # A dead path ends by itself; requests that were never made are distinguished.
        assert [row["error"] for row in rows] == ["connect_refused"] * 20 + ["interrupted"] * 10
        starts = [row["started_ns"] for row in rows[:20]]
        assert starts[-1] - starts[0] >= 19 * 9_000_000, "a dead path must not spin"

    def test_no_answer_over_udp(self, tmp_path: Path, certificates: Certificates) -> None:
        rows = self.do(tmp_path, certificates, closed_port(), protocol="h3", requests=2, connect_timeout_ns=SECOND // 4)
        assert classes(rows) == {"connect_timeout"}

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    @pytest.mark.parametrize("wrong", ["authority", "name"])
    def test_certificates_are_verified(
        self, tmp_path: Path, certificates: Certificates, protocol: Protocol, wrong: str
    ) -> None:
        other = make_certificates(tmp_path / "other", ["origin.lab" if wrong == "authority" else "else.lab"], [])
        trusted = certificates if wrong == "authority" else other
        with origin(other) as port:
            rows = self.do(tmp_path, trusted, port, protocol=protocol, requests=3)
        assert classes(rows) == {"tls:certificate"}
        assert all(row["secured_ns"] is None and row["status"] is None for row in rows)

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_what_is_not_the_answer_asked_for_is_a_failure(
        self, tmp_path: Path, certificates: Certificates, protocol: Protocol
    ) -> None:
        with origin(certificates) as port:
            assert classes(self.do(tmp_path, certificates, port, protocol=protocol, path="/no")) == {"status"}
            assert classes(self.do(tmp_path, certificates, port, protocol=protocol, expect_body_bytes=9)) == {"length"}
        with origin(certificates, faults={"truncate_bytes": 1}) as port:
            for mode in ("new", "reused"):
                rows = self.do(tmp_path, certificates, port, protocol=protocol, connection_mode=mode)
                assert classes(rows) == {"length"}

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_a_server_that_never_answers(self, tmp_path: Path, certificates: Certificates, protocol: Protocol) -> None:
        with origin(certificates, faults={"stall": True}) as port:
            rows = self.do(tmp_path, certificates, port, protocol=protocol, requests=3, request_timeout_ns=SECOND // 4)
            assert classes(rows) == {"timeout"}
            assert all(row["request_sent_ns"] and row["first_byte_ns"] is None for row in rows)
            began = time.monotonic()
            rows = self.do(tmp_path, certificates, port, protocol=protocol, total_timeout_ns=2 * SECOND)
            assert classes(rows) == {"timeout"}
            assert time.monotonic() - began < 2.5, "it must end before it is ended"

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_lost_connections_are_replaced_and_nothing_is_sent_again_unseen(
        self, tmp_path: Path, certificates: Certificates, protocol: Protocol
    ) -> None:
        with origin(certificates, faults={"close_after_requests": 2}) as port:
            rows = self.do(tmp_path, certificates, port, protocol=protocol, requests=20, request_timeout_ns=SECOND)
        assert len(rows) == 20
        assert classes(rows) <= {None, "closed", "reset", "timeout", "goaway"}
        answered: dict[int, int] = {}
        for row in rows:
            if row["error"] is None:
                answered[row["connection"]] = answered.get(row["connection"], 0) + 1
        assert len(answered) >= 2
        assert max(answered.values()) <= 2

    def test_what_a_server_answers_after_a_goaway_counts(self, tmp_path: Path, certificates: Certificates) -> None:
        with talking(certificates, ["h2"], _answer_and_go_away) as port:
            rows = self.do(tmp_path, certificates, port, protocol="h2", requests=4)
        assert classes(rows) == {None}
        assert len({row["connection"] for row in rows}) == 4

    def test_another_protocol_than_asked_for(self, tmp_path: Path, certificates: Certificates) -> None:
        with origin(certificates, protocols=["h1"]) as port:
            assert classes(self.do(tmp_path, certificates, port, protocol="h2", requests=2)) == {"tls:alpn"}
        with talking(certificates, [], lambda tls: tls.sendall(ANSWER) if _read_request(tls) else None) as port:
            assert classes(self.do(tmp_path, certificates, port, protocol="h2", requests=2)) == {"tls:alpn"}
            rows = self.do(tmp_path, certificates, port, protocol="h1", requests=1)
            # RFC 7301, section 3.1: without ALPN it is HTTP/1.1; that it was not negotiated is told.
            assert [(row["error"], row["protocol"]) for row in rows] == [(None, None)]
        with talking(certificates, ["h2"], lambda tls: tls.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9)) as port:
            rows = self.do(tmp_path, certificates, port, protocol="h2", requests=2, request_timeout_ns=SECOND)
            assert classes(rows) <= {"malformed:http2", "closed", "reset"}

    def test_answers_of_a_bad_http1_server(self, tmp_path: Path, certificates: Certificates) -> None:
        for sends, expected in {
            ANSWER[:500]: "length", b"": "closed", b"no HTTP at all\r\n\r\n": "malformed:http1",
            ANSWER[:-1] + b"!": "content", ANSWER.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"): None,
        }.items():  # fmt: skip
            # A connection for each request: after a wrong answer it depends on who is faster whether one is used again.
            with talking(
                certificates, [], lambda tls, sends=sends: tls.sendall(sends) if _read_request(tls) else None
            ) as port:
                rows = self.do(tmp_path, certificates, port, protocol="h1", requests=3, connection_mode="new")
            assert classes(rows) == {expected}, sends[:40]

    @pytest.mark.parametrize("protocol", ["h1", "h2"])
    def test_tls_versions(self, tmp_path: Path, certificates: Certificates, protocol: Protocol) -> None:
        suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
        with origin(certificates, tls_versions=["1.2"]) as port:
            rows = self.do(tmp_path, certificates, port, protocol=protocol, tls_version="1.2", cipher=suite)
            assert {(row["error"], row["tls_version"], row["cipher"]) for row in rows} == {(None, "1.2", suite)}
            assert classes(self.do(tmp_path, certificates, port, protocol=protocol, requests=2)) == {"tls:version"}

    @pytest.mark.parametrize("group", ["X25519", "secp256r1", "secp384r1"])
    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_one_group_is_offered(
        self, tmp_path: Path, certificates: Certificates, protocol: Protocol, group: str
    ) -> None:
        try:
            self.adapter.check_workload(RequestsWorkload(key_exchange=group), protocol, "reused")
        except Unsupported as told:
            pytest.skip(str(told))
        with origin(certificates, key_exchanges=[group]) as port:
            rows = self.do(tmp_path, certificates, port, protocol=protocol, key_exchange=group, requests=2)
            assert classes(rows) == {None}
            other = "X25519" if group != "X25519" else "secp256r1"
            rows = self.do(tmp_path, certificates, port, protocol=protocol, key_exchange=other, requests=2)
            assert {row["error"].split(":")[0] for row in rows} == {"tls"}

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_keys_and_qlog(self, tmp_path: Path, certificates: Certificates, protocol: Protocol) -> None:
        (tmp_path / "qlog").mkdir()
        with origin(certificates) as port:
            rows = self.do(
                tmp_path, certificates, port, protocol=protocol, keylog_file=tmp_path / "keys",
                qlog_dir=tmp_path / "qlog",
            )  # fmt: skip
        assert classes(rows) == {None}
        assert "CLIENT_TRAFFIC_SECRET_0 " in (tmp_path / "keys").read_text()
        assert bool(list((tmp_path / "qlog").iterdir())) == (protocol == "h3")

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_asked_to_end_it_tells_what_was_under_way(
        self, tmp_path: Path, certificates: Certificates, protocol: Protocol
    ) -> None:
        with origin(certificates, faults={"stall": True}) as port:
            asked = job(tmp_path, ca_file=certificates.authority, port=port, protocol=protocol)
            command = self.adapter.command(asked)
            with subprocess.Popen(
                list(map(str, command.arguments)), stdout=subprocess.PIPE, text=True, env=dict(command.environment)
            ) as process:
                time.sleep(1.5)
                process.send_signal(signal.SIGTERM)
                said, _ = process.communicate(timeout=10)
        rows = list(self.adapter.rows(asked, output(tmp_path, said, process.returncode)))
        assert process.returncode == 0
        assert [row["error"] for row in rows] == ["interrupted"] * 6
        assert rows[0]["request_sent_ns"] is not None

    def test_a_bad_job_is_refused_in_one_line(self, tmp_path: Path) -> None:
        command = self.adapter.command(job(tmp_path))
        (tmp_path / "bad.json").write_text('{"protocol": "h2", "colour": "red"}')
        for arguments in ([tmp_path / "bad.json"], [tmp_path / "missing.json"], []):
            done = subprocess.run(
                [*command.arguments[:-1], *arguments], capture_output=True, text=True, check=False, timeout=30
            )
            assert done.returncode == 2, arguments
            assert done.stderr.startswith("error: ")
            assert done.stderr.count("\n") == 1

    @pytest.mark.lab
    def test_a_study_of_it_has_no_failed_request(self, tmp_path: Path) -> None:
        settings = [
            "path=clean", "server=origin", f"client={self.adapter.name}", "budget=2 min", "blocks.at_least=1",
            "blocks.at_most=1", "paths.clean.trial.reused.requests=200",
        ]  # fmt: skip
        code, _, outcome, errors = drive.finish(tmp_path / "run", set=settings)
        assert code in (0, 1), errors  # 1: no trial was fit for a verdict, as on a machine that does other work
        views = connect(tmp_path / "run")
        rows = views.sql("select protocol, connection, client, samples, errors, error from trials").fetchall()
        assert len(rows) == outcome["trials"] == 8
        assert {row[:2] for row in rows} == {(p, c) for p in PROTOCOLS for c in ("new", "reused")}
        assert {row[2] for row in rows} == {self.adapter.name}
        assert all(samples > 0 and failed == 0 and error is None for *_, samples, failed, error in rows)
        spoken = views.sql("select distinct s.protocol = t.protocol from samples s join trials t using (trial)")
        assert spoken.fetchall() == [(True,)]
        started = views.sql("select distinct json_extract(load_json, 'start_cpu_ns')::bigint > 0 from trials")
        assert started.fetchall() == [(True,)]
        status = views.sql("select distinct status from checks where \"check\" in ('protocol', 'same_work')")
        assert status.fetchall() == [("pass",)]
