//! Reads any field section into fields.

use super::{Line, from_hpack, walk};
use crate::h3_error::{Code, Error};
use crate::hpack::{ENTRY_OVERHEAD, HpackError, StringLiteral};
use crate::huffman;

/// Reads field sections; it keeps its buffers from one to the next.
pub struct Decoder {
    list_limit: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// `list_octets` is the largest field section handed out, counted as SETTINGS_MAX_FIELD_SECTION_SIZE is (RFC 9114
    /// section 4.2.2: name, value and 32 octets a field).
    pub fn new(list_octets: usize) -> Self {
        Self { list_limit: list_octets, name: Vec::new(), value: Vec::new() }
    }

    /// Hands each field of a section to `on_field` as name and value. [`Code::ExcessiveLoad`] when the section is larger
    /// than the limit; the fields beyond it are not handed out.
    pub fn decode(&mut self, section: &[u8], mut on_field: impl FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let Self { list_limit, name: name_buffer, value: value_buffer } = self;
        let mut list_octets = 0_usize;
        walk(section, |line| {
            let (name, value): (&[u8], &[u8]) = match line {
                Line::Indexed(name, value) => (name, value),
                Line::NamedValue(name, value) => (name, plain(value, value_buffer)?),
                Line::Literal(name, value) => (plain(name, name_buffer)?, plain(value, value_buffer)?),
            };
            list_octets = list_octets.saturating_add(name.len() + value.len() + ENTRY_OVERHEAD);
            if list_octets > *list_limit {
                return Err(Error::new(Code::ExcessiveLoad, "a field section is larger than announced"));
            }
            on_field(name, value);
            Ok(())
        })
    }
}

/// The octets of a string, decoded into `buffer` when they are Huffman-coded.
fn plain<'a>(literal: StringLiteral<'a>, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
    if !literal.huffman {
        return Ok(literal.octets);
    }
    buffer.clear();
    // A Huffman code grows by 8/5 at most, and the frame reader bounds the section.
    huffman::decode(literal.octets, buffer, usize::MAX).map_err(|error| from_hpack(HpackError::from(error)))?;
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::super::encoder::section;
    use super::*;

    fn decode(section: &[u8], limit: usize) -> Result<Vec<(String, String)>, Code> {
        let mut fields = Vec::new();
        let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
        Decoder::new(limit)
            .decode(section, |name, value| fields.push((text(name), text(value))))
            .map_err(|error| error.code)
            .map(|()| fields)
    }

    /// RFC 9204 appendix B.1: a literal field line with a name of the static table.
    #[test]
    fn example_of_the_rfc() {
        let octets = [0x00, 0x00, 0x51, 0x0b, b'/', b'i', b'n', b'd', b'e', b'x', b'.', b'h', b't', b'm', b'l'];
        assert_eq!(decode(&octets, 1000).unwrap(), [(":path".into(), "/index.html".into())]);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let long = "x".repeat(300);
        let fields = [
            (":method", "GET"),
            (":path", "/bytes/1000"),
            (":authority", "origin.lab"),
            ("x-none", ""),
            ("a-rather-long-field-name", &long),
            ("~\u{7f}", "\u{1}"),
        ];
        let octets = section(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
        let expected: Vec<_> = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(decode(&octets, 1 << 16).unwrap(), expected);
        assert_eq!(decode(&octets, 400), Err(Code::ExcessiveLoad));
    }

    #[test]
    fn refuses_the_dynamic_table_and_broken_sections() {
        for octets in [
            &[][..],
            &[0x00],
            &[0x02, 0x00, 0x80],             // required insert count
            &[0x00, 0x80, 0xd1],             // negative base
            &[0x00, 0x00, 0x80],             // indexed, dynamic
            &[0x00, 0x00, 0x10],             // indexed, post-base
            &[0x00, 0x00, 0x40, 0x00],       // name reference, dynamic
            &[0x00, 0x00, 0x00, 0x00],       // name reference, post-base
            &[0x00, 0x00, 0xff, 0x24],       // static index 99
            &[0x00, 0x00, 0x51, 0x0b, b'/'], // cut value
            &[0x00, 0x00, 0x23, b'a'],       // cut name
            &[0x00, 0x00, 0x51, 0x81, 0x00], // Huffman padding of zeroes
            &[0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        ] {
            assert_eq!(decode(octets, 1 << 16), Err(Code::DecompressionFailed), "{octets:?}");
        }
        assert_eq!(decode(&[0x00, 0x05], 1 << 16), Ok(vec![]), "any base will do without references");
    }
}
