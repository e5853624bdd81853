//! Frames (RFC 9114 section 7), read piece by piece as octets arrive.

use super::varint;
use crate::h3_error::{Code, Error};
use crate::priority::Priority;

/// Frame types of RFC 9114 section 7.2.
pub mod kind {
    /// DATA
    pub const DATA: u64 = 0x00;
    /// HEADERS
    pub const HEADERS: u64 = 0x01;
    /// CANCEL_PUSH
    pub const CANCEL_PUSH: u64 = 0x03;
    /// SETTINGS
    pub const SETTINGS: u64 = 0x04;
    /// PUSH_PROMISE
    pub const PUSH_PROMISE: u64 = 0x05;
    /// GOAWAY
    pub const GOAWAY: u64 = 0x07;
    /// MAX_PUSH_ID
    pub const MAX_PUSH_ID: u64 = 0x0d;
    /// PRIORITY_UPDATE of a request stream (RFC 9218 section 7.2)
    pub const PRIORITY_UPDATE: u64 = 0xf0700;
    /// Types that HTTP/2 used and HTTP/3 forbids: PRIORITY, PING, WINDOW_UPDATE, CONTINUATION (section 7.2.8).
    pub const FORBIDDEN: [u64; 4] = [0x02, 0x06, 0x08, 0x09];
}

/// Most octets of a field section or of a control frame that are taken; more is [`Code::ExcessiveLoad`].
pub const MAX_BUFFERED_BYTES: u64 = 64 * 1024;

