//! Appends HTTP/2 frames to a buffer.

use super::{DEFAULT_MAX_FRAME_OCTETS, ErrorCode, FRAME_HEADER_OCTETS, flag, kind};

/// A frame header as its nine octets; `length` must fit 24 bits.
#[inline]
pub fn frame_header(length: usize, kind: u8, flags: u8, stream: u32) -> [u8; FRAME_HEADER_OCTETS] {
    debug_assert!(length < 1 << 24);
    let size = (length as u32).to_be_bytes();
    let stream = stream.to_be_bytes();
    [size[1], size[2], size[3], kind, flags, stream[0], stream[1], stream[2], stream[3]]
}

/// SETTINGS with (identifier, value) pairs, in order.
pub fn settings(pairs: &[(u16, u32)], out: &mut Vec<u8>) {
    out.extend_from_slice(&frame_header(pairs.len() * 6, kind::SETTINGS, 0, 0));
    for (identifier, value) in pairs {
        out.extend_from_slice(&identifier.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// The acknowledgement of the peer's SETTINGS (RFC 9113 6.5.3).
pub fn settings_ack(out: &mut Vec<u8>) {
    out.extend_from_slice(&frame_header(0, kind::SETTINGS, flag::ACK, 0));
}

/// PING, or its answer.
pub fn ping(data: [u8; 8], ack: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(&frame_header(8, kind::PING, if ack { flag::ACK } else { 0 }, 0));
    out.extend_from_slice(&data);
}

/// WINDOW_UPDATE of a stream, or of the connection when `stream` is 0; `increment` must be 1..=2^31-1.
pub fn window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    debug_assert!(increment > 0 && increment < 1 << 31);
    out.extend_from_slice(&frame_header(4, kind::WINDOW_UPDATE, 0, stream));
    out.extend_from_slice(&increment.to_be_bytes());
}

/// RST_STREAM.
pub fn rst_stream(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    out.extend_from_slice(&frame_header(4, kind::RST_STREAM, 0, stream));
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// GOAWAY with debug data of at most a frame.
pub fn goaway(last_stream: u32, code: ErrorCode, debug_data: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&frame_header(8 + debug_data.len(), kind::GOAWAY, 0, 0));
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(debug_data);
}

/// HEADERS with a whole block, in CONTINUATIONs beyond the smallest allowed SETTINGS_MAX_FRAME_SIZE.
#[inline]
pub fn headers(stream: u32, block: &[u8], end_stream: bool, out: &mut Vec<u8>) {
    let end_stream = if end_stream { flag::END_STREAM } else { 0 };
    if block.len() <= DEFAULT_MAX_FRAME_OCTETS as usize {
        out.extend_from_slice(&frame_header(block.len(), kind::HEADERS, flag::END_HEADERS | end_stream, stream));
        out.extend_from_slice(block);
        return;
    }
    let mut parts = block.chunks(DEFAULT_MAX_FRAME_OCTETS as usize).peekable();
    let mut frame_kind = kind::HEADERS;
    let mut flags = end_stream;
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            flags |= flag::END_HEADERS;
        }
        out.extend_from_slice(&frame_header(part.len(), frame_kind, flags, stream));
        out.extend_from_slice(part);
        (frame_kind, flags) = (kind::CONTINUATION, 0);
    }
}

/// The header of a DATA frame without padding; `length` octets of content are to follow.
#[inline]
pub fn data_header(stream: u32, length: usize, end_stream: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(&frame_header(length, kind::DATA, if end_stream { flag::END_STREAM } else { 0 }, stream));
}
