//! Writes field sections that refer to the static table only: they depend on nothing and can be cached.

use super::static_table;
use crate::hpack::encoder::{encode_string, status_digits};
use crate::hpack::integer;
use crate::huffman;

/// Octets before the first field line of every section: required insert count 0, base 0 (RFC 9204 section 4.5.1).
pub const PREFIX: [u8; 2] = [0, 0];

/// Appends one field line. `name` must be lowercase (RFC 9114 section 4.2).
pub fn encode_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    match static_table::find(name, value) {
        Some((index, true)) => integer::encode(index as u64, 6, 0xc0, out),
        Some((index, false)) => {
            integer::encode(index as u64, 4, 0x50, out);
            encode_string(value, out);
        }
        None => {
            let coded = huffman::encoded_len(name);
            if coded < name.len() {
                integer::encode(coded as u64, 3, 0x28, out);
                huffman::encode(name, out);
            } else {
                integer::encode(name.len() as u64, 3, 0x20, out);
                out.extend_from_slice(name);
            }
            encode_string(value, out);
        }
    }
}

/// Appends `:status`.
pub fn encode_status(status: u16, out: &mut Vec<u8>) {
    let mut digits = [0; 3];
    encode_field(b":status", status_digits(status, &mut digits), out);
}

/// A whole field section, prefix included.
pub fn section<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let mut out = PREFIX.to_vec();
    for (name, value) in fields {
        encode_field(name, value, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_fields_take_one_or_two_octets() {
        let fields: [(&[u8], &[u8]); 3] = [(b":method", b"GET"), (b":scheme", b"https"), (b":status", b"500")];
        assert_eq!(section(fields), [0, 0, 0xc0 | 17, 0xc0 | 23, 0xff, 71 - 63]);
    }

    #[test]
    fn statuses_outside_the_table_are_literal() {
        let mut out = Vec::new();
        encode_status(201, &mut out);
        assert_eq!(out[0], 0x5f, "a name reference whose index does not fit four bits");
        assert_eq!(out[1], 24 - 15);
    }
}
