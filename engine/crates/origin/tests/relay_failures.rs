//! What a relay answers when a service behind it is dead, silent, lying or broken, and to messages that are none.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::Told;
use common::services::{Callee, chain, entries, last, message, service};
use common::{Response, Server};
use rustls::{ServerConnection, StreamOwned};
use serde_json::{Value, json};
use trifecta_testpki::TestPki;
use trifecta_wire::tls::{ServerOptions, TlsVersion, server_config};

const PROTOCOLS: [&str; 3] = ["h1", "h2", "h3"];

/// Limits of what never connects, and of what connects and never answers; otherwise they are far off, as the machine may be busy.
fn hasty(limit: &str) -> Value {
    json!({limit: 500_000_000u64})
}

fn post(server: &Server, content: &str) -> Response {
    let mut client = server.h1();
    client.send(format!("POST /chain HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{content}", content.len()));
    client.response().expect("a response")
}

/// The answer to a message by a service that calls `callee`; its status, and the last entry's status and error.
fn failure(callee: Callee<'_>, path: &str) -> (u16, Value, Value) {
    failure_within(callee, path, &json!({}))
}

fn failure_within(callee: Callee<'_>, path: &str, limits: &Value) -> (u16, Value, Value) {
    let routes = json!({"/chain": {"calls": [{"to": "C", "path": path}]}});
    let b = service("B", &routes, &[callee], limits, "");
    let response = post(&b, &message(100));
    let entries = entries(&response.content);
    let entry = entries.last().unwrap();
    assert_eq!((&entry["service"], &entry["to"]), (&json!("B"), &json!("C")));
    assert!(entry["forwarded_ns"].is_u64() && entry["replied_ns"].is_u64(), "{entry}");
    let calls = b.finish().told()["relay"]["calls"]["C"].clone();
    assert_eq!(calls["errors"], json!({entry["error"].as_str().unwrap(): 1}), "once, and never again");
    (response.status, entry["status"].clone(), entry["error"].clone())
}

fn nobody(port: u16, protocol: &'static str) -> Callee<'static> {
    let certificate = std::fs::read(TestPki::new().certificate_file()).unwrap();
    Callee { name: "C", port, certificate, protocol, mode: "reused", connections: 1, streams: 100 }
}

/// A port where nothing listens, and that no other test can be given meanwhile.
struct DeadPort {
    port: u16,
    _tcp: OwnedFd,
    _udp: UdpSocket,
}

impl DeadPort {
    fn new() -> Self {
        loop {
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            // Connected to somebody else, it refuses what anybody sends, as if it were not there (udp(7)).
            udp.connect("127.0.0.1:9").unwrap();
            let port = udp.local_addr().unwrap().port();
            if let Some(tcp) = bound_and_silent(port) {
                return Self { port, _tcp: tcp, _udp: udp };
            }
        }
    }
}

/// A TCP socket that has the port and does not listen: connections are refused. `None` when the port is taken.
fn bound_and_silent(port: u16) -> Option<OwnedFd> {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    // SAFETY: no pointers; the result is checked before it is owned.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    assert!(socket >= 0);
    // SAFETY: the descriptor was just made and belongs to nobody else; the address lives over the call and has that length.
    unsafe {
        let owned = OwnedFd::from_raw_fd(socket);
        let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        (libc::bind(socket, (&raw const address).cast(), length) == 0).then_some(owned)
    }
}

/// A TLS server that reads something and then says `words`, whatever the protocol means by that; how many came.
fn liar(alpn: &'static [u8], words: &'static [u8]) -> (TestPki, u16, Arc<AtomicUsize>) {
    let pki = TestPki::new();
    let config = server_config(&ServerOptions {
        certificate_file: &pki.certificate_file(),
        key_file: &pki.key_file(),
        alpn: &[alpn],
        versions: &[TlsVersion::Tls13],
        key_exchanges: &["X25519"],
        resumption: false,
        early_data_bytes: 0,
        extra_certificates: 0,
        keylog_file: None,
    });
    let config = Arc::new(config.unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let came = Arc::new(AtomicUsize::new(0));
    let count = came.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), socket);
            let mut buffer = [0; 16_384];
            if stream.read(&mut buffer).is_ok() {
                let _ = stream.write_all(words);
                stream.conn.send_close_notify();
                let _ = stream.flush();
                let _ = stream.sock.shutdown(std::net::Shutdown::Write);
                // What is left unread would turn the end into a reset.
                while matches!(stream.sock.read(&mut buffer), Ok(octets) if octets > 0) {}
            }
        }
    });
    (pki, port, came)
}

#[test]
fn a_dead_service_is_refused() {
    let dead = DeadPort::new();
    for protocol in PROTOCOLS {
        let outcome = failure(nobody(dead.port, protocol), "/chain");
        assert_eq!(outcome, (502, Value::Null, json!("connect_refused")), "{protocol}");
    }
}