/// A frame, or a piece of a DATA frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A piece of the payload of a DATA frame; never empty.
    Data(&'a [u8]),
    /// The whole encoded field section of a HEADERS frame.
    Headers(&'a [u8]),
    /// The whole payload of SETTINGS.
    Settings(&'a [u8]),
    /// CANCEL_PUSH, GOAWAY or MAX_PUSH_ID: a type and the one identifier it carries.
    Identifier {
        /// The frame type, see [`kind`].
        kind: u64,
        /// Push or stream identifier.
        id: u64,
    },
    /// PRIORITY_UPDATE of a request stream.
    PriorityUpdate {
        /// The stream.
        id: u64,
        /// Its new priority.
        priority: Priority,
    },
    /// PUSH_PROMISE; its payload is left unread.
    PushPromise,
    /// A frame type of HTTP/2 that HTTP/3 forbids.
    Forbidden,
}

/// Cuts the octets of one stream into frames. Frames of unknown types are skipped (section 9).
#[derive(Debug, Default)]
pub struct FrameReader {
    /// Octets of an unfinished frame header (type and length, at most 8 each) or of an unfinished payload.
    partial: Vec<u8>,
    kind: u64,
    /// Octets of the payload still to come.
    remaining: u64,
    in_payload: bool,
    /// `partial` holds what the last call handed out.
    handed_out: bool,
}

impl FrameReader {
    /// A reader at the start of a stream, or after the stream type.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the stream may end here (RFC 9114 section 7.1: a stream that ends inside a frame is H3_FRAME_ERROR).
    pub fn at_boundary(&self) -> bool {
        !self.in_payload && (self.partial.is_empty() || self.handed_out)
    }

    /// Takes octets off the front of `input` until a frame (or a piece of DATA) is there; `None` when all are consumed.
    pub fn read<'r, 'i: 'r>(&'r mut self, input: &mut &'i [u8]) -> Result<Option<Frame<'r>>, Error> {
        if self.handed_out {
            self.partial.clear();
            self.handed_out = false;
        }
        loop {
            if !self.in_payload && !self.read_header(input)? {
                return Ok(None);
            }
            match self.kind {
                kind::DATA => {
                    if self.remaining == 0 {
                        self.in_payload = false;
                        continue;
                    }
                    return Ok(self.take(input).map(Frame::Data));
                }
                kind::HEADERS
                | kind::SETTINGS
                | kind::CANCEL_PUSH
                | kind::GOAWAY
                | kind::MAX_PUSH_ID
                | kind::PRIORITY_UPDATE => {
                    // Settled here because a borrow of `self.partial` may not live on past the early return.
                    if self.partial.is_empty() && input.len() as u64 >= self.remaining {
                        let (payload, rest) = input.split_at(self.remaining as usize);
                        *input = rest;
                        self.in_payload = false;
                        return whole_frame(self.kind, payload).map(Some);
                    }
                    let piece = self.take(input).unwrap_or_default();
                    self.partial.extend_from_slice(piece);
                    if self.remaining > 0 {
                        return Ok(None);
                    }
                    self.in_payload = false;
                    self.handed_out = true;
                    return whole_frame(self.kind, &self.partial).map(Some);
                }
                kind::PUSH_PROMISE => return Ok(Some(Frame::PushPromise)),
                other if kind::FORBIDDEN.contains(&other) => return Ok(Some(Frame::Forbidden)),
                _ => {
                    self.take(input);
                    if self.in_payload {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Reads type and length; false when more octets are needed.
    fn read_header(&mut self, input: &mut &[u8]) -> Result<bool, Error> {
        if self.partial.is_empty() {
            if let Some((kind, length, used)) = parse_header(input) {
                *input = &input[used..];
                return self.begin(kind, length).map(|()| true);
            }
            self.partial.extend_from_slice(input);
            *input = &[];
            return Ok(false);
        }
        // At most 16 octets, so one at a time costs nothing.
        while let Some((first, rest)) = input.split_first() {
            self.partial.push(*first);
            *input = rest;
            if let Some((kind, length, _)) = parse_header(&self.partial) {
                self.partial.clear();
                return self.begin(kind, length).map(|()| true);
            }
        }
        Ok(false)
    }

    fn begin(&mut self, kind: u64, length: u64) -> Result<(), Error> {
        let buffered = matches!(kind, kind::HEADERS | kind::SETTINGS | kind::PRIORITY_UPDATE);
        if buffered && length > MAX_BUFFERED_BYTES {
            return Err(Error::new(Code::ExcessiveLoad, "a frame that is read whole is larger than 64 kB"));
        }
        let identifier = matches!(kind, kind::CANCEL_PUSH | kind::GOAWAY | kind::MAX_PUSH_ID);
        // RFC 9114 section 7.1: a payload contains "exactly the fields identified in its description".
        if identifier && !matches!(length, 1 | 2 | 4 | 8) {
            return Err(Error::new(Code::FrameError, "the length of an identifier frame fits no identifier"));
        }
        self.kind = kind;
        self.remaining = length;
        self.in_payload = true;
        Ok(())
    }

    /// Takes what there is of the payload, and ends it when it is complete; `None` when there is nothing.
    fn take<'i>(&mut self, input: &mut &'i [u8]) -> Option<&'i [u8]> {
        let length = self.remaining.min(input.len() as u64) as usize;
        let (piece, rest) = input.split_at(length);
        *input = rest;
        self.remaining -= length as u64;
        self.in_payload = self.remaining > 0;
        (!piece.is_empty()).then_some(piece)
    }
}

fn parse_header(input: &[u8]) -> Option<(u64, u64, usize)> {
    let (kind, first) = varint::read(input)?;
    let (length, second) = varint::read(&input[first..])?;
    Some((kind, length, first + second))
}

fn whole_frame(kind: u64, payload: &[u8]) -> Result<Frame<'_>, Error> {
    match kind {
        kind::HEADERS => Ok(Frame::Headers(payload)),
        kind::SETTINGS => Ok(Frame::Settings(payload)),
        kind::PRIORITY_UPDATE => match varint::read(payload) {
            Some((id, used)) => Ok(Frame::PriorityUpdate { id, priority: Priority::parse(&payload[used..]) }),
            None => Err(Error::new(Code::FrameError, "PRIORITY_UPDATE without a stream")),
        },
        _ => match varint::read(payload) {
            Some((id, used)) if used == payload.len() => Ok(Frame::Identifier { kind, id }),
            _ => Err(Error::new(Code::FrameError, "an identifier frame holds something else than its identifier")),
        },
    }
}

/// Appends the header of a frame.
pub fn write_header(kind: u64, payload_bytes: u64, out: &mut Vec<u8>) {
    varint::write(kind, out);
    varint::write(payload_bytes, out);
}

/// Appends a HEADERS frame.
pub fn write_headers(section: &[u8], out: &mut Vec<u8>) {
    write_header(kind::HEADERS, section.len() as u64, out);
    out.extend_from_slice(section);
}

/// Appends a GOAWAY frame.
pub fn write_goaway(id: u64, out: &mut Vec<u8>) {
    write_header(kind::GOAWAY, varint::encoded_len(id) as u64, out);
    varint::write(id, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(input: &[u8], step: usize) -> Result<(Vec<String>, bool), Error> {
        let mut reader = FrameReader::new();
        let mut all = Vec::new();
        let mut data: Vec<u8> = Vec::new();
        for chunk in input.chunks(step) {
            let mut rest = chunk;
            while let Some(frame) = reader.read(&mut rest)? {
                if let Frame::Data(piece) = frame {
                    assert!(!piece.is_empty());
                    data.extend_from_slice(piece);
                } else {
                    if !data.is_empty() {
                        all.push(format!("Data({:?})", std::mem::take(&mut data)));
                    }
                    all.push(format!("{frame:?}"));
                }
            }
            assert!(rest.is_empty());
        }
        if !data.is_empty() {
            all.push(format!("Data({data:?})"));
        }
        Ok((all, reader.at_boundary()))
    }

    fn sample() -> Vec<u8> {
        let mut out = Vec::new();
        write_headers(&[0, 0, 0xd9], &mut out);
        write_header(0x21 + 0x1f * 7, 5, &mut out); // reserved type, section 7.2.8: skipped
        out.extend_from_slice(b"grese");
        write_header(kind::DATA, 300, &mut out);
        out.extend((0..300).map(|i| (i % 256) as u8));
        write_header(kind::DATA, 0, &mut out);
        write_goaway(16_384, &mut out);
        write_header(kind::SETTINGS, 0, &mut out);
        write_headers(&[7; 200], &mut out);
        out
    }

    #[test]
    fn pieces_of_any_size_give_the_same_frames() {
        let input = sample();
        let whole = owned(&input, input.len()).unwrap();
        assert!(whole.1);
        assert_eq!(whole.0.len(), 5);
        assert_eq!(whole.0[2], format!("{:?}", Frame::Identifier { kind: kind::GOAWAY, id: 16_384 }));
        for step in 1..input.len() {
            assert_eq!(owned(&input, step).unwrap(), whole, "step {step}");
        }
    }

    #[test]
    fn an_end_inside_a_frame_is_seen() {
        let mut input = Vec::new();
        write_headers(&[1; 100], &mut input);
        for cut in 1..input.len() {
            assert!(!owned(&input[..cut], cut).unwrap().1, "cut {cut}");
            assert!(!owned(&input[..cut], 1).unwrap().1, "cut {cut}");
        }
    }

    #[test]
    fn wrong_lengths_are_errors() {
        for (input, code) in [
            (&[0x07, 0x03, 0, 0, 0][..], Code::FrameError), // GOAWAY of three octets
            (&[0x07, 0x02, 0x00, 0x00], Code::FrameError),  // identifier of one octet, then a stray one
            (&[0x07, 0x00], Code::FrameError),
            (&[0x01, 0x80, 0x01, 0x00, 0x01], Code::ExcessiveLoad), // HEADERS of 65,537 octets
        ] {
            assert_eq!(owned(input, input.len()).unwrap_err().code, code);
            assert_eq!(owned(input, 1).unwrap_err().code, code);
        }
    }
}
