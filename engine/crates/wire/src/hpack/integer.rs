//! Prefix integers of RFC 7541 5.1, shared with QPACK (RFC 9204 4.1.1).

/// Why a prefix integer could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerError {
    /// The input ends inside the integer.
    Truncated,
    /// The value exceeds 2^62 - 1, the largest either format has use for.
    Overflow,
}

/// Reads an integer whose prefix is the low `prefix_bits` (1..=8) of `input[*position]` and moves `position` past it.
#[inline]
pub fn decode(input: &[u8], position: &mut usize, prefix_bits: u8) -> Result<u64, IntegerError> {
    let mask = ((1u16 << prefix_bits) - 1) as u8;
    let first = *input.get(*position).ok_or(IntegerError::Truncated)? & mask;
    *position += 1;
    if first < mask { Ok(u64::from(first)) } else { decode_rest(input, position, u64::from(mask)) }
}

fn decode_rest(input: &[u8], position: &mut usize, prefix: u64) -> Result<u64, IntegerError> {
    let mut value = prefix;
    for shift in (0..63).step_by(7) {
        let octet = *input.get(*position).ok_or(IntegerError::Truncated)?;
        *position += 1;
        value = value.checked_add(u64::from(octet & 0x7f) << shift).ok_or(IntegerError::Overflow)?;
        if value >= 1 << 62 {
            return Err(IntegerError::Overflow);
        }
        if octet & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(IntegerError::Overflow)
}

/// Appends `value` with a prefix of `prefix_bits` (1..=8); `first_bits` are the bits above the prefix.
#[inline]
pub fn encode(value: u64, prefix_bits: u8, first_bits: u8, out: &mut Vec<u8>) {
    let mask = (1u64 << prefix_bits) - 1;
    if value < mask {
        out.push(first_bits | value as u8);
        return;
    }
    out.push(first_bits | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_rfc_7541_c_1() {
        for (value, prefix, wire) in [(10, 5, &[0x0a][..]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[0x2a])] {
            let mut out = Vec::new();
            encode(value, prefix, 0, &mut out);
            assert_eq!(out, wire);
            let mut position = 0;
            assert_eq!(decode(wire, &mut position, prefix), Ok(value));
            assert_eq!(position, wire.len());
        }
    }

    #[test]
    fn round_trips_at_every_prefix() {
        for prefix in 1..=8 {
            for shift in 0..62 {
                for value in [(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1] {
                    let mut out = Vec::new();
                    encode(value, prefix, 0, &mut out);
                    let mut position = 0;
                    assert_eq!(decode(&out, &mut position, prefix), Ok(value), "prefix {prefix}");
                    assert_eq!(position, out.len());
                    for cut in 0..out.len() {
                        assert_eq!(decode(&out[..cut], &mut 0, prefix), Err(IntegerError::Truncated));
                    }
                }
            }
        }
    }

    #[test]
    fn refuses_what_is_too_large() {
        assert_eq!(decode(&[0xff; 20], &mut 0, 7), Err(IntegerError::Overflow));
        let endless_zeroes = [[0xff].as_slice(), &[0x80; 20]].concat();
        assert_eq!(decode(&endless_zeroes, &mut 0, 7), Err(IntegerError::Overflow));
    }
}