#[test]
fn a_silent_service_is_given_up() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    for (protocol, port) in [("h1", tcp.local_addr()), ("h2", tcp.local_addr()), ("h3", udp.local_addr())] {
        let outcome = failure_within(nobody(port.unwrap().port(), protocol), "/chain", &hasty("connect_timeout_ns"));
        assert_eq!(outcome, (504, Value::Null, json!("connect_timeout")), "{protocol}");
    }
    for protocol in PROTOCOLS {
        let stalled = last("C", r#", "faults": {"stall": true}"#);
        let outcome =
            failure_within(Callee::new("C", &stalled, protocol, "reused"), "/chain", &hasty("request_timeout_ns"));
        assert_eq!(outcome, (504, Value::Null, json!("timeout")), "{protocol}");
    }
}

#[test]
fn a_service_that_is_not_what_it_should_be_is_told_apart() {
    let c = Server::start("");
    // Its certificate is another's.
    for protocol in ["h1", "h2"] {
        let callee = Callee { port: c.address.port(), ..nobody(1, protocol) };
        assert_eq!(failure(callee, "/chain"), (502, Value::Null, json!("tls:certificate")), "{protocol}");
    }
    let quic = Server::start(r#", "protocols": ["h3"]"#);
    let callee = Callee { port: quic.address.port(), ..nobody(1, "h3") };
    assert_eq!(failure(callee, "/chain"), (502, Value::Null, json!("tls:certificate")));
    // It speaks another protocol.
    let old = Server::start(r#", "protocols": ["h1"]"#);
    let outcome = failure(Callee::new("C", &old, "h2", "new"), "/chain");
    assert_eq!(outcome, (502, Value::Null, json!("tls:alpn")));
    // It has no such route, or answers what is no message.
    for protocol in PROTOCOLS {
        let c = last("C", "");
        let outcome = failure(Callee::new("C", &c, protocol, "reused"), "/other?x=1");
        assert_eq!(outcome, (502, json!(200), json!("content")), "{protocol}: a POST to no route gets no message");
        let outcome = failure(Callee::new("C", &c, protocol, "reused"), "/bytes/nonsense");
        assert_eq!(outcome, (502, json!(404), json!("status")), "{protocol}");
        // It announces more than it sends.
        let cut = last("C", r#", "faults": {"truncate_bytes": 1}"#);
        let outcome = failure(Callee::new("C", &cut, protocol, "reused"), "/chain");
        assert_eq!((outcome.0, outcome.2), (502, json!("length")), "{protocol}");
    }
}

#[test]
fn a_service_that_talks_nonsense_or_ends_early_is_asked_once() {
    for (protocol, alpn, words, class) in [
        ("h1", b"http/1.1".as_slice(), b"NONSENSE AND MORE\r\n\r\n".as_slice(), "malformed:http1"),
        ("h2", b"h2", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "malformed:http1_over_http2"),
        ("h2", b"h2", b"NONSENSE AND MORE OF IT\r\n\r\n", "malformed:http2"),
        ("h1", b"http/1.1", b"", "closed"),
        ("h1", b"http/1.1", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{", "length"),
        ("h2", b"h2", b"", "closed"),
    ] {
        for mode in ["new", "reused"] {
            let (pki, port, came) = liar(alpn, words);
            let certificate = std::fs::read(pki.certificate_file()).unwrap();
            let (status, _, error) = failure(Callee { certificate, mode, ..nobody(port, protocol) }, "/chain");
            assert_eq!((status, error), (502, json!(class)), "{protocol} {mode}");
            assert_eq!(came.load(Ordering::SeqCst), 1, "{protocol} {mode}");
        }
    }
}

#[test]
fn a_failure_behind_the_next_service_is_told_with_the_meta_so_far() {
    let dead = DeadPort::new();
    let c = service("C", &chain("C"), &[nobody(dead.port, "h2")], &json!({}), "");
    let b = service("B", &chain("C"), &[Callee::new("C", &c, "h3", "reused")], &json!({}), "");
    let response = post(&b, &message(100));
    assert_eq!(response.status, 502);
    let entries = entries(&response.content);
    let told: Vec<_> = entries.iter().map(|entry| (&entry["service"], &entry["status"], &entry["error"])).collect();
    let (null, refused) = (Value::Null, json!("connect_refused"));
    assert_eq!(told, [(&json!("B"), &json!(502), &json!("status")), (&json!("C"), &null, &refused)]);
    // HEAD tells as much in its head.
    let mut client = b.h1();
    client.send("HEAD /chain HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = client.response_to(true).unwrap();
    assert_eq!(response.status, 502);
    assert!(response.head.contains(r#""error":"connect_refused""#), "{}", response.head);
}

#[test]
fn calls_that_follow_a_failed_one_are_not_made() {
    let d = last("D", "");
    let calls = json!([{"to": "D", "path": "/chain"}, {"to": "C", "path": "/chain"}, {"to": "D", "path": "/chain"}]);
    let dead = DeadPort::new();
    let callees = [Callee::new("D", &d, "h2", "reused"), nobody(dead.port, "h1")];
    let b = service("B", &json!({"/chain": {"calls": calls}}), &callees, &json!({}), "");
    let response = post(&b, &message(100));
    let told: Vec<_> =
        entries(&response.content).iter().map(|entry| (entry["service"].clone(), entry["error"].clone())).collect();
    let null = Value::Null;
    assert_eq!(told, [(json!("B"), null.clone()), (json!("D"), null), (json!("B"), json!("connect_refused"))]);
    assert_eq!(d.finish().told()["requests"]["h2"], json!({"200": 1}));
}

#[test]
fn calls_that_wait_for_a_connection_fail_with_it() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let dead = DeadPort::new();
    for (port, protocol, status, class) in [
        (dead.port, "h2", 502, "connect_refused"),
        (silent_port, "h2", 504, "connect_timeout"),
        (dead.port, "h1", 502, "connect_refused"),
    ] {
        let b = service("B", &chain("C"), &[nobody(port, protocol)], &hasty("connect_timeout_ns"), "");
        let mut client = b.h2();
        client.start(&[]);
        for number in 0..60 {
            client.request(2 * number + 1, "GET", "/chain", true);
        }
        for number in 0..60 {
            let response = client.response(2 * number + 1);
            assert_eq!(response.status, status);
            assert_eq!(entries(&response.content)[0]["error"], class);
        }
        assert_eq!(b.finish().told()["relay"]["calls"]["C"]["errors"], json!({class: 60}));
    }
}

#[test]
fn a_service_that_comes_back_is_called_again() {
    let c = last("C", r#", "faults": {"close_after_requests": 1}"#);
    let b = service("B", &chain("C"), &[Callee::new("C", &c, "h1", "reused")], &json!({}), "");
    let mut good = 0;
    // The connection is dropped after each answer; a call that finds it so fails, and the next has a new one.
    for _ in 0..50 {
        let response = post(&b, &message(10));
        assert!([200, 502].contains(&response.status));
        good += usize::from(response.status == 200);
    }
    assert!(good >= 25, "{good}");
}

#[test]
fn messages_that_are_none_are_refused_without_a_call() {
    let c = last("C", "");
    let b = service("B", &chain("C"), &[Callee::new("C", &c, "h2", "reused")], &json!({}), "");
    for content in ["nonsense", "{}", r#"{"message":{"meta":{}}}"#, r#"{"message":{"meta":[]}"#] {
        assert_eq!(post(&b, content).status, 400, "{content}");
    }
    let announced = "POST /chain HTTP/1.1\r\nHost: a\r\nContent-Length: 16000001\r\n\r\n";
    let mut client = b.h1();
    client.send(announced);
    assert_eq!(client.response().unwrap().status, 413);
    // Not announced, and still too much.
    let piece = format!("{:x}\r\n{}\r\n", 1_000_000, "x".repeat(1_000_000));
    let mut client = b.h1();
    client.send("POST /chain HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for _ in 0..17 {
        client.send(&piece);
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.response().unwrap().status, 413);
    let mut client = b.h2();
    client.start(&[]);
    client.request(1, "POST", "/chain", false);
    // More than a message may have, and less than the windows of the stream and the connection.
    for number in 0..1_000 {
        client.data(1, &[b'x'; 16_384], number == 999);
    }
    assert_eq!(client.response(1).status, 413);
    let whole = message(15_900_000);
    assert_eq!(post(&b, &whole).status, 200, "what is just below the limit passes");
    let stats = b.finish().told();
    assert_eq!(stats["relay"]["calls"]["C"]["status"], json!({"200": 1}));
    assert_eq!(c.finish().told()["requests"]["h2"], json!({"200": 1}));
}

#[test]
fn a_connection_that_waits_for_the_relay_is_not_idle() {
    let d = last("D", r#", "faults": {"delay_ns": 400000000}"#);
    let b = service(
        "B",
        &chain("D"),
        &[Callee::new("D", &d, "h2", "reused")],
        &json!({}),
        r#", "idle_timeout_ns": 50000000"#,
    );
    assert_eq!(post(&b, &message(10)).status, 200);
    let mut client = b.h2();
    client.start(&[]);
    client.request(1, "GET", "/chain", true);
    assert_eq!(client.response(1).status, 200);
}
