//! Datagram sockets for QUIC: batched receive with generic receive offload, send with segmentation offload.
//!
//! One system call moves many datagrams both ways: `recvmmsg` with `UDP_GRO` hands up trains of equal-sized datagrams as
//! one buffer, and `sendmsg` with `UDP_SEGMENT` lets the kernel (or the device) cut one buffer into datagrams; see udp(7).
//! Datagrams are never fragmented (`IP_PMTUDISC_PROBE`, ip(7)), as RFC 9000 section 14 demands.

mod address;
mod control;
mod receive;
mod send;
mod socket;

pub use receive::{ReceiveBatch, Received};
pub use send::Destination;
pub use socket::{UdpCounters, UdpOptions, UdpSocket};

/// The two ECN bits of an IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable transport.
    #[default]
    NotCapable = 0b00,
    /// ECT(1).
    Capable1 = 0b01,
    /// ECT(0).
    Capable0 = 0b10,
    /// Congestion experienced.
    CongestionExperienced = 0b11,
}

impl Ecn {
    /// The codepoint in the two low bits of a traffic-class octet.
    pub fn from_traffic_class(octet: u8) -> Self {
        match octet & 0b11 {
            0b00 => Self::NotCapable,
            0b01 => Self::Capable1,
            0b10 => Self::Capable0,
            _ => Self::CongestionExperienced,
        }
    }
}

/// Most bytes of UDP payload one send may carry, whatever its segment size: 65,535 less the IPv4 and UDP headers.
pub const MAX_SEND_BYTES: usize = 65_507;

/// Most segments the kernel takes in one send with `UDP_SEGMENT` (`UDP_MAX_SEGMENTS` before Linux 6.9, 128 since).
pub const MAX_SEGMENTS: usize = 64;

/// How many segments of `segment_bytes` fit one send.
pub fn segments_per_send(segment_bytes: usize) -> usize {
    (MAX_SEND_BYTES / segment_bytes.max(1)).clamp(1, MAX_SEGMENTS)
}
