//! HTTP/2 against a server that behaves, and against servers that do not.

mod common;

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use common::h2server::{Connection, data, headers, response, serve};
use common::{Random, Run, Server, pattern, tls_server};
use serde_json::{Value, json};
use trifecta_testpki::TestPki;
use trifecta_wire::h2::{ErrorCode, setting, write};
use trifecta_wire::tls::TlsVersion;

const H2: &[&[u8]] = &[b"h2"];

fn run(server: &Server, changes: Value) -> Run {
    let mut document = json!({"protocol": "h2"});
    for (field, value) in changes.as_object().unwrap() {
        document[field] = value.clone();
    }
    server.run(document)
}

/// One connection that answers each request by `answer(number of the request, stream)`.
fn server(answer: impl Fn(u32) -> Vec<u8> + Send + Sync + 'static) -> Server {
    Server::tls(H2, serve(&[], move |seen| answer(seen.stream)))
}

#[test]
fn streams_are_multiplexed_and_rows_filled() {
    let server = server(|stream| response(stream, 5));
    let run = run(&server, json!({"requests": 500, "streams": 20, "connections": 2}));
    assert_eq!((run.samples.len(), run.only_error()), (500, None));
    assert_eq!(run.summary["connections_opened"], 2);
    for row in &run.samples {
        assert_eq!((row.protocol, row.status, row.bytes_in, row.stream.unwrap() % 2), (Some("h2"), 200, 5, 1));
        assert!(row.header_bytes_in > 0 && row.header_bytes_in < 20);
        assert!(row.started_ns <= row.request_sent_ns && row.first_byte_ns <= row.done_ns);
    }
    let with_connect = run.samples.iter().filter(|row| row.connect_start_ns > 0).count();
    assert_eq!(with_connect, 2, "the first request of each connection");
}

#[test]
fn a_new_connection_for_each_request_ends_with_goaway() {
    let goaways = Arc::new(Mutex::new(0));
    let seen = goaways.clone();
    let server = Server::tls(H2, move |stream| {
        let Some(mut connection) = Connection::accept(stream, &[]) else { return };
        while let Some(requests) = connection.requests() {
            requests.iter().for_each(|request| connection.send(&response(request.stream, 5)));
        }
        *seen.lock().unwrap() += u32::from(connection.saw_goaway);
    });
    let run = run(&server, json!({"requests": 12, "streams": 3, "connection_mode": "new"}));
    assert_eq!((run.samples.len(), run.only_error()), (12, None));
    assert!(run.samples.iter().all(|row| row.stream == Some(1) && row.started_ns == row.connect_start_ns));
    drop(server);
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(*goaways.lock().unwrap(), 12);
}

#[test]
fn bodies_keep_to_the_windows() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = bodies.clone();
    // Small stream windows and small frames: the connection's window stays at 65535.
    let server = Server::tls(
        H2,
        serve(&[(setting::INITIAL_WINDOW_SIZE, 1_000)], move |request| {
            seen.lock().unwrap().push(request.body.clone());
            response(request.stream, 5)
        }),
    );
    for length in [0usize, 1, 999, 1_000, 1_001, 300_000] {
        let changes = json!({"method": "POST", "request_body_bytes": length, "streams": 3, "requests": 9,
            "request_timeout_ns": 9_000_000_000u64});
        let run = run(&server, changes);
        assert_eq!((run.samples.len(), run.only_error()), (9, None), "{length}");
        assert!(run.samples.iter().all(|row| row.bytes_out == length as u64));
        for body in bodies.lock().unwrap().drain(..) {
            assert!(body == pattern(length), "{length}");
        }
    }
}

#[test]
fn an_early_answer_stops_the_upload() {
    let server = Server::tls(H2, |stream| {
        let Some(mut connection) = Connection::accept(stream, &[]) else { return };
        let _ = connection.requests();
        connection.send(&response(1, 5));
        while connection.requests().is_some() {}
        assert!(connection.saw_reset);
    });
    let run = run(&server, json!({"method": "PUT", "request_body_bytes": 1_000_000}));
    assert_eq!(run.only_error(), None);
    assert!(run.samples[0].bytes_out < 1_000_000 && run.samples[0].request_sent_ns == 0);
}

#[test]
fn large_responses_are_verified_and_windows_given_back() {
    let server = server(|stream| response(stream, 20_000_000));
    let changes = json!({"path": "/bytes/20000000", "expect_body_bytes": 20_000_000, "requests": 3,
        "request_timeout_ns": 20_000_000_000u64, "total_timeout_ns": 60_000_000_000u64});
    assert_eq!(run(&server, changes).only_error(), None);
}

