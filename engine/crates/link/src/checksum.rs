//! The Internet checksum (RFC 1071).

/// The one's complement sum of 16-bit words, not yet folded or inverted; an odd last octet is padded with zero.
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(4);
    // Adding 32-bit words into 64 bits folds to the same result, since 2^16 = 1 modulo 2^16 - 1.
    let mut total: u64 = words.by_ref().map(|word| u64::from(u32::from_be_bytes(word.try_into().unwrap()))).sum();
    let rest = words.remainder();
    let mut last = [0u8; 4];
    last[..rest.len()].copy_from_slice(rest);
    total += u64::from(u32::from_be_bytes(last));
    total
}

/// Folds a sum to the 16 bits of a one's complement number.
#[must_use]
pub fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_example_of_rfc_1071_section_3() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)), 0xddf2);
    }

    #[test]
    fn agrees_with_the_plain_definition_at_every_length() {
        let bytes: Vec<u8> = (0..255u32).map(|i| (i * 151 + 7) as u8).collect();
        for length in 0..bytes.len() {
            let plain: u64 = bytes[..length]
                .chunks(2)
                .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)))
                .sum();
            assert_eq!(fold(sum(&bytes[..length])), fold(plain), "length {length}");
        }
    }
}
