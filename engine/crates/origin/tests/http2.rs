//! The origin over HTTP/2, from outside: what RFC 9113 asks of a server, and what attackers try.

mod common;

use common::Told;
use common::h2client::{H2Client, Said};
use common::{Server, pattern};
use serde_json::json;
use trifecta_wire::h2::{ErrorCode, flag, kind, setting, write};
use trifecta_wire::hpack::encoder;

fn started(server: &Server) -> H2Client {
    let mut client = server.h2();
    client.start(&[(setting::INITIAL_WINDOW_SIZE, 1 << 20)]);
    let mut out = Vec::new();
    write::window_update(0, 1 << 24, &mut out);
    client.send(&out);
    client
}

#[test]
fn methods_on_one_connection() {
    let server = Server::start("");
    let mut client = started(&server);
    client.request(1, "GET", "/bytes/1000", true);
    let response = client.response(1);
    assert_eq!((response.status, response.content_length), (200, Some(1000)));
    assert_eq!(response.content, pattern(1000));
    let fields = ":status: 200\ncontent-length: 1000\ncontent-type: application/octet-stream\nserver: trifecta\n";
    assert_eq!(response.head, fields);
    client.request(3, "HEAD", "/bytes/1000", true);
    let response = client.response(3);
    assert_eq!((response.content_length, response.content.len()), (Some(1000), 0));
    for (place, method) in ["POST", "PUT", "PATCH"].iter().enumerate() {
        let stream = 5 + 2 * place as u32;
        client.request(stream, method, "/bytes/7", false);
        client.data(stream, b"hel", false);
        client.data(stream, b"lo", true);
        assert_eq!(client.response(stream).content, pattern(7), "{method}");
    }
    client.request(11, "DELETE", "/bytes/7", true);
    let response = client.response(11);
    assert_eq!((response.status, response.content_length), (204, None));
    client.request(13, "OPTIONS", "/", true);
    assert_eq!(client.response(13).status, 405);
    client.request(15, "GET", "/nothing", true);
    assert_eq!(client.response(15).status, 404);
    let mut out = Vec::new();
    write::ping(*b"12345678", false, &mut out);
    client.send(&out);
    client.hear(&Said::PingAck(*b"12345678"));
    assert!(client.said.contains(&Said::SettingsAck));
    drop(client);
    let stats = server.finish().told();
    assert_eq!(stats["requests"]["h2"], json!({"200": 5, "204": 1, "404": 1, "405": 1}));
    assert_eq!(stats["content_bytes_in"], json!(15));
}

#[test]
fn windows_are_obeyed_to_the_octet() {
    let server = Server::start("");
    let mut client = server.h2();
    client.start(&[(setting::INITIAL_WINDOW_SIZE, 10)]);
    client.request(1, "GET", "/bytes/30", true);
    client.request(3, "GET", "/bytes/0", true);
    client.response(3);
    assert_eq!(client.responses[&1].content, pattern(10));
    let mut out = Vec::new();
    write::window_update(1, 5, &mut out);
    write::ping([1; 8], false, &mut out);
    client.send(&out);
    client.hear(&Said::PingAck([1; 8]));
    client.request(5, "GET", "/bytes/0", true);
    client.response(5);
    assert_eq!(client.responses[&1].content, pattern(15));
    let mut out = Vec::new();
    write::settings(&[(setting::INITIAL_WINDOW_SIZE, 100)], &mut out);
    client.send(&out);
    assert_eq!(client.response(1).content, pattern(30));
    // The connection's window: 65,535 octets, of which 30 are gone.
    client.request(7, "GET", "/bytes/65536", true);
    let mut out = Vec::new();
    write::window_update(7, 1 << 20, &mut out);
    write::ping([2; 8], false, &mut out);
    client.send(&out);
    client.hear(&Said::PingAck([2; 8]));
    client.request(9, "GET", "/bytes/0", true);
    client.response(9);
    assert_eq!(client.responses[&7].content.len(), 65_535 - 30);
    let mut out = Vec::new();
    write::window_update(0, 1000, &mut out);
    client.send(&out);
    assert_eq!(client.response(7).content, pattern(65_536));
}

