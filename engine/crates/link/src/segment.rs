//! Headers for a run of wire packets taken out of a super-packet: what TSO and USO hardware would put on the wire.

use std::ops::Range;

use crate::checksum::{fold, sum};
use crate::frame::{
    ETHERNET_HEADER_BYTES, IP_OFFSET, Layout, MAX_HEADER_BYTES, Transport, single_packet_header, super_packet_header,
};

/// TCP flags (RFC 9293 section 3.1): FIN and PSH belong on the last segment only.
const FIN_PSH: u8 = 0x01 | 0x08;
/// RFC 3168 section 6.1.2: CWR goes on the first segment only.
const CWR: u8 = 0x80;

/// Where the octets of a run come from: headers in a scratch buffer (none: the frame is sent as it is), then payload.
#[derive(Debug, PartialEq, Eq)]
pub struct Parts {
    pub header_bytes: usize,
    pub payload: Range<usize>,
}

/// Writes the headers of wire packets `first..end` of a frame to `out` and says which octets of the frame follow.
pub fn run_headers(frame: &[u8], layout: &Layout, first: u32, end: u32, out: &mut [u8; MAX_HEADER_BYTES]) -> Parts {
    if layout.segments == 1 {
        return Parts { header_bytes: 0, payload: 0..layout.end };
    }
    let header_bytes = layout.payload_offset;
    let payload_start = header_bytes + first as usize * layout.gso_size;
    let payload_end = (header_bytes + end as usize * layout.gso_size).min(layout.end);
    let header = &mut out[..header_bytes];
    header.copy_from_slice(&frame[..header_bytes]);
    let several = end - first > 1;
    let vnet = if several { super_packet_header(layout) } else { single_packet_header(layout.partial_checksum) };
    vnet.write(header);

    let transport = layout.transport_offset;
    let transport_bytes = header_bytes - transport + payload_end - payload_start;
    write_ip(header, layout, first, transport_bytes);
    match layout.transport {
        Transport::Udp => header[transport + 4..transport + 6].copy_from_slice(&(transport_bytes as u16).to_be_bytes()),
        _ => write_tcp(&mut header[transport..], layout, first, end),
    }
    let field = transport + layout.transport.checksum_offset();
    let pseudo = pseudo_header_sum(header, layout, transport_bytes);
    header[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
    Parts { header_bytes, payload: payload_start..payload_end }
}

fn write_ip(header: &mut [u8], layout: &Layout, first: u32, transport_bytes: usize) {
    let transport = layout.transport_offset;
    let ip = &mut header[IP_OFFSET..transport];
    if layout.ipv6 {
        let payload = ip.len() - 40 + transport_bytes;
        ip[4..6].copy_from_slice(&(payload as u16).to_be_bytes());
        return;
    }
    let total = ip.len() + transport_bytes;
    ip[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    let identification = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(first as u16);
    ip[4..6].copy_from_slice(&identification.to_be_bytes());
    ip[10..12].fill(0);
    let checksum = !fold(sum(ip));
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn write_tcp(tcp: &mut [u8], layout: &Layout, first: u32, end: u32) {
    let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
    let sequence = sequence.wrapping_add(first.wrapping_mul(layout.gso_size as u32));
    tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
    if end != layout.segments {
        tcp[13] &= !FIN_PSH;
    }
    if first > 0 {
        tcp[13] &= !CWR;
    }
}

/// What a checksum field holds while NEEDS_CSUM is set: the folded sum of the pseudo-header (RFC 9293 3.1, RFC 8200 8.1).
fn pseudo_header_sum(frame: &[u8], layout: &Layout, transport_bytes: usize) -> u16 {
    let addresses = if layout.ipv6 { IP_OFFSET + 8..IP_OFFSET + 40 } else { IP_OFFSET + 12..IP_OFFSET + 20 };
    fold(sum(&frame[addresses]) + u64::from(layout.transport.protocol()) + transport_bytes as u64)
}

/// One wire packet of a frame as a frame of its own with its final checksum, so that damage to it can be noticed.
///
/// Returns the octets (virtio-net header first) written to the front of `out`.
pub fn extract(frame: &[u8], layout: &Layout, segment: u32, out: &mut [u8]) -> usize {
    let mut header = [0; MAX_HEADER_BYTES];
    let parts = run_headers(frame, layout, segment, segment + 1, &mut header);
    let length = parts.header_bytes + parts.payload.len();
    out[..parts.header_bytes].copy_from_slice(&header[..parts.header_bytes]);
    out[parts.header_bytes..length].copy_from_slice(&frame[parts.payload]);
    if let Some((start, field)) = layout.partial_checksum {
        // The field holds the pseudo-header's sum, so the sum over everything is that of the finished packet.
        let checksum = match !fold(sum_from(&out[..length], start)) {
            0 => 0xffff, // RFC 768: a computed zero is sent as all ones; the same number in one's complement
            checksum => checksum,
        };
        out[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        single_packet_header(None).write(out);
    }
    length
}

fn sum_from(frame: &[u8], start: usize) -> u64 {
    sum(&frame[start..])
}

/// Flips bit number `random` (modulo their count) of the IP payload; false when there is no payload.
pub fn flip_payload_bit(frame: &mut [u8], layout: &Layout, random: u64) -> bool {
    let payload = frame.get_mut(layout.transport_offset..layout.ip_end).unwrap_or(&mut []);
    let bits = payload.len() as u64 * 8;
    if bits == 0 {
        return false;
    }
    let bit = random % bits;
    payload[(bit / 8) as usize] ^= 1 << (bit % 8);
    true
}

const _: () = assert!(MAX_HEADER_BYTES > ETHERNET_HEADER_BYTES + 60 + 60);

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