#[test]
fn every_kind_of_answer_has_its_class() {
    type Answer = fn(u32) -> Vec<u8>;
    let table: &[(&str, Answer, Option<&str>)] = &[
        (
            "interim and trailers",
            |id| {
                let mut out = Vec::new();
                headers(id, 103, &[("link", "x")], false, &mut out);
                headers(id, 200, &[("content-length", "5")], false, &mut out);
                data(id, b"abcde", false, &mut out);
                let mut block = Vec::new();
                trifecta_wire::hpack::encoder::encode_field(b"trailer-field", b"v", &mut block);
                write::headers(id, &block, true, &mut out);
                out
            },
            None,
        ),
        (
            "padding and continuation",
            |id| {
                let mut out = Vec::new();
                let block = trifecta_wire::hpack::encoder::block([(&b":status"[..], &b"200"[..])]);
                out.extend_from_slice(&write::frame_header(0, 1, 0, id));
                out.extend_from_slice(&write::frame_header(block.len(), 9, 4, id));
                out.extend_from_slice(&block);
                out.extend_from_slice(&write::frame_header(5 + 1 + 3, 0, 1 | 8, id));
                out.extend_from_slice(b"\x03abcde\0\0\0");
                out
            },
            None,
        ),
        (
            "status",
            |id| {
                let mut out = Vec::new();
                headers(id, 500, &[], false, &mut out);
                data(id, b"abcde", true, &mut out);
                out
            },
            Some("status"),
        ),
        (
            "one octet missing",
            |id| {
                let mut out = Vec::new();
                headers(id, 200, &[("content-length", "5")], false, &mut out);
                data(id, b"abcd", true, &mut out);
                out
            },
            Some("length"),
        ),
        (
            "content",
            |id| {
                let mut out = Vec::new();
                headers(id, 200, &[], false, &mut out);
                data(id, b"abcdX", true, &mut out);
                out
            },
            Some("content"),
        ),
        (
            "reset",
            |id| {
                let mut out = Vec::new();
                write::rst_stream(id, ErrorCode::INTERNAL_ERROR, &mut out);
                out
            },
            Some("reset"),
        ),
        (
            "refused",
            |id| {
                let mut out = Vec::new();
                write::rst_stream(id, ErrorCode::REFUSED_STREAM, &mut out);
                out
            },
            Some("goaway"),
        ),
        (
            "goaway",
            |_| {
                let mut out = Vec::new();
                write::goaway(0, ErrorCode::NO_ERROR, b"maintenance", &mut out);
                out
            },
            Some("goaway"),
        ),
        (
            "content before a head",
            |id| {
                let mut out = Vec::new();
                data(id, b"abcde", true, &mut out);
                out
            },
            Some("malformed:http2"),
        ),
        ("stream that was never opened", |id| response(id + 100, 5), Some("malformed:http2")),
        (
            "push",
            |id| {
                let mut out = write::frame_header(5, 5, 4, id).to_vec();
                out.extend_from_slice(&[0, 0, 0, 2, 0x82]);
                out
            },
            Some("malformed:http2"),
        ),
        (
            "table index",
            |id| {
                let mut out = Vec::new();
                write::headers(id, &[0x88, 0xff, 0x00], true, &mut out);
                out
            },
            Some("malformed:http2"),
        ),
        ("garbage", |_| b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), Some("malformed:http2")),
    ];
    for (name, answer, error) in table {
        let run = run(&server(answer), json!({"requests": 3}));
        assert_eq!((run.samples.len(), run.only_error()), (3, *error), "{name}");
    }
    let head = server(|id| {
        let mut out = Vec::new();
        headers(id, 200, &[("content-length", "5")], true, &mut out);
        out
    });
    assert_eq!(run(&head, json!({"method": "HEAD", "requests": 3})).only_error(), None);
}

#[test]
fn a_malformed_response_concerns_its_stream() {
    let server = server(|stream| {
        if stream != 3 {
            return response(stream, 5);
        }
        let block = trifecta_wire::hpack::encoder::block([(&b"server"[..], &b"no status"[..])]);
        let mut out = Vec::new();
        write::headers(stream, &block, true, &mut out);
        out
    });
    let run = run(&server, json!({"requests": 12, "streams": 4}));
    let mut failed: Vec<_> = run.samples.iter().filter(|row| row.error.is_some()).map(|row| row.stream).collect();
    failed.dedup();
    assert_eq!((failed, &run.summary["connections_opened"]), (vec![Some(3)], &json!(1)));
    assert_eq!(run.errors().iter().flatten().collect::<Vec<_>>(), [&"malformed:http2"]);
}

#[test]
fn the_servers_limits_are_kept() {
    let most = Arc::new(Mutex::new(0usize));
    let seen = most.clone();
    let server = Server::tls(H2, move |stream| {
        let settings = [(setting::MAX_CONCURRENT_STREAMS, 3), (setting::INITIAL_WINDOW_SIZE, 100_000)];
        let Some(mut connection) = Connection::accept(stream, &settings) else { return };
        let mut ping = Vec::new();
        write::ping(*b"12345678", false, &mut ping);
        connection.send(&ping);
        // Before the client knows the limit it may have begun more.
        let mut waiting = Vec::new();
        let mut rounds = 0;
        while let Some(requests) = connection.requests() {
            waiting.extend(requests.iter().map(|request| request.stream));
            if rounds > 2 {
                let mut seen = seen.lock().unwrap();
                *seen = seen.max(waiting.len());
            }
            if waiting.len() >= 3 || rounds > 2 {
                rounds += 1;
                for stream in waiting.drain(..) {
                    connection.send(&response(stream, 5));
                }
            }
        }
    });
    let run = run(&server, json!({"requests": 100, "streams": 10}));
    assert_eq!((run.samples.len(), run.only_error()), (100, None));
    let most = *most.lock().unwrap();
    assert!(most <= 3, "{most} at a time");
}

