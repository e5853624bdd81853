//! QPACK, the field compression of HTTP/3 (RFC 9204), without a dynamic table in either direction.
//!
//! We announce no SETTINGS_QPACK_MAX_TABLE_CAPACITY, so the peer's encoder may refer to the static table only, and our
//! encoder does not use what the peer would allow. Field sections then depend on nothing: they can be built once, sent
//! many times and read in any order, and no stream ever waits for another.

mod decoder;
pub mod encoder;
mod scan;
pub mod static_table;

pub use decoder::Decoder;
pub use scan::scan_response;

use crate::h3_error::{Code, Error};
use crate::hpack::{HpackError, integer};

/// An error of the field section itself, which ends the connection (RFC 9204 sections 2.2.3 and 6).
const fn failed(reason: &'static str) -> Error {
    Error::new(Code::DecompressionFailed, reason)
}

fn from_hpack(error: HpackError) -> Error {
    match error {
        HpackError::Truncated => failed("a field section ends inside a field"),
        HpackError::Integer => failed("an integer in a field section is too large"),
        HpackError::Huffman => failed("an invalid Huffman code in a field section"),
        HpackError::Index(_) | HpackError::TableSize => failed("an index that is not in the static table"),
        HpackError::ListTooLarge => Error::new(Code::ExcessiveLoad, "a field section is too large"),
        HpackError::Malformed(reason) => Error::new(Code::MessageError, reason),
    }
}

/// One field line of a section as it is coded, names of the static table resolved.
enum Line<'a> {
    /// Name and value of the static table.
    Indexed(&'static [u8], &'static [u8]),
    /// Name of the static table, literal value.
    NamedValue(&'static [u8], crate::hpack::StringLiteral<'a>),
    /// Both literal.
    Literal(crate::hpack::StringLiteral<'a>, crate::hpack::StringLiteral<'a>),
}

/// Walks a field section (RFC 9204 section 4.5).
fn walk<'a>(section: &'a [u8], mut on_line: impl FnMut(Line<'a>) -> Result<(), Error>) -> Result<(), Error> {
    let mut position = 0;
    let required_insert_count = integer::decode(section, &mut position, 8).map_err(|error| from_hpack(error.into()))?;
    // RFC 9204 section 4.5.1.1: no encoder can have inserted into a table of capacity 0.
    if required_insert_count != 0 {
        return Err(failed("a field section needs a dynamic table that was not allowed"));
    }
    let negative_base = section.get(position).is_some_and(|octet| octet & 0x80 != 0);
    integer::decode(section, &mut position, 7).map_err(|error| from_hpack(error.into()))?;
    // RFC 9204 section 4.5.1.2: invalid where the Required Insert Count is not above the Delta Base, as 0 never is.
    if negative_base {
        return Err(failed("the base of a field section is negative"));
    }
    while let Some(&first) = section.get(position) {
        let line = read_line(section, &mut position, first).map_err(from_hpack)?;
        on_line(line)?;
    }
    Ok(())
}

/// RFC 9204 sections 4.5.2, 4.5.4 and 4.5.6.
#[inline]
fn read_line<'a>(section: &'a [u8], position: &mut usize, first: u8) -> Result<Line<'a>, HpackError> {
    use crate::hpack::{read_prefixed_string, read_string};
    const STATIC_INDEXED: u8 = 0x40;
    const STATIC_NAMED: u8 = 0x10;
    if first & 0x80 != 0 {
        let index = integer::decode(section, position, 6)?;
        let (name, value) = lookup(index, first & STATIC_INDEXED != 0)?;
        Ok(Line::Indexed(name, value))
    } else if first & 0x40 != 0 {
        let index = integer::decode(section, position, 4)?;
        let (name, _) = lookup(index, first & STATIC_NAMED != 0)?;
        Ok(Line::NamedValue(name, read_string(section, position)?))
    } else if first & 0x20 != 0 {
        let name = read_prefixed_string(section, position, 3)?;
        Ok(Line::Literal(name, read_string(section, position)?))
    } else {
        // Post-base representations (sections 4.5.3 and 4.5.5) refer to the dynamic table only.
        Err(HpackError::Index(u64::from(first & 0x0f)))
    }
}

