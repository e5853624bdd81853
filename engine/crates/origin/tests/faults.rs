//! The misbehaviour that the tests of the checks ask for, over TCP, and resumption with 0-RTT.

mod common;

use common::Told;
use common::h2client::H2Client;
use common::{PATIENCE, Response, Server, pattern};
use rustls::client::Resumption;
use serde_json::json;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trifecta_wire::http1::parse_response_head;

fn h2(server: &Server) -> H2Client {
    let mut client = server.h2();
    client.start(&[]);
    client
}

#[test]
fn truncation_leaves_one_octet_out() {
    let server = Server::start(r#", "faults": {"truncate_bytes": 1}"#);
    let mut client = server.h1();
    client.send("GET /bytes/1000 HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = client.response().unwrap();
    assert_eq!((response.content_length, response.content), (Some(1000), pattern(999)));
    assert!(client.is_closed());
    let mut client = h2(&server);
    client.request(1, "GET", "/bytes/1000", true);
    let response = client.response(1);
    assert_eq!((response.content_length, response.content), (Some(1000), pattern(999)));
    client.request(3, "GET", "/bytes/1", true);
    let response = client.response(3);
    assert_eq!((response.content_length, response.content.len()), (Some(1), 0));
    client.request(5, "GET", "/bytes/50000", true);
    assert_eq!(client.response(5).content.len(), 49_999);
}

#[test]
fn a_stalled_server_reads_and_never_answers() {
    let server = Server::start(r#", "faults": {"stall": true}, "idle_timeout_ns": 60000000000"#);
    let mut first = server.h1();
    first.send("GET /bytes/1 HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n");
    first.stream.sock.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let error = first.stream.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    let mut second = h2(&server);
    second.request(1, "GET", "/bytes/1", true);
    second.stream.sock.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut buffer = [0; 1000];
    let last = loop {
        match second.stream.read(&mut buffer) {
            Ok(octets) => assert!(octets > 0, "closed"),
            Err(error) => break error,
        }
    };
    assert_eq!(last.kind(), std::io::ErrorKind::WouldBlock);
    let begun = Instant::now();
    let stats = server.finish().told();
    assert_eq!(stats["requests"], json!({"h1": {}, "h2": {}, "h3": {}}));
    assert!(begun.elapsed() < PATIENCE);
}

#[test]
fn connections_are_dropped_after_some_requests() {
    let server = Server::start(r#", "faults": {"close_after_requests": 2}"#);
    let mut client = server.h1();
    assert_eq!(client.get("/bytes/100000").content, pattern(100_000));
    assert_eq!(client.get("/bytes/200000").content, pattern(200_000));
    assert!(client.is_closed());
    let mut client = h2(&server);
    client.request(1, "GET", "/bytes/10", true);
    client.response(1);
    client.request(3, "GET", "/bytes/10", true);
    client.response(3);
    assert_eq!(client.last_words(), None, "without a word");
}

#[test]
fn answers_wait_as_long_as_asked() {
    let server = Server::start(r#", "faults": {"delay_ns": 100000000}"#);
    let mut client = server.h1();
    let begun = Instant::now();
    client.send("GET /bytes/1 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2));
    assert_eq!(client.response().unwrap().content, b"a");
    assert!(begun.elapsed() >= Duration::from_millis(100));
    assert_eq!(client.response().unwrap().content, b"a");
    assert!(begun.elapsed() >= Duration::from_millis(200), "one after another");
    let mut client = h2(&server);
    let begun = Instant::now();
    for stream in [1, 3, 5, 7, 9] {
        client.request(stream, "GET", "/bytes/1", true);
    }
    for stream in [1, 3, 5, 7, 9] {
        client.response(stream);
    }
    assert!(begun.elapsed() >= Duration::from_millis(100));
}

/// One request on a connection of its own, as 0-RTT data when a ticket allows it; whether it was accepted as such.
fn early_request(server: &Server, config: &Arc<rustls::ClientConfig>, request: &[u8]) -> (Response, bool) {
    let mut stream = server.connect_with(config);
    let sent_early = match stream.conn.early_data() {
        Some(mut early) => {
            early.write_all(request).unwrap();
            true
        }
        None => {
            stream.write_all(request).unwrap();
            false
        }
    };
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let octets = stream.read(&mut buffer).unwrap();
        assert!(octets > 0, "closed");
        received.extend_from_slice(&buffer[..octets]);
        if let Some(head) = parse_response_head(&received, false).unwrap()
            && received.len() as u64 >= head.head_octets as u64 + head.content_length.unwrap_or(0)
        {
            let content = received[head.head_octets..].to_vec();
            let response = Response { status: head.status, content, ..Response::default() };
            // Tickets come after the handshake; one more read would block, so they are taken with the response.
            return (response, sent_early && stream.conn.is_early_data_accepted());
        }
    }
}

#[test]
fn sessions_resume_and_0_rtt_is_for_safe_methods() {
    let server = Server::start("");
    let mut config = server.client_config(&[b"http/1.1"]);
    config.resumption = Resumption::in_memory_sessions(8);
    config.enable_early_data = true;
    let config = Arc::new(config);
    let get = b"GET /bytes/5 HTTP/1.1\r\nHost: a\r\n\r\n";
    let (response, early) = early_request(&server, &config, get);
    assert_eq!((response.content.as_slice(), early), (b"abcde".as_slice(), false));
    let (response, early) = early_request(&server, &config, get);
    assert_eq!((response.content.as_slice(), early), (b"abcde".as_slice(), true));
    let (response, early) = early_request(&server, &config, b"DELETE /bytes/5 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((response.status, early), (425, true));
    let stats = server.finish().told();
    assert_eq!((&stats["resumed"]["h1"], &stats["early_requests"]), (&json!(2), &json!(2)));
}

#[test]
fn without_zero_rtt_sessions_still_resume() {
    let server = Server::start(r#", "zero_rtt": false"#);
    let mut config = server.client_config(&[b"http/1.1"]);
    config.enable_early_data = true;
    let config = Arc::new(config);
    for _ in 0..2 {
        let (response, early) = early_request(&server, &config, b"GET /bytes/5 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!((response.status, early), (200, false));
    }
    let stats = server.finish().told();
    assert_eq!((&stats["resumed"]["h1"], &stats["early_requests"]), (&json!(1), &json!(0)));
}
