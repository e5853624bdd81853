use super::super::transcript::transcript;
use super::super::{DEFAULT_MAX_FRAME_OCTETS, fuzz_one, setting, write};
use super::*;

const LIMITS: Limits = Limits { max_frame_octets: DEFAULT_MAX_FRAME_OCTETS, max_header_block_octets: 40_000 };

fn first_error(data: &[u8]) -> H2Error {
    let mut parser = Parser::new(LIMITS);
    let mut input = data;
    loop {
        match parser.next(&mut input) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("no error"),
            Err(error) => return error,
        }
    }
}

/// One frame of every kind.
fn conversation() -> Vec<u8> {
    let mut out = Vec::new();
    write::settings(&[(setting::MAX_CONCURRENT_STREAMS, 100), (setting::INITIAL_WINDOW_SIZE, 1 << 20)], &mut out);
    write::settings_ack(&mut out);
    write::headers(1, b"first block", false, &mut out);
    write::headers(3, &vec![7; 33_000], true, &mut out);
    write::data_header(1, 5, true, &mut out);
    out.extend_from_slice(b"hello");
    write::data_header(5, 0, false, &mut out);
    write::data_header(5, 0, true, &mut out);
    out.extend_from_slice(&write::frame_header(9, kind::DATA, flag::PADDED | flag::END_STREAM, 7));
    out.extend_from_slice(&[3, b'a', b'b', b'c', b'd', b'e', 0, 0, 0]);
    out.extend_from_slice(&write::frame_header(4, kind::DATA, flag::PADDED, 7));
    out.extend_from_slice(&[3, 0, 0, 0]);
    let padded = flag::PADDED | flag::PRIORITY | flag::END_HEADERS;
    out.extend_from_slice(&write::frame_header(11, kind::HEADERS, padded, 9));
    out.extend_from_slice(&[2, 0, 0, 0, 1, 16, b'x', b'y', b'z', 0, 0]);
    out.extend_from_slice(&write::frame_header(5, kind::PRIORITY, 0, 9));
    out.extend_from_slice(&[0; 5]);
    write::ping(*b"12345678", false, &mut out);
    write::ping(*b"12345678", true, &mut out);
    write::window_update(0, 1 << 20, &mut out);
    write::window_update(9, 1, &mut out);
    write::rst_stream(9, ErrorCode::CANCEL, &mut out);
    out.extend_from_slice(&write::frame_header(2, 0xbe, 0xff, 9));
    out.extend_from_slice(b"??");
    write::goaway(9, ErrorCode::NO_ERROR, b"bye", &mut out);
    out
}

#[test]
fn what_is_written_is_read_back_however_it_is_cut() {
    let wire = conversation();
    let whole = transcript(&wire, wire.len(), LIMITS);
    let block = vec![7u8; 33_000];
    let expected = [
        format!("{:?}", Event::SettingsAck),
        format!("{:?}", Event::Headers { stream: 1, block: b"first block", end_stream: false }),
        format!("{:?}", Event::Headers { stream: 3, block: &block, end_stream: true }),
        format!("data {:?} end", Some((1, b"hello".to_vec(), 5))),
        format!("data {:?} end", Some((5, Vec::<u8>::new(), 0))),
        format!("data {:?} end", Some((7, b"abcde".to_vec(), 9))),
        format!("data {:?}", (7, Vec::<u8>::new(), 4)),
        format!("{:?}", Event::Headers { stream: 9, block: b"xyz", end_stream: false }),
        format!("{:?}", Event::Priority { stream: 9 }),
        format!("{:?}", Event::Ping { data: *b"12345678", ack: false }),
        format!("{:?}", Event::Ping { data: *b"12345678", ack: true }),
        format!("{:?}", Event::WindowUpdate { stream: 0, increment: 1 << 20 }),
        format!("{:?}", Event::WindowUpdate { stream: 9, increment: 1 }),
        format!("{:?}", Event::RstStream { stream: 9, code: ErrorCode::CANCEL }),
        format!("{:?}", Event::Unknown { kind: 0xbe }),
        format!("{:?}", Event::GoAway { last_stream: 9, code: ErrorCode::NO_ERROR, debug_data: b"bye" }),
    ];
    assert!(whole[0].starts_with("Settings"), "{}", whole[0]);
    assert_eq!(whole[1..], expected);
    for step in [1, 2, 3, 5, 9, 10, 100, 16_384, 16_400] {
        assert_eq!(transcript(&wire, step, LIMITS), whole, "in pieces of {step}");
    }
}

#[test]
fn priorities_come_on_stream_0_and_name_a_stream() {
    let read = |stream: u32, payload: &[u8]| {
        let mut wire = write::frame_header(payload.len(), kind::PRIORITY_UPDATE, 0xff, stream).to_vec();
        wire.extend_from_slice(payload);
        let mut parser = Parser::new(LIMITS);
        let event = parser.next(&mut wire.as_slice()).map_err(|error| (error.stream, error.code));
        event.map(|event| format!("{:?}", event.unwrap()))
    };
    let update = |stream, urgency, incremental| {
        let priority = crate::priority::Priority { urgency, incremental };
        Ok(format!("{:?}", Event::PriorityUpdate { stream, priority }))
    };
    assert_eq!(read(0, b"\x80\0\0\x07u=1, i"), update(7, 1, true));
    assert_eq!(read(0, b"\0\0\0\x07"), update(7, 3, false));
    assert_eq!(read(3, b"\0\0\0\x07u=1"), Err((None, ErrorCode::PROTOCOL_ERROR)));
    assert_eq!(read(0, b"\0\0\0\0u=1"), Err((None, ErrorCode::PROTOCOL_ERROR)));
    assert_eq!(read(0, b"\0\0\x07"), Err((None, ErrorCode::FRAME_SIZE_ERROR)));
}

