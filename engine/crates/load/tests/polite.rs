//! Manners towards servers of others: pauses, when to leave off, who asks, and what is kept of answers.

mod common;

use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use common::h3server::{self, Answer, always};
use common::{OK, Run, Server, answer, h2server, read_request, run};
use serde_json::{Value, json};
use trifecta_testpki::TestPki;
use trifecta_wire::h3::{MessageEvent, MessageReader};
use trifecta_wire::qpack;

const CONTROL: &[u8] = &[0x00, 0x04, 0x00];
const GAP_NS: u64 = 40_000_000;
const BUSY: &str = "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\nretry-after: 7\r\n\r\n";
const CACHED: &str =
    "HTTP/1.1 200 OK\r\nAge: 3\r\nX-Cache: HIT\r\nvia: 1.1 a\r\nVia: 1.1 b\r\ncontent-length: 5\r\n\r\nabcde";
const FIELDS: [(&str, &str); 5] =
    [("age", "3"), ("x-cache", "HIT"), ("via", "1.1 a"), ("via", "1.1 b"), ("content-length", "5")];

fn paced(more: &Value) -> Value {
    let mut changes = json!({"requests": 4, "loop": {"kind": "closed", "least_gap_ns": GAP_NS}});
    for (field, value) in more.as_object().into_iter().flatten() {
        changes[field] = value.clone();
    }
    changes
}

fn h2(status: u16, fields: &'static [(&'static str, &'static str)]) -> Server {
    Server::tls(
        &[b"h2"],
        h2server::serve(&[], move |seen| {
            let mut out = Vec::new();
            let has_content = status == 200;
            h2server::headers(seen.stream, status, fields, !has_content, &mut out);
            if has_content {
                h2server::data(seen.stream, b"abcde", true, &mut out);
            }
            out
        }),
    )
}

fn h3(status: &str, fields: &[(&str, &str)]) -> h3server::Server {
    let content = if status == "200" { h3server::data(5, b"abcde") } else { Vec::new() };
    h3server::Server::new(CONTROL, always([h3server::headers(status, fields), content].concat()))
}

fn ask_h3(server: &h3server::Server, mut changes: Value) -> Run {
    changes["protocol"] = json!("h3");
    run(&server.pki, server.address, changes)
}

fn assert_spaced(run: &Run, number: usize) {
    let mut starts: Vec<u64> = run.samples.iter().map(|row| row.started_ns).collect();
    starts.sort_unstable();
    assert_eq!(starts.len(), number);
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= GAP_NS), "{starts:?}");
    assert!(run.samples.iter().all(|row| row.intended_ns == 0), "no schedule that latency would count from");
}

#[test]
fn requests_keep_their_distance_over_every_protocol() {
    let (h1, h2, h3) = (Server::tls(&[b"http/1.1"], answer(OK)), h2(200, &FIELDS), h3("200", &FIELDS));
    for mode in ["new", "reused"] {
        let more = json!({"connection_mode": mode, "warmup_requests": 1});
        let mut of_h2 = paced(&more);
        of_h2["protocol"] = json!("h2");
        for run in [h1.run(paced(&more)), h2.run(of_h2), ask_h3(&h3, paced(&more))] {
            assert_eq!((run.only_error(), &run.summary["ended"]), (None, &json!("requests")));
            assert_spaced(&run, 5);
            let opened = run.summary["connections_opened"].as_u64().unwrap();
            assert_eq!(opened, if mode == "new" { 5 } else { 1 });
        }
    }
}

