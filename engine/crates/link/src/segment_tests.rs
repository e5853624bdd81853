//! Segments against packets built independently, octet by octet.

use super::*;
use crate::frame::tests::{Builder, pattern};
use crate::frame::{NEEDS_CHECKSUM, VNET_HEADER_BYTES, parse};

const FIN: u8 = 0x01;
const ACK_PSH: u8 = 0x18;
const GSO: usize = 1400;

/// What TSO or USO puts on the wire for segments `first..end` of this packet, as a packet of its own.
fn expected(whole: &Builder, first: usize, end: usize) -> Builder {
    let segments = whole.payload.len().div_ceil(GSO);
    let mut flags = whole.flags;
    if end < segments {
        flags &= !(FIN | 0x08);
    }
    if first > 0 {
        flags &= !0x80;
    }
    Builder {
        payload: whole.payload[first * GSO..(end * GSO).min(whole.payload.len())].to_vec(),
        sequence: whole.sequence.wrapping_add((first * GSO) as u32),
        identification: whole.identification.wrapping_add(first as u16),
        flags,
        ..whole.clone()
    }
}

fn cases() -> Vec<Builder> {
    let mut cases = vec![];
    for ipv6 in [false, true] {
        cases.push(Builder::new(ipv6, Transport::Udp, pattern(4 * GSO + 77)));
        for flags in [ACK_PSH, ACK_PSH | FIN, ACK_PSH | 0x80 | 0x40] {
            let tcp = Builder::new(ipv6, Transport::Tcp, pattern(5 * GSO));
            cases.push(Builder { flags, options: vec![1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8], ..tcp });
        }
    }
    cases
}

#[test]
fn every_segment_is_the_packet_that_the_wire_would_have() {
    for whole in cases() {
        let mut frame = whole.super_packet(GSO as u16);
        let layout = parse(&mut frame).unwrap();
        for segment in 0..layout.segments {
            let mut out = vec![0; 4096];
            let length = extract(&frame, &layout, segment, &mut out);
            let mut wire = expected(&whole, segment as usize, segment as usize + 1).finished();
            // parse() leaves the virtio-net header of a finished packet all zero.
            parse(&mut wire).unwrap();
            assert_eq!(&out[..length], &wire, "segment {segment}, IPv6 {}, {:?}", whole.ipv6, whole.transport);
        }
    }
}

#[test]
fn every_run_is_the_super_packet_of_its_segments() {
    for whole in cases() {
        let mut frame = whole.super_packet(GSO as u16);
        let layout = parse(&mut frame).unwrap();
        for first in 0..layout.segments {
            for end in first + 2..=layout.segments {
                let mut header = [0; MAX_HEADER_BYTES];
                let parts = run_headers(&frame, &layout, first, end, &mut header);
                let mut run = header[..parts.header_bytes].to_vec();
                run.extend(&frame[parts.payload]);
                let mut want = expected(&whole, first as usize, end as usize).super_packet(GSO as u16);
                // The length of the headers is a hint: ours is exact, a device's may not be.
                want[2..4].copy_from_slice(&((layout.payload_offset - VNET_HEADER_BYTES) as u16).to_ne_bytes());
                assert_eq!(run, want, "run {first}..{end}, IPv6 {}, {:?}", whole.ipv6, whole.transport);
            }
        }
    }
}

#[test]
fn one_segment_leaves_with_a_partial_checksum_and_no_gso() {
    let whole = Builder::new(false, Transport::Tcp, pattern(3 * GSO));
    let mut frame = whole.super_packet(GSO as u16);
    let layout = parse(&mut frame).unwrap();
    let mut header = [0; MAX_HEADER_BYTES];
    let parts = run_headers(&frame, &layout, 1, 2, &mut header);
    assert_eq!((header[0], header[1], parts.payload.len()), (NEEDS_CHECKSUM, 0, GSO));
    assert_eq!(header[4..6], [0, 0], "gso_size");
}

#[test]
fn a_plain_packet_is_sent_as_it_is() {
    let mut frame = Builder::new(true, Transport::Udp, pattern(100)).finished();
    let layout = parse(&mut frame).unwrap();
    let parts = run_headers(&frame, &layout, 0, 1, &mut [0; MAX_HEADER_BYTES]);
    assert_eq!(parts, Parts { header_bytes: 0, payload: 0..frame.len() });
}

#[test]
fn a_checksum_that_comes_out_as_zero_is_sent_as_ones() {
    // Choose the first word so that the sum of everything is all ones, whose complement is zero.
    let mut whole = Builder::new(false, Transport::Udp, vec![0; 2]);
    let finished = whole.finished();
    let at = IP_OFFSET + 20 + 6;
    whole.payload = finished[at..at + 2].to_vec();
    let mut frame = whole.super_packet(GSO as u16);
    let layout = parse(&mut frame).unwrap();
    let mut out = vec![0; 200];
    extract(&frame, &layout, 0, &mut out);
    assert_eq!(out[at..at + 2], [0xff, 0xff]);
}

#[test]
fn exactly_one_bit_of_the_ip_payload_flips_and_the_checksum_tells() {
    let mut frame = Builder::new(false, Transport::Tcp, pattern(50)).finished();
    let layout = parse(&mut frame).unwrap();
    let mut seen = std::collections::HashSet::new();
    for random in 0..70 * 8 * 2 {
        let mut damaged = frame.clone();
        assert!(flip_payload_bit(&mut damaged, &layout, random));
        let changed: Vec<usize> = (0..frame.len()).filter(|at| frame[*at] != damaged[*at]).collect();
        assert_eq!(changed.len(), 1);
        assert!(changed[0] >= layout.transport_offset);
        assert_eq!((frame[changed[0]] ^ damaged[changed[0]]).count_ones(), 1);
        seen.insert((changed[0], frame[changed[0]] ^ damaged[changed[0]]));
        let pseudo = sum(&damaged[IP_OFFSET + 12..IP_OFFSET + 20]) + 6 + 70;
        assert_ne!(fold(pseudo + sum(&damaged[IP_OFFSET + 20..])), 0xffff, "the checksum must not hold");
    }
    assert_eq!(seen.len(), 70 * 8, "every bit can be hit");
}
