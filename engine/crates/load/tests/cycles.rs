//! Cycles against a service that says what a real one would, and against services that say something else.

mod common;

use std::io::Write;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use common::{Run, Server, h2server, h3server, read_request};
use serde_json::{Value, json};
use trifecta_record::Span;
use trifecta_wire::clock::now_ns;

/// Requests as the service saw them: the head where it is text, and the content.
type Seen = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// What B says of its call to C, and C of itself.
fn meta(arrived_ns: u64) -> Vec<Value> {
    // Sooner than any answer can be back.
    let replied_ns = arrived_ns + 100;
    vec![
        json!({"service": "B", "to": "C", "method": "POST", "path": "/chain", "arrived_ns": arrived_ns,
            "forwarded_ns": arrived_ns + 10, "secured_ns": null, "returned_ns": replied_ns - 10, "replied_ns": replied_ns,
            "status": 200, "error": null}),
        json!({"service": "C", "to": null, "method": "POST", "path": "/chain", "arrived_ns": arrived_ns + 20,
            "forwarded_ns": null, "secured_ns": null, "returned_ns": null, "replied_ns": replied_ns - 20, "status": null,
            "error": null}),
    ]
}

fn answer(meta: &[Value], filler: usize) -> Vec<u8> {
    json!({"message": {"meta": meta, "body": "x".repeat(filler)}}).to_string().into_bytes()
}

fn http1(status: &str, fields: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{fields}\r\n", content.len());
    [head.as_bytes(), content].concat()
}

/// A service over HTTP/1.1 that answers the n-th request with `respond(n, when it had arrived)`.
fn service(respond: impl Fn(usize, u64) -> Vec<u8> + Send + Sync + 'static) -> (Server, Seen) {
    let seen = Seen::default();
    let kept = seen.clone();
    let server = Server::tls(&[b"http/1.1"], move |stream| {
        while let Some(request) = read_request(stream) {
            let arrived_ns = now_ns();
            let number = {
                let mut kept = kept.lock().unwrap();
                kept.push((request.head, request.body));
                kept.len() - 1
            };
            if stream.write_all(&respond(number, arrived_ns)).and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
    });
    (server, seen)
}

fn fields(changes: Value) -> Value {
    let mut document = json!({"method": "POST", "path": "/chain", "to": "B", "message": {"body_bytes": 128},
        "expect_body_bytes": 5, "spans_file": "unused", "connect_timeout_ns": 9_000_000_000u64,
        "request_timeout_ns": 9_000_000_000u64});
    for (field, value) in changes.as_object().unwrap() {
        document[field] = value.clone();
    }
    document
}

fn spans(run: &Run) -> Vec<Span<'_>> {
    run.spans.iter().flat_map(|store| store.iter()).collect()
}

/// Two hops for each request, in the order of their times.
fn assert_whole(run: &Run, requests: usize) {
    assert_eq!((run.samples.len(), run.only_error()), (requests, None));
    let spans = spans(run);
    assert_eq!(spans.len(), 2 * requests);
    for hops in spans.chunks(2) {
        let (first, second) = (hops[0], hops[1]);
        let sample = run.samples.iter().find(|sample| sample.request == first.request).unwrap();
        assert_eq!((first.ordinal, first.depth, first.caller, first.callee), (0, 0, "A", "B"));
        assert_eq!((second.ordinal, second.depth, second.caller, second.callee), (1, 1, "B", "C"));
        assert_eq!((first.path, first.status, first.error), ("/chain", 200, None));
        assert_eq!((first.client, first.connection), (sample.client, sample.connection));
        assert_eq!((second.request, second.client, second.connection), (first.request, first.client, first.connection));
        assert_eq!((first.started_ns, first.returned_ns), (sample.started_ns, sample.done_ns));
        let times = [first.started_ns, first.arrived_ns, second.started_ns, second.arrived_ns, second.replied_ns];
        assert!(times.is_sorted() && times[0] > 0, "{times:?}");
        assert!([second.returned_ns, first.replied_ns, first.returned_ns].is_sorted());
    }
}

