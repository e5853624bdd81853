//! The order of frames on a request stream (RFC 9114 section 4.1), the same for requests and responses.

use super::frame::{Frame, FrameReader};
use crate::h3_error::{Code, Error};

/// What a message consists of.
#[derive(Debug, PartialEq, Eq)]
pub enum MessageEvent<'a> {
    /// The encoded field section of the head.
    Head(&'a [u8]),
    /// A piece of the content.
    Content(&'a [u8]),
    /// The encoded field section of the trailers.
    Trailers(&'a [u8]),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expect {
    #[default]
    Head,
    Content,
    End,
}

/// Reads one message off a request stream.
#[derive(Debug, Default)]
pub struct MessageReader {
    frames: FrameReader,
    expect: Expect,
}

impl MessageReader {
    /// A reader at the start of a message.
    pub fn new() -> Self {
        Self::default()
    }

    /// The last head was an interim response (1xx), so another one follows (RFC 9114 section 4.1).
    pub fn expect_another_head(&mut self) {
        if self.expect == Expect::Content {
            self.expect = Expect::Head;
        }
    }

    /// Takes octets off the front of `input`; `None` when all are consumed.
    pub fn read<'r, 'i: 'r>(&'r mut self, input: &mut &'i [u8]) -> Result<Option<MessageEvent<'r>>, Error> {
        let Some(frame) = self.frames.read(input)? else { return Ok(None) };
        match (frame, self.expect) {
            (Frame::Headers(section), Expect::Head) => {
                self.expect = Expect::Content;
                Ok(Some(MessageEvent::Head(section)))
            }
            (Frame::Data(piece), Expect::Content) => Ok(Some(MessageEvent::Content(piece))),
            (Frame::Headers(section), Expect::Content) => {
                self.expect = Expect::End;
                Ok(Some(MessageEvent::Trailers(section)))
            }
            (Frame::Data(_), Expect::Head) => Err(unexpected("DATA before HEADERS")),
            (Frame::Data(_) | Frame::Headers(_), Expect::End) => Err(unexpected("a frame after the trailers")),
            // No MAX_PUSH_ID was ever sent, so no push identifier is valid (section 7.2.5).
            (Frame::PushPromise, _) => Err(Error::new(Code::IdError, "PUSH_PROMISE although push was not allowed")),
            (Frame::Settings(_) | Frame::Identifier { .. } | Frame::PriorityUpdate { .. } | Frame::Forbidden, _) => {
                Err(unexpected("a frame that has no place on a request stream"))
            }
        }
    }

    /// The stream has ended. An error when the message is not complete (RFC 9114 sections 7.1 and 4.1).
    pub fn finish(&self) -> Result<(), Error> {
        if !self.frames.at_boundary() {
            return Err(Error::new(Code::FrameError, "the stream ends inside a frame"));
        }
        if self.expect == Expect::Head {
            return Err(Error::new(Code::RequestIncomplete, "the stream ends before the head of the message"));
        }
        Ok(())
    }
}

/// RFC 9114 section 4.1: "an invalid sequence of frames" is an error of the connection.
fn unexpected(reason: &'static str) -> Error {
    Error::new(Code::FrameUnexpected, reason)
}

#[cfg(test)]
mod tests {
    use super::super::frame::{kind, write_goaway, write_header, write_headers};
    use super::*;

    fn run(input: &[u8], interim: bool) -> Result<Vec<&'static str>, Error> {
        let mut reader = MessageReader::new();
        let mut events = Vec::new();
        let mut rest = input;
        while let Some(event) = reader.read(&mut rest)? {
            let is_head = matches!(event, MessageEvent::Head(_));
            events.push(match event {
                MessageEvent::Head(_) => "head",
                MessageEvent::Content(_) => "content",
                MessageEvent::Trailers(_) => "trailers",
            });
            if is_head && interim && events.len() == 1 {
                reader.expect_another_head();
            }
        }
        reader.finish().map(|()| events)
    }

    fn frames(parts: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        for part in parts {
            match *part {
                "H" => write_headers(&[0, 0, 0xd9], &mut out),
                "D" => {
                    write_header(kind::DATA, 3, &mut out);
                    out.extend_from_slice(b"abc");
                }
                "E" => write_header(kind::DATA, 0, &mut out),
                "G" => write_goaway(0, &mut out),
                "S" => write_header(kind::SETTINGS, 0, &mut out),
                "P" => write_header(kind::PUSH_PROMISE, 9, &mut out),
                "F" => write_header(0x08, 4, &mut out),
                _ => write_header(0x21, 0, &mut out),
            }
        }
        out
    }

    #[test]
    fn legal_orders() {
        assert_eq!(run(&frames(&["H"]), false).unwrap(), ["head"]);
        assert_eq!(run(&frames(&["?", "H", "E", "D", "?", "D"]), false).unwrap(), ["head", "content", "content"]);
        assert_eq!(run(&frames(&["H", "D", "H", "?"]), false).unwrap(), ["head", "content", "trailers"]);
        assert_eq!(run(&frames(&["H", "H", "D"]), true).unwrap(), ["head", "head", "content"]);
    }

    #[test]
    fn illegal_orders() {
        for (parts, code) in [
            (&["D"][..], Code::FrameUnexpected),
            (&["H", "H", "D"], Code::FrameUnexpected),
            (&["H", "D", "H", "H"], Code::FrameUnexpected),
            (&["S"], Code::FrameUnexpected),
            (&["H", "G"], Code::FrameUnexpected),
            (&["F"], Code::FrameUnexpected),
            (&["H", "P"], Code::IdError),
            (&[], Code::RequestIncomplete),
            (&["?"], Code::RequestIncomplete),
        ] {
            assert_eq!(run(&frames(parts), false).unwrap_err().code, code, "{parts:?}");
        }
        assert_eq!(run(&frames(&["H"]), true).unwrap_err().code, Code::RequestIncomplete, "interim only");
        let cut = frames(&["H", "D"]);
        assert_eq!(run(&cut[..cut.len() - 1], false).unwrap_err().code, Code::FrameError);
    }
}
