//! The chunked transfer coding (RFC 9112 7.1), decoded incrementally.

use super::Http1Error;

/// Octets a chunk line (size and extensions) may have.
const MAX_LINE_OCTETS: u32 = 4096;
/// Octets all trailer fields together may have.
const MAX_TRAILER_OCTETS: u32 = 16 * 1024;

/// What [`ChunkedDecoder::next`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum ChunkedStep<'a> {
    /// Some content.
    Content(&'a [u8]),
    /// The input is used up and the content has not ended.
    NeedsMore,
    /// The content and its trailers have ended; the input stands behind them.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the digits of a chunk size, of which there were `digits`.
    Size {
        digits: u8,
    },
    /// Between the size and the end of its line.
    Extension,
    /// In whitespace after the size (BWS, RFC 9112 7.1.1), where only an extension or the line's end may follow.
    SizeSpace,
    SizeLineFeed,
    Content,
    ContentReturn,
    ContentLineFeed,
    /// At the beginning of a trailer line (RFC 9112 7.1.2).
    TrailerStart,
    TrailerLine,
    TrailerLineFeed,
    FinalLineFeed,
    Ended,
}

/// Takes the chunked coding off a message's content. Lines must end with CR LF: a lone LF is refused, as that is where
/// request smuggling begins (RFC 9112 2.2, 7.1.1).
#[derive(Clone, Debug)]
pub struct ChunkedDecoder {
    state: State,
    /// Octets left of the chunk.
    left: u64,
    line_octets: u32,
    trailer_octets: u32,
}

impl Default for ChunkedDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl ChunkedDecoder {
    /// A decoder at the first octet of the content.
    pub const fn new() -> Self {
        Self { state: State::Size { digits: 0 }, left: 0, line_octets: 0, trailer_octets: 0 }
    }

