//! Reads the response to one request out of whatever pieces the connection delivers.

use trifecta_wire::http1::{ChunkedDecoder, ChunkedStep, Framing, each_response_field, parse_response_head};

use crate::caller::{Caller, Exchange};
use trifecta_wire::ErrorClass;

/// Octets that the head of a response may have, interim responses not counted.
const MAX_HEAD_OCTETS: usize = 64 * 1024;

/// Whether the connection can carry another request after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    KeepAlive,
    Close,
}

#[derive(Debug, Default)]
enum Reading {
    /// No request is in flight: whatever comes is unasked for.
    #[default]
    Idle,
    Head,
    Content {
        left: u64,
    },
    Chunked(ChunkedDecoder),
    UntilClose,
    Complete,
}

/// The state of a response.
#[derive(Debug, Default)]
pub(super) struct ResponseReader {
    reading: Reading,
    /// A head that has not wholly come yet.
    partial: Vec<u8>,
    to_head: bool,
    keep_alive: bool,
}

impl ResponseReader {
    /// A request went out; `to_head`: its method is HEAD.
    pub(super) fn expect(&mut self, to_head: bool) {
        self.reading = Reading::Head;
        self.partial.clear();
        self.to_head = to_head;
        self.keep_alive = false;
    }

    pub(super) fn is_complete(&self) -> bool {
        matches!(self.reading, Reading::Complete)
    }

    /// Whether the response was announced to be longer than what came: it is incomplete (RFC 9112 8).
    pub(super) fn misses_content(&self) -> bool {
        matches!(self.reading, Reading::Content { .. } | Reading::Chunked(_))
    }

    /// Forgets a complete response.
    pub(super) fn finish(&mut self) -> Verdict {
        self.reading = Reading::Idle;
        if self.keep_alive { Verdict::KeepAlive } else { Verdict::Close }
    }

    /// The stream ended, with close_notify if `clean`; without it, content that lasts until then may have been cut
    /// (RFC 9112 9.8).
    pub(super) fn end_of_stream(&mut self, clean: bool) {
        if clean && matches!(self.reading, Reading::UntilClose) {
            self.reading = Reading::Complete;
        }
    }

    /// Takes octets that were received at `now_ns`.
    pub(super) fn read(
        &mut self,
        exchange: Option<&mut Exchange>,
        caller: &mut impl Caller,
        mut octets: &[u8],
        now_ns: u64,
    ) -> Result<(), ErrorClass> {
        let Some(exchange) = exchange else {
            return if octets.is_empty() { Ok(()) } else { Err(ErrorClass::MalformedHttp1) };
        };
        while !octets.is_empty() {
            match &mut self.reading {
                // Nothing is pipelined, so octets behind a response belong to nothing. RFC 9112 9.2: data without an
                // outstanding request "MUST NOT" be considered "a valid response".
                Reading::Idle | Reading::Complete => return Err(ErrorClass::MalformedHttp1),
                Reading::Head => octets = self.head(exchange, caller, octets, now_ns)?,
                Reading::Content { left } => {
                    let (content, rest) = octets.split_at((*left).min(octets.len() as u64) as usize);
                    exchange.content(caller, content);
                    *left -= content.len() as u64;
                    if *left == 0 {
                        self.reading = Reading::Complete;
                    }
                    octets = rest;
                }
                Reading::Chunked(decoder) => match decoder.next(&mut octets) {
                    Ok(ChunkedStep::Content(content)) => exchange.content(caller, content),
                    Ok(ChunkedStep::NeedsMore) => return Ok(()),
                    Ok(ChunkedStep::End) => self.reading = Reading::Complete,
                    Err(_) => return Err(ErrorClass::MalformedHttp1),
                },
                Reading::UntilClose => {
                    exchange.content(caller, octets);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads a head, or keeps what there is of it; returns what is left of `octets`.
    fn head<'a>(
        &mut self,
        exchange: &mut Exchange,
        caller: &mut impl Caller,
        octets: &'a [u8],
        now_ns: u64,
    ) -> Result<&'a [u8], ErrorClass> {
        if exchange.first_byte_ns == 0 {
            exchange.first_byte_ns = now_ns;
        }
        let kept = self.partial.len();
        let input = if kept == 0 {
            octets
        } else {
            self.partial.extend_from_slice(octets);
            &self.partial[..]
        };
        let Some(head) = parse_response_head(input, self.to_head).map_err(|_| ErrorClass::MalformedHttp1)? else {
            if input.len() > MAX_HEAD_OCTETS {
                return Err(ErrorClass::MalformedHttp1);
            }
            if kept == 0 {
                self.partial.extend_from_slice(octets);
            }
            return Ok(&[]);
        };
        if !head.interim() {
            exchange.status = head.status;
            if caller.wants_fields(exchange) {
                each_response_field(input, |name, value| caller.field(exchange, name, value));
            }
        }
        // The head was not whole before these octets, so it ends within them.
        let rest = octets.get(head.head_octets.saturating_sub(kept)..).unwrap_or(&[]);
        self.partial.clear();
        exchange.header_bytes_in += head.head_octets as u64;
        if head.interim() {
            // The times of the row are those of the final response.
            exchange.first_byte_ns = if rest.is_empty() { 0 } else { now_ns };
            return Ok(rest);
        }
        self.keep_alive = head.keep_alive;
        self.reading = match head.framing {
            Framing::None | Framing::Length(0) => Reading::Complete,
            Framing::Length(left) => Reading::Content { left },
            Framing::Chunked => Reading::Chunked(ChunkedDecoder::new()),
            Framing::UntilClose => {
                self.keep_alive = false;
                Reading::UntilClose
            }
        };
        Ok(rest)
    }
}
