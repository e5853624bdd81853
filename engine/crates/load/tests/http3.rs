//! HTTP/3 against servers that behave and servers that do not.

mod common;

use std::net::UdpSocket;
use std::time::Duration;

use bytes::Bytes;
use common::h3server::{Answer, Conduct, Server, always, data, headers, response, rough_relay, slow_relay};
use common::{Random, Run, pattern, run, tls_server};
use quinn_proto::{Dir, VarInt};
use serde_json::{Value, json};
use trifecta_testpki::TestPki;
use trifecta_wire::h3::frame;
use trifecta_wire::tls::TlsVersion;

const CONTROL: &[u8] = &[0x00, 0x04, 0x00];

fn ask(server: &Server, mut changes: Value) -> Run {
    changes["protocol"] = json!("h3");
    run(&server.pki, server.address, changes)
}

fn only_error(answer: Answer, changes: Value) -> Option<&'static str> {
    ask(&Server::new(CONTROL, answer), changes).only_error()
}

#[test]
fn every_field_of_a_row_is_true() {
    let server = Server::new(CONTROL, always(response(5)));
    let run = ask(&server, json!({"requests": 8, "streams": 3}));
    assert_eq!(run.errors(), [None; 8]);
    let mut streams: Vec<u64> = run.samples.iter().map(|row| row.stream.unwrap()).collect();
    streams.sort_unstable();
    assert_eq!(streams, [0, 4, 8, 12, 16, 20, 24, 28]);
    let first = run.samples.iter().find(|row| row.connect_start_ns > 0).unwrap();
    assert!(first.connect_start_ns < first.secured_ns && first.secured_ns <= first.started_ns);
    assert_eq!(run.samples.iter().filter(|row| row.connect_start_ns > 0).count(), 1);
    for row in &run.samples {
        assert!(row.started_ns <= row.request_sent_ns && row.request_sent_ns > 0);
        assert!(row.started_ns < row.first_byte_ns && row.first_byte_ns <= row.done_ns);
        assert_eq!((row.protocol, row.tls_version, row.tcp_connected_ns), (Some("h3"), Some("1.3"), 0));
        assert!(row.cipher.is_some_and(|name| name.starts_with("TLS_")));
        assert_eq!((row.status, row.bytes_in, row.bytes_out), (200, 5, 0));
        assert!(row.header_bytes_in > 0 && !row.resumed && !row.zero_rtt);
    }
    let quic = &run.summary["quic"];
    assert_eq!((&quic["initial_window_bytes"], &quic["mtu_bytes"]), (&json!(14_521), &json!(1452)));
    assert_eq!((&quic["congestion_control"], &quic["connections"]), (&json!("cubic"), &json!(1)));
    assert!(quic["min_rtt_ns"].as_u64().unwrap() > 0 && run.summary["wire_bytes_in"].as_u64().unwrap() > 1000);
}

#[test]
fn methods_and_bodies() {
    let body = 300_000;
    let mut framed = Vec::new();
    frame::write_header(frame::kind::DATA, body as u64, &mut framed);
    framed.extend(pattern(body));
    for method in ["POST", "PUT", "PATCH"] {
        let wanted = framed.clone();
        let answer: Answer = Box::new(move |connection, id, octets, number| {
            assert!(octets.ends_with(&wanted), "the content arrived whole");
            always(response(5))(connection, id, octets, number);
        });
        let run =
            ask(&Server::new(CONTROL, answer), json!({"method": method, "request_body_bytes": body, "requests": 2}));
        assert_eq!(run.errors(), [None; 2]);
        assert!(run.samples.iter().all(|row| row.bytes_out == body as u64));
    }
    let head = headers("200", &[("content-length", "5")]);
    assert_eq!(only_error(always(head), json!({"method": "HEAD"})), None);
    let changes = json!({"method": "DELETE", "expect_status": 204, "expect_body_bytes": 0});
    assert_eq!(only_error(always(headers("204", &[])), changes), None);
}

#[test]
fn interim_responses_trailers_and_unknown_frames() {
    let unknown = [0x21, 0x03, 1, 2, 3];
    let all = [
        &unknown[..],
        &headers("103", &[("link", "</x>")]),
        &headers("100", &[]),
        &headers("200", &[("content-length", "5")]),
        &data(2, b"ab"),
        &unknown,
        &data(0, b""),
        &data(3, b"cde"),
    ]
    .concat();
    assert_eq!(only_error(always(all), json!({"requests": 3})), None);
}