#[test]
fn attempts_to_connect_keep_it_too() {
    let (pki, gone) = (TestPki::new(), TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    for mode in ["new", "reused"] {
        let run = run(&pki, gone, paced(&json!({"connection_mode": mode})));
        assert_eq!(run.only_error(), Some("connect_refused"));
        assert_spaced(&run, 4);
    }
}

#[test]
fn a_connection_that_is_ended_while_nothing_is_asked_is_not_opened_again_at_once() {
    let answered = AtomicBool::new(false);
    let server = Server::tls(&[b"http/1.1"], move |stream| {
        if !answered.swap(true, Ordering::SeqCst) && read_request(stream).is_some() {
            let _ = stream.write_all(OK).and_then(|()| stream.flush());
        } else {
            let _ = stream.flush(); // the handshake, and then the end
        }
    });
    let run = server.run(paced(&json!({"requests": 2})));
    assert_eq!(run.samples.len(), 2);
    let opened = server.accepted.load(Ordering::SeqCst);
    assert!((2..=4).contains(&opened), "{opened} in one pause");
}

#[test]
fn a_status_of_those_named_is_the_last_answer() {
    let h1 = Server::tls(&[b"http/1.1"], answer(BUSY.as_bytes()));
    let (h2, h3) = (h2(503, &[]), h3("503", &[]));
    let more = json!({"end_on_statuses": [429, 503], "requests": 50, "record_fields": ["retry-after"]});
    let mut of_h2 = paced(&more);
    of_h2["protocol"] = json!("h2");
    for run in [h1.run(paced(&more)), h2.run(of_h2), ask_h3(&h3, paced(&more))] {
        assert_eq!((run.only_error(), run.samples.len()), (Some("status"), 1));
        assert_eq!((&run.summary["ended"], &run.summary["not_started"]), (&json!("status"), &json!(49)));
    }
    let said = &h1.run(paced(&more)).summary["response_fields"]["retry-after"];
    assert_eq!(said, &json!({"values": {"7": 1}, "others": 0}));
    let run = h1.run(json!({"requests": 3}));
    assert_eq!((run.samples.len(), &run.summary["ended"]), (3, &json!("requests")), "not named: not the last");
}

#[test]
fn fields_are_kept_with_their_values_over_every_protocol() {
    let h1 = Server::tls(&[b"http/1.1"], answer(CACHED.as_bytes()));
    let (h2, h3) = (h2(200, &FIELDS), h3("200", &FIELDS));
    let changes = json!({"requests": 3, "record_fields": ["age", "via", "x-cache", "server-timing"]});
    let mut of_h2 = changes.clone();
    of_h2["protocol"] = json!("h2");
    for run in [h1.run(changes.clone()), h2.run(of_h2), ask_h3(&h3, changes)] {
        assert_eq!(run.only_error(), None);
        let expected = json!({
            "age": {"values": {"3": 3}, "others": 0}, "server-timing": {"values": {}, "others": 0},
            "via": {"values": {"1.1 a": 3, "1.1 b": 3}, "others": 0}, "x-cache": {"values": {"HIT": 3}, "others": 0}
        });
        assert_eq!(run.summary["response_fields"], expected);
    }
    assert_eq!(h1.run(json!({})).summary["response_fields"], json!({}));
}

#[test]
fn who_asks_is_said_over_http1() {
    let heads = Arc::new(Mutex::new(String::new()));
    let seen = heads.clone();
    let server = Server::tls(&[b"http/1.1"], move |stream| {
        while let Some(request) = read_request(stream) {
            seen.lock().unwrap().push_str(&request.head);
            let _ = stream.write_all(OK).and_then(|()| stream.flush());
        }
    });
    server.run(json!({}));
    assert!(heads.lock().unwrap().contains("user-agent: trifecta/"));
    heads.lock().unwrap().clear();
    server.run(json!({"user_agent": "trifecta/1 (compares)"}));
    assert!(heads.lock().unwrap().contains("\r\nuser-agent: trifecta/1 (compares)\r\n"));
}

#[test]
fn who_asks_is_said_over_http3() {
    for agent in [None, Some("trifecta/1 (compares)")] {
        let agents = Arc::new(Mutex::new(Vec::new()));
        let seen = agents.clone();
        let mut send = always(h3server::response(5));
        let answer: Answer = Box::new(move |connection, id, octets, number| {
            let (mut reader, mut rest) = (MessageReader::new(), octets);
            if let Ok(Some(MessageEvent::Head(section))) = reader.read(&mut rest) {
                let keep = |name: &[u8], value: &[u8]| {
                    if name == b"user-agent" {
                        seen.lock().unwrap().push(String::from_utf8(value.to_vec()).unwrap());
                    }
                };
                qpack::Decoder::new(65_536).decode(section, keep).unwrap();
            }
            send(connection, id, octets, number);
        });
        let server = h3server::Server::new(CONTROL, answer);
        assert_eq!(ask_h3(&server, json!({"user_agent": agent})).only_error(), None);
        assert_eq!(*agents.lock().unwrap(), agent.into_iter().collect::<Vec<_>>());
    }
}
