use super::super::fuzz_one;
use super::*;

fn request(text: &str) -> Result<Option<RequestHead<'_>>, Http1Error> {
    parse_request_head(text.as_bytes())
}

fn response(text: &str) -> ResponseHead {
    parse_response_head(text.as_bytes(), false).unwrap().unwrap()
}

#[test]
fn a_plain_request() {
    let text = "GET /bytes/1000 HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\n\r\nmore";
    let head = request(text).unwrap().unwrap();
    assert_eq!((head.method, head.target, head.framing), ("GET", "/bytes/1000", Framing::None));
    assert!(head.keep_alive && !head.expect_continue);
    assert_eq!(head.head_octets, text.len() - 4);
    for cut in 0..head.head_octets {
        assert_eq!(request(&text[..cut]), Ok(None), "{cut}");
    }
}

#[test]
fn request_framing() {
    let framing =
        |fields: &str| request(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).map(|h| h.unwrap().framing);
    assert_eq!(framing("Content-Length: 12\r\n"), Ok(Framing::Length(12)));
    assert_eq!(framing("Content-Length: 0\r\n"), Ok(Framing::None));
    assert_eq!(framing("content-length: 12\r\nCONTENT-LENGTH: 12\r\n"), Ok(Framing::Length(12)));
    assert_eq!(framing("Transfer-Encoding: Chunked\r\n"), Ok(Framing::Chunked));
    for bad in [
        "Content-Length: 12\r\nContent-Length: 13\r\n",
        "Content-Length: 12, 12\r\n",
        "Content-Length: +1\r\n",
        "Content-Length: 0x1\r\n",
        "Content-Length: \r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    ] {
        assert!(matches!(framing(bad), Err(Http1Error::Framing(_))), "{bad:?} {:?}", framing(bad));
    }
    assert_eq!(framing("Transfer-Encoding: gzip, chunked\r\n"), Err(Http1Error::TransferCoding));
    assert_eq!(framing("Transfer-Encoding: xchunked\r\n"), Err(Http1Error::TransferCoding));
    assert!(matches!(framing("Content-Length : 5\r\n"), Err(Http1Error::Syntax(_))), "space before the colon");
    assert!(matches!(framing("Host: b\r\n"), Err(Http1Error::Syntax(_))), "two hosts");
    assert!(matches!(framing("X: a\r\n folded\r\n"), Err(Http1Error::Syntax(_))), "obsolete folding");
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(matches!(request(old), Err(Http1Error::Framing(_))));
}

#[test]
fn request_connection_and_expectation() {
    let head = |text| request(text).unwrap().unwrap();
    assert!(!head("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n").keep_alive);
    assert!(!head("GET / HTTP/1.0\r\n\r\n").keep_alive);
    assert!(head("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keep_alive);
    assert!(head("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n").expect_continue);
    assert!(matches!(request("GET / HTTP/1.1\r\n\r\n"), Err(Http1Error::Syntax(_))), "no host");
    assert_eq!(request("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), Err(Http1Error::Version));
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a: b\r\n".repeat(MAX_FIELDS));
    assert_eq!(request(&many), Err(Http1Error::TooManyFields));
}

#[test]
fn response_framing() {
    let head = response("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!((head.status, head.framing, head.keep_alive), (200, Framing::Length(1000), true));
    assert_eq!(response("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n").framing, Framing::Chunked);
    let until_close = response("HTTP/1.1 200 OK\r\n\r\n");
    assert_eq!((until_close.framing, until_close.keep_alive), (Framing::UntilClose, false));
    assert_eq!(response("HTTP/1.1 204 No Content\r\n\r\n").framing, Framing::None);
    assert_eq!(response("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n").framing, Framing::None);
    assert!(response("HTTP/1.1 100 Continue\r\n\r\n").interim());
    assert!(!response("HTTP/1.1 101 Switching Protocols\r\n\r\n").interim());
    assert!(!response("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n").keep_alive);
    let to_head = parse_response_head(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true).unwrap().unwrap();
    assert_eq!((to_head.framing, to_head.content_length, to_head.keep_alive), (Framing::None, Some(5), true));
}

#[test]
fn refused_responses() {
    for bad in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 099 Odd\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "\0\0\0",
    ] {
        let result = parse_response_head(bad.as_bytes(), false);
        assert!(result.is_err(), "{bad:?} {result:?}");
    }
}

#[test]
fn mutated_messages_never_panic() {
    let samples: [&[u8]; 4] = [
        b"POST /bytes/7 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: v\r\n\r\n",
        b"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n0123456789",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nff\r\n0\r\n\r\n",
        b"3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nx: y\r\n\r\n",
    ];
    for sample in samples {
        for seed in 0..2000 {
            fuzz_one(&crate::mutate::mutated(sample, seed));
        }
    }
}

#[test]
fn fields_are_handed_out_as_they_were_sent() {
    let fields = |head: &[u8]| {
        let mut found = Vec::new();
        each_response_field(head, |name, value| found.push((name.to_vec(), value.to_vec())));
        found
    };
    let owned = |name: &[u8], value: &[u8]| (name.to_vec(), value.to_vec());
    let head = b"HTTP/1.1 200 OK\r\nServer: x\r\nTrifecta-Meta: [{\"a\": 1}]\r\nvia: a\r\nVia: b\r\n\r\nAge: 1\r\n";
    let expected =
        [owned(b"Server", b"x"), owned(b"Trifecta-Meta", b"[{\"a\": 1}]"), owned(b"via", b"a"), owned(b"Via", b"b")];
    assert_eq!(fields(head), expected);
    assert!(fields(b"HTTP/1.1 200 OK\r\nServer: x\r\n").is_empty(), "no end of the head");
}
