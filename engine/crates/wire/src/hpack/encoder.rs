//! Writes header blocks without a dynamic table: the blocks depend on nothing and can be cached.

use super::{integer, static_table};
use crate::huffman;

/// Appends one field, indexed when the static table holds it, else as a literal without indexing (RFC 7541 6.2.2).
/// `name` must be lowercase (RFC 9113 8.2.1).
pub fn encode_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    match static_table::find(name, value) {
        Some((index, true)) => encode_indexed(index, out),
        Some((index, false)) => encode_literal_value(index, value, out),
        None => {
            out.push(0);
            encode_string(name, out);
            encode_string(value, out);
        }
    }
}

/// Appends a whole block of fields.
pub fn encode_fields<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>, out: &mut Vec<u8>) {
    for (name, value) in fields {
        encode_field(name, value, out);
    }
}

/// A block of fields, to be cached and sent many times.
pub fn block<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let mut out = Vec::new();
    encode_fields(fields, &mut out);
    out
}

/// Appends an indexed field (RFC 7541 6.1); `index` is 1-based and must exist.
pub fn encode_indexed(index: usize, out: &mut Vec<u8>) {
    integer::encode(index as u64, 7, 0x80, out);
}

/// Appends a literal without indexing whose name is entry `index` of the static table.
pub fn encode_literal_value(index: usize, value: &[u8], out: &mut Vec<u8>) {
    integer::encode(index as u64, 4, 0, out);
    encode_string(value, out);
}

/// Appends `:status`, one octet for the seven codes of the static table.
pub fn encode_status(status: u16, out: &mut Vec<u8>) {
    let mut digits = [0u8; 3];
    encode_field(b":status", status_digits(status, &mut digits), out);
}

/// Appends a table size update (RFC 7541 6.3).
pub fn encode_table_size_update(octets: usize, out: &mut Vec<u8>) {
    integer::encode(octets as u64, 5, 0x20, out);
}

/// Appends a string literal, Huffman-coded when that is shorter.
pub fn encode_string(text: &[u8], out: &mut Vec<u8>) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        integer::encode(coded as u64, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        integer::encode(text.len() as u64, 7, 0, out);
        out.extend_from_slice(text);
    }
}

/// The three digits of a status code (100..=999).
pub fn status_digits(status: u16, digits: &mut [u8; 3]) -> &[u8] {
    *digits = [b'0' + (status / 100 % 10) as u8, b'0' + (status / 10 % 10) as u8, b'0' + (status % 10) as u8];
    digits
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_leaves_the_table_empty() {
        let fields: [(&[u8], &[u8]); 6] = [
            (b":status", b"200"),
            (b":status", b"418"),
            (b"content-length", b"1000"),
            (b"content-type", b"application/octet-stream"),
            (b"x-none", b""),
            (b"server", &[0xff; 300]),
        ];
        let block = block(fields);
        let mut decoder = Decoder::new(4096, 1 << 16);
        let mut back = Vec::new();
        decoder.decode(&block, |name, value| back.push((name.to_vec(), value.to_vec()))).unwrap();
        let expected: Vec<_> = fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        assert_eq!(back, expected);
        assert_eq!(decoder.table_octets(), 0);
    }

    #[test]
    fn common_statuses_take_one_octet() {
        let mut out = Vec::new();
        encode_status(200, &mut out);
        assert_eq!(out, [0x88]);
        out.clear();
        encode_status(500, &mut out);
        assert_eq!(out, [0x8e]);
        out.clear();
        encode_status(201, &mut out);
        assert_eq!(out[0], 0x08);
    }
}
