//! `rate`: a link that sends so many bits a second, with a drop-tail queue before it.
//!
//! Every departure follows from a virtual clock at arrival: a packet starts when the one before it has left.

use super::queue::{Backlog, Limit};
use super::{Outcome, WirePacket};

/// The time of a sender of constant rate, without rounding error over many packets.
#[derive(Debug)]
pub struct Serializer {
    bits_per_s: u64,
    free_ns: u64,
    /// Numerator of the part of a nanosecond left over by the packet before, over `bits_per_s`.
    remainder: u64,
}

impl Serializer {
    #[must_use]
    pub fn new(bits_per_s: u64) -> Self {
        Serializer { bits_per_s, free_ns: 0, remainder: 0 }
    }

    #[must_use]
    pub fn bits_per_s(&self) -> u64 {
        self.bits_per_s
    }

    /// When the last octet of what was sent so far has left.
    #[must_use]
    pub fn free_ns(&self) -> u64 {
        self.free_ns
    }

    /// Sends a packet at `at_ns` or as soon as the link is free; moves the packet's time to the end of it.
    pub fn send(&mut self, packet: &mut WirePacket) {
        packet.back_to_back = self.free_ns >= packet.at_ns;
        let start_ns = self.free_ns.max(packet.at_ns);
        if !packet.back_to_back {
            self.remainder = 0;
        }
        let numerator = u64::from(packet.bytes) * 8_000_000_000 + self.remainder;
        self.free_ns = start_ns + numerator / self.bits_per_s;
        self.remainder = numerator % self.bits_per_s;
        packet.at_ns = self.free_ns;
        packet.floor_ns = self.free_ns;
    }
}

#[derive(Debug)]
pub struct Rate {
    link: Serializer,
    backlog: Backlog,
}

impl Rate {
    #[must_use]
    pub fn new(bits_per_s: u64, limit: Limit) -> Self {
        Rate { link: Serializer::new(bits_per_s), backlog: Backlog::new(limit) }
    }

    #[must_use]
    pub fn bits_per_s(&self) -> u64 {
        self.link.bits_per_s()
    }

    #[must_use]
    pub fn queue_peak_bytes(&self) -> u64 {
        self.backlog.peak_bytes()
    }

    pub fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        if !self.backlog.admits(packet.at_ns, packet.bytes) {
            return Outcome::QueueDropped;
        }
        self.link.send(packet);
        self.backlog.push(packet.at_ns, packet.bytes);
        Outcome::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::packets;
    use super::*;

    #[test]
    fn a_busy_link_sends_exactly_its_rate() {
        // A rate at which no packet takes a whole number of nanoseconds.
        let mut rate = Rate::new(9_999_999_967, Limit::default());
        let n = 500_000;
        let last = packets(n, 0)
            .map(|mut p| {
                rate.apply(&mut p);
                p.at_ns
            })
            .last()
            .unwrap();
        let exact = (n * 1514 * 8_000_000_000) as u128 / 9_999_999_967;
        assert_eq!(u128::from(last - 1_000_000_000), exact);
    }

    #[test]
    fn an_idle_link_adds_only_the_time_to_send() {
        let mut rate = Rate::new(12_112_000, Limit::default());
        for mut packet in packets(100, 2_000_000) {
            let came = packet.at_ns;
            assert_eq!(rate.apply(&mut packet), Outcome::Pass);
            assert_eq!((packet.at_ns - came, packet.back_to_back), (1_000_000, false));
        }
    }

    #[test]
    fn the_queue_holds_what_it_is_asked_to_hold() {
        let by_bytes = Limit { bytes: Some(3 * 1514 + 100), packets: None };
        let by_packets = Limit { bytes: None, packets: Some(3) };
        for limit in [by_bytes, by_packets] {
            let mut rate = Rate::new(12_112_000, limit); // 1 ms a packet
            let outcomes: Vec<Outcome> = packets(5, 0).map(|mut p| rate.apply(&mut p)).collect();
            assert_eq!(outcomes[..3], [Outcome::Pass; 3]);
            assert_eq!(outcomes[3..], [Outcome::QueueDropped; 2]);
            assert_eq!(rate.queue_peak_bytes(), 3 * 1514);
            // The first has left after 1 ms, not before.
            let mut early = packets(1, 0).next().unwrap();
            early.at_ns += 999_999;
            assert_eq!(rate.apply(&mut early), Outcome::QueueDropped);
            let mut in_time = packets(1, 0).next().unwrap();
            in_time.at_ns += 1_000_000;
            assert_eq!(rate.apply(&mut in_time), Outcome::Pass);
            assert!(in_time.back_to_back);
            assert_eq!(in_time.at_ns, 1_000_000_000 + 4_000_000);
        }
    }
}
