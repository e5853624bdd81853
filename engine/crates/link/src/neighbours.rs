//! Beside the impairments: how hosts find out who has an address, where the link is a bridge between two networks.
//!
//! That is no part of what is measured: it passes at once and takes no packet's ordinal, so that draws stay as they are.
//! A sender that is seen on both sides means that both devices are on one network, where what is passed on
//! comes back for ever: the link ends then.

use crate::buffer::Buffer;
use crate::frame::{NEEDS_CHECKSUM, Refusal, VNET_HEADER_BYTES, single_packet_header};

/// Senders that are known by their side; beyond them nothing new is learned.
const MOST_SENDERS: usize = 1024;
/// The source address in an Ethernet header (IEEE 802.3).
const SENDER: std::ops::Range<usize> = VNET_HEADER_BYTES + 6..VNET_HEADER_BYTES + 12;

/// A frame that is to leave at once, and why the impairments do not have it.
#[derive(Debug)]
pub struct Passing {
    pub direction: usize,
    pub buffer: Buffer,
    pub length: usize,
    pub why: Refusal,
}

/// What passes beside the impairments.
#[derive(Debug, Default)]
pub struct Neighbours {
    /// Hardware address, and the direction in which its frames go.
    senders: Vec<([u8; 6], usize)>,
    pub waiting: Vec<Passing>,
    /// Frames that a device took, by direction.
    pub carried: [u64; 2],
    in_a_circle: bool,
}

impl Neighbours {
    /// Whether a sender was seen on both sides.
    #[must_use]
    pub fn in_a_circle(&self) -> bool {
        self.in_a_circle
    }

    /// Whether a frame (virtio-net header first) that was refused for this reason passes; it is ready to be sent then.
    pub fn passes(&mut self, direction: usize, why: Refusal, frame: &mut [u8]) -> bool {
        if !matches!(why, Refusal::Arp | Refusal::NeighbourDiscovery) || self.in_a_circle {
            return false;
        }
        // Kernels finish these checksums themselves, and make no super-packets of them.
        if frame[0] & NEEDS_CHECKSUM != 0 || frame[1] != 0 {
            return false;
        }
        let mut sender = [0; 6];
        sender.copy_from_slice(&frame[SENDER]);
        let side = self.senders.iter().find(|(known, _)| *known == sender).map(|(_, side)| *side);
        match side {
            Some(side) if side != direction => {
                self.in_a_circle = true;
                return false;
            }
            None if self.senders.len() < MOST_SENDERS => self.senders.push((sender, direction)),
            _ => {}
        }
        single_packet_header(None).write(frame);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::parse;

    fn arp(sender: u8) -> Vec<u8> {
        let mut frame = vec![0; VNET_HEADER_BYTES];
        frame[0] = 2; // VIRTIO_NET_HDR_F_DATA_VALID, as of a frame whose device looked at its checksum
        frame.extend([0xff; 6]);
        frame.extend([2, 0, 0, 0, 0, sender, 0x08, 0x06]);
        frame.extend([0; 28]);
        frame
    }

    #[test]
    fn a_question_passes_with_an_empty_header() {
        let mut neighbours = Neighbours::default();
        let mut frame = arp(1);
        let why = parse(&mut frame).unwrap_err();
        assert!(neighbours.passes(0, why, &mut frame));
        assert_eq!(frame[..VNET_HEADER_BYTES], [0; VNET_HEADER_BYTES]);
        assert_eq!(frame[VNET_HEADER_BYTES..], arp(1)[VNET_HEADER_BYTES..]);
    }

    #[test]
    fn nothing_else_passes() {
        let mut neighbours = Neighbours::default();
        for why in [Refusal::Multicast, Refusal::OtherProtocol, Refusal::Malformed] {
            assert!(!neighbours.passes(0, why, &mut arp(1)));
        }
        let mut unfinished = arp(1);
        unfinished[0] |= NEEDS_CHECKSUM;
        assert!(!neighbours.passes(0, Refusal::NeighbourDiscovery, &mut unfinished));
        assert!(!neighbours.in_a_circle());
    }

    #[test]
    fn a_sender_on_both_sides_is_a_circle_and_nothing_passes_any_more() {
        let mut neighbours = Neighbours::default();
        for (direction, sender) in [(0, 1), (1, 2), (0, 1), (1, 2)] {
            assert!(neighbours.passes(direction, Refusal::Arp, &mut arp(sender)));
        }
        assert!(!neighbours.passes(1, Refusal::Arp, &mut arp(1)));
        assert!(neighbours.in_a_circle());
        assert!(!neighbours.passes(0, Refusal::Arp, &mut arp(1)));
    }

    #[test]
    fn of_very_many_senders_the_first_are_known() {
        let mut neighbours = Neighbours::default();
        for number in 0..2 * MOST_SENDERS as u16 {
            let mut frame = arp(1);
            frame[SENDER.start + 1..SENDER.start + 3].copy_from_slice(&number.to_be_bytes());
            assert!(neighbours.passes(0, Refusal::Arp, &mut frame));
        }
        assert_eq!(neighbours.senders.len(), MOST_SENDERS);
    }
}