#[test]
fn answers_that_are_wrong_have_their_class() {
    let five = data(5, b"abcde");
    let ok = |fields: &[(&str, &str)]| headers("200", fields);
    for (octets, class) in [
        (response(4), Some("length")),
        ([ok(&[("content-length", "6")]), five.clone()].concat(), Some("length")),
        ([ok(&[]), data(5, b"abcd")].concat(), Some("length")),
        ([ok(&[]), data(5, b"abXde")].concat(), Some("content")),
        ([headers("404", &[]), five.clone()].concat(), Some("status")),
        (vec![], Some("closed")),
        (headers("100", &[]), Some("closed")),
        (five.clone(), Some("malformed:http3")),
        (vec![0x04, 0x00], Some("malformed:http3")),
        (vec![0x01, 0x03, 0x00, 0x00, 0x80], Some("malformed:http3")),
        (headers("20", &[]), Some("malformed:http3")),
        (ok(&[("Upper", "case")]), Some("malformed:http3")),
        (headers("101", &[]), Some("malformed:http3")),
        ([ok(&[]), vec![0x05, 0x01, 0x00]].concat(), Some("malformed:http3")),
        (ok(&[])[..3].to_vec(), Some("malformed:http3")),
        ([ok(&[]), five].concat(), None),
    ] {
        assert_eq!(only_error(always(octets.clone()), json!({"requests": 2})), class, "{octets:02x?}");
    }
}

#[test]
fn control_streams_are_checked() {
    for (control, class) in [
        (&[0x00, 0x07, 0x01, 0x00][..], Some("malformed:http3")), // GOAWAY before SETTINGS
        (&[0x00, 0x04, 0x02, 0x03, 0x00], Some("malformed:http3")), // a setting of HTTP/2
        (&[0x01, 0x00], Some("malformed:http3")),                 // a push stream
        (&[0x02, 0x3f, 0x01], Some("malformed:http3")),           // a QPACK dynamic table
        (&[0x40, 0x99, 1, 2, 3], None),                           // an unknown stream
        (&[0x00, 0x04, 0x05, 0x01, 0x40, 0x64, 0x21], None),      // cut inside a frame: not complete yet
        (&[], None),                                              // a server without a control stream
    ] {
        // The answer comes after the control stream, so that the error strikes first.
        let answer: Answer = Box::new(|_, _, _, _| {});
        let failing = Server::new(control, if class.is_some() { answer } else { always(response(5)) });
        assert_eq!(ask(&failing, json!({})).only_error(), class, "{control:02x?}");
    }
}

#[test]
fn goaway_resets_and_closes_have_their_class() {
    let goaway = |connection: &mut quinn_proto::Connection, first: u64| {
        let id = connection.streams().open(Dir::Uni).unwrap();
        let mut octets = CONTROL.to_vec();
        frame::write_goaway(first, &mut octets);
        connection.send_stream(id).write(&octets).unwrap();
    };
    // The first request is answered; those behind it are refused, and a new connection takes the next ones.
    let server = Server::new(
        &[],
        Box::new(move |connection, id, octets, number| {
            if number == 0 {
                goaway(connection, 4);
                always(response(5))(connection, id, octets, number);
            }
        }),
    );
    let run = ask(&server, json!({"requests": 4, "streams": 2}));
    let errors = run.errors();
    assert_eq!(errors.iter().filter(|error| error.is_none()).count(), 2, "{errors:?}");
    assert_eq!(errors.iter().filter(|error| **error == Some("goaway")).count(), 2, "{errors:?}");
    for (code, class) in [(0x10b_u32, "goaway"), (0x102, "reset")] {
        let reset: Answer = Box::new(move |connection, id, _, _| {
            connection.send_stream(id).reset(VarInt::from_u32(code)).unwrap();
        });
        assert_eq!(only_error(reset, json!({"requests": 2})), Some(class));
        let close: Answer = Box::new(move |connection, _, _, _| {
            connection.close(std::time::Instant::now(), VarInt::from_u32(code), Bytes::new());
        });
        assert_eq!(only_error(close, json!({"requests": 2})), Some("reset"));
    }
    let close: Answer = Box::new(|connection, _, _, _| {
        connection.close(std::time::Instant::now(), VarInt::from_u32(0x100), Bytes::new());
    });
    assert_eq!(only_error(close, json!({"requests": 2})), Some("closed"));
    let silent: Answer = Box::new(|_, _, _, _| {});
    assert_eq!(only_error(silent, json!({"requests": 2, "request_timeout_ns": 50_000_000})), Some("timeout"));
}

