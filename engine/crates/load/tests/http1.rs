//! HTTP/1.1 against a server that behaves, and against servers that do not.

mod common;

use std::io::Write;
use std::sync::{Arc, Mutex};

use common::{OK, Random, Server, answer, pattern, read_request, tls_server};
use serde_json::json;
use trifecta_testpki::TestPki;
use trifecta_wire::tls::TlsVersion;

const H1: &[&[u8]] = &[b"http/1.1"];

#[test]
fn requests_on_reused_connections_fill_their_rows() {
    let server = Server::tls(H1, answer(OK));
    let run = server.run(json!({"requests": 50, "connections": 3, "warmup_requests": 5}));
    assert_eq!(run.samples.len(), 55);
    assert_eq!(run.only_error(), None);
    assert_eq!(run.samples.iter().filter(|row| row.warmup).count(), 5);
    for connection in 0..3 {
        let rows: Vec<_> = run.samples.iter().filter(|row| row.connection == connection).collect();
        let first = rows[0];
        assert!(0 < first.connect_start_ns && first.connect_start_ns <= first.tcp_connected_ns);
        assert!(first.tcp_connected_ns < first.secured_ns && first.secured_ns <= first.started_ns);
        assert!(rows[1..].iter().all(|row| row.connect_start_ns == 0 && row.secured_ns == 0));
    }
    for row in &run.samples {
        assert!(row.started_ns <= row.request_sent_ns && row.request_sent_ns <= row.first_byte_ns);
        assert!(row.first_byte_ns <= row.done_ns);
        assert_eq!((row.status, row.bytes_in, row.bytes_out, row.stream), (200, 5, 0, None));
        assert_eq!((row.protocol, row.tls_version), (Some("h1"), Some("1.3")));
        assert_eq!(row.header_bytes_in, OK.len() as u64 - 5);
        assert!(!row.resumed && !row.zero_rtt && row.cipher.is_some());
    }
    let mut ordinals: Vec<_> = run.samples.iter().map(|row| row.request).collect();
    ordinals.sort_unstable();
    assert_eq!(ordinals, (0..55).collect::<Vec<_>>());
    let summary = &run.summary;
    assert_eq!(
        (&summary["ended"], &summary["samples"], &summary["errors"]),
        (&json!("requests"), &json!(55), &json!(0))
    );
    assert_eq!((&summary["connections_opened"], &summary["key_exchange"]), (&json!(3), &json!("X25519")));
    assert_eq!((&summary["tcp"]["congestion_control"], &summary["tcp"]["nodelay"]), (&json!("cubic"), &json!(true)));
    assert!(summary["tcp"]["min_rtt_ns"].as_u64().unwrap() > 0);
    assert!(summary["wire_bytes_in"].as_u64().unwrap() > 55 * OK.len() as u64);
}

#[test]
fn the_kernel_chooses_the_congestion_control_when_none_is_asked_for() {
    let server = Server::tls(H1, answer(OK));
    let run = server.run(json!({"requests": 2, "congestion_control": null}));
    let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    assert_eq!(run.summary["tcp"]["congestion_control"], json!(default.trim()));
}

#[test]
fn a_new_connection_for_each_request_resumes_when_asked() {
    for resumption in [false, true] {
        let server = Server::tls(H1, |stream| {
            let request = read_request(stream).unwrap();
            assert!(request.head.contains("connection: close\r\n"));
            stream.write_all(OK).unwrap();
            stream.flush().unwrap();
        });
        let run =
            server.run(json!({"requests": 20, "connections": 2, "connection_mode": "new", "resumption": resumption}));
        assert_eq!((run.samples.len(), run.only_error()), (20, None));
        for row in &run.samples {
            assert_eq!(row.started_ns, row.connect_start_ns);
            assert!(row.tcp_connected_ns < row.secured_ns && row.secured_ns <= row.request_sent_ns);
        }
        assert_eq!(run.samples.iter().any(|row| row.resumed), resumption);
        assert_eq!(run.summary["connections_opened"], 20);
        assert_eq!(run.summary["tcp"]["connections"], 20);
    }
}

#[test]
fn zero_rtt_requests_are_marked_when_accepted() {
    let pki = TestPki::new();
    let config = tls_server(&pki, H1, &[TlsVersion::Tls13], 16_384);
    let server = Server::tls_with(pki, config, |stream| {
        // rustls hands early data out apart from the rest.
        let mut request = Vec::new();
        while stream.conn.is_handshaking() && stream.conn.complete_io(&mut stream.sock).is_ok() {}
        if let Some(mut early) = stream.conn.early_data() {
            std::io::Read::read_to_end(&mut early, &mut request).unwrap();
        }
        if request.is_empty() && read_request(stream).is_none() {
            return;
        }
        let _ = stream.write_all(OK).and_then(|()| stream.flush());
    });
    let changes = json!({"requests": 10, "connection_mode": "new", "resumption": true, "zero_rtt": true});
    let run = server.run(changes);
    assert_eq!((run.samples.len(), run.only_error()), (10, None));
    assert!(!run.samples[0].zero_rtt, "no ticket yet");
    assert!(run.samples[1..].iter().filter(|row| row.zero_rtt && row.resumed).count() >= 8);
    let early = run.samples.iter().find(|row| row.zero_rtt).unwrap();
    assert!(early.request_sent_ns < early.secured_ns, "sent before the handshake was done");
}

