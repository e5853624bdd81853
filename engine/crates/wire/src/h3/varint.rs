//! QUIC variable-length integers (RFC 9000 section 16).

/// The largest value that fits, 2^62 - 1.
pub const MAX: u64 = (1 << 62) - 1;

/// Octets that [`write`] takes for a value.
pub fn encoded_len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Appends the shortest encoding of a value, which must be at most [`MAX`].
pub fn write(value: u64, out: &mut Vec<u8>) {
    debug_assert!(value <= MAX);
    match encoded_len(value) {
        1 => out.push(value as u8),
        2 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        4 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Reads a value and says how many octets it took; `None` when more octets are needed.
pub fn read(input: &[u8]) -> Option<(u64, usize)> {
    let first = *input.first()?;
    let length = 1_usize << (first >> 6);
    let octets = input.get(1..length)?;
    let value = octets.iter().fold(u64::from(first & 0x3f), |value, octet| value << 8 | u64::from(*octet));
    Some((value, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 appendix A.1.
    #[test]
    fn examples_of_the_rfc() {
        for (octets, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(read(octets), Some((value, octets.len())));
            let mut out = Vec::new();
            write(value, &mut out);
            assert_eq!(out, octets);
        }
        assert_eq!(read(&[0x40, 0x25]), Some((37, 2)), "longer encodings than needed are legal");
    }

    #[test]
    fn edges_round_trip_and_prefixes_ask_for_more() {
        for value in [0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, MAX] {
            let mut out = Vec::new();
            write(value, &mut out);
            assert_eq!(out.len(), encoded_len(value));
            assert_eq!(read(&out), Some((value, out.len())));
            for cut in 0..out.len() {
                assert_eq!(read(&out[..cut]), None);
            }
        }
    }
}
