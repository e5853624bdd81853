//! What keeps the origin from starting is said with the field and the exit code; TLS versions are those asked for.

mod common;

use common::Server;
use common::Told;
use std::io::{Read, Write};
use std::sync::Arc;
use trifecta_origin::config::Config;
use trifecta_origin::{Failure, Origin};
use trifecta_testpki::TestPki;
use trifecta_wire::process::exit;
use trifecta_wire::tls::{ClientOptions, TlsVersion, client_config};

fn failure(pki: &TestPki, address: &str, port: u16, more: &str) -> Failure {
    let text = format!(
        r#"{{"address": {address:?}, "port": {port}, "certificate_file": {:?}, "key_file": {:?}{more}}}"#,
        pki.certificate_file(),
        pki.key_file()
    );
    match Origin::start(Config::parse(&text).unwrap()) {
        Ok(_) => panic!("started in spite of {more}"),
        Err(failure) => failure,
    }
}

#[test]
fn a_port_that_is_taken_is_not_shared() {
    let server = Server::start(r#", "protocols": ["h1"]"#);
    let port = server.address.port();
    for more in [r#", "protocols": ["h2"]"#, r#", "protocols": ["h2"], "workers": 2"#] {
        let failure = failure(&server.pki, "127.0.0.1", port, more);
        assert_eq!((failure.code, failure.field.as_str()), (exit::CANNOT, "port"), "{failure:?}");
        assert!(failure.message.contains(&port.to_string()));
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let pki = TestPki::new();
    let tcp = r#", "protocols": ["h1", "h2"]"#;
    for (address, more, code, field) in [
        ("192.0.2.1", "", exit::CANNOT, "address"),
        ("127.0.0.1", r#", "key_exchanges": ["P-9999"]"#, exit::BAD_INPUT, "key_exchanges"),
        ("127.0.0.1", r#", "folder": "/nonexistent""#, exit::BAD_INPUT, "folder"),
        ("127.0.0.1", r#", "keylog_file": "/nonexistent/keys""#, exit::BAD_INPUT, "keylog_file"),
        ("127.0.0.1", r#", "cpus": [1000]"#, exit::BAD_INPUT, "cpus"),
    ] {
        let failure = failure(&pki, address, 0, &format!("{tcp}{more}"));
        assert_eq!((failure.code, failure.field.as_str()), (code, field), "{failure:?}");
    }
    std::fs::write(pki.certificate_file(), "no certificate").unwrap();
    let failure = failure(&pki, "127.0.0.1", 0, tcp);
    assert_eq!((failure.code, failure.field.as_str()), (exit::BAD_INPUT, "certificate_file"), "{failure:?}");
}

#[test]
fn tls_versions_are_those_asked_for() {
    for (offered, wanted, works) in [
        (r#"["1.2"]"#, TlsVersion::Tls12, true),
        (r#"["1.2"]"#, TlsVersion::Tls13, false),
        (r#"["1.3"]"#, TlsVersion::Tls12, false),
        (r#"["1.2", "1.3"]"#, TlsVersion::Tls12, true),
    ] {
        let server = Server::start(&format!(r#", "tls_versions": {offered}"#));
        let options = ClientOptions {
            ca_file: &server.pki.certificate_file(),
            alpn: &[b"http/1.1"],
            version: wanted,
            key_exchange: "X25519",
            cipher: None,
            resumption: false,
            early_data: false,
            keylog_file: None,
        };
        let mut stream = server.connect_with(&Arc::new(client_config(&options).unwrap()));
        let result =
            stream.write_all(b"GET /bytes/1 HTTP/1.1\r\nHost: a\r\n\r\n").and_then(|()| stream.read(&mut [0; 9]));
        assert_eq!(result.is_ok(), works, "{offered} and {wanted:?}: {result:?}");
        drop(stream);
        let errors = server.finish().told()["errors"].clone();
        assert_eq!(errors.get("tls:version").is_some(), !works, "{errors}");
    }
}

#[test]
fn secrets_are_logged_for_whoever_captures() {
    let pki = TestPki::new();
    let keys = pki.folder().join("keys");
    let more = format!(r#", "keylog_file": {keys:?}"#);
    let server = Server::start_with(pki, &more);
    assert_eq!(server.h1().get("/bytes/1").status, 200);
    let text = std::fs::read_to_string(&keys).unwrap();
    for label in ["CLIENT_HANDSHAKE_TRAFFIC_SECRET ", "SERVER_TRAFFIC_SECRET_0 "] {
        assert!(text.contains(label), "{text}");
    }
}

#[test]
fn what_a_relay_cannot_reach_or_use_is_named() {
    let pki = TestPki::new();
    let relay = |name: &str, ca_file: &str| {
        format!(
            r#", "protocols": ["h2"], "relay": {{"service": "B", "routes": {{"/chain": {{}}}}, "ca_file": {ca_file:?},
                "services": {{"C": {{"name": {name:?}, "port": 1, "protocol": "h2", "connection_mode": "new"}}}}}}"#
        )
    };
    let certificate = pki.certificate_file();
    for (name, ca_file, code, field) in [
        ("nowhere.invalid", certificate.to_str().unwrap(), exit::CANNOT, "relay.services.C.name"),
        ("localhost", "/nonexistent", exit::BAD_INPUT, "relay.ca_file"),
    ] {
        let failure = failure(&pki, "127.0.0.1", 0, &relay(name, ca_file));
        assert_eq!((failure.code, failure.field.as_str()), (code, field), "{failure:?}");
    }
}

#[test]
fn a_free_port_is_free_on_tcp_and_udp() {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let bounds: Vec<usize> = range.split_whitespace().map(|bound| bound.parse().unwrap()).collect();
    // A part of all UDP ports is taken, so that a few of so many servers meet one.
    let ports = ((bounds[1] - bounds[0]) / 20).min(500);
    let taken: Vec<_> = (0..ports).map(|_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    for _ in 0..200 {
        let server = Server::start(r#", "protocols": ["h1", "h3"]"#);
        assert_ne!(server.address.port(), 0);
    }
    drop(taken);
}
