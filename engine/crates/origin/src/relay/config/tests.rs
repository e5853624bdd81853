//! The section as the contract has it, and every field that can be wrong.

use super::*;
use crate::config::Config;
use serde_json::{Value, json};
use std::net::SocketAddr;

fn document() -> Value {
    json!({"address": "127.0.0.1", "port": 0, "certificate_file": "c", "key_file": "k", "relay": {"service": "B",
        "routes": {"/chain": {"calls": [{"to": "C", "method": "same", "path": "/chain", "body": "forward"},
                                        {"to": "C", "method": "PUT", "path": "/x?y=1", "body": 12}], "answer": "meta"},
                   "/end": {"answer": 10}},
        "services": {"C": {"name": "localhost", "address": null, "port": 8443, "protocol": "h2",
            "connection_mode": "new", "connections": 1, "streams": 100}},
        "ca_file": "ca.pem", "tls_version": "1.3", "key_exchange": "X25519", "cipher": "TLS_AES_128_GCM_SHA256",
        "connect_timeout_ns": 10_000_000_000u64, "request_timeout_ns": 10_000_000_000u64}})
}

fn relay() -> RelayConfig {
    Config::parse(&document().to_string()).unwrap().relay.unwrap()
}

#[test]
fn the_document_of_the_contract_is_read() {
    let relay = relay();
    let calls = &relay.routes["/chain"].calls;
    assert_eq!((calls[0].method, calls[0].body), (MethodConfig::Same, BodyConfig::Forward));
    assert_eq!((calls[1].method, calls[1].body), (MethodConfig::Fixed(Method::Put), BodyConfig::Octets(12)));
    assert_eq!(relay.routes["/end"].answer, AnswerConfig::Octets(10));
    let config = Config::parse(&document().to_string()).unwrap();
    let options = relay.options("C", &relay.services["C"], &config).unwrap();
    assert_eq!(options.address, SocketAddr::from(([127, 0, 0, 1], 8443)));
    assert_eq!(options.streams, 1, "a connection for each call has one stream");
}

#[test]
fn the_wrong_field_is_named() {
    let long = "/".repeat(5000);
    for (pointer, value, field) in [
        ("/relay/service", json!(""), "relay.service"),
        ("/relay/service", json!("a\"b"), "relay.service"),
        ("/relay/routes", json!({}), "relay.routes"),
        ("/relay/routes", json!({"x": {}}), "relay.routes.x"),
        ("/relay/routes", json!({"/x?y": {}}), "relay.routes./x?y"),
        ("/relay/routes/~1chain/calls/0/to", json!("D"), "relay.routes./chain.calls.0.to"),
        ("/relay/routes/~1chain/calls/1/path", json!(long), "relay.routes./chain.calls.1.path"),
        ("/relay/routes/~1chain/calls/0/method", json!("BREW"), "relay.routes.calls.method"),
        ("/relay/routes/~1chain/calls/0/body", json!("half"), "relay.routes.calls.body"),
        ("/relay/routes/~1chain/calls/0/body", json!(10_000_001), "relay.routes.calls.body"),
        ("/relay/routes/~1chain/answer", json!(-1), "relay.routes.answer"),
        ("/relay/routes/~1chain/answer", json!("echo"), "relay.routes.answer"),
        ("/relay/services/C/name", json!("not a name"), "relay.services.C.name"),
        ("/relay/services/C/port", json!(0), "relay.services.C.port"),
        ("/relay/services/C/streams", json!(0), "relay.services.C.connections"),
        ("/relay/services/C/protocol", json!("h4"), "h4"),
        ("/relay/ca_file", json!(null), "relay.ca_file"),
        ("/relay/tls_version", json!("1.1"), "relay.tls_version"),
        ("/relay/key_exchange", json!("P-1"), "relay.key_exchange"),
        ("/relay/connect_timeout_ns", json!(0), "relay.connect_timeout_ns"),
        ("/relay/request_timeout_ns", json!(u64::MAX), "relay.request_timeout_ns"),
    ] {
        let mut document = document();
        *document.pointer_mut(pointer).unwrap() = value;
        let error = Config::parse(&document.to_string()).unwrap_err();
        assert_eq!(error.field, field, "{pointer}: {}", error.message);
    }
    let mut document = document();
    document["relay"]["nonsense"] = json!(1);
    assert_eq!(Config::parse(&document.to_string()).unwrap_err().field, "nonsense");
    document["relay"] = json!({"service": "D", "routes": {"/chain": {}}});
    assert!(Config::parse(&document.to_string()).is_ok(), "a service without calls needs no authority");
}

#[test]
fn a_name_that_does_not_resolve_is_named() {
    let mut relay = relay();
    let service = relay.services.get_mut("C").unwrap();
    service.name = "nowhere.invalid".into();
    let service = service.clone();
    let config = Config::parse(&document().to_string()).unwrap();
    let error = relay.options("C", &service, &config).unwrap_err();
    assert_eq!(error.field, "relay.services.C.name");
    assert!(error.message.contains("nowhere.invalid"), "{}", error.message);
}

#[test]
fn a_name_without_an_address_of_the_version_asked_for_is_named() {
    let mut document = document();
    document["relay"]["services"]["C"]["name"] = json!("127.0.0.1");
    for (ip, refused) in [(json!(null), false), (json!("IPv4"), false), (json!("IPv6"), true)] {
        document["relay"]["ip"] = ip;
        let config = Config::parse(&document.to_string()).unwrap();
        let relay = config.relay.clone().unwrap();
        let error = relay.options("C", &relay.services["C"], &config).err().map(|error| (error.field, error.message));
        let said = "127.0.0.1 does not resolve: the name has no IPv6 address".to_owned();
        assert_eq!(error, refused.then(|| ("relay.services.C.name".to_owned(), said)));
    }
    document["relay"]["ip"] = json!("IPv5");
    assert!(Config::parse(&document.to_string()).is_err());
}
