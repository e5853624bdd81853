use super::*;
use serde_json::{Value, json};

fn document() -> Value {
    let mut document = json!({"trial": "t00012", "protocol": "h2", "address": "10.77.0.2", "port": 8443, "server_name": "origin.lab",
        "ca_file": "pki/ca.pem", "workers": 1, "connections": 1, "streams": 10, "connection_mode": "reused",
        "loop": {"kind": "closed"}, "requests": 1000, "duration_ns": 0, "warmup_requests": 0, "warmup_ns": 0,
        "method": "GET", "path": "/bytes/1000", "request_body_bytes": 0, "expect_body_bytes": 1000, "expect_status": 200,
        "connect_timeout_ns": 10_000_000_000u64, "request_timeout_ns": 10_000_000_000u64,
        "total_timeout_ns": 60_000_000_000u64,
        "resumption": false, "zero_rtt": false, "congestion_control": "cubic", "tcp_nodelay": true,
        "tls_version": "1.3", "key_exchange": "X25519", "cipher": "TLS_AES_128_GCM_SHA256",
        "udp_receive_buffer_bytes": 4_194_304, "max_udp_payload_bytes": 1452, "tcp_receive_buffer_bytes": 0, "seed": 1,
        "cpu": null, "samples_file": "x.parquet", "keylog_file": null, "qlog_dir": null});
    // The macro takes no more fields at once.
    let cycles = json!({"requests_per_client": 0, "message": null, "service": "A", "to": null, "spans_file": null});
    document.as_object_mut().unwrap().extend(cycles.as_object().unwrap().clone());
    document
}

#[test]
fn the_document_of_the_architecture_is_read() {
    let config = Config::parse(&document().to_string()).unwrap();
    assert_eq!(config.protocol, Protocol::H2);
    assert_eq!(config.load, Loop::Closed { least_gap_ns: 0 });
    assert_eq!(config.options().authority(), "origin.lab:8443");
    assert_eq!((config.concurrency(), config.streams_per_connection()), (1, 10));
    assert!(config.verifies_content());
    assert_eq!(config.expected_content(), Some(1000));
    assert_eq!(config.clients(), 10);
}

#[test]
fn derived_values_follow_the_fields() {
    let with = |changes: Value| {
        let mut document = document();
        for (field, value) in changes.as_object().unwrap() {
            document[field] = value.clone();
        }
        Config::parse(&document.to_string()).unwrap()
    };
    let new = with(json!({"connection_mode": "new", "connections": 2}));
    assert_eq!((new.concurrency(), new.streams_per_connection()), (20, 1));
    assert_eq!(with(json!({"method": "HEAD"})).expected_content(), Some(0));
    assert!(!with(json!({"path": "/index.html"})).verifies_content());
    assert!(with(json!({"path": "/index.html", "verify_content": true})).verifies_content());
    assert_eq!(with(json!({"port": 443})).options().authority(), "origin.lab");
    let open = with(json!({"loop": {"kind": "open", "rate_per_s": 30_000, "arrivals": "poisson"}}));
    assert_eq!(open.load, Loop::Open { rate_per_s: 30_000.0, arrivals: Arrivals::Poisson });
    assert_eq!((open.least_gap_ns(), open.options().user_agent), (0, None));
    let paced = json!({"kind": "closed", "least_gap_ns": 500_000_000});
    let polite = with(json!({"loop": paced, "streams": 1, "user_agent": "x (y)", "record_fields": ["age", "x-cache"],
        "end_on_statuses": [429, 503]}));
    assert_eq!((polite.least_gap_ns(), polite.options().user_agent.as_deref()), (500_000_000, Some("x (y)")));
}

#[test]
fn wrong_values_name_their_field() {
    let table: &[(&str, Value)] = &[
        ("colour", json!("red")),
        ("protocol", json!("h4")),
        ("ip", json!("IPv5")),
        ("workers", json!(0)),
        ("workers", json!(2)),
        ("streams", json!(0)),
        ("port", json!(0)),
        ("requests", json!(0)),
        ("loop.rate_per_s", json!(0)),
        ("end_on_statuses", json!([42])),
        ("record_fields", json!(["Age"])),
        ("record_fields", json!([""])),
        ("user_agent", json!("a\r\nb: c")),
        ("user_agent", json!(" x")),
        ("request_timeout_ns", json!(0)),
        ("total_timeout_ns", json!(u64::MAX)),
        ("duration_ns", json!(u64::MAX)),
        ("path", json!("bytes/1")),
        ("path", json!("/a b")),
        ("path", json!("/a\r\nx: y")),
        ("server_name", json!("a b")),
        ("server_name", json!("")),
        ("request_body_bytes", json!(5)),
        ("tls_version", json!("1.1")),
        ("key_exchange", json!("P-521")),
        ("congestion_control", json!("vegas")),
        ("zero_rtt", json!(true)),
        ("max_udp_payload_bytes", json!(1000)),
        ("trial", json!("")),
        ("address", json!("example.org")),
        ("method", json!("TRACE")),
        ("service", json!("")),
        ("to", json!("a b")),
        ("message", json!({"body_bytes": 5})),
        ("message", json!({"colour": 5})),
        ("spans_file", json!("x")),
    ];
    for (field, value) in table {
        let mut document = document();
        if let Some(inner) = field.strip_prefix("loop.") {
            document["loop"] = json!({"kind": "open", inner: value});
        } else {
            document[field] = value.clone();
        }
        let error = Config::parse(&document.to_string()).unwrap_err();
        // serde names the field of a wrong type only in some messages; ours always.
        let named = error.field == *field || error.field == "config";
        assert!(named, "{field} = {value}: {error:?}");
        assert!(!error.message.is_empty());
    }
    let mut h1 = document();
    h1["protocol"] = json!("h1");
    assert_eq!(Config::parse(&h1.to_string()).unwrap_err().field, "streams");
    let mut h3 = document();
    (h3["protocol"], h3["tls_version"]) = (json!("h3"), json!("1.2"));
    assert_eq!(Config::parse(&h3.to_string()).unwrap_err().field, "tls_version");
    let mut tuned = document();
    tuned["tuning"] = json!({"initial_window_packets": 1});
    assert_eq!(Config::parse(&tuned.to_string()).unwrap_err().field, "tuning.initial_window_packets");
    tuned["tuning"] = json!({"initial_window_packets": 2});
    assert_eq!(Config::parse(&tuned.to_string()).unwrap().options().tuning.initial_window_packets, Some(2));
}