#[test]
fn a_cycle_carries_a_message_and_its_answer_becomes_hops() {
    let (server, seen) = service(|_, arrived_ns| http1("200 OK", "", &answer(&meta(arrived_ns), 5)));
    let run = server.run(fields(json!({"requests": 20})));
    assert_whole(&run, 20);
    assert!(spans(&run).iter().all(|span| span.secured_ns == 0), "the connection stood before");
    assert!(spans(&run).iter().all(|span| span.method == "POST"));
    for (number, (head, body)) in seen.lock().unwrap().iter().enumerate() {
        assert!(head.contains("content-type: application/json\r\n"), "{head}");
        assert!(head.contains(&format!("trifecta-cycle: {number}\r\n")), "{head}");
        let message: Value = serde_json::from_slice(body).unwrap();
        let started_ns = run.samples[number].started_ns;
        let entry = json!({"service": "A", "to": "B", "method": "POST", "path": "/chain", "forwarded_ns": started_ns});
        assert_eq!(message["message"]["meta"], json!([entry]));
        assert_eq!(message["message"]["body"].as_str().unwrap().len(), 128);
        assert_eq!(run.samples[number].bytes_out, body.len() as u64);
    }
}

#[test]
fn with_a_connection_for_each_cycle_the_handshake_is_a_part_of_its_call() {
    let (server, _) = service(|_, arrived_ns| http1("200 OK", "", &answer(&meta(arrived_ns), 5)));
    let run = server.run(fields(json!({"requests": 8, "connections": 2, "connection_mode": "new"})));
    assert_whole(&run, 8);
    for first in spans(&run).iter().filter(|span| span.ordinal == 0) {
        assert!(first.started_ns < first.secured_ns && first.secured_ns < first.arrived_ns, "{first:?}");
    }
}

#[test]
fn cycles_go_over_http2() {
    let seen = Seen::default();
    let kept = seen.clone();
    let server = Server::tls(
        &[b"h2"],
        h2server::serve(&[], move |request| {
            kept.lock().unwrap().push((String::new(), request.body.clone()));
            let content = answer(&meta(now_ns()), 5);
            let mut out = Vec::new();
            let length = content.len().to_string();
            h2server::headers(request.stream, 200, &[("content-length", &length)], false, &mut out);
            // In two pieces, as an answer may come.
            h2server::data(request.stream, &content[..100], false, &mut out);
            h2server::data(request.stream, &content[100..], true, &mut out);
            out
        }),
    );
    // More than a frame holds, so that messages are sent in pieces too.
    let message = json!({"body_bytes": 40_000});
    let run = server.run(fields(json!({"protocol": "h2", "requests": 60, "streams": 7, "message": message})));
    assert_whole(&run, 60);
    let mut clients: Vec<u32> = run.samples.iter().map(|sample| sample.client).collect();
    clients.sort_unstable();
    clients.dedup();
    assert_eq!(clients, [0, 1, 2, 3, 4, 5, 6]);
    for (_, body) in seen.lock().unwrap().iter() {
        let message: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(message["message"]["body"].as_str().unwrap().len(), 40_000);
    }
}

#[test]
fn cycles_go_over_http3() {
    let answer: h3server::Answer = Box::new(move |connection, id, body, _| {
        let content = answer(&meta(now_ns()), 5);
        // DATA frame of 128 octets of filler and the client's entry.
        assert!(body.ends_with(b"\"}}") && body.len() > 200, "{}", body.len());
        let octets = [h3server::headers("200", &[]), h3server::data(content.len() as u64, &content)].concat();
        let mut stream = connection.send_stream(id);
        stream.write_chunks(&mut [Bytes::from(octets)]).unwrap();
        stream.finish().unwrap();
    });
    let server = h3server::Server::new(&[0x00, 0x04, 0x00], answer);
    let changes = json!({"protocol": "h3", "requests": 30, "connections": 2, "streams": 3});
    assert_whole(&common::run(&server.pki, server.address, fields(changes)), 30);
}

