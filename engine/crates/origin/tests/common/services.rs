//! Services that relay to each other, each an origin of this process with a certificate of its own.

use serde_json::{Value, json};

use super::Server;

/// Whom a service calls.
pub struct Callee<'a> {
    pub name: &'a str,
    pub port: u16,
    /// Octets of its certificate.
    pub certificate: Vec<u8>,
    pub protocol: &'a str,
    pub mode: &'a str,
    pub connections: u32,
    pub streams: u32,
}

impl<'a> Callee<'a> {
    /// A running one; a connection that carries a hundred calls.
    pub fn new(name: &'a str, server: &Server, protocol: &'a str, mode: &'a str) -> Self {
        let certificate = std::fs::read(server.pki.certificate_file()).unwrap();
        Self { name, port: server.address.port(), certificate, protocol, mode, connections: 1, streams: 100 }
    }
}

/// A service of these routes. `changes` are merged into its relay section.
pub fn service(name: &str, routes: &Value, callees: &[Callee<'_>], changes: &Value, more: &str) -> Server {
    let pki = trifecta_testpki::TestPki::new();
    let authorities = pki.folder().join("authorities.pem");
    std::fs::write(&authorities, callees.iter().flat_map(|callee| callee.certificate.clone()).collect::<Vec<u8>>())
        .unwrap();
    let services: serde_json::Map<String, Value> = callees
        .iter()
        .map(|callee| {
            let service = json!({"name": trifecta_testpki::SERVER_NAME, "address": "127.0.0.1", "port": callee.port,
                "protocol": callee.protocol, "connection_mode": callee.mode, "connections": callee.connections,
                "streams": callee.streams});
            (callee.name.to_owned(), service)
        })
        .collect();
    let mut relay = json!({"service": name, "routes": routes, "services": services, "ca_file": authorities});
    for (field, value) in changes.as_object().unwrap() {
        relay[field] = value.clone();
    }
    Server::start_with(pki, &format!(r#", "protocols": ["h1", "h2", "h3"], "relay": {relay}{more}"#))
}

/// A route that passes everything on.
pub fn chain(to: &str) -> Value {
    json!({"/chain": {"calls": [{"to": to, "method": "same", "path": "/chain", "body": "forward"}], "answer": "meta"}})
}

/// The last service of a chain.
pub fn last(name: &str, more: &str) -> Server {
    service(name, &json!({"/chain": {}}), &[], &json!({}), more)
}

/// A message with a body of `octets`.
pub fn message(octets: usize) -> String {
    let body = "x".repeat(octets);
    json!({"message": {"meta": [{"service": "A", "to": "B", "forwarded_ns": 1}], "body": body}}).to_string()
}

/// The entries of an answer.
pub fn entries(content: &[u8]) -> Vec<Value> {
    let answer: Value = serde_json::from_slice(content).expect("an answer is JSON");
    answer["message"]["meta"].as_array().expect("meta is a list").clone()
}