#[test]
fn a_least_gap_belongs_to_one_request_at_a_time() {
    for (gap_ns, streams, fits) in [(1_000, 1, true), (1_000, 2, false), (u64::MAX, 1, false), (0, 9, true)] {
        let mut document = document();
        document["streams"] = json!(streams);
        document["loop"] = json!({"kind": "closed", "least_gap_ns": gap_ns});
        let refused = Config::parse(&document.to_string()).err().map(|error| error.field);
        assert_eq!(refused, (!fits).then(|| "loop.least_gap_ns".to_owned()), "{gap_ns} {streams}");
    }
}

#[test]
fn unknown_and_missing_fields_are_named() {
    let mut unknown = document();
    unknown["colour"] = json!("red");
    assert_eq!(Config::parse(&unknown.to_string()).unwrap_err().field, "colour");
    let mut missing = document();
    missing.as_object_mut().unwrap().remove("server_name");
    assert_eq!(Config::parse(&missing.to_string()).unwrap_err().field, "server_name");
    let mut nested = document();
    nested["loop"] = json!({"kind": "closed", "rate": 5});
    assert_eq!(Config::parse(&nested.to_string()).unwrap_err().field, "rate");
    assert_eq!(Config::parse("{").unwrap_err().field, "config");
}

#[test]
fn cycles_have_fields_that_belong_together() {
    let parse = |changes: Value| {
        let mut document = document();
        (document["to"], document["path"], document["method"]) = (json!("B"), json!("/chain"), json!("POST"));
        document["message"] = json!({"body_bytes": 128});
        for (field, value) in changes.as_object().unwrap() {
            document[field] = value.clone();
        }
        Config::parse(&document.to_string())
    };
    let config = parse(json!({"spans_file": "y"})).unwrap();
    assert_eq!(config.message, Some(MessageSource::BodyBytes(128)));
    assert_eq!((config.service.as_str(), config.expected_content(), config.verifies_content()), ("A", None, false));
    let folder = parse(json!({"message": {"folder": "bodies"}})).unwrap().message;
    assert_eq!(folder, Some(MessageSource::Folder("bodies".into())));
    assert_eq!(parse(json!({"method": "HEAD", "message": null})).unwrap().expected_content(), Some(0));
    assert!(!parse(json!({"path": "/bytes/1"})).unwrap().verifies_content());
    let many = parse(json!({"requests": 0, "requests_per_client": 5})).unwrap();
    assert_eq!((many.requests_per_client, many.clients()), (5, 10));
    let open = json!({"kind": "open", "rate_per_s": 5});
    for (field, changes) in [
        ("requests", json!({"requests_per_client": 5})),
        ("requests_per_client", json!({"requests": 0, "requests_per_client": 5, "loop": open})),
        ("requests_per_client", json!({"requests": 0, "requests_per_client": u64::MAX})),
        ("message", json!({"method": "GET"})),
        ("message", json!({"message": null})),
        ("request_body_bytes", json!({"request_body_bytes": 5})),
        ("verify_content", json!({"verify_content": true})),
    ] {
        assert_eq!(parse(changes.clone()).unwrap_err().field, field, "{changes}");
    }
}

#[test]
fn a_name_is_resolved_where_there_is_no_address() {
    let with = |changes: Value| {
        let mut document = document();
        for (field, value) in changes.as_object().unwrap() {
            document[field] = value.clone();
        }
        Config::parse(&document.to_string()).unwrap()
    };
    assert_eq!(with(json!({})).resolve().unwrap(), None);
    let mut named = with(json!({"address": null, "server_name": "localhost"}));
    let found = named.resolve().unwrap().unwrap();
    assert!(found.address.is_loopback());
    assert_eq!(named.socket_address(), SocketAddr::new(found.address, 8443));
    (named.address, named.server_name) = (None, "a..b".into());
    assert!(named.resolve().is_err());
    let mut four = with(json!({"address": null, "server_name": "127.0.0.1", "ip": "IPv6"}));
    assert_eq!(four.resolve().unwrap_err().to_string(), "the name has no IPv6 address");
    four = with(json!({"address": null, "server_name": "127.0.0.1", "ip": "IPv4"}));
    assert_eq!(four.resolve().unwrap().unwrap().address, IpAddr::from([127, 0, 0, 1]));
}