#[test]
fn bodies_arrive_whole_whatever_their_size() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = bodies.clone();
    let server = Server::tls(H1, move |stream| {
        while let Some(request) = read_request(stream) {
            seen.lock().unwrap().push((request.head.clone(), request.body));
            stream.write_all(OK).unwrap();
            stream.flush().unwrap();
        }
    });
    for (method, length) in [("POST", 0usize), ("PUT", 1), ("PATCH", 16_384), ("POST", 16_385), ("PUT", 3_000_000)] {
        let run =
            server.run(json!({"method": method, "request_body_bytes": length, "request_timeout_ns": 9_000_000_000u64}));
        assert_eq!((run.only_error(), run.samples[0].bytes_out), (None, length as u64));
        let (head, body) = bodies.lock().unwrap().pop().unwrap();
        assert!(head.starts_with(&format!("{method} /bytes/5 HTTP/1.1\r\nhost: origin.lab:")), "{head}");
        assert!(head.contains(&format!("content-length: {length}\r\n")));
        assert!(body == pattern(length), "{method} {length}");
    }
    let run = server.run(json!({"method": "DELETE"}));
    assert_eq!(run.only_error(), None);
    assert!(!bodies.lock().unwrap()[0].0.contains("content-length"));
}

#[test]
fn every_framing_of_a_response_is_read() {
    let table: &[(&str, &[u8], Option<&str>)] = &[
        (
            "chunked",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n3;x=y\r\ncde\r\n0\r\nt: v\r\n\r\n",
            None,
        ),
        (
            "interim",
            b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcde",
            None,
        ),
        ("status", b"HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\nabcde", Some("status")),
        ("shorter", b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd", Some("length")),
        ("longer", b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nabcdef", Some("length")),
        ("content", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabXde", Some("content")),
        ("garbage", b"\x00\x01\x02garbage\r\n\r\n", Some("malformed:http1")),
        ("lengths", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcde", Some("malformed:http1")),
        (
            "chunk size",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabcde\r\n0\r\n\r\n",
            Some("malformed:http1"),
        ),
        ("behind the end", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcdefg", Some("malformed:http1")),
    ];
    for (name, response, error) in table {
        let run = Server::tls(H1, answer(response)).run(json!({"requests": 3}));
        assert_eq!((run.samples.len(), run.only_error()), (3, *error), "{name}");
    }
    let run = Server::tls(H1, answer(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"))
        .run(json!({"method": "HEAD", "requests": 3}));
    assert_eq!(
        (run.only_error(), run.samples[0].bytes_in, run.summary["connections_opened"].clone()),
        (None, 0, json!(1))
    );
    let no_content = Server::tls(H1, answer(b"HTTP/1.1 204 No Content\r\n\r\n"));
    let run = no_content.run(json!({"method": "DELETE", "expect_status": 204, "expect_body_bytes": 0, "requests": 3}));
    assert_eq!((run.only_error(), run.summary["connections_opened"].clone()), (None, json!(1)));
}

#[test]
fn a_response_in_single_octets_is_read() {
    let server = Server::tls(H1, |stream| {
        while read_request(stream).is_some() {
            for octet in b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n" {
                stream.write_all(&[*octet]).unwrap();
                stream.flush().unwrap();
            }
        }
    });
    let run = server.run(json!({"requests": 2, "request_timeout_ns": 5_000_000_000u64}));
    assert_eq!(run.only_error(), None);
    assert!(run.samples.iter().all(|row| 0 < row.first_byte_ns && row.first_byte_ns <= row.done_ns));
}

#[test]
fn a_connection_that_the_server_closes_is_replaced() {
    let server = Server::tls(H1, |stream| {
        if read_request(stream).is_some() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nabcde");
        }
    });
    let run = server.run(json!({"requests": 5}));
    assert_eq!((run.samples.len(), run.only_error()), (5, None));
    assert_eq!(run.summary["connections_opened"], 5);
    // Without a length the end of the connection is the end of the content, if close_notify says that it is one.
    let until_close = Server::tls(H1, |stream| {
        if read_request(stream).is_some() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nabcde");
        }
    });
    assert_eq!(until_close.run(json!({"requests": 3})).only_error(), None);
    let truncated = Server::tls(H1, |stream| {
        if read_request(stream).is_some() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nabcde").and_then(|()| stream.flush());
            let _ = stream.sock.shutdown(std::net::Shutdown::Both);
        }
    });
    assert_eq!(truncated.run(json!({"requests": 3})).only_error(), Some("closed"));
}

#[test]
fn early_ends_have_their_class() {
    let closes = Server::tls(H1, |stream| drop(read_request(stream)));
    let run = closes.run(json!({"requests": 4}));
    assert_eq!((run.samples.len(), run.only_error()), (4, Some("closed")));
    assert!(run.samples.iter().all(|row| row.done_ns == 0 && row.status == 0 && row.request_sent_ns > 0));
    let cuts = Server::tls(H1, |stream| {
        if read_request(stream).is_some() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcd");
        }
    });
    let run = cuts.run(json!({"requests": 4}));
    assert_eq!((run.samples.len(), run.only_error()), (4, Some("length")));
    assert!(run.samples.iter().all(|row| row.done_ns == 0 && row.status == 200 && row.first_byte_ns > 0));
}

#[test]
fn damaged_responses_end_and_never_panic() {
    let random = Mutex::new(Random(0x5eed));
    let server = Server::tls(H1, move |stream| {
        while read_request(stream).is_some() {
            let mut response = match random.lock().unwrap().below(2) {
                0 => OK.to_vec(),
                _ => b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n".to_vec(),
            };
            random.lock().unwrap().damage(&mut response);
            if stream.write_all(&response).and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
    });
    let run = server.run(json!({"requests": 400, "connections": 8, "request_timeout_ns": 50_000_000}));
    assert_eq!((run.samples.len(), run.summary["ended"].clone()), (400, json!("requests")));
    assert!(run.samples.iter().filter(|row| row.error.is_some()).count() > 200);
}
