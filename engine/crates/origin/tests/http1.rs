//! The origin over HTTP/1.1, from outside.

mod common;

use common::Told;
use common::{H1Client, Server, pattern};
use serde_json::json;
use std::io::{Read, Write};
use std::time::Duration;
use trifecta_testpki::TestPki;

fn post(path: &str, fields: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

#[test]
fn methods_on_one_connection() {
    let server = Server::start("");
    let mut client = server.h1();
    let response = client.get("/bytes/1000");
    assert_eq!((response.status, response.content_length), (200, Some(1000)));
    assert_eq!(response.content, pattern(1000));
    let text = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\ncontent-type: application/octet-stream\r\n\
                server: trifecta\r\n\r\n";
    assert_eq!(response.head, text);
    client.send("HEAD /bytes/1000 HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = client.response_to(true).unwrap();
    assert_eq!((response.status, response.content_length), (200, Some(1000)));
    for method in ["POST", "PUT", "PATCH"] {
        client.send(format!("{method} /bytes/7 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"));
        assert_eq!(client.response().unwrap().content, pattern(7), "{method}");
    }
    client.send("DELETE /bytes/7 HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = client.response().unwrap();
    assert_eq!((response.status, response.content_length), (204, None));
    client.send("OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = client.response().unwrap();
    assert_eq!(response.status, 405);
    assert!(response.head.contains("allow: GET, HEAD"));
    assert_eq!(client.get("/nothing").status, 404);
    assert_eq!(client.get("/healthz").content, b"ok\n");
    drop(client);
    let stats = server.finish().told();
    assert_eq!(stats["requests"]["h1"], json!({"200": 6, "204": 1, "404": 1, "405": 1}));
    assert_eq!(stats["connections"]["h1"], json!(1));
    assert_eq!(stats["content_bytes_in"], json!(15));
    assert_eq!(stats["content_bytes_out"], json!(1000 + 21 + 3));
    assert_eq!(stats["tcp_congestion_control"], json!("cubic"));
    assert_eq!(stats["tcp_nodelay"], json!(true));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::start("");
    let mut client = server.h1();
    let mut text = String::new();
    let sizes = [1, 100_000, 0, 33_000, 5, 70_000, 2];
    for size in sizes {
        text += &format!("GET /bytes/{size} HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    client.send(text);
    for size in sizes {
        assert_eq!(client.response().unwrap().content, pattern(size), "{size}");
    }
    let many = "GET /bytes/1000 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2000);
    let writer = many.clone();
    client.send(writer);
    for _ in 0..2000 {
        assert_eq!(client.response().unwrap().content.len(), 1000);
    }
}

#[test]
fn heads_may_come_octet_by_octet() {
    let server = Server::start("");
    let mut client = server.h1();
    for octet in "GET /bytes/3 HTTP/1.1\r\nHost: a\r\nX-Y: z\r\n\r\n".bytes() {
        client.send([octet]);
    }
    assert_eq!(client.response().unwrap().content, b"abc");
}

#[test]
fn chunked_content_and_expectations() {
    let server = Server::start("");
    let mut client = server.h1();
    client.send(post("/bytes/4", "Transfer-Encoding: chunked\r\n") + "5;x=y\r\nhello\r\n3\r\nabc\r\n0\r\nT: v\r\n\r\n");
    assert_eq!(client.response().unwrap().content, b"abcd");
    client.send(post("/bytes/1", "Expect: 100-continue\r\nContent-Length: 3\r\n"));
    assert_eq!(client.response().unwrap().status, 100);
    client.send("xyz");
    assert_eq!(client.response().unwrap().content, b"a");
    client.send(post("/bytes/1", "Expect: 100-continue\r\nContent-Length: 3\r\n") + "xyz");
    assert_eq!(client.response().unwrap().status, 200, "the content is there, nobody waits");
    client.send(post("/", "Expect: 100-continue\r\nContent-Length: 999999999999\r\n"));
    let response = client.response().unwrap();
    assert_eq!((response.status, response.keep_alive), (413, false));
    assert!(client.is_closed());
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    let server = Server::start("");
    for (text, status) in [
        (post("/", "Content-Length: 5\r\nContent-Length: 6\r\n"), 400),
        (post("/", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400),
        (post("/", "Transfer-Encoding: gzip\r\n"), 501),
        (post("/", "Content-Length : 5\r\n"), 400),
        (post("/", "Content-Length: 0x5\r\n"), 400),
        (post("/", "Transfer-Encoding: chunked\r\n") + "5\r\nhelloX", 400),
        (post("/", "Transfer-Encoding: chunked\r\n") + "z\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n".into(), 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".into(), 400),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n".into(), 505),
        ("\0\u{1}nonsense".into(), 400),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(20_000)), 431),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "x: y\r\n".repeat(200)), 431),
        (format!("GET /{} HTTP/1.1\r\n", "y".repeat(20_000)), 431),
    ] {
        let mut client = server.h1();
        client.send(&text);
        let response = client.response().unwrap_or_else(|| panic!("no answer to {text:?}"));
        assert_eq!((response.status, response.keep_alive), (status, false), "{text:?}");
        assert!(client.is_closed(), "{text:?}");
    }
}

#[test]
fn connections_end_when_asked_and_http_1_0_is_told() {
    let server = Server::start("");
    let mut client = server.h1();
    client
        .send("GET /bytes/5 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /bytes/6 HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = client.response().unwrap();
    assert!(!response.keep_alive && response.content.len() == 5);
    assert!(client.is_closed(), "nothing after the close");
    let mut client = server.h1();
    client.send("GET /bytes/5 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(client.response().unwrap().head.contains("connection: keep-alive\r\n"));
    client.send("GET /bytes/5 HTTP/1.0\r\n\r\n");
    assert!(!client.response().unwrap().keep_alive);
    assert!(client.is_closed());
}

#[test]
fn a_folder_is_served_and_never_left() {
    let pki = TestPki::new();
    let site = pki.folder().join("site");
    std::fs::create_dir(&site).unwrap();
    std::fs::write(site.join("index.html"), "<p>").unwrap();
    let large: Vec<u8> = (0..3_000_000u32).map(|place| (place * 7 % 251) as u8).collect();
    std::fs::write(site.join("large.bin"), &large).unwrap();
    let more = format!(r#", "folder": {site:?}"#);
    let server = Server::start_with(pki, &more);
    let mut client = server.h1();
    let response = client.get("/");
    assert_eq!(response.content, b"<p>");
    assert!(response.head.contains("content-type: text/html"));
    assert_eq!(client.get("/large.bin").content, large);
    for path in ["/../origin.key", "/%2e%2e/origin.key", "/..%2forigin.key", "//etc/passwd", "/x/../../origin.key"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    assert_eq!(client.get("/bytes/3").content, b"abc");
}

#[test]
fn server_timing_and_alt_svc_when_asked() {
    let server = Server::start(r#", "server_timing": true, "alt_svc": true, "protocols": ["h1", "h3"]"#);
    let head = server.h1().get("/bytes/1").head;
    let port = server.address.port();
    assert!(head.contains(&format!("alt-svc: h3=\":{port}\"; ma=86400\r\n")), "{head}");
    let timing = head.split("server-timing: app;dur=").nth(1).unwrap().split("\r\n").next().unwrap();
    let milliseconds: f64 = timing.parse().unwrap();
    assert!((0.0..10_000.0).contains(&milliseconds));
}

#[test]
fn a_slow_reader_gets_everything_and_costs_little_memory() {
    let server = Server::start("");
    let mut client = server.h1();
    client.send("GET /bytes/30000000 HTTP/1.1\r\nHost: a\r\n\r\n");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(server.h1().get("/bytes/5").content.len(), 5, "others are served meanwhile");
    let mut head = vec![0; 1];
    client.stream.read_exact(&mut head).unwrap();
    let mut left = 30_000_000usize;
    let mut text = head;
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        let octets = client.stream.read(&mut buffer).unwrap();
        assert!(octets > 0, "{left} octets missing");
        text.extend_from_slice(&buffer[..octets]);
        if let Some(end) = text.windows(4).position(|window| window == b"\r\n\r\n") {
            left = 30_000_000 - (text.len() - end - 4);
        }
    }
    assert!(text.ends_with(&pattern(30_000_000)[29_999_900..]));
}

#[test]
fn a_large_upload_is_read_to_its_end() {
    let server = Server::start("");
    let mut client = server.h1();
    client.send(post("/bytes/3", "Content-Length: 20000000\r\n"));
    let piece = vec![7; 100_000];
    for _ in 0..200 {
        client.stream.write_all(&piece).unwrap();
    }
    assert_eq!(client.response().unwrap().content, b"abc");
    drop(client);
    assert_eq!(server.finish().told()["content_bytes_in"], json!(20_000_000));
}

#[test]
fn idle_connections_are_closed() {
    let server = Server::start(r#", "idle_timeout_ns": 200000000"#);
    let mut client = server.h1();
    assert_eq!(client.get("/bytes/1").status, 200);
    assert!(client.is_closed());
    let mut silent = std::net::TcpStream::connect(server.address).unwrap();
    silent.set_read_timeout(Some(common::PATIENCE)).unwrap();
    assert!(!matches!(silent.read(&mut [0; 10]), Ok(octets) if octets > 0), "no handshake, no connection");
    let errors = server.finish().told()["errors"].clone();
    assert_eq!(errors["idle_timeout"], json!(2));
}

#[test]
fn the_end_finishes_what_was_begun() {
    let server = Server::start("");
    let mut busy = server.h1();
    busy.send("GET /bytes/3000000 HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut idle = server.h1();
    assert_eq!(idle.get("/bytes/1").status, 200);
    let reader = std::thread::spawn(move || busy.response().unwrap().content.len());
    std::thread::sleep(Duration::from_millis(50));
    let stats = server.finish().told();
    assert_eq!(reader.join().unwrap(), 3_000_000);
    assert!(idle.is_closed());
    assert_eq!(stats["requests"]["h1"], json!({"200": 2}));
}

#[test]
fn workers_share_a_port() {
    let server = Server::start(r#", "workers": 3"#);
    let clients: Vec<H1Client> = (0..30)
        .map(|_| {
            let mut client = server.h1();
            assert_eq!(client.get("/bytes/10").content, pattern(10));
            client
        })
        .collect();
    drop(clients);
    assert_eq!(server.finish().told()["requests"]["h1"], json!({"200": 30}));
}