#[test]
fn connections_that_cannot_be_made_have_their_class() {
    let pki = TestPki::new();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for mode in ["new", "reused"] {
        let run = run(&pki, closed, json!({"protocol": "h3", "connection_mode": mode, "requests": 3}));
        assert_eq!((run.only_error(), run.samples.len()), (Some("connect_refused"), 3));
    }
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let changes = json!({"protocol": "h3", "requests": 2, "connect_timeout_ns": 50_000_000});
    let run = run(&pki, silent.local_addr().unwrap(), changes);
    assert_eq!((run.only_error(), run.samples.len()), (Some("connect_timeout"), 2));
    let server = Server::new(CONTROL, always(response(5)));
    assert_eq!(ask(&server, json!({"server_name": "other.lab"})).only_error(), Some("tls:certificate"));
    let stranger = pki.certificate_file();
    assert_eq!(ask(&server, json!({"ca_file": stranger})).only_error(), Some("tls:certificate"));
    assert_eq!(ask(&server, json!({"key_exchange": "secp384r1"})).only_error(), Some("tls:alert"));
    let pki = TestPki::new();
    let other = tls_server(&pki, &[b"hq-interop"], &[TlsVersion::Tls13], 0);
    let server = Server::with(pki, other, CONTROL, always(response(5)));
    assert_eq!(ask(&server, json!({})).only_error(), Some("tls:alpn"));
}

#[test]
fn sessions_are_resumed_and_requests_go_early() {
    let server = Server::new(CONTROL, always(response(5)));
    let changes = json!({"requests": 6, "connection_mode": "new", "resumption": true});
    let run = ask(&server, changes.clone());
    assert_eq!(run.errors(), [None; 6]);
    assert_eq!(run.samples.iter().map(|row| row.resumed).collect::<Vec<_>>(), [false, true, true, true, true, true]);
    assert!(run.samples.iter().all(|row| !row.zero_rtt && row.connect_start_ns == row.started_ns));
    let mut early = changes;
    early["zero_rtt"] = json!(true);
    let run = ask(&server, early.clone());
    assert_eq!(run.errors(), [None; 6]);
    assert_eq!(run.samples.iter().map(|row| row.zero_rtt).collect::<Vec<_>>(), [false, true, true, true, true, true]);
    let row = run.samples[1];
    assert!(row.request_sent_ns < row.secured_ns && row.secured_ns <= row.done_ns);
    // A server that resumes but takes no early data.
    let pki = TestPki::new();
    let tls = tls_server(&pki, &[b"h3"], &[TlsVersion::Tls13], 0);
    let run = ask(&Server::with(pki, tls, CONTROL, always(response(5))), early);
    assert_eq!(run.errors(), [None; 6]);
    assert!(run.samples.iter().all(|row| !row.zero_rtt));
}

/// Hands out tickets and remembers none of them.
#[derive(Debug)]
struct Forgetful;

impl rustls::server::StoresServerSessions for Forgetful {
    fn put(&self, _key: Vec<u8>, _value: Vec<u8>) -> bool {
        true
    }