#[test]
fn small_windows_for_requests_are_announced_and_given_back() {
    let server = Server::start(r#", "tuning": {"stream_window_bytes": 2000, "connection_window_bytes": 70000}"#);
    let mut client = started(&server);
    client.request(1, "POST", "/bytes/0", false);
    client.data(1, &[b'a'; 900], false);
    client.data(1, &[b'a'; 101], false);
    client.hear(&Said::WindowUpdate(1, 1001));
    client.data(1, b"", true);
    client.response(1);
    assert!(client.said.contains(&Said::WindowUpdate(0, 70_000 - 65_535)));
    let announced = client.said.iter().find_map(|said| match said {
        Said::Settings(settings) => settings.iter().find(|(id, _)| *id == setting::INITIAL_WINDOW_SIZE),
        _ => None,
    });
    assert_eq!(announced, Some(&(setting::INITIAL_WINDOW_SIZE, 2000)));
}

#[test]
fn a_window_that_shrinks_below_zero_is_waited_out() {
    let server = Server::start("");
    let mut client = server.h2();
    client.start(&[(setting::INITIAL_WINDOW_SIZE, 10)]);
    client.request(1, "GET", "/bytes/30", true);
    client.request(3, "GET", "/bytes/0", true);
    client.response(3);
    let mut out = Vec::new();
    write::settings(&[(setting::INITIAL_WINDOW_SIZE, 0)], &mut out);
    write::window_update(1, 10, &mut out);
    write::ping([1; 8], false, &mut out);
    client.send(&out);
    client.hear(&Said::PingAck([1; 8]));
    assert_eq!(client.responses[&1].content.len(), 10, "the window is 0 again");
    let mut out = Vec::new();
    write::window_update(1, 20, &mut out);
    client.send(&out);
    assert_eq!(client.response(1).content, pattern(30));
}

#[test]
fn responses_leave_one_after_the_other() {
    let server = Server::start("");
    let mut client = server.h2();
    client.start(&[(setting::INITIAL_WINDOW_SIZE, (1 << 31) - 1)]);
    let mut out = Vec::new();
    write::window_update(0, (1 << 31) - 1 - 65_535, &mut out);
    client.send(&out);
    // More together than is made at once, and more each; all asked for in one go, as by a client with so many streams.
    let mut next = 1;
    for (number, octets) in [(20, 30_000), (3, 5_000_000)] {
        let streams: Vec<u32> = (0..number).map(|place| next + 2 * place).collect();
        let mut out = Vec::new();
        for stream in &streams {
            let block = H2Client::block("GET", &format!("/bytes/{octets}"), &[]);
            write::headers(*stream, &block, true, &mut out);
        }
        client.send(&out);
        for stream in &streams {
            assert!(client.response(*stream).content == pattern(octets), "stream {stream}");
        }
        assert_eq!(std::mem::take(&mut client.served), streams, "{number} of {octets}");
        next += 2 * number;
    }
}

#[test]
fn a_response_whose_window_is_full_holds_up_no_other() {
    let server = Server::start("");
    let mut client = server.h2();
    client.start(&[(setting::INITIAL_WINDOW_SIZE, 100_000)]);
    let mut out = Vec::new();
    write::window_update(0, 1 << 24, &mut out);
    client.send(&out);
    client.request(1, "GET", "/bytes/300000", true);
    client.request(3, "GET", "/bytes/50000", true);
    assert!(client.response(3).content == pattern(50_000));
    assert_eq!(client.responses[&1].content.len(), 100_000);
    let mut out = Vec::new();
    write::window_update(1, 200_000, &mut out);
    client.send(&out);
    assert!(client.response(1).content == pattern(300_000));
}

#[test]
fn uploads_get_window_back() {
    let server = Server::start("");
    let mut client = started(&server);
    client.request(1, "POST", "/bytes/3", false);
    let piece = vec![7; 16_000];
    // 48 MB: beyond both windows, so it only works when they are refilled. Nothing is read meanwhile but in between.
    for _ in 0..3 {
        for _ in 0..900 {
            client.data(1, &piece, false);
        }
        client.request(3 + 2 * client.responses.len() as u32, "GET", "/bytes/0", true);
        client.response(3 + 2 * client.responses.len() as u32);
    }
    client.data(1, b"", true);
    assert_eq!(client.response(1).content, b"abc");
    assert!(client.said.iter().any(|said| matches!(said, Said::WindowUpdate(0, _))));
    assert!(client.said.iter().any(|said| matches!(said, Said::WindowUpdate(1, _))));
}

#[test]
fn trailers_padding_priority_and_continuations() {
    let server = Server::start("");
    let mut client = started(&server);
    client.request(1, "POST", "/bytes/1", false);
    let mut out = write::frame_header(9, kind::DATA, flag::PADDED, 1).to_vec();
    out.extend_from_slice(&[3, 1, 2, 3, 4, 5, 0, 0, 0]);
    let trailers = encoder::block([(b"x-checksum".as_slice(), b"1".as_slice())]);
    write::headers(1, &trailers, true, &mut out);
    client.send(&out);
    assert_eq!(client.response(1).content, b"a");
    let block = H2Client::block("GET", "/bytes/2", &[]);
    let (first, rest) = block.split_at(5);
    let mut out = write::frame_header(first.len() + 6 + 2, kind::HEADERS, 0x29 | flag::END_STREAM, 3).to_vec();
    out.extend_from_slice(&[2, 0, 0, 0, 0, 16]);
    out.extend_from_slice(first);
    out.extend_from_slice(&[0, 0]);
    for (place, octet) in rest.iter().enumerate() {
        let flags = if place + 1 == rest.len() { flag::END_HEADERS } else { 0 };
        out.extend_from_slice(&write::frame_header(1, kind::CONTINUATION, flags, 3));
        out.push(*octet);
    }
    client.send(&out);
    assert_eq!(client.response(3).content, b"ab");
}

#[test]
fn a_smaller_header_table_is_acknowledged_in_the_next_block() {
    let server = Server::start("");
    let mut client = server.h2();
    client.start(&[(setting::HEADER_TABLE_SIZE, 0)]);
    client.request(1, "GET", "/bytes/1", true);
    // RFC 7541 4.2: a decoder may refuse a first block without the update, as nghttp2 does.
    assert_eq!(client.response(1).status, 200);
    assert_eq!(client.blocks[&1][0], 0x20, "dynamic table size update to 0");
    client.request(3, "GET", "/bytes/1", true);
    assert_eq!(client.response(3).status, 200);
    assert_eq!(client.blocks[&3], client.blocks[&1][1..]);
}

#[test]
fn malformed_requests_reset_their_stream_alone() {
    let server = Server::start("");
    let mut client = started(&server);
    let mut stream = 1;
    let request = |fields: &[(&str, &str)]| {
        encoder::block(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
    };
    let full: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/")];
    let with = |extra: (&'static str, &'static str)| request(&[&full[..], &[extra]].concat());
    for block in [
        request(&full[..3]),
        request(&full[1..]),
        request(&[full[0], full[2], full[3]]),
        request(&[full[0], full[1], full[3]]),
        request(&[full[0], full[0], full[1], full[2], full[3]]),
        request(&[full[0], full[1], ("x", "y"), full[2], full[3]]),
        request(&[full[0], full[1], full[2], (":path", "")]),
        request(&[full[0], full[1], full[2], (":path", "bytes")]),
        with((":status", "200")),
        with(("Upper", "case")),
        with(("", "empty")),
        with(("connection", "close")),
        with(("transfer-encoding", "chunked")),
        with(("te", "gzip")),
        with(("x", "a\r\nb: c")),
        with(("x", " a")),
        with(("content-length", "5")),
        with(("content-length", "x")),
    ] {
        let mut out = Vec::new();
        write::headers(stream, &block, true, &mut out);
        client.send(&out);
        client.hear(&Said::Reset(stream, ErrorCode::PROTOCOL_ERROR));
        stream += 2;
    }
    for (announced, sent) in [("5", 4), ("5", 6)] {
        let mut out = Vec::new();
        let fields = [("content-length", announced)];
        write::headers(stream, &H2Client::block("POST", "/bytes/1", &fields), false, &mut out);
        client.send(&out);
        client.data(stream, &vec![0; sent], true);
        client.hear(&Said::Reset(stream, ErrorCode::PROTOCOL_ERROR));
        stream += 2;
    }
    let mut out = Vec::new();
    write::headers(stream, &H2Client::block("GET", "/bytes/1", &[("te", "trailers")]), true, &mut out);
    client.send(&out);
    assert_eq!(client.response(stream).status, 200, "the connection lives");
    let long = "y".repeat(20_000);
    let mut out = Vec::new();
    write::headers(stream + 2, &H2Client::block("GET", "/", &[("x", &long)]), true, &mut out);
    client.send(&out);
    assert_eq!(client.response(stream + 2).status, 431);
}

/// Sends `frames` after the preface and SETTINGS, and returns the code of GOAWAY.
fn fatal(server: &Server, frames: &[u8]) -> Option<ErrorCode> {
    let mut client = started(server);
    client.send(frames);
    client.last_words()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = write::frame_header(payload.len(), kind, flags, stream).to_vec();
    out.extend_from_slice(payload);
    out
}

#[test]
fn errors_of_the_connection_are_said_and_end_it() {
    let server = Server::start("");
    let get = |stream| {
        let mut out = Vec::new();
        write::headers(stream, &H2Client::block("GET", "/bytes/1", &[]), true, &mut out);
        out
    };
    let ended = flag::END_HEADERS | flag::END_STREAM;
    for (frames, code) in [
        (frame(kind::DATA, 0, 1, b"x"), ErrorCode::PROTOCOL_ERROR),
        (frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]), ErrorCode::PROTOCOL_ERROR),
        (frame(kind::RST_STREAM, 0, 1, &[0; 4]), ErrorCode::PROTOCOL_ERROR),
        (get(2), ErrorCode::PROTOCOL_ERROR),
        ([get(3), get(3)].concat(), ErrorCode::STREAM_CLOSED),
        ([get(3), get(1)].concat(), ErrorCode::STREAM_CLOSED),
        (frame(kind::HEADERS, ended, 1, &[0xff; 20]), ErrorCode::COMPRESSION_ERROR),
        (frame(kind::HEADERS, ended, 1, &[0xbe]), ErrorCode::COMPRESSION_ERROR),
        (frame(kind::PUSH_PROMISE, ended, 1, &[0, 0, 0, 2]), ErrorCode::PROTOCOL_ERROR),
        (frame(kind::SETTINGS, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff]), ErrorCode::FLOW_CONTROL_ERROR),
        (frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]), ErrorCode::FLOW_CONTROL_ERROR),
        (frame(kind::PING, 0, 0, &[0; 5]), ErrorCode::FRAME_SIZE_ERROR),
        (write::frame_header(1 << 20, kind::DATA, 0, 1).to_vec(), ErrorCode::FRAME_SIZE_ERROR),
        ([frame(kind::HEADERS, 0, 1, b""), frame(kind::PING, 0, 0, &[0; 8])].concat(), ErrorCode::PROTOCOL_ERROR),
    ] {
        assert_eq!(fatal(&server, &frames), Some(code), "{frames:?}");
    }
    let mut wrong_preface = server.h2();
    wrong_preface.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(wrong_preface.last_words(), Some(ErrorCode::PROTOCOL_ERROR));
    let mut no_settings = server.h2();
    no_settings.send(&[trifecta_wire::h2::PREFACE.as_slice(), &frame(kind::PING, 0, 0, &[0; 8])].concat());
    assert_eq!(no_settings.last_words(), Some(ErrorCode::PROTOCOL_ERROR));
}

