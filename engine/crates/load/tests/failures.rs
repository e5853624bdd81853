//! Servers that cannot be connected to, and ends of runs.

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;
use std::time::Duration;

use common::{OK, Random, Server, answer, read_request, run, tls_server};
use serde_json::json;
use trifecta_testpki::TestPki;
use trifecta_wire::tls::TlsVersion;

const BOTH: [&str; 2] = ["h1", "h2"];
const ALPN: &[&[u8]] = &[b"h2", b"http/1.1"];

#[test]
fn a_refused_port_ends_the_run_by_itself() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let pki = TestPki::new();
    for protocol in BOTH {
        for mode in ["new", "reused"] {
            let run = run(
                &pki,
                address,
                json!({"protocol": protocol, "connection_mode": mode, "requests": 0,
                "duration_ns": 60_000_000_000u64, "total_timeout_ns": 60_000_000_000u64}),
            );
            assert_eq!((run.only_error(), run.samples.len()), (Some("connect_refused"), 20), "{protocol} {mode}");
            assert_eq!(run.summary["ended"], "no_response");
            let row = run.samples[3];
            assert!(row.connect_start_ns > 0 && row.started_ns == row.connect_start_ns);
            assert!(row.tcp_connected_ns == 0 && row.secured_ns == 0 && row.done_ns == 0 && row.protocol.is_none());
            for pair in run.samples.windows(2) {
                let gap_ns = pair[1].connect_start_ns - pair[0].connect_start_ns;
                assert!(gap_ns >= 10_000_000, "attempts {gap_ns} ns apart");
            }
        }
    }
}

#[test]
fn failed_attempts_count_as_requests() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for mode in ["new", "reused"] {
        let run = run(&TestPki::new(), address, json!({"requests": 6, "connection_mode": mode, "connections": 2}));
        assert_eq!((run.samples.len(), &run.summary["ended"]), (6, &json!("requests")), "{mode}");
        assert_eq!(run.summary["errors"], 6);
    }
}

#[test]
fn a_server_that_accepts_and_never_answers_is_a_timeout() {
    // Before TLS: the connection cannot be established.
    let silent = Server::tcp(|mut socket| drop(socket.read_to_end(&mut Vec::new())));
    let run = silent.run(json!({"requests": 2, "connect_timeout_ns": 60_000_000}));
    assert_eq!((run.samples.len(), run.only_error()), (2, Some("connect_timeout")));
    assert!(run.samples.iter().all(|row| row.tcp_connected_ns > 0 && row.secured_ns == 0));
    // After TLS: the request has no response.
    let stalls = Server::tls(ALPN, |stream| while stream.read(&mut [0; 4096]).is_ok_and(|octets| octets > 0) {});
    for protocol in BOTH {
        for mode in ["new", "reused"] {
            let run = stalls.run(json!({"protocol": protocol, "connection_mode": mode, "requests": 3,
                "request_timeout_ns": 60_000_000}));
            assert_eq!((run.samples.len(), run.only_error()), (3, Some("timeout")), "{protocol} {mode}");
            assert!(
                run.samples.iter().all(|row| row.request_sent_ns > 0 && row.first_byte_ns == 0 && row.done_ns == 0)
            );
        }
    }
    // The end of the duration leaves requests their time limit, the total time limit does not.
    let run = stalls.run(json!({"requests": 0, "duration_ns": 20_000_000, "request_timeout_ns": 100_000_000}));
    assert_eq!((run.only_error(), &run.summary["ended"]), (Some("timeout"), &json!("duration")));
    let run = stalls.run(json!({"total_timeout_ns": 80_000_000, "request_timeout_ns": 9_000_000_000u64}));
    assert_eq!((run.only_error(), &run.summary["ended"]), (Some("timeout"), &json!("total_timeout")));
}