#[test]
fn settings_are_pairs_in_order() {
    let wire = conversation();
    let mut parser = Parser::new(LIMITS);
    let Ok(Some(Event::Settings(settings))) = parser.next(&mut wire.as_slice()) else { panic!() };
    let pairs: Vec<_> = settings.iter().collect();
    assert_eq!(pairs, [(setting::MAX_CONCURRENT_STREAMS, 100), (setting::INITIAL_WINDOW_SIZE, 1 << 20)]);
}

#[test]
fn errors_of_the_connection() {
    let connection = |frame: &[u8], code: ErrorCode| {
        let error = first_error(frame);
        assert_eq!((error.stream, error.code), (None, code), "{error}");
    };
    let frame = |kind, flags, stream, payload: &[u8]| {
        let mut out = write::frame_header(payload.len(), kind, flags, stream).to_vec();
        out.extend_from_slice(payload);
        out
    };
    connection(&write::frame_header(16_385, kind::DATA, 0, 1), ErrorCode::FRAME_SIZE_ERROR);
    connection(&frame(kind::DATA, 0, 0, b"x"), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::DATA, flag::PADDED, 1, b""), ErrorCode::FRAME_SIZE_ERROR);
    connection(&frame(kind::DATA, flag::PADDED, 1, &[1]), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::HEADERS, flag::END_HEADERS, 0, b"x"), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::HEADERS, flag::END_HEADERS | flag::PADDED, 1, &[2, 0]), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::HEADERS, flag::END_HEADERS | flag::PRIORITY, 1, &[0; 4]), ErrorCode::FRAME_SIZE_ERROR);
    connection(&frame(kind::CONTINUATION, flag::END_HEADERS, 1, b"x"), ErrorCode::PROTOCOL_ERROR);
    let open = frame(kind::HEADERS, 0, 1, b"x");
    connection(&[open.clone(), frame(kind::PING, 0, 0, &[0; 8])].concat(), ErrorCode::PROTOCOL_ERROR);
    let other = frame(kind::CONTINUATION, flag::END_HEADERS, 3, b"x");
    connection(&[open.clone(), other].concat(), ErrorCode::PROTOCOL_ERROR);
    connection(&[open.clone(), frame(kind::CONTINUATION, 0, 1, b"")].concat(), ErrorCode::ENHANCE_YOUR_CALM);
    let flood = frame(kind::CONTINUATION, 0, 1, &[0; 16_000]).repeat(3);
    connection(&[open, flood].concat(), ErrorCode::ENHANCE_YOUR_CALM);
    connection(&frame(kind::PRIORITY, 0, 0, &[0; 5]), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::RST_STREAM, 0, 0, &[0; 4]), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::RST_STREAM, 0, 1, &[0; 5]), ErrorCode::FRAME_SIZE_ERROR);
    connection(&frame(kind::SETTINGS, 0, 1, &[]), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::SETTINGS, 0, 0, &[0; 5]), ErrorCode::FRAME_SIZE_ERROR);
    connection(&frame(kind::SETTINGS, flag::ACK, 0, &[0; 6]), ErrorCode::FRAME_SIZE_ERROR);
    connection(&frame(kind::SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 2]), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0]), ErrorCode::FLOW_CONTROL_ERROR);
    connection(&frame(kind::SETTINGS, 0, 0, &[0, 5, 0, 0, 0x3f, 0xff]), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::SETTINGS, 0, 0, &[0, 5, 1, 0, 0, 0]), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &[0, 0, 0, 2]), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::PING, 0, 1, &[0; 8]), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::PING, 0, 0, &[0; 7]), ErrorCode::FRAME_SIZE_ERROR);
    connection(&frame(kind::GOAWAY, 0, 1, &[0; 8]), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::GOAWAY, 0, 0, &[0; 7]), ErrorCode::FRAME_SIZE_ERROR);
    connection(&frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]), ErrorCode::PROTOCOL_ERROR);
    connection(&frame(kind::WINDOW_UPDATE, 0, 0, &[0; 3]), ErrorCode::FRAME_SIZE_ERROR);
}

#[test]
fn errors_of_a_stream_leave_the_rest_readable() {
    let mut wire = write::frame_header(4, kind::PRIORITY, 0, 5).to_vec();
    wire.extend_from_slice(&[0; 4]);
    wire.extend_from_slice(&write::frame_header(4, kind::WINDOW_UPDATE, 0, 7));
    wire.extend_from_slice(&[0x80, 0, 0, 0]);
    write::ping([1; 8], false, &mut wire);
    for step in [1, 4, wire.len()] {
        let lines = transcript(&wire, step, LIMITS);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("FRAME_SIZE_ERROR on stream 5"), "{}", lines[0]);
        assert!(lines[1].starts_with("PROTOCOL_ERROR on stream 7"), "{}", lines[1]);
        assert!(lines[2].starts_with("Ping"), "{}", lines[2]);
    }
}

#[test]
fn mutated_conversations_never_panic_and_read_alike_in_pieces() {
    let wire = conversation();
    let small: Vec<u8> = wire[..80].iter().chain(&wire[33_140..]).copied().collect();
    for seed in 0..3000 {
        fuzz_one(&crate::mutate::mutated(&small, seed));
    }
}
