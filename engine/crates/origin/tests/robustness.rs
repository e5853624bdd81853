//! Arbitrary octets, over TLS and under it: the origin answers or closes, and goes on serving.

mod common;

use common::Told;
use common::h2client::H2Client;
use common::{PATIENCE, Server};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;
use trifecta_wire::h2::{ErrorCode, PREFACE, setting, write};
use trifecta_wire::mutate::mutated;

fn still_serves(server: &Server) {
    assert_eq!(server.h1().get("/bytes/3").content, b"abc");
    let mut client = server.h2();
    client.start(&[]);
    client.request(1, "GET", "/bytes/3", true);
    assert_eq!(client.response(1).content, b"abc");
}

/// Writes all of it, ends the direction and reads to the end, which must come.
fn exchange(stream: &mut common::Stream, octets: &[u8]) {
    let _ = stream.write_all(octets);
    stream.conn.send_close_notify();
    let _ = stream.flush();
    let begun = Instant::now();
    let mut buffer = [0; 65_536];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(_) => assert!(begun.elapsed() < PATIENCE, "no end"),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the server hangs on {octets:?}"),
            Err(_) => break,
        }
    }
}

#[test]
fn mutated_http1() {
    let server = Server::start("");
    let samples = [
        "POST /bytes/7 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: v\r\n\r\n\
         GET /bytes/3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "PUT /bytes/1 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello\
         HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /bytes/100000 HTTP/1.1\r\nHost: a\r\n\r\n",
    ];
    for seed in 0..200 {
        for sample in samples {
            exchange(&mut server.connect(b"http/1.1"), &mutated(sample.as_bytes(), seed));
        }
    }
    still_serves(&server);
}

#[test]
fn mutated_http2() {
    let server = Server::start("");
    let mut sample = PREFACE.to_vec();
    write::settings(&[(setting::INITIAL_WINDOW_SIZE, 1000), (setting::HEADER_TABLE_SIZE, 100)], &mut sample);
    write::headers(1, &H2Client::block("GET", "/bytes/100000", &[("accept", "*/*")]), true, &mut sample);
    write::window_update(1, 2000, &mut sample);
    write::window_update(0, 2000, &mut sample);
    write::headers(3, &H2Client::block("POST", "/bytes/10", &[("content-length", "5")]), false, &mut sample);
    write::ping([7; 8], false, &mut sample);
    write::data_header(3, 5, true, &mut sample);
    sample.extend_from_slice(b"hello");
    write::rst_stream(1, ErrorCode::CANCEL, &mut sample);
    write::settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 20)], &mut sample);
    write::headers(5, &H2Client::block("HEAD", "/healthz", &[]), true, &mut sample);
    write::goaway(0, ErrorCode::NO_ERROR, b"", &mut sample);
    for seed in 0..400 {
        // Mutations of the preface end early; most runs keep it whole.
        let kept = if seed % 10 == 0 { 0 } else { PREFACE.len() };
        let octets = [&sample[..kept], &mutated(&sample[kept..], seed)].concat();
        exchange(&mut server.connect(b"h2"), &octets);
    }
    still_serves(&server);
}

#[test]
fn mutated_handshakes_and_plain_text() {
    let server = Server::start("");
    let mut hello = Vec::new();
    server.connect(b"h2").conn.write_tls(&mut hello).unwrap();
    let samples = [hello.as_slice(), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", PREFACE];
    for seed in 0..200 {
        for sample in samples {
            let mut socket = TcpStream::connect(server.address).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            let _ = socket.write_all(&mutated(sample, seed));
            let _ = socket.shutdown(std::net::Shutdown::Write);
            let mut rest = Vec::new();
            if let Err(error) = socket.read_to_end(&mut rest) {
                assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "the server hangs");
            }
        }
    }
    still_serves(&server);
}

#[test]
fn http2_is_preferred_where_both_are_offered() {
    let server = Server::start(r#", "protocols": ["h1", "h2"]"#);
    let config = std::sync::Arc::new(server.client_config(&[b"http/1.1", b"h2"]));
    let mut stream = server.connect_with(&config);
    stream.write_all(PREFACE).unwrap();
    assert_eq!(stream.conn.alpn_protocol(), Some(b"h2".as_slice()));
}

#[test]
fn wrong_protocols_are_refused_in_the_handshake() {
    let server = Server::start(r#", "protocols": ["h1"]"#);
    let mut stream = server.connect(b"h2");
    let error = stream.write_all(b"x").and_then(|()| stream.read(&mut [0; 1])).unwrap_err();
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
    assert_eq!(server.h1().get("/bytes/3").content, b"abc");
    let errors = server.finish().told()["errors"].clone();
    assert_eq!(errors["tls:alpn"], 1);
}
