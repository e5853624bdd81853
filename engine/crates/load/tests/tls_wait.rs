//! A client that waits between TCP's handshake and its Client Hello.

mod common;

use common::h2server::{response, serve};
use common::{OK, Run, Server, answer};
use serde_json::{Value, json};

const WAIT_NS: u64 = 60_000_000;

/// Two requests, each with a connection of its own, at a server that speaks `protocol`.
fn run(protocol: &str, tuning: &Value, connect_timeout_ns: u64) -> Run {
    let server = if protocol == "h1" {
        Server::tls(&[b"http/1.1"], answer(OK))
    } else {
        Server::tls(&[b"h2"], serve(&[], |seen| response(seen.stream, 5)))
    };
    server.run(json!({"protocol": protocol, "requests": 2, "connection_mode": "new", "tuning": tuning,
        "connect_timeout_ns": connect_timeout_ns}))
}

#[test]
fn the_hello_comes_that_much_after_the_connection() {
    for protocol in ["h1", "h2"] {
        let waiting = run(protocol, &json!({"tls_wait_ns": WAIT_NS}), 300_000_000);
        assert_eq!((waiting.samples.len(), waiting.only_error()), (2, None), "{protocol}");
        for row in &waiting.samples {
            assert!(row.tcp_connected_ns - row.connect_start_ns < WAIT_NS, "TCP does not wait");
            assert!(row.secured_ns - row.tcp_connected_ns >= WAIT_NS, "{protocol}");
            assert!(row.done_ns - row.started_ns >= WAIT_NS, "a request's time has the wait in it");
        }
        assert_eq!(waiting.summary["tuning"]["tls_wait_ns"], WAIT_NS);
        let at_once = run(protocol, &json!({}), 300_000_000);
        assert!(at_once.samples.iter().any(|row| row.secured_ns - row.tcp_connected_ns < WAIT_NS), "{protocol}");
    }
}

#[test]
fn connections_wait_beside_each_other() {
    let server = Server::tls(&[b"http/1.1"], answer(OK));
    let run = server.run(json!({"requests": 8, "connections": 8, "connection_mode": "new",
        "tuning": {"tls_wait_ns": WAIT_NS}}));
    assert_eq!((run.samples.len(), run.only_error()), (8, None));
    let first = run.samples.iter().map(|row| row.connect_start_ns).min().unwrap();
    let last = run.samples.iter().map(|row| row.done_ns).max().unwrap();
    assert!(last - first < 4 * WAIT_NS, "eight waits one after the other take eight times as long");
}

#[test]
fn a_wait_longer_than_the_time_to_connect_fails() {
    for protocol in ["h1", "h2"] {
        let run = run(protocol, &json!({"tls_wait_ns": WAIT_NS}), WAIT_NS / 2);
        assert_eq!((run.samples.len(), run.only_error()), (2, Some("connect_timeout")), "{protocol}");
    }
}
