//! How large the TLS records of a connection are: small at its start, when a large one would not fit into what the
//! congestion window lets go at once.
//!
//! A record can be read only when all of it is there. One of 2^14 octets is more than the initial window of ten segments
//! (RFC 6928), so its first octet would be of use only a round trip later, on TCP alone: that would be the server's
//! doing, not the protocol's. As in Go's crypto/tls (`maxPayloadSizeForWrite`) records begin with what fits into one
//! segment and grow by as much each, until 128 kB were sent.

/// RFC 8446 section 5.1.
const MOST_OCTETS: usize = 1 << 14;
/// What surely fits into one segment, with the header, the content type and the tag of a record.
const SEGMENT_OCTETS: usize = 1_208 - 5 - 1 - 16;
const SMALL_UNTIL_OCTETS: u64 = 128 << 10;
/// What rustls counts to the size of a fragment besides its plaintext.
const HEADER_OCTETS: usize = 5;

/// The `max_fragment_size` of a rustls configuration for records of so many octets of plaintext at most.
#[must_use]
pub fn fragment_octets(record_octets: Option<u16>) -> Option<usize> {
    record_octets.map(|octets| usize::from(octets) + HEADER_OCTETS)
}

/// Octets of plaintext that the largest record has with such a configuration.
pub(super) fn record_octets(fragment_octets: Option<usize>) -> usize {
    fragment_octets.map_or(MOST_OCTETS, |octets| octets.saturating_sub(HEADER_OCTETS).max(1))
}

/// The sizes of the records of one connection.
#[derive(Debug, Default)]
pub struct RecordSizes {
    octets: u64,
    records: usize,
}

impl RecordSizes {
    /// Those that TLS cuts by itself, of one size from the first on, where its configuration has one.
    #[must_use]
    pub fn with(fragment_octets: Option<usize>) -> Self {
        Self { octets: if fragment_octets.is_some() { SMALL_UNTIL_OCTETS } else { 0 }, records: 0 }
    }

    /// How many of `pending` octets to encrypt with the next call: the next record, or all when records are large.
    #[inline]
    pub fn next(&mut self, pending: usize) -> usize {
        if self.octets >= SMALL_UNTIL_OCTETS {
            return pending;
        }
        self.records += 1;
        let taken = pending.min(MOST_OCTETS.min(self.records * SEGMENT_OCTETS));
        self.octets += taken as u64;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_grow_from_one_segment_to_the_largest() {
        let mut sizes = RecordSizes::default();
        let mut left = 300_000;
        let mut taken = vec![];
        while left > 0 {
            taken.push(sizes.next(left));
            left -= taken.last().unwrap();
        }
        assert_eq!(taken[..3], [1_186, 2_372, 3_558]);
        let small: usize = taken[..taken.len() - 1].iter().sum();
        assert!((SMALL_UNTIL_OCTETS as usize..SMALL_UNTIL_OCTETS as usize + MOST_OCTETS).contains(&small));
        assert!(taken[..taken.len() - 1].iter().all(|octets| *octets <= MOST_OCTETS));
        assert_eq!(sizes.next(1_000_000), 1_000_000, "the largest records are cut by TLS itself");
    }

    #[test]
    fn records_of_one_size_are_left_to_tls() {
        assert_eq!(RecordSizes::with(fragment_octets(Some(1_200))).next(300_000), 300_000);
        assert_eq!(RecordSizes::with(fragment_octets(None)).next(300_000), 1_186);
        assert_eq!([Some(1_200), None].map(|size| record_octets(fragment_octets(size))), [1_200, 16_384]);
    }

    #[test]
    fn a_short_answer_is_one_record() {
        assert_eq!(RecordSizes::default().next(900), 900);
    }
}