#[test]
fn after_goaway_the_rest_is_answered_and_the_connection_replaced() {
    let server = Server::tls(H2, |stream| {
        let Some(mut connection) = Connection::accept(stream, &[]) else { return };
        let mut answered = 0;
        while let Some(requests) = connection.requests() {
            for request in requests {
                let mut out = Vec::new();
                if answered == 0 {
                    write::goaway(request.stream, ErrorCode::NO_ERROR, &[], &mut out);
                }
                answered += 1;
                out.extend_from_slice(&response(request.stream, 5));
                connection.send(&out);
            }
        }
    });
    let run = run(&server, json!({"requests": 5}));
    assert_eq!((run.samples.len(), run.only_error()), (5, None));
    assert_eq!(run.summary["connections_opened"], 5);
}

#[test]
fn a_cut_connection_fails_what_was_in_flight() {
    let server = Server::tls(H2, |stream| {
        let Some(mut connection) = Connection::accept(stream, &[]) else { return };
        let mut seen = 0;
        while seen < 4 {
            seen += connection.requests().map_or(4, |requests| requests.len());
        }
        let mut out = Vec::new();
        headers(1, 200, &[("content-length", "5")], false, &mut out);
        data(1, b"abcd", false, &mut out);
        connection.send(&out);
    });
    let run = run(&server, json!({"requests": 4, "streams": 4}));
    let mut errors: Vec<_> = run.errors().into_iter().map(Option::unwrap).collect();
    errors.sort_unstable();
    assert_eq!(errors, ["closed", "closed", "closed", "length"]);
}

#[test]
fn damaged_frames_end_and_never_panic() {
    let random = Mutex::new(Random(0xbeef));
    let server = Server::tls(H2, move |stream| {
        let mut buffer = [0; 16_384];
        let mut stream_id = 1;
        let mut hello = Vec::new();
        write::settings(&[(setting::MAX_CONCURRENT_STREAMS, 100)], &mut hello);
        loop {
            let mut out = std::mem::take(&mut hello);
            for _ in 0..4 {
                out.extend_from_slice(&response(stream_id, 5));
                write::ping(*b"12345678", false, &mut out);
                write::window_update(stream_id, 7, &mut out);
                write::rst_stream(stream_id + 2, ErrorCode::CANCEL, &mut out);
                stream_id += 2;
            }
            random.lock().unwrap().damage(&mut out);
            if stream.write_all(&out).and_then(|()| stream.flush()).is_err()
                || !stream.read(&mut buffer).is_ok_and(|octets| octets > 0)
            {
                return;
            }
        }
    });
    let run = run(&server, json!({"requests": 600, "connections": 6, "streams": 4, "request_timeout_ns": 50_000_000}));
    assert_eq!((run.samples.len(), run.summary["ended"].clone()), (600, json!("requests")));
    assert!(run.samples.iter().filter(|row| row.error.is_some()).count() > 100);
}

#[test]
fn zero_rtt_requests_are_marked_and_rejected_ones_sent_again() {
    for accepts in [true, false] {
        let pki = TestPki::new();
        let mut config = tls_server(&pki, H2, &[TlsVersion::Tls13], 16_384);
        // A server that hands tickets out and forgets them, or that keeps them.
        if !accepts {
            config.session_storage = Arc::new(Forgetful);
        }
        let server = Server::tls_with(pki, config, |stream| {
            while stream.conn.is_handshaking() && stream.conn.complete_io(&mut stream.sock).is_ok() {}
            let mut early = Vec::new();
            if let Some(mut reader) = stream.conn.early_data() {
                reader.read_to_end(&mut early).unwrap();
            }
            if early.is_empty() {
                serve(&[], |seen| response(seen.stream, 5))(stream);
                return;
            }
            assert!(early.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
            let mut out = Vec::new();
            write::settings(&[], &mut out);
            out.extend_from_slice(&response(1, 5));
            let _ = stream.write_all(&out).and_then(|()| stream.flush());
            while stream.read(&mut [0; 4096]).is_ok_and(|octets| octets > 0) {}
        });
        let run = run(
            &server,
            json!({"requests": 8, "connection_mode": "new", "resumption": true, "zero_rtt": true, "streams": 1}),
        );
        assert_eq!((run.samples.len(), run.only_error()), (8, None), "accepts: {accepts}");
        let early = run.samples.iter().filter(|row| row.zero_rtt).count();
        assert_eq!(early, if accepts { 7 } else { 0 });
    }
}

/// Stores no session, though tickets are sent.
#[derive(Debug)]
struct Forgetful;

impl rustls::server::StoresServerSessions for Forgetful {
    fn put(&self, _: Vec<u8>, _: Vec<u8>) -> bool {
        true
    }
    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
    fn take(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
    fn can_cache(&self) -> bool {
        true
    }
}
