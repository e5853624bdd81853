//! Services that pass requests on: chains over every protocol, methods, order, concurrency.

mod common;

use common::Told;
use common::h2client::H2Client;
use common::h3client::H3Client;
use common::services::{Callee, chain, entries, last, message, service};
use common::{Response, Server};
use serde_json::{Value, json};
use trifecta_wire::h2::{ErrorCode, write};

const PROTOCOLS: [&str; 3] = ["h1", "h2", "h3"];

fn post(server: &Server, path: &str, content: &str) -> Response {
    let mut client = server.h1();
    client.send(format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{content}", content.len()));
    client.response().expect("a response")
}

fn ns(entry: &Value, field: &str) -> u64 {
    entry[field].as_u64().unwrap_or_else(|| panic!("{field} is a number in {entry}"))
}

/// Who called whom, in the order of the entries.
fn hops(entries: &[Value]) -> Vec<(String, Option<String>)> {
    let name = |value: &Value| value.as_str().map(str::to_owned);
    entries.iter().map(|entry| (name(&entry["service"]).unwrap(), name(&entry["to"]))).collect()
}

fn hop(service: &str, to: Option<&str>) -> (String, Option<String>) {
    (service.to_owned(), to.map(str::to_owned))
}

#[test]
fn a_chain_answers_with_every_hop_over_each_pair_of_protocols() {
    for first in PROTOCOLS {
        for second in PROTOCOLS {
            for mode in ["new", "reused"] {
                let d = last("D", "");
                let c = service("C", &chain("D"), &[Callee::new("D", &d, second, mode)], &json!({}), "");
                let b = service("B", &chain("C"), &[Callee::new("C", &c, first, mode)], &json!({}), "");
                for round in 0..3 {
                    let response = post(&b, "/chain", &message(10_000));
                    assert_eq!(response.status, 200, "{first} {second} {mode}: {response:?}");
                    let entries = entries(&response.content);
                    assert_eq!(hops(&entries), [hop("B", Some("C")), hop("C", Some("D")), hop("D", None)]);
                    for (caller, callee) in [(0, 1), (1, 2)] {
                        let (caller, callee) = (&entries[caller], &entries[callee]);
                        let mut times = vec![ns(caller, "arrived_ns"), ns(caller, "forwarded_ns")];
                        if mode == "new" || round == 0 {
                            times.push(ns(caller, "secured_ns"));
                        } else {
                            assert_eq!(caller["secured_ns"], Value::Null, "a reused connection");
                        }
                        times.extend([ns(callee, "arrived_ns"), ns(callee, "replied_ns")]);
                        times.extend([ns(caller, "returned_ns"), ns(caller, "replied_ns")]);
                        assert!(times.is_sorted(), "{times:?}");
                        assert_eq!((&caller["status"], &caller["error"]), (&json!(200), &Value::Null));
                        assert_eq!((&caller["method"], &caller["path"]), (&json!("POST"), &json!("/chain")));
                    }
                    let end = &entries[2];
                    assert_eq!((&end["status"], &end["forwarded_ns"]), (&json!(200), &Value::Null));
                }
                let stats = b.finish().told();
                let calls = &stats["relay"]["calls"]["C"];
                let connections = if mode == "new" { 3 } else { 1 };
                assert_eq!((&calls["protocol"], &calls["status"]), (&json!(first), &json!({"200": 3})));
                assert_eq!((&calls["connections"], &calls["errors"]), (&json!(connections), &json!({})));
                assert_eq!(calls["protocols_spoken"], json!({first: 3}));
                assert!(stats["relay"]["wire_bytes_out"].as_u64().unwrap() > 30_000, "{stats:?}");
                assert_eq!((&stats["relay"]["answers_dropped"], &stats["relay"]["unfinished"]), (&json!(0), &json!(0)));
                let stats = c.finish().told();
                assert_eq!(stats["requests"][first], json!({"200": 3}));
                let stats = d.finish().told();
                assert_eq!(stats["requests"][second], json!({"200": 3}));
                // The body goes all the way, and each service adds to the meta.
                assert!(stats["content_bytes_in"].as_u64().unwrap() > 30_600, "{stats:?}");
            }
        }
    }
}

#[test]
fn every_method_passes_over_every_protocol() {
    let d = last("D", "");
    for inside in PROTOCOLS {
        let b = service("B", &chain("D"), &[Callee::new("D", &d, inside, "reused")], &json!({}), "");
        let mut h1 = b.h1();
        let mut h2 = b.h2();
        h2.start(&[]);
        let mut h3 = H3Client::connect(&b);
        for (number, method) in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].into_iter().enumerate() {
            let content = if ["POST", "PUT", "PATCH"].contains(&method) { message(100) } else { String::new() };
            let length =
                if content.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", content.len()) };
            h1.send(format!("{method} /chain HTTP/1.1\r\nHost: a\r\n{length}\r\n{content}"));
            let first = h1.response_to(method == "HEAD").unwrap();
            let stream = 2 * number as u32 + 1;
            h2.request(stream, method, "/chain", content.is_empty());
            if !content.is_empty() {
                h2.data(stream, content.as_bytes(), true);
            }
            let second = h2.response(stream);
            let third = h3.ask(method, "/chain", content.as_bytes());
            assert_eq!((first.status, second.status, third.status), (200, 200, 200), "{method} {inside}");
            if method == "HEAD" {
                let field = first.head.lines().find_map(|line| line.strip_prefix("trifecta-meta: ")).unwrap();
                for meta in [field, third.field("trifecta-meta").unwrap()] {
                    let entries: Vec<Value> = serde_json::from_str(meta).unwrap();
                    assert_eq!(hops(&entries), [hop("B", Some("D")), hop("D", None)], "{inside}");
                    assert_eq!(entries[0]["method"], "HEAD");
                }
                assert_eq!((first.content.len(), second.content.len(), third.content.len()), (0, 0, 0));
            } else {
                for content in [&first.content, &second.content, &third.content] {
                    let entries = entries(content);
                    assert_eq!(hops(&entries), [hop("B", Some("D")), hop("D", None)], "{method} {inside}");
                    assert_eq!(entries[1]["method"], method);
                }
            }
        }
        h1.send("OPTIONS /chain HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(h1.response().unwrap().status, 405);
        assert_eq!(h1.get("/bytes/10").content.len(), 10, "what is no route is served as ever");
    }
}

#[test]
fn calls_are_made_one_after_the_other_and_in_order() {
    let d = last("D", r#", "faults": {"delay_ns": 2000000}"#);
    let routes = json!({"/few": {"answer": 50}, "/none": {}});
    let c = service("C", &routes, &[], &json!({}), "");
    let calls = json!([{"to": "C", "method": "POST", "path": "/few", "body": 1000},
        {"to": "D", "method": "same", "path": "/chain", "body": "none"},
        {"to": "C", "method": "GET", "path": "/none"}, {"to": "D", "method": "DELETE", "path": "/chain"}]);
    let routes = json!({"/register": {"calls": calls, "answer": 77}});
    let callees = [Callee::new("C", &c, "h2", "reused"), Callee::new("D", &d, "h3", "reused")];
    let b = service("B", &routes, &callees, &json!({}), "");
    let response = post(&b, "/register", &message(500));
    assert_eq!(response.status, 200);
    let answer: Value = serde_json::from_slice(&response.content).unwrap();
    assert_eq!(answer["message"]["body"].as_str().unwrap().len(), 77);
    let entries = entries(&response.content);
    let expected = [("B", Some("C")), ("C", None), ("B", Some("D")), ("D", None)];
    let expected = expected.iter().chain(&expected).map(|(service, to)| hop(service, *to));
    assert_eq!(hops(&entries), expected.collect::<Vec<_>>());
    let methods: Vec<&str> = entries.iter().map(|entry| entry["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["POST", "POST", "POST", "POST", "GET", "GET", "DELETE", "DELETE"]);
    let paths: Vec<&str> = entries.iter().step_by(2).map(|entry| entry["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/few", "/chain", "/none", "/chain"]);
    for pair in entries.iter().step_by(2).collect::<Vec<_>>().windows(2) {
        assert!(ns(pair[0], "returned_ns") <= ns(pair[1], "forwarded_ns"), "one after the other");
        assert_eq!((&pair[0]["arrived_ns"], &pair[0]["replied_ns"]), (&pair[1]["arrived_ns"], &pair[1]["replied_ns"]));
    }
    // A thousand octets of filler went to C; D got the meta without a body.
    let octets = |server: Server| server.finish().told()["content_bytes_in"].as_u64().unwrap();
    assert!((1_200..2_000).contains(&octets(c)));
    assert!((200..700).contains(&octets(d)));
}

#[test]
fn many_cycles_at_once_share_the_connections_they_may_have() {
    for (protocol, connections, streams) in [("h1", 7, 1), ("h2", 1, 100), ("h2", 3, 10), ("h3", 1, 100), ("h3", 2, 10)]
    {
        let d = last("D", r#", "faults": {"delay_ns": 1000000}"#);
        let callee = Callee { connections, streams, ..Callee::new("D", &d, protocol, "reused") };
        let b = service("B", &chain("D"), &[callee], &json!({}), "");
        let mut client = b.h2();
        client.start(&[]);
        let mut window = Vec::new();
        write::window_update(0, 1 << 20, &mut window);
        client.send(&window);
        let content = message(1_000);
        for round in 0..3 {
            let streams: Vec<u32> = (0..100).map(|number| round * 200 + 2 * number + 1).collect();
            for stream in &streams {
                client.request(*stream, "POST", "/chain", false);
                client.data(*stream, content.as_bytes(), true);
            }
            for stream in &streams {
                let response = client.response(*stream);
                assert_eq!(response.status, 200, "{protocol} {connections}");
                assert_eq!(entries(&response.content).len(), 2);
            }
        }
        let calls = b.finish().told()["relay"]["calls"]["D"].clone();
        assert_eq!(calls["status"], json!({"200": 300}), "{protocol}");
        assert_eq!(calls["connections"], json!(connections), "{protocol} {connections} {streams}");
        assert_eq!(d.finish().told()["requests"][protocol], json!({"200": 300}));
    }
}

#[test]
fn calls_that_wait_for_a_connection_go_in_the_order_they_came() {
    let d = last("D", "");
    let callee = Callee { connections: 1, ..Callee::new("D", &d, "h1", "reused") };
    let b = service("B", &chain("D"), &[callee], &json!({}), "");
    let mut client = b.h2();
    client.start(&[]);
    let mut burst = Vec::new();
    for number in 0..50 {
        write::headers(2 * number + 1, &H2Client::block("GET", "/chain", &[]), true, &mut burst);
    }
    client.send(&burst);
    let mut begun: Vec<u64> = Vec::new();
    for number in 0..50 {
        let response = client.response(2 * number + 1);
        begun.push(ns(&entries(&response.content)[0], "forwarded_ns"));
    }
    assert!(begun.is_sorted(), "{begun:?}");
    assert_eq!(b.finish().told()["relay"]["calls"]["D"]["connections"], 1);
}

#[test]
fn a_new_connection_for_each_of_many_calls_at_once() {
    for protocol in PROTOCOLS {
        let d = last("D", "");
        let b = service("B", &chain("D"), &[Callee::new("D", &d, protocol, "new")], &json!({}), "");
        let mut client = b.h2();
        client.start(&[]);
        for number in 0..100 {
            client.request(2 * number + 1, "GET", "/chain", true);
        }
        for number in 0..100 {
            let response = client.response(2 * number + 1);
            assert_eq!(response.status, 200, "{protocol}");
            assert!(entries(&response.content)[0]["secured_ns"].is_u64());
        }
        assert_eq!(b.finish().told()["relay"]["calls"]["D"]["connections"], 100);
    }
}

#[test]
fn an_answer_whose_client_has_gone_is_dropped_and_counted() {
    let d = last("D", r#", "faults": {"delay_ns": 100000000}"#);
    let b = service("B", &chain("D"), &[Callee::new("D", &d, "h2", "reused")], &json!({}), "");
    // A stream that is reset, a connection that is closed over TCP, and one over QUIC.
    let mut resetting = b.h2();
    resetting.start(&[]);
    resetting.request(1, "GET", "/chain", true);
    let mut out = Vec::new();
    write::rst_stream(1, ErrorCode::CANCEL, &mut out);
    resetting.send(&out);
    let mut closing = b.h1();
    closing.send("GET /chain HTTP/1.1\r\nHost: a\r\n\r\n");
    drop(closing);
    let mut quic = H3Client::connect(&b);
    quic.send(quinn_proto::Dir::Bi, &common::h3client::request("GET", "/chain", &[]), true);
    // An answer to what was asked later says that the first request is being relayed.
    assert_eq!(quic.ask("GET", "/bytes/1", &[]).status, 200);
    quic.close();
    resetting.request(3, "GET", "/chain", true);
    assert_eq!(resetting.response(3).status, 200);
    let relay = b.finish().told()["relay"].clone();
    assert_eq!(relay["calls"]["D"]["status"]["200"], 4, "nothing was cancelled: {relay}");
    assert!(relay["answers_dropped"].as_u64().unwrap() >= 2, "{relay}");
}

#[test]
fn workers_relay_each_for_itself() {
    let d = last("D", "");
    let callee = Callee::new("D", &d, "h2", "reused");
    let b = service("B", &chain("D"), &[callee], &json!({}), r#", "workers": 3"#);
    for _ in 0..20 {
        assert_eq!(post(&b, "/chain", &message(10)).status, 200);
    }
    let calls = b.finish().told()["relay"]["calls"]["D"].clone();
    assert_eq!(calls["status"], json!({"200": 20}));
}

#[test]
fn large_messages_and_answers_pass_over_every_protocol() {
    for protocol in PROTOCOLS {
        let d = service("D", &json!({"/chain": {"answer": 400_000}}), &[], &json!({}), "");
        let routes = json!({"/chain": {"calls": [{"to": "D", "path": "/chain"}], "answer": 300_000}});
        let b = service("B", &routes, &[Callee::new("D", &d, protocol, "reused")], &json!({}), "");
        for _ in 0..2 {
            let response = post(&b, "/chain", &message(1_000_000));
            assert_eq!(response.status, 200, "{protocol}");
            let answer: Value = serde_json::from_slice(&response.content).unwrap();
            assert_eq!(answer["message"]["body"].as_str().unwrap().len(), 300_000);
            assert_eq!(entries(&response.content).len(), 2);
        }
        let relay = b.finish().told()["relay"].clone();
        assert!(relay["wire_bytes_out"].as_u64().unwrap() > 2_000_000, "{protocol}: {relay}");
        assert!(relay["wire_bytes_in"].as_u64().unwrap() > 800_000, "{protocol}: {relay}");
    }
}

#[test]
fn a_service_is_found_by_its_name() {
    let d = last("D", "");
    let callee = Callee::new("D", &d, "h2", "reused");
    let authority = d.pki.certificate_file();
    let named = json!({"D": {"name": "localhost", "address": null, "port": callee.port, "protocol": "h2",
        "connection_mode": "reused"}});
    let b = service("B", &chain("D"), &[], &json!({"services": named, "ca_file": authority}), "");
    assert_eq!(post(&b, "/chain", &message(10)).status, 200);
}
