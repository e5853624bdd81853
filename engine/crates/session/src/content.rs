//! What requests carry: the content pattern that both ends know (octet i is `0x61 + (i % 26)`), or octets of the caller.

use bytes::Bytes;

const PERIOD: usize = 26;
/// A TLS record or a datagram is compared in one go: 2^14 octets from any phase of the pattern.
const BLOCK: usize = PERIOD * 631;
static PATTERN: [u8; BLOCK + PERIOD] = {
    let mut table = [0; BLOCK + PERIOD];
    let mut index = 0;
    while index < table.len() {
        table[index] = 0x61 + (index % PERIOD) as u8;
        index += 1;
    }
    table
};

/// Whether `octets` are what stands at `offset` of the content.
#[inline]
#[must_use]
pub fn matches(offset: u64, octets: &[u8]) -> bool {
    let phase = (offset % PERIOD as u64) as usize;
    // BLOCK is a multiple of the period, so every piece begins at the same phase.
    octets.chunks(BLOCK).all(|piece| *piece == PATTERN[phase..phase + piece.len()])
}

/// At most `limit` octets of the pattern from `offset` on, as long a piece as there is at hand.
#[inline]
#[must_use]
pub fn piece(offset: u64, limit: u64) -> &'static [u8] {
    let phase = (offset % PERIOD as u64) as usize;
    &PATTERN[phase..phase + limit.min(BLOCK as u64) as usize]
}

/// The content of a request; how long it is stands beside it.
#[derive(Clone, Debug, Default)]
pub(crate) enum Body {
    #[default]
    Pattern,
    Octets(Bytes),
}

impl Body {
    /// At most `limit` octets from `offset` on, as long a piece as there is at hand.
    #[inline]
    pub(crate) fn piece(&self, offset: u64, limit: u64) -> &[u8] {
        match self {
            Self::Pattern => piece(offset, limit),
            Self::Octets(octets) => &octets[offset as usize..(offset + limit) as usize],
        }
    }

    /// As [`Body::piece`], without a copy.
    #[inline]
    pub(crate) fn bytes(&self, offset: u64, limit: u64) -> Bytes {
        match self {
            Self::Pattern => Bytes::from_static(piece(offset, limit)),
            Self::Octets(octets) => octets.slice(offset as usize..(offset + limit) as usize),
        }
    }

    /// Appends all `octets` of it.
    pub(crate) fn append(&self, octets: u64, out: &mut Vec<u8>) {
        let mut offset = 0;
        while offset < octets {
            let piece = self.piece(offset, octets - offset);
            out.extend_from_slice(piece);
            offset += piece.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_octet_counts_at_every_phase() {
        let content: Vec<u8> = (0..50_000u32).map(|index| 0x61 + (index % 26) as u8).collect();
        for offset in [0usize, 1, 25, 26, 27, 16_405, 16_406, 20_001] {
            assert!(matches(offset as u64, &content[offset..]));
            assert!(!matches(offset as u64 + 1, &content[offset..]));
        }
        for broken in [0usize, 16_405, 16_406, 16_407, 49_999] {
            let mut content = content.clone();
            content[broken] ^= 1;
            assert!(!matches(0, &content), "octet {broken}");
        }
        assert!(matches(7, &[]));
    }

    #[test]
    fn a_body_is_the_same_by_piece_and_by_bytes() {
        let text = b"{\"message\":1}";
        for (body, octets) in [(Body::Pattern, 40_000u64), (Body::Octets(Bytes::from_static(text)), text.len() as u64)]
        {
            let mut whole = Vec::new();
            body.append(octets, &mut whole);
            assert_eq!(whole.len() as u64, octets);
            for offset in [0, 1, octets - 1] {
                let limit = (octets - offset).min(9);
                let expected = &whole[offset as usize..(offset + limit) as usize];
                assert_eq!(body.piece(offset, limit), expected);
                assert_eq!(body.bytes(offset, limit), expected);
            }
        }
    }

    #[test]
    fn pieces_are_the_pattern() {
        let mut offset = 0;
        while offset < 100_000u64 {
            let piece = piece(offset, 100_000 - offset);
            assert!(!piece.is_empty() && matches(offset, piece));
            offset += piece.len() as u64;
        }
        assert_eq!(offset, 100_000);
    }
}
