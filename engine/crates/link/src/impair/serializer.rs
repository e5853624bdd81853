//! The link of limited rate behind a queue, which sends one packet after the other.

use super::WirePacket;

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