#[test]
fn head_has_its_meta_in_a_field_and_other_methods_carry_no_message() {
    let (server, seen) = service(|_, arrived_ns| {
        let meta = Value::from(meta(arrived_ns)).to_string();
        format!("HTTP/1.1 200 OK\r\ncontent-length: 700\r\nTrifecta-Meta: {meta}\r\n\r\n").into_bytes()
    });
    let run = server.run(fields(json!({"method": "HEAD", "message": null, "requests": 3})));
    assert_whole(&run, 3);
    let methods: Vec<&str> = spans(&run).iter().map(|span| span.method).collect();
    assert_eq!(methods[..2], ["HEAD", "POST"]);
    assert!(seen.lock().unwrap().iter().all(|(head, body)| head.contains("trifecta-cycle: ") && body.is_empty()));
    for method in ["GET", "DELETE"] {
        let (server, seen) = service(|_, arrived_ns| http1("200 OK", "", &answer(&meta(arrived_ns), 5)));
        let run = server.run(fields(json!({"method": method, "message": null, "requests": 3})));
        assert_whole(&run, 3);
        let all = seen.lock().unwrap();
        assert!(all.iter().all(|(head, body)| !head.contains("content-") && body.is_empty()), "{all:?}");
    }
}

#[test]
fn an_answer_that_is_no_message_is_an_error_of_its_content() {
    let table: [(&str, Vec<u8>, &str); 6] = [
        ("200 OK", b"abcde".to_vec(), "content"),
        ("200 OK", Vec::new(), "content"),
        ("200 OK", answer(&[], 5), "content"),
        ("200 OK", answer(&meta(now_ns())[1..], 5), "content"),
        ("200 OK", answer(&meta(now_ns()), 4), "length"),
        ("500 Oh", b"abcde".to_vec(), "status"),
    ];
    for (status, content, error) in table {
        let response = http1(status, "", &content);
        let (server, _) = service(move |_, _| response.clone());
        let run = server.run(fields(json!({"requests": 2, "expect_status": null})));
        assert_eq!(run.only_error(), Some(error), "{content:?}");
        let first = spans(&run)[0];
        assert_eq!((first.caller, first.callee, first.error), ("A", "B", Some(error)));
    }
}

#[test]
fn a_hop_that_failed_is_told_by_the_spans() {
    let (server, _) = service(|number, arrived_ns| {
        let mut meta = meta(arrived_ns);
        if number == 0 {
            return http1("200 OK", "", &answer(&meta, 5));
        }
        meta.truncate(1);
        for field in ["returned_ns", "status"] {
            meta[0][field] = Value::Null;
        }
        meta[0]["error"] = json!("timeout");
        http1("504 Gateway Timeout", "", &answer(&meta, 0))
    });
    let run = server.run(fields(json!({"requests": 2, "expect_status": null})));
    assert_eq!(run.errors(), [None, Some("status")]);
    let spans = spans(&run);
    let told: Vec<_> = spans[2..].iter().map(|span| (span.caller, span.status, span.error)).collect();
    assert_eq!(told, [("A", 504, Some("status")), ("B", 0, Some("timeout"))]);
    assert!(spans[3].started_ns > 0 && spans[3].arrived_ns == 0 && spans[2].returned_ns > 0);
}

#[test]
fn a_cycle_without_an_answer_keeps_the_hop_of_the_client() {
    let (server, _) =
        service(|_, _| b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"message\":{\"meta\":[".to_vec());
    let run = server.run(fields(json!({"requests": 2, "request_timeout_ns": 200_000_000})));
    assert_eq!(run.only_error(), Some("timeout"));
    let spans = spans(&run);
    assert_eq!(spans.len(), 2);
    for span in spans {
        assert_eq!((span.ordinal, span.status, span.returned_ns, span.arrived_ns), (0, 200, 0, 0));
        assert_eq!((span.error, span.started_ns > 0), (Some("timeout"), true));
    }
}

