//! The reader of responses, fed with damaged octets in pieces of any size.

use super::response::ResponseReader;
use crate::caller::Exchange;
use crate::testing::caller;
use trifecta_wire::ErrorClass;

const RESPONSES: [&[u8]; 4] = [
    b"HTTP/1.1 200 OK\r\nserver: x\r\ncontent-length: 5\r\n\r\nabcde",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;a=b\r\nab\r\n3\r\ncde\r\n0\r\nt: v\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcde",
    b"HTTP/1.0 200 OK\r\n\r\nabcde",
];

/// Reads all in pieces of `step`; the exchange, whether it is complete, and how it failed.
fn read(octets: &[u8], step: usize) -> (Exchange, bool, Option<ErrorClass>) {
    let mut caller = caller();
    let mut reader = ResponseReader::default();
    let mut exchange = Exchange::default();
    reader.expect(false);
    for (piece, now_ns) in octets.chunks(step).zip(1..) {
        if let Err(error) = reader.read(Some(&mut exchange), &mut caller, piece, now_ns) {
            return (exchange, false, Some(error));
        }
    }
    reader.end_of_stream(true);
    (exchange, reader.is_complete(), None)
}

#[test]
fn responses_are_the_same_in_pieces_of_any_size() {
    for response in RESPONSES {
        for step in 1..=response.len() {
            let (exchange, complete, error) = read(response, step);
            assert!(complete && error.is_none(), "step {step}");
            assert_eq!((exchange.status, exchange.bytes_in, exchange.wrong_content), (200, 5, false));
        }
    }
}

#[test]
fn the_first_octet_of_the_final_response_counts() {
    let response = RESPONSES[2];
    let interim = response.windows(4).position(|octets| octets == b"\r\n\r\n").unwrap() as u64 + 4;
    assert_eq!(read(response, 1).0.first_byte_ns, interim + 1);
    assert_eq!(read(response, response.len()).0.first_byte_ns, 1);
}

#[test]
fn a_head_without_end_is_refused() {
    let endless = [b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'a'; 200_000]].concat();
    assert_eq!(read(&endless, 1_000).2, Some(ErrorClass::MalformedHttp1));
}

#[test]
fn damaged_responses_are_judged_alike_whatever_the_pieces() {
    let mut state = 0x0dd_ba11u64;
    let mut random = move |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % limit
    };
    let mut failures = 0;
    for round in 0..20_000 {
        let mut octets = RESPONSES[round % 4].to_vec();
        for _ in 0..=random(3) {
            let position = random(octets.len());
            match random(4) {
                0 => octets.insert(position, random(256) as u8),
                1 if octets.len() > 1 => drop(octets.remove(position)),
                2 => octets.truncate(position + 1),
                _ => octets[position] ^= 1 << random(8),
            }
        }
        let whole = read(&octets, octets.len());
        let pieces = read(&octets, 1 + random(7));
        assert_eq!((whole.1, whole.2), (pieces.1, pieces.2), "{:?}", String::from_utf8_lossy(&octets));
        if whole.2.is_none() {
            assert_eq!((whole.0.status, whole.0.bytes_in), (pieces.0.status, pieces.0.bytes_in));
        }
        failures += usize::from(whole.2.is_some());
    }
    assert!(failures > 2_000, "{failures}");
}