#[inline]
fn lookup(index: u64, is_static: bool) -> Result<(&'static [u8], &'static [u8]), HpackError> {
    let entry = usize::try_from(index).ok().filter(|_| is_static).and_then(static_table::entry);
    entry.ok_or(HpackError::Index(index))
}

/// Checks octets of the peer's encoder stream. With a capacity of 0 there may be no instruction at all
/// (RFC 9204 section 3.2.3); "Set Dynamic Table Capacity 0" (4.3.1), which changes nothing, is let pass.
pub fn check_encoder_stream(octets: &[u8]) -> Result<(), Error> {
    const SET_CAPACITY_ZERO: u8 = 0x20;
    if octets.iter().all(|octet| *octet == SET_CAPACITY_ZERO) {
        return Ok(());
    }
    Err(Error::new(Code::EncoderStreamError, "an encoder instruction although the dynamic table has no capacity"))
}

/// Checks the peer's decoder stream: we insert nothing, so nothing can be acknowledged; only Stream Cancellation (`01`
/// and a 6-bit prefix integer, RFC 9204 section 4.4.2) may come, and 4.4.1 and 4.4.3 make the rest an error.
#[derive(Debug, Default)]
pub struct DecoderStreamCheck {
    inside_integer: bool,
}

impl DecoderStreamCheck {
    /// Checks the next octets of the stream.
    pub fn check(&mut self, octets: &[u8]) -> Result<(), Error> {
        for octet in octets {
            if self.inside_integer {
                self.inside_integer = octet & 0x80 != 0;
            } else if octet & 0xc0 == 0x40 {
                self.inside_integer = octet & 0x3f == 0x3f;
            } else {
                let reason = "an acknowledgement of insertions that were never made";
                return Err(Error::new(Code::DecoderStreamError, reason));
            }
        }
        Ok(())
    }
}

/// Feeds arbitrary octets to every reader of this module; for fuzzing. Must never panic nor grow without bound.
pub fn fuzz_one(data: &[u8]) {
    const LIMIT: usize = 16 * 1024;
    let scanned = scan_response(data);
    let mut octets = 0;
    let mut decoder = Decoder::new(LIMIT);
    let decoded = decoder.decode(data, |name, value| octets += name.len() + value.len());
    assert!(octets <= LIMIT);
    if decoded.is_ok() {
        // The scan skips values it has no use for, so it may accept more than the decoder, never less.
        assert!(!matches!(scanned, Err(error) if error.code == Code::DecompressionFailed), "the readers disagree");
    }
    let _ = check_encoder_stream(data);
    let _ = DecoderStreamCheck::default().check(data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::mutated;

    #[test]
    fn mutated_sections_never_panic() {
        let long = [b'v'; 300];
        let fields: [(&[u8], &[u8]); 5] = [
            (b":status", b"200"),
            (b"content-length", b"1000"),
            (b"content-type", b"application/octet-stream"),
            (b"a-rather-long-field-name", &long),
            (b"etag", b"\"5f3e-abc\""),
        ];
        let sample = encoder::section(fields);
        fuzz_one(&sample);
        for seed in 0..50_000 {
            fuzz_one(&mutated(&sample, seed));
        }
    }

    #[test]
    fn the_decoder_stream_keeps_its_place_between_reads() {
        let mut check = DecoderStreamCheck::default();
        assert!(check.check(&[0x7f]).is_ok());
        assert!(check.check(&[0x81]).is_ok(), "a continuation octet is no acknowledgement");
        assert!(check.check(&[0x00, 0x41]).is_ok());
        assert!(check.check(&[0x81]).is_err());
    }
}