#[test]
fn failed_handshakes_have_their_class() {
    let class = |server: &Server, protocol: &str| {
        let changes = json!({"protocol": protocol, "requests": 2, "cipher": "TLS_AES_128_GCM_SHA256"});
        let run = server.run(changes);
        assert_eq!(run.samples.len(), 2);
        assert!(run.samples.iter().all(|row| row.tcp_connected_ns > 0 && row.done_ns == 0));
        run.only_error()
    };
    let only_h1 = Server::tls(&[b"http/1.1"], answer(OK));
    assert_eq!(class(&only_h1, "h2"), Some("tls:alpn"));
    let without_alpn = Server::tls(&[], answer(OK));
    assert_eq!(class(&without_alpn, "h2"), Some("tls:alpn"));

    let pki = TestPki::new();
    let old = tls_server(&pki, ALPN, &[TlsVersion::Tls12], 0);
    let old = Server::tls_with(pki, old, answer(OK));
    assert_eq!(class(&old, "h1"), Some("tls:version"));
    let run = old.run(json!({"tls_version": "1.2", "cipher": "TLS_AES_128_GCM_SHA256"}));
    assert_eq!((run.only_error(), run.samples[0].tls_version), (None, Some("1.2")));
    assert_eq!(run.samples[0].cipher, Some("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"));

    let run = common::run(&TestPki::new(), only_h1.address, json!({}));
    assert_eq!(run.only_error(), Some("tls:certificate"));

    let garbage = Server::tcp(|mut socket| {
        let _ = socket.read(&mut [0; 4096]);
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\nThis is not TLS at all.");
    });
    assert_eq!(class(&garbage, "h1"), Some("tls:malformed"));
    let closes = Server::tcp(|mut socket| drop(socket.read(&mut [0; 4096])));
    assert_eq!(class(&closes, "h2"), Some("closed"));
}

#[test]
fn a_server_without_alpn_may_speak_http1() {
    let run = Server::tls(&[], answer(OK)).run(json!({}));
    assert_eq!((run.only_error(), run.samples[0].protocol), (None, None));
}

#[test]
fn damaged_handshakes_end_and_never_panic() {
    let random = Mutex::new(Random(0xfeed));
    let pki = TestPki::new();
    let config = std::sync::Arc::new(tls_server(&pki, ALPN, &[TlsVersion::Tls13], 0));
    let server = Server::tcp(move |mut socket| {
        // The flight of a real server, damaged.
        let mut connection = rustls::ServerConnection::new(config.clone()).unwrap();
        if connection.read_tls(&mut socket).is_err() || connection.process_new_packets().is_err() {
            return;
        }
        let mut flight = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut flight).unwrap();
        }
        random.lock().unwrap().damage(&mut flight);
        let _ = socket.write_all(&flight);
        std::thread::sleep(Duration::from_millis(20));
    });
    let changes = json!({"requests": 60, "connections": 4, "connection_mode": "new", "connect_timeout_ns": 50_000_000});
    let run = run(&pki, server.address, changes);
    assert!(run.samples.len() >= 20 && run.samples.iter().all(|row| row.error.is_some()));
}

#[test]
fn an_open_loop_keeps_its_schedule_and_counts_what_it_missed() {
    let server = Server::tls(ALPN, answer(OK));
    for arrivals in ["constant", "poisson"] {
        let run = server.run(json!({"loop": {"kind": "open", "rate_per_s": 400, "arrivals": arrivals}, "requests": 40,
            "connections": 4}));
        assert_eq!((run.samples.len(), run.only_error()), (40, None));
        assert!(run.samples.iter().all(|row| row.intended_ns > 0 && row.started_ns >= row.intended_ns));
        assert_eq!(run.summary["missed_slots"], 0);
        assert!(run.summary["schedule_lag_ns"]["p99"].as_u64().unwrap() > 0);
        let mut intended: Vec<_> = run.samples.iter().map(|row| row.intended_ns).collect();
        intended.sort_unstable();
        let gaps: std::collections::BTreeSet<_> = intended.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps.len() == 1, arrivals == "constant");
    }
    // One request at a time and a server that takes its time: most slots cannot start.
    let slow = Server::tls(ALPN, |stream| {
        while read_request(stream).is_some() {
            std::thread::sleep(Duration::from_millis(30));
            let _ = stream.write_all(OK).and_then(|()| stream.flush());
        }
    });
    let run =
        slow.run(json!({"loop": {"kind": "open", "rate_per_s": 1000}, "requests": 0, "duration_ns": 200_000_000}));
    let (started, missed) = (run.samples.len() as u64, run.summary["missed_slots"].as_u64().unwrap());
    assert_eq!(started + missed, 200, "{started} started");
    assert!(started <= 8);
    let last = run.samples.last().unwrap();
    assert!(last.done_ns - last.intended_ns > 100_000_000, "latency counts from the intended start");
}

#[test]
fn several_workers_share_the_work() {
    let server = Server::tls(ALPN, answer(OK));
    let run = server.run(json!({"workers": 2, "connections": 3, "requests": 31}));
    assert_eq!((run.samples.len(), run.only_error()), (31, None));
    let mut ordinals: Vec<_> = run.samples.iter().map(|row| row.request).collect();
    ordinals.sort_unstable();
    ordinals.dedup();
    assert_eq!((ordinals.len(), &run.summary["connections_opened"]), (31, &json!(3)));
    let connections: std::collections::BTreeSet<_> = run.samples.iter().map(|row| row.connection).collect();
    assert_eq!(connections.len(), 3);
}
