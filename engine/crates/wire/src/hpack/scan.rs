//! Takes status and length out of a response's header block without a dynamic table and without allocating.

use super::{HpackError, StringLiteral, integer, read_string, static_table};
use crate::huffman;

/// What a load generator needs of a response's header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseScan {
    /// `:status`, 100..=999.
    pub status: u16,
    /// `content-length` in octets, when the response names it.
    pub content_length: Option<u64>,
}

/// Reads a response's header block on a connection whose SETTINGS_HEADER_TABLE_SIZE is 0.
///
/// Strict where it matters to what is measured: every field's bounds, every name's case, one `:status` before all else, no
/// other pseudo-field (RFC 9113 8.3.2), one number as `content-length` (RFC 9110 8.6). Values of other fields are skipped.
/// An index into the dynamic table is an error, since with size 0 it is always empty.
pub fn scan_response(block: &[u8]) -> Result<ResponseScan, HpackError> {
    let mut scan = Scan::default();
    let mut position = 0;
    while position < block.len() {
        let first = block[position];
        if first & 0x80 != 0 {
            let index = integer::decode(block, &mut position, 7)?;
            let (name, value) = static_entry(index)?;
            scan.field(name, StringLiteral { huffman: false, octets: value })?;
        } else if first & 0xe0 == 0x20 {
            // RFC 7541 4.2, 6.3: before all fields, and not above what our setting allows.
            if scan.status.is_some() || scan.regular_seen || integer::decode(block, &mut position, 5)? != 0 {
                return Err(HpackError::TableSize);
            }
        } else {
            let prefix_bits = if first & 0x40 != 0 { 6 } else { 4 };
            let index = integer::decode(block, &mut position, prefix_bits)?;
            if index != 0 {
                let name = static_entry(index)?.0;
                let value = read_string(block, &mut position)?;
                scan.field(name, value)?;
            } else {
                let name = read_string(block, &mut position)?;
                let value = read_string(block, &mut position)?;
                scan.literal_field(name, value)?;
            }
        }
    }
    scan.finish()
}

fn static_entry(index: u64) -> Result<(&'static [u8], &'static [u8]), HpackError> {
    usize::try_from(index).ok().and_then(static_table::entry).ok_or(HpackError::Index(index))
}

/// Judges the fields of a response one by one (RFC 9113 8.2.1, 8.3.2); QPACK uses it too, since the rules are the same
/// (RFC 9114 4.2, 4.3.2).
#[derive(Default)]
pub(crate) struct Scan {
    status: Option<u16>,
    content_length: Option<u64>,
    regular_seen: bool,
}

impl Scan {
    /// All fields are there.
    pub(crate) fn finish(self) -> Result<ResponseScan, HpackError> {
        let status = self.status.ok_or(HpackError::Malformed("response without :status"))?;
        Ok(ResponseScan { status, content_length: self.content_length })
    }

    /// A field whose name may be Huffman-coded.
    pub(crate) fn literal_field(
        &mut self,
        name: StringLiteral<'_>,
        value: StringLiteral<'_>,
    ) -> Result<(), HpackError> {
        if !name.huffman {
            return self.field(name.octets, value);
        }
        // Longer names than this are none of ours, but their case still counts.
        let mut plain = [0u8; 64];
        let mut length = 0;
        let mut uppercase = false;
        huffman::decode_with(name.octets, |octet| {
            if let Some(place) = plain.get_mut(length) {
                *place = octet;
            }
            length += 1;
            uppercase |= octet.is_ascii_uppercase();
        })?;
        if uppercase {
            return Err(HpackError::Malformed("uppercase in a field name"));
        }
        self.field(&plain[..length.min(plain.len())], value)
    }

