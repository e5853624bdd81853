//! What the two ends say to each other: a fixed header, then padding up to the size that is probed.

/// First octets of every packet.
const MAGIC: u32 = 0x5446_5031; // "TFP1"
/// Length of the header in octets; no packet is shorter.
pub const HEADER_BYTES: usize = 56;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Answered at once with a packet of the same size.
    Probe = 1,
    /// Counted and timed, not answered.
    Train = 2,
    /// Answered with a bare header: did this size get through?
    Size = 3,
    /// Asks for what the reflector counted so far.
    Report = 4,
    ProbeReply = 129,
    SizeReply = 131,
    ReportReply = 132,
}

impl Kind {
    fn from_octet(octet: u8) -> Option<Self> {
        use Kind::{Probe, ProbeReply, Report, ReportReply, Size, SizeReply, Train};
        [Probe, Train, Size, Report, ProbeReply, SizeReply, ReportReply].into_iter().find(|kind| *kind as u8 == octet)
    }
}

/// A packet without its padding. Times are on CLOCK_MONOTONIC in ns, 0 where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub kind: Kind,
    /// Random, so that a packet of an earlier measurement is not counted.
    pub session: u64,
    pub sequence: u64,
    /// `Probe`: when it was sent. `ReportReply`: distinct probes received.
    pub first: u64,
    /// `ProbeReply`: when the kernel received the probe. `ReportReply`: duplicates.
    pub second: u64,
    /// `ProbeReply`: when the reply was sent. `ReportReply`: probes received after a later one.
    pub third: u64,
    /// `ReportReply`: packets of the train, and the time it took, as most of it says, in ns.
    pub train: (u32, u64),
}

impl Packet {
    #[must_use]
    pub fn new(kind: Kind, session: u64, sequence: u64) -> Self {
        Packet { kind, session, sequence, first: 0, second: 0, third: 0, train: (0, 0) }
    }

    /// Writes the header to the front of `out`, which has at least `HEADER_BYTES`.
    pub fn write(&self, out: &mut [u8]) {
        out[..4].copy_from_slice(&MAGIC.to_be_bytes());
        out[4] = self.kind as u8;
        out[5..8].fill(0);
        let words = [self.session, self.sequence, self.first, self.second, self.third];
        for (word, out) in words.into_iter().zip(out[8..48].chunks_exact_mut(8)) {
            out.copy_from_slice(&word.to_be_bytes());
        }
        // 24 bits of packets and 40 bits of ns (18 minutes) share a word.
        let train = u64::from(self.train.0) << 40 | self.train.1.min((1 << 40) - 1);
        out[48..HEADER_BYTES].copy_from_slice(&train.to_be_bytes());
    }

    /// Reads a received packet; None when it is none of ours.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES)?;
        if header[..4] != MAGIC.to_be_bytes() {
            return None;
        }
        let word = |index: usize| {
            let at = 8 + index * 8;
            u64::from_be_bytes(header[at..at + 8].try_into().unwrap_or_default())
        };
        Some(Packet {
            kind: Kind::from_octet(header[4])?,
            session: word(0),
            sequence: word(1),
            first: word(2),
            second: word(3),
            third: word(4),
            train: ((word(5) >> 40) as u32, word(5) & ((1 << 40) - 1)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_back_as_they_were_written() {
        for kind in
            [Kind::Probe, Kind::Train, Kind::Size, Kind::Report, Kind::ProbeReply, Kind::SizeReply, Kind::ReportReply]
        {
            let packet =
                Packet { kind, session: u64::MAX - 1, sequence: 2, first: 3, second: 4, third: 5, train: (6, 7) };
            let mut bytes = [0xaa; 100];
            packet.write(&mut bytes);
            assert_eq!(Packet::read(&bytes), Some(packet));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let mut bytes = [0; HEADER_BYTES];
        assert_eq!(Packet::read(&bytes), None);
        Packet::new(Kind::Probe, 1, 2).write(&mut bytes);
        assert_eq!(Packet::read(&bytes[..HEADER_BYTES - 1]), None);
        for octet in 0..=255 {
            bytes[4] = octet;
            assert_eq!(Packet::read(&bytes).is_some(), matches!(octet, 1..=4 | 129 | 131 | 132));
        }
        bytes[0] ^= 1;
        assert_eq!(Packet::read(&bytes), None);
    }
}