    fn get(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[test]
fn refused_early_requests_are_sent_again_as_the_same_attempt() {
    let pki = TestPki::new();
    let mut tls = tls_server(&pki, &[b"h3"], &[TlsVersion::Tls13], u32::MAX);
    tls.session_storage = std::sync::Arc::new(Forgetful);
    let server = Server::with(pki, tls, CONTROL, always(response(5)));
    for mode in ["new", "reused"] {
        let changes = json!({"requests": 6, "connection_mode": mode, "resumption": true, "zero_rtt": true});
        let run = ask(&server, changes);
        assert_eq!(run.errors(), [None; 6], "{mode}");
        for row in &run.samples {
            assert!(!row.zero_rtt && !row.resumed);
            // What was sent in vain does not count as sent.
            assert!(row.secured_ns == 0 || row.request_sent_ns > row.secured_ns, "{mode}");
        }
    }
}

#[test]
fn the_time_of_a_request_counts_on_an_open_connection() {
    // Over a round trip of 200 ms a request is answered in less than its time, the handshake not counted.
    let server = Server::new(CONTROL, always(response(5)));
    let (_keep, stop) = std::sync::mpsc::channel();
    let address = slow_relay(server.address, Duration::from_millis(100), stop);
    for mode in ["new", "reused"] {
        let changes = json!({"protocol": "h3", "connection_mode": mode, "requests": 2,
            "connect_timeout_ns": 2_000_000_000, "request_timeout_ns": 300_000_000});
        let run = run(&server.pki, address, changes);
        assert_eq!((run.samples.len(), run.only_error()), (2, None), "{mode}");
    }
}

#[test]
fn a_request_that_gets_no_stream_is_a_timeout() {
    let server = Server::of(Conduct { streams: 0, ..Conduct::new(CONTROL) }, always(response(5)));
    let run = ask(&server, json!({"connection_mode": "new", "requests": 2, "request_timeout_ns": 50_000_000}));
    assert_eq!((run.samples.len(), run.only_error(), &run.summary["ended"]), (2, Some("timeout"), &json!("requests")));
}

#[test]
fn connections_that_break_while_nothing_is_asked_are_counted() {
    for (code, lost) in [(0x102, 1), (0x100, 0)] {
        let breaks = Some((Duration::from_millis(30), code));
        let server = Server::of(Conduct { breaks, ..Conduct::new(CONTROL) }, always(response(5)));
        let run = ask(&server, json!({"requests": 2, "loop": {"kind": "open", "rate_per_s": 5.0}}));
        assert_eq!((run.samples.len(), run.only_error()), (2, None));
        assert_eq!(run.summary["connections_lost_idle"], lost, "{code:#x}");
        assert_eq!(run.summary["connections_opened"], 2);
    }
}

#[test]
fn a_connection_that_breaks_before_its_first_request_is_a_failed_attempt() {
    // The control stream begins with GOAWAY instead of SETTINGS; requests come seldom.
    let server = Server::new(&[0x00, 0x07, 0x01, 0x00], Box::new(|_, _, _, _| {}));
    let run = ask(&server, json!({"requests": 4, "loop": {"kind": "open", "rate_per_s": 2.0}}));
    assert_eq!((run.samples.len(), run.only_error()), (4, Some("malformed:http3")));
    assert_eq!(run.summary["connections_opened"], 4, "a row for each");
}

#[test]
fn limits_of_the_peer_are_kept() {
    // The server allows 20 streams at a time.
    let server = Server::new(CONTROL, always(response(5)));
    let run = ask(&server, json!({"requests": 200, "streams": 64}));
    assert_eq!((run.only_error(), run.samples.len()), (None, 200));
}

#[test]
fn a_rough_path_delivers_all() {
    for seed in 1..4 {
        let server = Server::new(CONTROL, always(response(60_000)));
        let (_keep, stop) = std::sync::mpsc::channel();
        let address = rough_relay(server.address, seed, stop);
        let changes = json!({"protocol": "h3", "requests": 12, "streams": 4, "path": "/bytes/60000",
            "expect_body_bytes": 60_000, "request_timeout_ns": 8_000_000_000u64, "connect_timeout_ns": 8_000_000_000u64});
        let run = run(&server.pki, address, changes);
        assert_eq!((run.only_error(), run.samples.len()), (None, 12), "seed {seed}");
    }
}

#[test]
fn damaged_answers_end_and_never_panic() {
    for seed in 0..60 {
        let mut random = Random(seed + 1);
        let damaged: Answer = Box::new(move |connection, id, octets, number| {
            let mut answer = response(50);
            random.damage(&mut answer);
            always(answer)(connection, id, octets, number);
        });
        let server = Server::new(CONTROL, damaged);
        let changes = json!({"requests": 5, "path": "/bytes/50", "expect_body_bytes": 50, "request_timeout_ns": 100_000_000,
            "total_timeout_ns": 2_000_000_000u64});
        assert_eq!(ask(&server, changes).samples.len(), 5, "seed {seed}");
    }
}
