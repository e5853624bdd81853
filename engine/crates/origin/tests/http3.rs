//! The origin over HTTP/3.

mod common;

use std::time::{Duration, Instant};

use common::Told;
use common::h3client::{H3Client, data, headers, request, tls};
use common::{Server, pattern};
use quinn_proto::Dir;
use trifecta_wire::h3::frame;
use trifecta_wire::mutate::{SplitMix, mutated};

fn start(more: &str) -> Server {
    Server::start(&format!(r#", "protocols": ["h3"]{more}"#))
}

#[test]
fn methods_statuses_and_content() {
    let server = start("");
    let mut client = H3Client::connect(&server);
    for octets in [0, 1, 1000, 70_000, 3_000_000] {
        let response = client.ask("GET", &format!("/bytes/{octets}"), &[]);
        assert_eq!((response.status, &response.content), (200, &pattern(octets)));
        assert_eq!(response.field("content-length"), Some(octets.to_string().as_str()));
        assert_eq!(response.field("server"), Some("trifecta"));
    }
    let head = client.ask("HEAD", "/bytes/1000", &[]);
    assert_eq!((head.status, head.field("content-length"), head.content.len()), (200, Some("1000"), 0));
    for method in ["POST", "PUT", "PATCH"] {
        let response = client.ask(method, "/bytes/10", &pattern(200_000));
        assert_eq!((response.status, response.content), (200, pattern(10)));
    }
    assert_eq!(client.ask("DELETE", "/bytes/10", &[]).status, 204);
    assert_eq!(client.ask("GET", "/healthz", &[]).content, b"ok\n");
    assert_eq!(client.ask("GET", "/nothing", &[]).status, 404);
    assert_eq!(client.ask("BREW", "/bytes/1", &[]).status, 405);
    client.close();
    let stats = server.finish();
    assert_eq!(stats.told()["requests"]["h3"]["200"], 10);
    assert_eq!(stats.told()["connections"]["h3"], 1);
    assert_eq!(stats.content_bytes_in, 600_000);
}

#[test]
fn many_streams_at_once_and_a_slow_reader() {
    let server = start("");
    let mut client = H3Client::connect(&server);
    let ids: Vec<_> =
        (0..100).map(|place| client.send(Dir::Bi, &request("GET", &format!("/bytes/{place}"), &[]), true)).collect();
    for (place, id) in ids.into_iter().enumerate() {
        assert_eq!(client.response(id).content, pattern(place));
    }
    // Windows of 100 kB, not read from for a while: the answer waits for them.
    let mut slow = H3Client::start(&server, &tls(&server, false), 100_000);
    slow.run_until(|client| !client.connection.is_handshaking());
    slow.lazy = true;
    let id = slow.send(Dir::Bi, &request("GET", "/bytes/1000000", &[]), true);
    let end = Instant::now() + Duration::from_millis(100);
    while Instant::now() < end {
        slow.step(Duration::from_millis(10));
    }
    slow.lazy = false;
    slow.read(id);
    assert!(slow.streams[&id].octets.len() <= 100_000);
    assert_eq!(slow.response(id).content, pattern(1_000_000));
    // Others were served meanwhile.
    assert_eq!(client.ask("GET", "/bytes/5", &[]).content, b"abcde");
}

#[test]
fn responses_leave_one_after_the_other() {
    // As over HTTP/2; few enough for the client's receive buffer, so that nothing is lost.
    let server = start("");
    let mut client = H3Client::connect(&server);
    let get = request("GET", "/bytes/30000", &[]);
    let ids: Vec<_> = (0..4).map(|_| client.send(Dir::Bi, &get, true)).collect();
    assert_eq!(client.response(ids[0]).content, pattern(30_000));
    let others = ids[1..].iter().filter_map(|id| client.streams.get(id)).map(|stream| stream.octets.len());
    assert!(others.sum::<usize>() < 30_000);
    ids[1..].iter().for_each(|id| assert_eq!(client.response(*id).content, pattern(30_000)));
    client.ended.retain(|id| ids.contains(id));
    assert_eq!(client.ended, ids);
}

#[test]
fn what_was_lost_goes_before_what_is_new() {
    // One of the last packets of the first response: all of it was sent when the loss is seen (RFC 9000 section 13.3).
    let server = start("");
    let mut client = H3Client::connect(&server);
    let get = request("GET", "/bytes/30000", &[]);
    let ids: Vec<_> = (0..12).map(|_| client.send(Dir::Bi, &get, true)).collect();
    client.loses = 20;
    ids.iter().for_each(|id| assert_eq!(client.response(*id).content, pattern(30_000)));
    client.ended.retain(|id| ids.contains(id));
    let place = client.ended.iter().position(|id| *id == ids[0]).unwrap();
    assert!(place <= 4, "{:?}", client.ended);
    client.ended.remove(place);
    assert_eq!(client.ended, ids[1..]);
}

#[test]
fn broken_requests_concern_their_stream() {
    let server = start("");
    let mut client = H3Client::connect(&server);
    let get = [(":method", "GET"), (":scheme", "https"), (":authority", "origin.lab"), (":path", "/bytes/5")];
    let with = |more: &[(&str, &str)]| headers(&[&get[..], more].concat());
    for octets in [
        headers(&get[..3]),
        headers(&[&[("x", "y")], &get[..]].concat()),
        with(&[("Upper", "case")]),
        with(&[("connection", "close")]),
        [with(&[("content-length", "4")]), data(b"abcde")].concat(),
        [with(&[("content-length", "6")]), data(b"abcde")].concat(),
        vec![],
        vec![0x21, 0x00],
    ] {
        let id = client.send(Dir::Bi, &octets, true);
        let received = client.outcome(id);
        assert!(matches!(received.reset, Some(0x10d | 0x10e)), "{octets:02x?}: {received:?}, {:?}", client.lost);
    }
    let long = "v".repeat(20_000);
    let id = client.send(Dir::Bi, &with(&[("x-long", &long)]), true);
    assert_eq!(client.response(id).status, 431);
    assert_eq!(client.ask("GET", "/bytes/5", &[]).content, b"abcde", "the connection still serves");
}

#[test]
fn broken_frames_end_the_connection() {
    let server = start("");
    let section_of_dynamic_table = {
        let mut out = Vec::new();
        frame::write_headers(&[0, 0, 0x80], &mut out);
        out
    };
    for (dir, octets, end, code) in [
        (Dir::Bi, data(b"abc"), true, 0x105),
        (Dir::Bi, vec![0x04, 0x00], true, 0x105),
        (Dir::Bi, vec![0x02, 0x00], true, 0x105),
        (Dir::Bi, request("GET", "/bytes/5", b"abc")[..27].to_vec(), true, 0x106),
        (Dir::Bi, section_of_dynamic_table, true, 0x200),
        (Dir::Bi, vec![0x01, 0x80, 0x02, 0x00, 0x00], false, 0x107),
        (Dir::Uni, vec![0x00, 0x07, 0x01, 0x00], false, 0x10a),
        (Dir::Uni, vec![0x00, 0x04, 0x00, 0x04, 0x00], false, 0x105),
        (Dir::Uni, vec![0x00, 0x04, 0x02, 0x04, 0x00], false, 0x109),
        (Dir::Uni, vec![0x00, 0x04, 0x00], true, 0x104),
        (Dir::Uni, vec![0x01, 0x00], false, 0x103),
        (Dir::Uni, vec![0x02, 0x3f, 0x01], false, 0x201),
        (Dir::Uni, vec![0x03, 0x80], false, 0x202),
    ] {
        let mut client = H3Client::connect(&server);
        client.send(dir, &octets, end);
        assert_eq!(client.close_code(), code, "{dir:?} {octets:02x?}");
    }
    assert_eq!(H3Client::connect(&server).ask("GET", "/bytes/5", &[]).status, 200);
}

#[test]
fn settings_come_first_and_goaway_at_the_end() {
    let server = start(r#", "faults": {"delay_ns": 300000000}"#);
    let mut client = H3Client::connect(&server);
    let id = client.send(Dir::Bi, &request("GET", "/bytes/5", &[]), true);
    let control = |client: &H3Client| {
        client.streams.iter().find(|(id, _)| id.dir() == Dir::Uni).map(|(_, received)| received.octets.clone())
    };
    client.run_until(|client| control(client).is_some());
    assert_eq!(control(&client).unwrap()[..2], [0x00, 0x04]);
    let before = control(&client).unwrap().len();
    let end = Instant::now() + Duration::from_millis(50);
    while Instant::now() < end {
        client.step(Duration::from_millis(5));
    }
    let stopped = std::thread::spawn(move || server.finish());
    // The request in flight is answered after the announcement.
    assert_eq!(client.response(id).content, b"abcde");
    assert_eq!(control(&client).unwrap()[before..], [0x07, 0x01, 0x04]);
    assert_eq!(client.close_code(), 0x100);
    assert_eq!(stopped.join().unwrap().told()["requests"]["h3"]["200"], 1);
}

#[test]
fn faults() {
    let truncating = start(r#", "faults": {"truncate_bytes": 1}"#);
    let response = H3Client::connect(&truncating).ask("GET", "/bytes/10", &[]);
    assert_eq!((response.field("content-length"), response.content.len()), (Some("10"), 9));
    let stalling = start(r#", "faults": {"stall": true}"#);
    let mut client = H3Client::connect(&stalling);
    let id = client.send(Dir::Bi, &request("GET", "/bytes/10", &[]), true);
    let end = Instant::now() + Duration::from_millis(100);
    while Instant::now() < end {
        client.step(Duration::from_millis(10));
    }
    assert!(client.lost.is_none() && !client.streams.contains_key(&id));
    let closing = start(r#", "faults": {"close_after_requests": 2}"#);
    let mut client = H3Client::connect(&closing);
    for _ in 0..2 {
        assert_eq!(client.ask("GET", "/bytes/10", &[]).status, 200);
    }
    assert_eq!(client.close_code(), 0x100);
    let delaying = start(r#", "faults": {"delay_ns": 60000000}"#);
    let mut client = H3Client::connect(&delaying);
    let start_time = Instant::now();
    assert_eq!(client.ask("GET", "/bytes/10", &[]).status, 200);
    assert!(start_time.elapsed() >= Duration::from_millis(60));
    let timing = start(r#", "server_timing": true"#);
    let response = H3Client::connect(&timing).ask("GET", "/bytes/10", &[]);
    assert!(response.field("server-timing").is_some_and(|value| value.starts_with("app;dur=")));
}

#[test]
fn early_requests_are_answered_when_safe() {
    let server = start("");
    let tls = tls(&server, true);
    for (round, method) in ["GET", "GET", "POST"].into_iter().enumerate() {
        let mut client = H3Client::start(&server, &tls, 1 << 20);
        assert_eq!(client.connection.has_0rtt(), round > 0);
        if round == 0 {
            client.run_until(|client| !client.connection.is_handshaking());
        }
        let id = client.send(Dir::Bi, &request(method, "/bytes/5", &[]), true);
        let response = client.response(id);
        assert_eq!(client.connection.accepted_0rtt(), round > 0);
        // RFC 8470 5.2: Too Early.
        assert_eq!(response.status, if method == "POST" { 425 } else { 200 });
        client.run_until(|client| {
            trifecta_wire::quic::Handshake::of(&client.connection).is_some_and(|agreed| agreed.has_tickets)
        });
        client.close();
    }
    let stats = server.finish();
    assert_eq!((stats.early_requests, &stats.told()["resumed"]["h3"]), (2, &2.into()));
}

#[test]
fn damaged_requests_never_end_the_server() {
    let server = start("");
    for seed in 0..150 {
        let mut random = SplitMix::new(seed);
        let mut client = H3Client::connect(&server);
        for _ in 0..1 + random.below(3) {
            let sample = match random.below(3) {
                0 => request("POST", "/bytes/5", b"some content"),
                1 => vec![0x00, 0x04, 0x04, 0x01, 0x40, 0x64, 0x21, 0x07, 0x01, 0x00],
                _ => request("GET", "/bytes/100", &[]),
            };
            let dir = if random.below(3) == 0 { Dir::Uni } else { Dir::Bi };
            client.send(dir, &mutated(&sample, random.draw()), random.below(4) != 0);
        }
        for _ in 0..3 {
            client.step(Duration::from_millis(1));
        }
        client.close();
    }
    assert_eq!(H3Client::connect(&server).ask("GET", "/bytes/5", &[]).content, b"abcde");
}