#[test]
fn too_many_streams_are_refused_and_the_others_go_on() {
    let server = Server::start(r#", "max_concurrent_streams": 3"#);
    let mut client = started(&server);
    for stream in [1, 3, 5, 7] {
        client.request(stream, "POST", "/bytes/2", false);
    }
    client.hear(&Said::Reset(7, ErrorCode::REFUSED_STREAM));
    // What was on its way to the refused stream does no harm.
    client.data(7, b"late", true);
    for stream in [1, 3, 5] {
        client.data(stream, b"x", true);
        assert_eq!(client.response(stream).content, b"ab");
    }
    client.request(9, "GET", "/bytes/1", true);
    assert_eq!(client.response(9).status, 200);
    let resets = client.said.iter().filter(|said| matches!(said, Said::Reset(..))).count();
    assert_eq!(resets, 1, "{:?}", client.said);
    let announced = client.said.iter().find_map(|said| match said {
        Said::Settings(pairs) => pairs.iter().find(|pair| pair.0 == setting::MAX_CONCURRENT_STREAMS),
        _ => None,
    });
    assert_eq!(announced, Some(&(setting::MAX_CONCURRENT_STREAMS, 3)));
}

#[test]
fn rapid_reset_is_calmed() {
    let server = Server::start(r#", "faults": {"stall": true}"#);
    let mut client = started(&server);
    let mut out = Vec::new();
    for number in 0..3000 {
        let stream = 1 + 2 * number;
        write::headers(stream, &H2Client::block("GET", "/bytes/1", &[]), true, &mut out);
        write::rst_stream(stream, ErrorCode::CANCEL, &mut out);
    }
    client.send(&out);
    assert_eq!(client.last_words(), Some(ErrorCode::ENHANCE_YOUR_CALM));
}

#[test]
fn endless_continuations_are_calmed() {
    let server = Server::start("");
    let mut frames = frame(kind::HEADERS, flag::END_STREAM, 1, &[0; 100]);
    for _ in 0..100 {
        frames.extend_from_slice(&frame(kind::CONTINUATION, 0, 1, &[0; 16_000]));
    }
    assert_eq!(fatal(&server, &frames), Some(ErrorCode::ENHANCE_YOUR_CALM));
}

#[test]
fn a_client_that_never_reads_is_not_fed_without_end() {
    let server = Server::start("");
    let mut client = started(&server);
    let mut out = Vec::new();
    for number in 0..2000u32 {
        write::ping(u64::from(number).to_be_bytes(), false, &mut out);
    }
    // 20 rounds of 34 kB of PINGs, none of whose answers is read.
    for _ in 0..20 {
        client.send(&out);
    }
    let mut other = started(&server);
    other.request(1, "GET", "/bytes/1", true);
    assert_eq!(other.response(1).status, 200);
    drop(client);
    let stats = server.finish().told();
    assert!(stats["wire_bytes_out"].as_u64().unwrap() < 4 << 20);
}

#[test]
fn the_end_is_announced_and_what_was_begun_is_finished() {
    let server = Server::start(r#", "faults": {"delay_ns": 200000000}"#);
    let mut client = started(&server);
    client.request(1, "GET", "/bytes/500", true);
    std::thread::sleep(std::time::Duration::from_millis(50));
    let reader = std::thread::spawn(move || {
        let content = client.response(1).content;
        (content, client.last_words())
    });
    server.finish();
    let (content, code) = reader.join().unwrap();
    assert_eq!(content, pattern(500));
    assert_eq!(code, Some(ErrorCode::NO_ERROR));
}