    /// A field whose name is plain.
    #[inline]
    pub(crate) fn field(&mut self, name: &[u8], value: StringLiteral<'_>) -> Result<(), HpackError> {
        match name {
            b":status" => {
                if self.status.is_some() || self.regular_seen {
                    return Err(HpackError::Malformed(":status twice or after other fields"));
                }
                let status = number(value, 3).filter(|&status| (100..=999).contains(&status));
                self.status = Some(status.ok_or(HpackError::Malformed(":status is not a three-digit code"))? as u16);
            }
            b"content-length" => {
                self.regular_seen = true;
                let length = number(value, 19).ok_or(HpackError::Malformed("content-length is not a number"))?;
                if self.content_length.is_some_and(|other| other != length) {
                    return Err(HpackError::Malformed("conflicting content-length"));
                }
                self.content_length = Some(length);
            }
            [] => return Err(HpackError::Malformed("empty field name")),
            [b':', ..] => return Err(HpackError::Malformed("pseudo-field that no response has")),
            _ => {
                self.regular_seen = true;
                if name.iter().any(u8::is_ascii_uppercase) {
                    return Err(HpackError::Malformed("uppercase in a field name"));
                }
            }
        }
        Ok(())
    }
}

/// A decimal number of at most `max_digits` (<= 19) digits.
fn number(value: StringLiteral<'_>, max_digits: usize) -> Option<u64> {
    let mut plain = [0u8; 19];
    let digits = if value.huffman {
        let length = huffman::decode_to_slice(value.octets, &mut plain[..max_digits]).ok()?;
        &plain[..length]
    } else {
        value.octets
    };
    if digits.is_empty() || digits.len() > max_digits || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::super::encoder::{self, block};
    use super::*;

    #[test]
    fn finds_status_and_length() {
        let plain: [(&[u8], &[u8]); 3] = [(b":status", b"200"), (b"server", b"nginx"), (b"content-length", b"1000")];
        assert_eq!(scan_response(&block(plain)), Ok(ResponseScan { status: 200, content_length: Some(1000) }));
        let rare: [(&[u8], &[u8]); 2] = [(b":status", b"418"), (b"x-odd", b"Value")];
        assert_eq!(scan_response(&block(rare)), Ok(ResponseScan { status: 418, content_length: None }));
    }

    #[test]
    fn reads_literal_names_with_and_without_huffman() {
        for huffman in [false, true] {
            let mut block = vec![0x20];
            for (name, value) in [(":status", "204"), ("content-length", "123456789012345678")] {
                block.push(0x40);
                for text in [name, value] {
                    if huffman {
                        integer::encode(huffman::encoded_len(text.as_bytes()) as u64, 7, 0x80, &mut block);
                        huffman::encode(text.as_bytes(), &mut block);
                    } else {
                        integer::encode(text.len() as u64, 7, 0, &mut block);
                        block.extend_from_slice(text.as_bytes());
                    }
                }
            }
            let expected = ResponseScan { status: 204, content_length: Some(123_456_789_012_345_678) };
            assert_eq!(scan_response(&block), Ok(expected));
        }
    }

    #[test]
    fn refuses_what_is_no_response() {
        let malformed = |fields: &[(&[u8], &[u8])]| {
            let result = scan_response(&block(fields.iter().copied()));
            assert!(matches!(result, Err(HpackError::Malformed(_))), "{result:?}");
        };
        malformed(&[(b"server", b"x")]);
        malformed(&[(b":status", b"200"), (b":status", b"200")]);
        malformed(&[(b"server", b"x"), (b":status", b"200")]);
        malformed(&[(b":status", b"20")]);
        malformed(&[(b":status", b"099")]);
        malformed(&[(b":status", b"2000")]);
        malformed(&[(b":status", b"200"), (b":path", b"/")]);
        malformed(&[(b":status", b"200"), (b"content-length", b"-1")]);
        malformed(&[(b":status", b"200"), (b"content-length", b"")]);
        malformed(&[(b":status", b"200"), (b"content-length", b"99999999999999999999")]);
        malformed(&[(b":status", b"200"), (b"content-length", b"1"), (b"content-length", b"2")]);
        malformed(&[(b":status", b"200"), (b"Server", b"x")]);
        malformed(&[(b":status", b"200"), (b"", b"x")]);
        let mut dynamic = vec![0x88];
        encoder::encode_indexed(62, &mut dynamic);
        assert_eq!(scan_response(&dynamic), Err(HpackError::Index(62)));
        assert_eq!(scan_response(&[0x88, 0x20]), Err(HpackError::TableSize));
        assert_eq!(scan_response(&[0x3f, 0xe1, 0x1f, 0x88]), Err(HpackError::TableSize));
    }
}