#[test]
fn requests_that_a_time_limit_kept_from_starting_are_counted() {
    let (server, _) = service(|_, _| Vec::new());
    let run = server.run(json!({"connections": 3, "requests": 0, "requests_per_client": 5, "path": "/x",
        "method": "POST", "request_timeout_ns": 9_000_000_000u64, "total_timeout_ns": 500_000_000}));
    assert_eq!((run.summary["ended"].as_str(), run.errors()), (Some("total_timeout"), vec![Some("timeout"); 3]));
    assert_eq!(run.summary["not_started"], 12);
}

#[test]
fn an_open_loop_says_when_a_call_really_began() {
    let (server, _) = service(|_, arrived_ns| http1("200 OK", "", &answer(&meta(arrived_ns), 5)));
    let open = json!({"kind": "open", "rate_per_s": 100_000});
    let run = server.run(fields(json!({"requests": 50, "loop": open})));
    assert_whole(&run, 50);
    // One connection cannot keep up with the schedule, so starts are late.
    assert!(run.samples.iter().any(|sample| sample.intended_ns < sample.started_ns));
}

#[test]
fn a_file_that_cannot_be_sent_ends_the_run_before_any_traffic() {
    let (server, seen) = service(|_, _| Vec::new());
    let folder = std::env::temp_dir().join(format!("trifecta-cycles-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.json"), "{").unwrap();
    let mut document = common::document(&server.pki, server.address);
    for (field, value) in fields(json!({"message": {"folder": folder}})).as_object().unwrap() {
        document[field] = value.clone();
    }
    let config = Arc::new(trifecta_load::config::Config::parse(&document.to_string()).unwrap());
    let error = trifecta_load::execute::<trifecta_session::h1::H1Session>(&config).err().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(error.field, "message.folder");
    assert!(seen.lock().unwrap().is_empty());
}

/// Clients over each protocol, with connections that stand and with new ones: each makes its own requests, no more and no less,
/// and the summary says when the first and the last of them began. The server of HTTP/3 is slow with many connections.
#[test]
fn clients_begin_together_and_make_their_requests() {
    let http2 = || Server::tls(&[b"h2"], h2server::serve(&[], |request| h2server::response(request.stream, 5)));
    let http1 = || Server::tls(&[b"http/1.1"], common::answer(common::OK));
    for mode in ["reused", "new"] {
        let changes = |protocol: &str, clients: u32| {
            json!({"protocol": protocol, "connection_mode": mode, "connections": clients, "requests": 0,
                "requests_per_client": 2, "workers": 2, "connect_timeout_ns": 60_000_000_000u64,
                "request_timeout_ns": 60_000_000_000u64, "total_timeout_ns": 300_000_000_000u64})
        };
        assert_fair(&http1().run(changes("h1", 100)), 100, 2);
        assert_fair(&http2().run(changes("h2", 100)), 100, 2);
        let server = h3server::Server::new(&[0x00, 0x04, 0x00], h3server::always(h3server::response(5)));
        assert_fair(&common::run(&server.pki, server.address, changes("h3", 40)), 40, 2);
    }
}

fn assert_fair(run: &Run, clients: u32, each: usize) {
    assert!(run.errors().iter().all(Option::is_none), "{:?} {}", run.errors(), run.summary);
    for client in 0..clients {
        let starts: Vec<u64> =
            run.samples.iter().filter(|sample| sample.client == client).map(|sample| sample.started_ns).collect();
        assert_eq!(starts.len(), each, "client {client}");
    }
    assert_eq!(run.samples.len(), clients as usize * each);
    let firsts = |client: u32| run.samples.iter().filter(move |sample| sample.client == client);
    let begun: Vec<u64> =
        (0..clients).filter_map(|client| firsts(client).map(|sample| sample.started_ns).min()).collect();
    assert_eq!(run.summary["not_started"], 0);
    let summary = &run.summary["clients"];
    assert_eq!(summary["begun"], clients);
    assert_eq!(summary["first_begun_ns"].as_u64(), begun.iter().min().copied());
    assert_eq!(summary["last_begun_ns"].as_u64(), begun.iter().max().copied());
}
