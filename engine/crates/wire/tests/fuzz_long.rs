//! Long fuzzing of the parsers of this crate: seeded mutations of real messages, as many as `mutate::fuzz` is told.
//! `make test-long` runs it; a failure names the seed that shows it again.

use trifecta_wire::h2::{self, ErrorCode, flag, kind, setting, write};
use trifecta_wire::hpack::{self, encoder};
use trifecta_wire::mutate::fuzz;
use trifecta_wire::{h3, http1, huffman, qpack};

fn request_block() -> Vec<u8> {
    let fields: [(&[u8], &[u8]); 6] = [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":authority", b"origin.lab"),
        (b":path", b"/bytes/1000"),
        (b"user-agent", b"trifecta"),
        (b"x-long", &[b'v'; 300]),
    ];
    encoder::block(fields)
}

fn response_block() -> Vec<u8> {
    encoder::block([(b":status".as_slice(), b"200".as_slice()), (b"content-length", b"1000"), (b"server", b"x")])
}

#[test]
#[ignore = "long; run by make test-long"]
fn huffman_decoder() {
    let texts: [&[u8]; 3] = [b"www.example.com", b"Mon, 21 Oct 2013 20:13:21 GMT", &[0xff, 0, b'~', b'|']];
    let samples = texts.map(|text| {
        let mut coded = Vec::new();
        huffman::encode(text, &mut coded);
        coded
    });
    fuzz("huffman", &samples, |data| {
        let mut out = Vec::new();
        if huffman::decode(data, &mut out, 1000).is_ok() {
            // The code is canonical and its padding fixed: what is accepted is what the encoder writes.
            let mut again = Vec::new();
            huffman::encode(&out, &mut again);
            assert_eq!(again, data);
        }
    });
}

#[test]
#[ignore = "long; run by make test-long"]
fn hpack_decoder() {
    let mut indexed = vec![0x3f, 0xe1, 0x1f];
    for (name, value) in [("custom-key", "custom-value"), ("x", "y")] {
        indexed.push(0x40);
        encoder::encode_string(name.as_bytes(), &mut indexed);
        encoder::encode_string(value.as_bytes(), &mut indexed);
    }
    indexed.extend_from_slice(&[0xbe, 0xbf, 0x7e, 1, b'z', 0x10, 1, b'n', 1, b'v']);
    fuzz("hpack", &[request_block(), response_block(), indexed], hpack::fuzz_one);
}

#[test]
#[ignore = "long; run by make test-long"]
fn http1_parsers() {
    let samples = [
        &b"POST /bytes/7 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: v\r\n\r\n"[..],
        b"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n0123456789",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nff\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nx: y\r\n\r\n",
    ];
    fuzz("http1", &samples.map(<[u8]>::to_vec), http1::fuzz_one);
}

#[test]
#[ignore = "long; run by make test-long"]
fn h2_parser() {
    let mut control = Vec::new();
    write::settings(&[(setting::MAX_FRAME_SIZE, 16_384), (setting::INITIAL_WINDOW_SIZE, 1 << 20)], &mut control);
    write::settings_ack(&mut control);
    write::ping([7; 8], false, &mut control);
    write::window_update(0, 1 << 20, &mut control);
    write::rst_stream(1, ErrorCode::CANCEL, &mut control);
    write::goaway(3, ErrorCode::NO_ERROR, b"bye", &mut control);
    let mut message = Vec::new();
    write::headers(1, &request_block(), false, &mut message);
    message.extend_from_slice(&write::frame_header(9, kind::DATA, flag::PADDED | flag::END_STREAM, 1));
    message.extend_from_slice(&[3, b'a', b'b', b'c', b'd', b'e', 0, 0, 0]);
    let mut split = Vec::new();
    split.extend_from_slice(&write::frame_header(4, kind::HEADERS, flag::END_STREAM, 5));
    split.extend_from_slice(&[0x82, 0x87, 0x84, 0x41]);
    split.extend_from_slice(&write::frame_header(2, kind::CONTINUATION, flag::END_HEADERS, 5));
    split.extend_from_slice(&[1, b'a']);
    fuzz("h2", &[control, message, split], h2::fuzz_one);
}

#[test]
#[ignore = "long; run by make test-long"]
fn qpack_decoder() {
    let samples = [
        vec![0, 0, 0xd9, 0x54, 4, b'1', b'0', b'0', b'0', 0x5f, 0x4d, 1, b'x'],
        vec![
            0, 0, 0xd1, 0xd7, 0x50, 10, b'o', b'r', b'i', b'g', b'i', b'n', b'.', b'l', b'a', b'b', 0x23, b'x', b'-',
            b'y', 1, b'z',
        ],
    ];
    fuzz("qpack", &samples, qpack::fuzz_one);
}

#[test]
#[ignore = "long; run by make test-long"]
fn h3_frames() {
    let samples = [
        vec![0, 4, 6, 1, 0x80, 0, 0x40, 0, 7, 0, 7, 1, 4],
        vec![1, 9, 0, 0, 0xd9, 0x54, 4, b'1', b'0', b'0', b'0', 0, 5, b'h', b'e', b'l', b'l', b'o'],
        vec![0x21, 3, 1, 2, 3, 0, 0x40, 5, b'h', b'e', b'l', b'l', b'o', 0x40, 0x41, 0],
    ];
    fuzz("h3", &samples, h3::fuzz_one);
}
