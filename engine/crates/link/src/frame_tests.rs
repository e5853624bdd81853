//! Frames built from scratch, and what `parse` makes of them and of anything else.

use super::*;
use crate::checksum::{fold, sum};
use crate::random::{Draws, Identity};
use crate::segment::{extract, flip_payload_bit, run_headers};

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

/// A frame as the wire has it, with final checksums, behind an empty virtio-net header.
#[derive(Clone)]
pub(crate) struct Builder {
    pub ipv6: bool,
    pub transport: Transport,
    pub payload: Vec<u8>,
    pub sequence: u32,
    pub flags: u8,
    pub identification: u16,
    pub options: Vec<u8>,
}

impl Builder {
    pub(crate) fn new(ipv6: bool, transport: Transport, payload: Vec<u8>) -> Self {
        Builder {
            ipv6,
            transport,
            payload,
            sequence: 0xffff_f000,
            flags: 0x18,
            identification: 0xfffe,
            options: vec![],
        }
    }

    fn transport_header(&self) -> Vec<u8> {
        let mut header = [0x9c, 0x40, 0x01, 0xbb].to_vec(); // ports 40000, 443
        if self.transport == Transport::Udp {
            header.extend(((8 + self.payload.len()) as u16).to_be_bytes());
            header.extend([0, 0]);
        } else {
            header.extend(self.sequence.to_be_bytes());
            header.extend(0x0102_0304u32.to_be_bytes());
            header.extend([((20 + self.options.len()) / 4 * 16) as u8, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
            header.extend(&self.options);
        }
        header
    }

    /// The virtio-net header is all zero: a single packet with a final checksum.
    pub(crate) fn finished(&self) -> Vec<u8> {
        let mut transport = self.transport_header();
        let length = transport.len() + self.payload.len();
        let protocol = self.transport.protocol();
        let mut frame = vec![0; VNET_HEADER_BYTES];
        frame.extend(MACS);
        let addresses: Vec<u8>;
        if self.ipv6 {
            frame.extend([0x86, 0xdd]);
            addresses = [&[0xfd; 16][..], &[0xfc; 16][..]].concat();
            frame.extend([0x60, 0, 0, 0]);
            frame.extend((length as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend(&addresses);
        } else {
            frame.extend([0x08, 0x00]);
            addresses = vec![10, 88, 0, 1, 10, 88, 0, 2];
            let mut ip = vec![0x45, 0];
            ip.extend(((20 + length) as u16).to_be_bytes());
            ip.extend(self.identification.to_be_bytes());
            ip.extend([0x40, 0, 64, protocol, 0, 0]);
            ip.extend(&addresses);
            let checksum = !fold(sum(&ip));
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            frame.extend(ip);
        }
        let pseudo = sum(&addresses) + u64::from(protocol) + length as u64;
        let mut whole = transport.clone();
        whole.extend(&self.payload);
        let checksum = !fold(pseudo + sum(&whole));
        let at = self.transport.checksum_offset();
        transport[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        frame.extend(transport);
        frame.extend(&self.payload);
        frame
    }

    /// As a device hands up a super-packet: the checksum holds the pseudo-header's sum.
    pub(crate) fn super_packet(&self, gso_size: u16) -> Vec<u8> {
        let mut frame = self.finished();
        let transport = if self.ipv6 { IP_OFFSET + 40 } else { IP_OFFSET + 20 };
        let at = transport + self.transport.checksum_offset();
        let addresses = if self.ipv6 { IP_OFFSET + 8..IP_OFFSET + 40 } else { IP_OFFSET + 12..IP_OFFSET + 20 };
        let length = (frame.len() - transport) as u64;
        let pseudo = fold(sum(&frame[addresses]) + u64::from(self.transport.protocol()) + length);
        frame[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
        let gso_type = match (self.transport, self.ipv6) {
            (Transport::Udp, _) => 5,
            (_, false) => 1,
            (_, true) => 4,
        };
        let vnet = VnetHeader {
            flags: NEEDS_CHECKSUM,
            gso_type,
            header_bytes: 90,
            gso_size,
            checksum_start: (transport - VNET_HEADER_BYTES) as u16,
            checksum_offset: self.transport.checksum_offset() as u16,
        };
        vnet.write(&mut frame);
        frame
    }
}

pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 % 251) as u8).collect()
}

pub(crate) fn udp_frame(payload: usize) -> Vec<u8> {
    Builder::new(false, Transport::Udp, pattern(payload)).finished()
}

#[test]
fn plain_packets_are_read() {
    for ipv6 in [false, true] {
        for transport in [Transport::Tcp, Transport::Udp] {
            let mut frame = Builder::new(ipv6, transport, pattern(100)).finished();
            let layout = parse(&mut frame).unwrap();
            let header = if ipv6 { 40 } else { 20 };
            assert_eq!((layout.segments, layout.transport, layout.ipv6), (1, transport, ipv6));
            assert_eq!(layout.transport_offset, IP_OFFSET + header);
            assert_eq!(layout.wire_bytes(0) as usize, frame.len() - VNET_HEADER_BYTES);
            assert_eq!(layout.partial_checksum, None);
        }
    }
}

#[test]
fn super_packets_are_counted_in_wire_packets() {
    for ipv6 in [false, true] {
        for transport in [Transport::Tcp, Transport::Udp] {
            let mut frame = Builder::new(ipv6, transport, pattern(5 * 1400 + 1)).super_packet(1400);
            let layout = parse(&mut frame).unwrap();
            assert_eq!((layout.segments, layout.gso_size), (6, 1400));
            let headers = (layout.payload_offset - VNET_HEADER_BYTES) as u32;
            assert_eq!(
                (layout.wire_bytes(0), layout.wire_bytes(4), layout.wire_bytes(5)),
                (headers + 1400, headers + 1400, headers + 1)
            );
        }
    }
}

#[test]
fn a_super_packet_of_one_is_sent_as_a_plain_packet() {
    let mut frame = Builder::new(false, Transport::Tcp, pattern(1000)).super_packet(1400);
    let layout = parse(&mut frame).unwrap();
    assert_eq!(layout.segments, 1);
    assert_eq!((frame[0], frame[1]), (NEEDS_CHECKSUM, 0));
}

#[test]
fn only_unicast_ip_is_carried() {
    let plain = udp_frame(10);
    let with = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = plain.clone();
        edit(&mut frame);
        parse(&mut frame).err()
    };
    assert_eq!(with(&|_| ()), None);
    let ethertype = VNET_HEADER_BYTES + 12;
    assert_eq!(with(&|frame| frame[ethertype..ethertype + 2].copy_from_slice(&[8, 6])), Some(Refusal::Arp));
    assert_eq!(
        with(&|frame| frame[ethertype..ethertype + 2].copy_from_slice(&[0x88, 0xcc])),
        Some(Refusal::OtherProtocol)
    );
    assert_eq!(with(&|frame| frame[VNET_HEADER_BYTES] |= 1), Some(Refusal::Multicast));
    assert_eq!(with(&|frame| frame[IP_OFFSET + 16] = 224), Some(Refusal::Multicast));
    assert_eq!(with(&|frame| frame.truncate(IP_OFFSET - 1)), Some(Refusal::Malformed));
    assert_eq!(with(&|frame| frame.truncate(IP_OFFSET + 25)), Some(Refusal::Malformed));
    assert_eq!(with(&|frame| frame[IP_OFFSET] = 0x44), Some(Refusal::Malformed));
    let mut discovery = Builder::new(true, Transport::Udp, pattern(20)).finished();
    discovery[IP_OFFSET + 6] = 58;
    discovery[IP_OFFSET + 40] = 135;
    assert_eq!(parse(&mut discovery).err(), Some(Refusal::NeighbourDiscovery));
    discovery[IP_OFFSET + 40] = 128; // echo request
    assert!(parse(&mut discovery).is_ok());
}

#[test]
fn headers_that_contradict_each_other_are_malformed() {
    let good = Builder::new(false, Transport::Tcp, pattern(5000)).super_packet(1400);
    let with = |at: usize, octets: [u8; 2]| {
        let mut frame = good.clone();
        frame[at..at + 2].copy_from_slice(&octets);
        parse(&mut frame).err()
    };
    assert_eq!(with(4, [0, 0]), Some(Refusal::Malformed), "segments of no octets");
    assert_eq!(with(0, [1, 5]), Some(Refusal::Malformed), "UDP segmentation of TCP");
    assert_eq!(with(0, [1, 4]), Some(Refusal::Malformed), "IPv6 segmentation of IPv4");
    assert_eq!(with(0, [1, 3]), Some(Refusal::Malformed), "UDP fragmentation");
    assert_eq!(with(IP_OFFSET + 2, [0, 200]), Some(Refusal::Malformed), "IP shorter than the frame");
    assert_eq!(with(IP_OFFSET + 6, [0x20, 0]), Some(Refusal::Malformed), "a fragment");
    assert_eq!(with(IP_OFFSET + 32, [0x10, 0x18]), Some(Refusal::Malformed), "a TCP header of 4 octets");
    let mut plain = udp_frame(10);
    plain[0] = NEEDS_CHECKSUM;
    plain[6..8].copy_from_slice(&60_000u16.to_ne_bytes());
    assert_eq!(parse(&mut plain).err(), Some(Refusal::Malformed), "a checksum beyond the frame");
}

#[test]
fn extension_headers_of_ipv6_are_stepped_over() {
    let mut frame = Builder::new(true, Transport::Udp, pattern(20)).finished();
    let at = IP_OFFSET + 40;
    frame.splice(at..at, [17, 0, 1, 4, 0, 0, 0, 0]);
    frame[IP_OFFSET + 6] = 60; // destination options
    let length = u16::from_be_bytes([frame[IP_OFFSET + 4], frame[IP_OFFSET + 5]]) + 8;
    frame[IP_OFFSET + 4..IP_OFFSET + 6].copy_from_slice(&length.to_be_bytes());
    let layout = parse(&mut frame).unwrap();
    assert_eq!((layout.transport, layout.transport_offset), (Transport::Udp, at + 8));
}

/// Whatever comes from a device is carried or refused, and what is carried can be split and damaged.
#[test]
fn no_frame_panics() {
    let draws = Draws::new(11, 0, "fuzz", 0);
    let mut seeds = vec![udp_frame(10), udp_frame(1400)];
    for ipv6 in [false, true] {
        for transport in [Transport::Tcp, Transport::Udp] {
            seeds.push(Builder::new(ipv6, transport, pattern(4000)).super_packet(1000));
            seeds.push(Builder::new(ipv6, transport, pattern(64)).super_packet(1));
        }
    }
    let (mut carried, mut refused) = (0, 0);
    for round in 0..60_000u64 {
        let draw = |k: u64| draws.bits(Identity { ordinal: round, copy: (k / 8) as u8 }, k % 8);
        let mut frame = seeds[(draw(0) % seeds.len() as u64) as usize].clone();
        for change in 0..draw(1) % 6 {
            // Most changes hit the headers.
            let reach = if draw(2 + change) % 4 == 0 { frame.len() } else { frame.len().min(100) };
            let at = (draw(10 + change) % reach as u64) as usize;
            frame[at] = (draw(20 + change) & 0xff) as u8;
        }
        if draw(30) % 4 == 0 {
            frame.truncate((draw(31) % (frame.len() as u64 + 1)) as usize);
        }
        let Ok(layout) = parse(&mut frame) else {
            refused += 1;
            continue;
        };
        carried += 1;
        let mut header = [0; MAX_HEADER_BYTES];
        let mut out = vec![0; frame.len() + MAX_HEADER_BYTES];
        let total: u64 = (0..layout.segments.min(100)).map(|segment| u64::from(layout.wire_bytes(segment))).sum();
        assert!(total >= (frame.len() - VNET_HEADER_BYTES) as u64 || layout.segments > 100);
        for segment in [0, layout.segments / 2, layout.segments - 1] {
            let parts = run_headers(&frame, &layout, segment, layout.segments, &mut header);
            assert!(parts.payload.end <= frame.len());
            let length = extract(&frame, &layout, segment, &mut out);
            assert_eq!(length as u32, layout.wire_bytes(segment) + VNET_HEADER_BYTES as u32);
            if let Ok(single) = parse(&mut out[..length]) {
                flip_payload_bit(&mut out[..length], &single, draw(40));
            }
        }
    }
    assert!(carried > 5_000 && refused > 5_000, "{carried} carried, {refused} refused");
}