    /// Takes the next part off the front of `input`.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<ChunkedStep<'a>, Http1Error> {
        loop {
            if self.state == State::Ended {
                return Ok(ChunkedStep::End);
            }
            if self.state == State::Content && self.left > 0 {
                if input.is_empty() {
                    return Ok(ChunkedStep::NeedsMore);
                }
                let available = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len());
                let (content, rest) = input.split_at(available);
                *input = rest;
                self.left -= available as u64;
                if self.left == 0 {
                    self.state = State::ContentReturn;
                }
                return Ok(ChunkedStep::Content(content));
            }
            let Some((&octet, rest)) = input.split_first() else { return Ok(ChunkedStep::NeedsMore) };
            *input = rest;
            self.state = self.step(octet)?;
        }
    }

    fn step(&mut self, octet: u8) -> Result<State, Http1Error> {
        let syntax = |what| Err(Http1Error::Syntax(what));
        match (self.state, octet) {
            (State::Size { digits }, _) if octet.is_ascii_hexdigit() => {
                // RFC 9112 7.1: recipients "MUST anticipate potentially large hexadecimal numerals".
                // 15 digits stay below 2^60, far from an overflow; leading zeroes count, as nobody needs them.
                if digits == 15 {
                    return syntax("chunk size too large");
                }
                let digit = (octet as char).to_digit(16).unwrap_or(0);
                self.left = self.left << 4 | u64::from(digit);
                Ok(State::Size { digits: digits + 1 })
            }
            (State::Size { digits: 0 }, _) => syntax("chunk size expected"),
            (State::Size { .. } | State::SizeSpace | State::Extension, b'\r') => Ok(State::SizeLineFeed),
            (State::Size { .. } | State::SizeSpace, b';') => self.line(State::Extension),
            (State::Size { .. } | State::SizeSpace, b' ' | b'\t') => self.line(State::SizeSpace),
            (State::Size { .. } | State::SizeSpace, _) => syntax("octet after chunk size"),
            (State::Extension, b'\n' | 0) => syntax("control octet in chunk extension"),
            (State::Extension, _) => self.line(State::Extension),
            (State::SizeLineFeed, b'\n') => {
                self.line_octets = 0;
                Ok(if self.left == 0 { State::TrailerStart } else { State::Content })
            }
            (State::ContentReturn, b'\r') => Ok(State::ContentLineFeed),
            (State::ContentReturn, _) => syntax("chunk longer than its size"),
            (State::ContentLineFeed, b'\n') => Ok(State::Size { digits: 0 }),
            (State::TrailerStart, b'\r') => Ok(State::FinalLineFeed),
            (State::TrailerStart, b'\n' | 0 | b' ' | b'\t' | b':') => syntax("malformed trailer field"),
            (State::TrailerStart, _) => self.trailer(State::TrailerLine),
            (State::TrailerLine, b'\r') => Ok(State::TrailerLineFeed),
            (State::TrailerLine, b'\n' | 0) => syntax("control octet in trailer field"),
            (State::TrailerLine, _) => self.trailer(State::TrailerLine),
            (State::TrailerLineFeed, b'\n') => Ok(State::TrailerStart),
            (State::FinalLineFeed, b'\n') => Ok(State::Ended),
            _ => syntax("line feed expected"),
        }
    }

    fn line(&mut self, next: State) -> Result<State, Http1Error> {
        self.line_octets += 1;
        if self.line_octets > MAX_LINE_OCTETS { Err(Http1Error::Syntax("chunk line too long")) } else { Ok(next) }
    }

    fn trailer(&mut self, next: State) -> Result<State, Http1Error> {
        self.trailer_octets += 1;
        if self.trailer_octets > MAX_TRAILER_OCTETS {
            return Err(Http1Error::Syntax("trailer section too long"));
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(wire: &[u8]) -> Result<(Vec<u8>, usize), Http1Error> {
        let mut decoder = ChunkedDecoder::new();
        let mut input = wire;
        let mut content = Vec::new();
        loop {
            match decoder.next(&mut input)? {
                ChunkedStep::Content(part) => content.extend_from_slice(part),
                ChunkedStep::NeedsMore => return Err(Http1Error::Syntax("incomplete")),
                ChunkedStep::End => return Ok((content, input.len())),
            }
        }
    }

    #[test]
    fn takes_chunks_extensions_and_trailers_and_nothing_more() {
        let wire = b"4\r\nWiki\r\nA ; name=\"value\"\r\n0123456789\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\nNEXT";
        assert_eq!(decode(wire), Ok((b"Wiki0123456789".to_vec(), 4)));
        assert_eq!(decode(b"0\r\n\r\n"), Ok((vec![], 0)));
        for cut in 0..wire.len() - 4 {
            assert_eq!(decode(&wire[..cut]), Err(Http1Error::Syntax("incomplete")), "{cut}");
        }
    }

    #[test]
    fn refuses_what_parties_read_differently() {
        for wire in [
            &b"\r\n"[..],
            b"4\nWiki\r\n0\r\n\r\n",
            b"4\r\nWikis\r\n0\r\n\r\n",
            b"4\r\nWiki0\r\n\r\n",
            b"-4\r\nWiki\r\n0\r\n\r\n",
            b"+4\r\nWiki\r\n0\r\n\r\n",
            b"0x4\r\nWiki\r\n0\r\n\r\n",
            b"4 4\r\nWiki\r\n0\r\n\r\n",
            b"10000000000000000\r\n",
            b"ffffffffffffffff\r\n",
            b"4;a\nb\r\nWiki\r\n0\r\n\r\n",
            b"0\r\n: no name\r\n\r\n",
            b"0\r\nline\n\r\n",
            b"0\r\n\rX",
        ] {
            let result = decode(wire);
            assert!(matches!(result, Err(Http1Error::Syntax(what)) if what != "incomplete"), "{wire:?} {result:?}");
        }
    }

    #[test]
    fn bounds_lines_and_trailers() {
        let long_extension = [b"4;".as_slice(), &[b'x'; 5000], b"\r\n"].concat();
        assert_eq!(decode(&long_extension), Err(Http1Error::Syntax("chunk line too long")));
        let long_trailer = [b"0\r\n".as_slice(), &b"a: b\r\n".repeat(5000)].concat();
        assert_eq!(decode(&long_trailer), Err(Http1Error::Syntax("trailer section too long")));
    }
}
