//! The origin with a page archive and a live folder, over all protocols; and the order of responses (RFC 9218).

mod common;

use std::path::PathBuf;

use common::Told;
use common::h2client::{H2Client, Said};
use common::h3client::{self, H3Client};
use common::{Server, pattern};
use quinn_proto::Dir;
use trifecta_wire::h2::{setting, write};
use trifecta_wire::h3::frame;

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An archive of two hosts: a page, a redirect, a response without content, a repeated field, a long head, and four large
/// responses. And a live folder beside it.
fn folders(name: &str) -> Scratch {
    let base = std::env::temp_dir().join(format!("trifecta-pages-{name}-{}", std::process::id()));
    std::fs::create_dir_all(base.join("page/bodies")).unwrap();
    std::fs::create_dir_all(base.join("live")).unwrap();
    let (small, large) = ("0a".repeat(32), "0b".repeat(32));
    std::fs::write(base.join("page/bodies").join(&small), b"\x1f\x8b\0page\xff").unwrap();
    std::fs::write(base.join("page/bodies").join(&large), pattern(100_000)).unwrap();
    let long = "v".repeat(60_000);
    let entry = |method: &str, url: &str, status: u16, headers: &str, body: Option<(&str, usize)>| {
        let (digest, bytes) = body.map_or(("null".to_owned(), 0), |(digest, bytes)| (format!("\"{digest}\""), bytes));
        format!(
            r#"{{"method": "{method}", "url": "https://{url}", "status": {status}, "headers": [{headers}], "body": {digest}, "bytes": {bytes}, "kind": "other"}}"#
        )
    };
    let content = Some((small.as_str(), 8));
    let mut entries = vec![
        entry(
            "GET",
            "www.site.lab/",
            200,
            r#"["content-type","text/html"],["content-encoding","gzip"],["set-cookie","a=1"],["x-b","2"],["set-cookie","b=2"],["x-name","caf\u00e9"],["accept-ranges","bytes"]"#,
            content,
        ),
        entry("GET", "www.site.lab/old", 301, r#"["location","https://cdn.site.lab/%7Enew?a=b&c"]"#, None),
        entry("GET", "cdn.site.lab/%7Enew?a=b&c", 404, r#"["x-empty",""]"#, content),
        entry("POST", "cdn.site.lab/beacon", 204, "", None),
        entry("GET", "cdn.site.lab/long", 200, &format!(r#"["x-long","{long}"]"#), content),
    ];
    entries.extend(
        (0..5).map(|number| {
            entry("GET", &format!("www.site.lab/large/{number}"), 200, "", Some((large.as_str(), 100_000)))
        }),
    );
    let medium = "0c".repeat(32);
    std::fs::write(base.join("page/bodies").join(&medium), pattern(20_000)).unwrap();
    entries.extend((0..5).map(|number| {
        entry("GET", &format!("www.site.lab/medium/{number}"), 200, "", Some((medium.as_str(), 20_000)))
    }));
    let document = format!(r#"{{"format": 1, "responses": [{}]}}"#, entries.join(","));
    std::fs::write(base.join("page/page.json"), document).unwrap();
    Scratch(base)
}

fn start(scratch: &Scratch, more: &str) -> Server {
    let (page, live) = (scratch.0.join("page"), scratch.0.join("live"));
    Server::start(&format!(
        r#", "protocols": ["h1","h2","h3"], "replay": {page:?}, "live": {live:?}, "max_concurrent_streams": 100{more}"#
    ))
}

/// What every protocol must answer: method, host, target, status, lines of the head, content.
type Case = (&'static str, &'static str, &'static str, u16, Vec<&'static str>, &'static [u8]);

fn cases() -> Vec<Case> {
    const PAGE: &[u8] = b"\x1f\x8b\0page\xff";
    let page = vec![
        "content-length: 8",
        "content-type: text/html",
        "content-encoding: gzip",
        "set-cookie: a=1",
        "x-b: 2",
        "set-cookie: b=2",
        "x-name: caf\u{e9}",
        "accept-ranges: bytes",
    ];
    let missing = vec!["content-length: 50", "content-type: text/plain", "x-trifecta-replay: missing"];
    let text = b"The page archive has no response to this request.\n";
    vec![
        ("GET", "www.site.lab", "/", 200, page.clone(), PAGE),
        ("HEAD", "WWW.site.lab:443", "/", 200, page, b""),
        (
            "GET",
            "www.site.lab",
            "/old",
            301,
            vec!["content-length: 0", "location: https://cdn.site.lab/%7Enew?a=b&c"],
            b"",
        ),
        ("GET", "cdn.site.lab", "/%7Enew?a=b&c", 404, vec!["content-length: 8", "x-empty: "], PAGE),
        ("POST", "cdn.site.lab", "/beacon", 204, vec![], b""),
        ("GET", "www.site.lab", "/%7Enew?a=b&c", 404, missing.clone(), text),
        ("GET", "cdn.site.lab", "/~new?a=b&c", 404, missing, text),
    ]
}

/// ISO 8859-1, as the archive has it.
fn words(octets: &[u8]) -> String {
    octets.iter().copied().map(char::from).collect()
}

#[test]
fn every_protocol_answers_what_was_recorded() {
    let scratch = folders("all");
    let server = start(&scratch, "");
    for (method, host, target, status, lines, content) in cases() {
        let what = format!("{method} {host}{target}");
        let mut stream = server.connect(b"http/1.1");
        let length = if method == "POST" { "Content-Length: 3\r\n" } else { "" };
        let body = if method == "POST" { "abc" } else { "" };
        let text = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{length}\r\n{body}");
        std::io::Write::write_all(&mut stream, text.as_bytes()).unwrap();
        let mut got = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut got);
        let end = got.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = words(&got[..end]);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{what}: {head}");
        let fields: Vec<&str> = head.split("\r\n").skip(1).filter(|line| *line != "connection: close").collect();
        assert_eq!(fields, lines, "{what}, HTTP/1.1");
        assert_eq!(&got[end + 4..], content, "{what}, HTTP/1.1");

        let mut h3 = H3Client::connect(&server);
        let mut request =
            h3client::headers(&[(":method", method), (":scheme", "https"), (":authority", host), (":path", target)]);
        if method == "POST" {
            request.extend(h3client::data(b"abc"));
        }
        let id = h3.send(Dir::Bi, &request, true);
        let octets = h3.outcome(id).octets;
        let (got_status, fields, got) = h3client::parse_lossy(&octets);
        assert_eq!((got_status, &got[..]), (status, content), "{what}, HTTP/3");
        assert_eq!(fields.iter().map(String::as_str).collect::<Vec<_>>(), lines, "{what}, HTTP/3");

        let mut h2 = server.h2();
        h2.start(&[]);
        let mut out = Vec::new();
        let fields = [(":method", method), (":scheme", "https"), (":authority", host), (":path", target)];
        let block =
            trifecta_wire::hpack::encoder::block(fields.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
        write::headers(1, &block, method != "POST", &mut out);
        h2.send(&out);
        if method == "POST" {
            h2.data(1, b"abc", true);
        }
        let got = h2.response(1);
        assert_eq!((got.status, &got.content[..]), (status, content), "{what}, HTTP/2");
        let fields: Vec<&str> = got.head.lines().filter(|line| !line.starts_with(':')).collect();
        assert_eq!(fields, lines, "{what}, HTTP/2");
    }
    let stats = server.finish().told();
    assert_eq!(stats["requests"]["h3"], stats["requests"]["h2"]);
}

#[test]
fn a_long_head_and_ranges_come_whole() {
    let scratch = folders("long");
    let server = start(&scratch, "");
    let mut h1 = server.h1();
    h1.send("GET /long HTTP/1.1\r\nHost: cdn.site.lab\r\n\r\n");
    assert_eq!(h1.response().unwrap().head.matches('v').count(), 60_000);
    h1.send("GET / HTTP/1.1\r\nHost: www.site.lab\r\nRange: bytes=3-6\r\n\r\n");
    let part = h1.response().unwrap();
    assert_eq!((part.status, &part.content[..]), (206, &b"page"[..]));
    assert!(part.head.contains("x-name: caf\u{e9}\r\n") && part.head.contains("content-range: bytes 3-6/8\r\n"));
    let mut h2 = server.h2();
    h2.start(&[]);
    let fields = [(":method", "GET"), (":scheme", "https"), (":authority", "cdn.site.lab"), (":path", "/long")];
    let mut out = Vec::new();
    let block = trifecta_wire::hpack::encoder::block(fields.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    write::headers(1, &block, true, &mut out);
    h2.send(&out);
    assert_eq!(h2.response(1).head.matches('v').count(), 60_000);
}

#[test]
fn live_files_are_read_anew_and_may_be_asked_for_in_parts() {
    let scratch = folders("live");
    let server = start(&scratch, "");
    let list = scratch.0.join("live/list.m3u8");
    std::fs::write(&list, "one").unwrap();
    std::fs::create_dir(scratch.0.join("live/high")).unwrap();
    std::fs::write(scratch.0.join("live/high/1.ts"), pattern(2_000_000)).unwrap();
    let mut client = H3Client::connect(&server);
    let first = client.ask("GET", "/live/list.m3u8", &[]);
    assert_eq!((first.status, &first.content[..]), (200, &b"one"[..]));
    for (name, value) in [
        ("content-type", "application/vnd.apple.mpegurl"),
        ("cache-control", "no-cache"),
        ("access-control-allow-origin", "*"),
        ("accept-ranges", "bytes"),
    ] {
        assert_eq!(first.field(name), Some(value), "{name}");
    }
    assert_eq!(first.fields.len(), 5);
    std::fs::write(&list, "three").unwrap();
    assert_eq!(client.ask("GET", "/live/list.m3u8?x=1", &[]).content, b"three");
    assert_eq!(client.ask("GET", "/live/high/1.ts", &[]).content, pattern(2_000_000));
    for path in ["/live/", "/live/missing.ts", "/live/high", "/live/../page/page.json", "/live/%2e%2e/page/page.json"] {
        let refused = client.ask("GET", path, &[]);
        assert_eq!((refused.status, refused.field("x-trifecta-replay")), (404, None), "{path}");
    }
    assert_eq!(client.ask("GET", "/live", &[]).field("x-trifecta-replay"), Some("missing"));
    assert_eq!(client.ask("POST", "/live/list.m3u8", &[]).status, 405);

    let mut h1 = server.h1();
    for (range, status, content, told) in [
        ("bytes=1000000-1000009", 206, &pattern(1_000_010)[1_000_000..], "bytes 1000000-1000009/2000000"),
        ("bytes=-3", 206, &pattern(2_000_000)[1_999_997..], "bytes 1999997-1999999/2000000"),
        ("bytes=2000000-", 416, &[][..], "bytes */2000000"),
    ] {
        h1.send(format!("GET /live/high/1.ts HTTP/1.1\r\nHost: any\r\nRange: {range}\r\n\r\n"));
        let response = h1.response().unwrap();
        assert_eq!((response.status, &response.content[..]), (status, content), "{range}");
        assert!(response.head.contains(&format!("content-range: {told}\r\n")), "{}", response.head);
    }
    h1.send("GET /live/list.m3u8 HTTP/1.1\r\nHost: any\r\nRange: bytes=0-0\r\nIf-Range: \"x\"\r\n\r\n");
    assert_eq!(h1.response().unwrap().status, 200);
}

/// Priorities of four requests as their fields say them, and of a fifth that has none and gets one by PRIORITY_UPDATE.
const ASKED: [Option<&str>; 5] = [Some("u=5"), Some("u=1, i"), Some("u=1, i"), Some("u=0"), Some("u=6")];

#[test]
fn http2_sends_the_most_urgent_first() {
    let scratch = folders("urgent2");
    let server = start(&scratch, "");
    let mut client = server.h2();
    client.start(&[(setting::INITIAL_WINDOW_SIZE, 1 << 20)]);
    let mut out = Vec::new();
    write::window_update(0, 1 << 20, &mut out);
    // Stream 9 becomes as urgent as can be, before it is opened.
    out.extend([0, 0, 7, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
    out.extend(b"u=0");
    for (number, priority) in ASKED.iter().enumerate() {
        let path = format!("/large/{number}");
        let mut fields =
            vec![(":method", "GET"), (":scheme", "https"), (":authority", "www.site.lab"), (":path", &path)];
        fields.extend(priority.map(|value| ("priority", value)));
        let block = trifecta_wire::hpack::encoder::block(fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())));
        write::headers(2 * number as u32 + 1, &block, true, &mut out);
    }
    client.send(&out);
    let mut turns = Vec::new();
    while client.ended.len() < ASKED.len() {
        client.read();
        turns.push((
            client.responses.get(&3).map(|r| r.content.len()),
            client.responses.get(&5).map(|r| r.content.len()),
        ));
    }
    // Urgency 0 in the order of the requests, then those of urgency 1 in turn, then urgency 5.
    assert_eq!(client.ended, [7, 9, 3, 5, 1]);
    let together =
        turns.iter().any(|(a, b)| (Some(1)..Some(100_000)).contains(a) && (Some(1)..Some(100_000)).contains(b));
    assert!(together, "incremental responses take turns: {turns:?}");
    assert!(
        client.said.iter().any(|said| matches!(said, Said::Settings(all) if all.contains(&(9, 1)))),
        "RFC 9218 2.1"
    );
}

#[test]
fn http3_sends_the_most_urgent_first() {
    let scratch = folders("urgent3");
    let server = start(&scratch, "");
    let mut client = H3Client::connect(&server);
    let mut control = vec![0];
    frame::write_header(frame::kind::SETTINGS, 0, &mut control);
    // Stream 16, the fifth request.
    frame::write_header(frame::kind::PRIORITY_UPDATE, 4, &mut control);
    control.extend(b"\x10u=0");
    client.send(Dir::Uni, &control, false);
    let ids: Vec<_> = ASKED
        .iter()
        .enumerate()
        .map(|(number, priority)| {
            let path = format!("/medium/{number}");
            let mut fields = vec![
                (":method", "GET"),
                (":scheme", "https"),
                (":authority", "www.site.lab"),
                (":path", path.as_str()),
            ];
            fields.extend(priority.map(|value| ("priority", value)));
            client.send(Dir::Bi, &h3client::headers(&fields), true)
        })
        .collect();
    // All of it fits the socket's buffer: what is lost there comes late, whatever its priority.
    client.run_until(|client| client.ended.len() >= 3);
    let turns: Vec<_> = [ids[1], ids[2]].iter().map(|id| client.streams[id].octets.len()).collect();
    client.run_until(|client| client.ended.len() == ASKED.len());
    assert_eq!(client.ended[..2], [ids[3], ids[4]]);
    assert_eq!(client.ended[4], ids[0]);
    assert!(turns.iter().all(|&octets| octets > 10_000), "incremental responses take turns: {turns:?}");
}

#[test]
fn what_is_urgent_overtakes_what_is_under_way() {
    const OCTETS: usize = 40_000_000;
    let scratch = folders("overtake");
    let server = start(&scratch, "");
    std::fs::write(scratch.0.join("live/large.bin"), vec![b'x'; OCTETS]).unwrap();
    let fields = |path, priority| {
        [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "www.site.lab"),
            (":path", path),
            ("priority", priority),
        ]
    };
    let mut h3 = H3Client::connect(&server);
    let slow = h3.send(Dir::Bi, &h3client::headers(&fields("/live/large.bin", "u=5")), true);
    h3.run_until(|client| client.streams.get(&slow).is_some_and(|received| received.octets.len() > 100_000));
    let fast = h3.send(Dir::Bi, &h3client::headers(&fields("/large/0", "u=0")), true);
    let content = h3.response(fast).content;
    assert_eq!(content, pattern(100_000));
    let before = h3.streams[&slow].octets.len();
    assert!(before < OCTETS * 3 / 4, "HTTP/3: {before} octets came first");

    let mut h2 = server.h2();
    h2.start(&[(setting::INITIAL_WINDOW_SIZE, 1 << 30)]);
    let request = |stream, path, priority| {
        let mut out = Vec::new();
        let block =
            trifecta_wire::hpack::encoder::block(fields(path, priority).map(|(n, v)| (n.as_bytes(), v.as_bytes())));
        write::headers(stream, &block, true, &mut out);
        out
    };
    let mut out = Vec::new();
    write::window_update(0, 1 << 30, &mut out);
    out.extend(request(1, "/live/large.bin", "u=5"));
    h2.send(&out);
    while h2.responses.get(&1).is_none_or(|response| response.content.len() < 100_000) {
        h2.read();
    }
    h2.send(&request(3, "/large/0", "u=0"));
    assert_eq!(h2.response(3).content, pattern(100_000));
    let before = h2.responses[&1].content.len();
    assert!(before < OCTETS * 3 / 4, "HTTP/2: {before} octets came first");
}

#[test]
fn without_pages_nothing_is_announced() {
    let server = Server::start("");
    let mut client: H2Client = server.h2();
    client.start(&[]);
    client.request(1, "GET", "/bytes/1", true);
    client.response(1);
    assert!(client.said.iter().any(|said| matches!(said, Said::Settings(all) if all.len() == 3)), "{:?}", client.said);
}

#[test]
fn a_bad_archive_ends_the_start_with_code_2() {
    let scratch = folders("bad");
    std::fs::write(scratch.0.join("page/page.json"), "{}").unwrap();
    let text = format!(
        r#"{{"address": "127.0.0.1", "port": 0, "certificate_file": "c", "key_file": "k", "replay": {:?}}}"#,
        scratch.0.join("page")
    );
    let config = trifecta_origin::config::Config::parse(&text).unwrap();
    let failure = trifecta_origin::Origin::start(config).err().unwrap();
    assert_eq!((failure.code, failure.field.as_str()), (2, "replay"));
    assert!(failure.message.contains("page.json: missing field `format`"), "{}", failure.message);
}
