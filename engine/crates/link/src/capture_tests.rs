//! The file is read back by the rules of the format, octet by octet.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use super::*;
use crate::frame::tests::{Builder, pattern, udp_frame};
use crate::frame::{Transport, parse};

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Blocks of a pcapng file: type and body.
fn blocks(file: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let (mut at, mut found) = (0, vec![]);
    while at < file.len() {
        let total = word(file, at + 4) as usize;
        assert_eq!(total % 4, 0);
        assert_eq!(word(file, at + total - 4) as usize, total, "the length stands at the end too");
        found.push((word(file, at), file[at + 8..at + total - 4].to_vec()));
        at += total;
    }
    found
}

fn capture(name: &str, act: impl FnOnce(&mut Capture)) -> (Captured, Vec<u8>) {
    let path = std::env::temp_dir().join(format!("trifecta-capture-{name}-{}.pcapng", std::process::id()));
    let mut capture = Capture::create(&path, ["ra", "rb"]).unwrap();
    act(&mut capture);
    let told = capture.finish().unwrap();
    let file = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    (told, file)
}

/// What the statistics blocks at the end say of each interface: packets, and those that were left out.
fn said(file: &[u8]) -> [(u64, u64); 2] {
    let blocks = blocks(file);
    let last = &blocks[blocks.len() - 2..];
    [0, 1].map(|interface| {
        let (kind, body) = &last[interface];
        assert_eq!((*kind, word(body, 0)), (INTERFACE_STATISTICS, interface as u32));
        let long = |at: usize| u64::from_ne_bytes(body[at..at + 8].try_into().unwrap());
        assert_eq!([word(body, 12), word(body, 24)], [4 | 8 << 16, 5 | 8 << 16], "isb_ifrecv, isb_ifdrop: 8 octets");
        (long(16), long(28))
    })
}

/// A disk that takes no block until `go` has ended.
struct Stuck {
    octets: Arc<Mutex<Vec<u8>>>,
    go: Receiver<()>,
}

impl Write for Stuck {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if octets.len() >= BLOCK_BYTES / 2 {
            let _ = self.go.recv();
        }
        self.octets.lock().unwrap().extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Storage for Stuck {
    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_a_slow_disk_cannot_take_is_left_out_and_the_file_says_how_much() {
    let (go, waits) = channel();
    let octets = Arc::new(Mutex::new(vec![]));
    let mut capture = Capture::write_to(Stuck { octets: octets.clone(), go: waits }, ["ra", "rb"], 2).unwrap();
    let mut frame = udp_frame(1400);
    let layout = parse(&mut frame).unwrap();
    let all = 6_000;
    for n in 0..all {
        // Two of three come from a: what is left out is counted by interface.
        let seen = Sighting { direction: usize::from(n % 3 == 2), copy: 0, ordinal: n, at_ns: n, left: false };
        capture.push(&frame, &layout, 0, seen);
    }
    drop(go);
    let told = capture.finish().unwrap();
    let file = octets.lock().unwrap().clone();
    assert!(told.missed > all / 3, "{told:?}");
    assert_eq!(told.packets + told.missed, all);
    let there = |interface| {
        let mine = |(kind, body): &&(u32, Vec<u8>)| *kind == ENHANCED_PACKET && word(body, 0) == interface;
        blocks(&file).iter().filter(mine).count() as u64
    };
    let said = said(&file);
    assert_eq!(said.map(|(received, _)| received), [4_000, 2_000]);
    assert_eq!([0, 1].map(there), said.map(|(received, dropped)| received - dropped));
    assert_eq!(said[0].1 + said[1].1, told.missed);
}

#[test]
fn the_wire_packets_of_a_super_packet_stand_one_by_one_on_the_side_where_they_were() {
    let mut frame = Builder::new(false, Transport::Tcp, pattern(2500)).super_packet(1000);
    let layout = parse(&mut frame).unwrap();
    let (told, file) = capture("super", |capture| {
        for segment in 0..3 {
            let seen =
                Sighting { direction: 0, copy: 0, ordinal: 7 + u64::from(segment), at_ns: 1_000_000, left: false };
            capture.push(&frame, &layout, segment, seen);
        }
        let seen = Sighting { direction: 0, copy: 1, ordinal: 7, at_ns: 2_000_000, left: true };
        capture.push(&frame, &layout, 0, seen);
        let seen = Sighting { direction: 1, copy: 0, ordinal: 0, at_ns: 3_000_000, left: true };
        capture.push(&frame, &layout, 2, seen);
    });
    assert_eq!((told.packets, told.missed), (5, 0));
    let blocks = blocks(&file);
    let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [SECTION_HEADER, 1, 1, 6, 6, 6, 6, 6, 5, 5]);
    assert_eq!(word(&blocks[0].1, 0), BYTE_ORDER_MAGIC);
    let packets: Vec<&Vec<u8>> = blocks[3..8].iter().map(|(_, body)| body).collect();
    assert_eq!(packets.iter().map(|body| word(body, 0)).collect::<Vec<_>>(), [0, 0, 0, 1, 0]);
    let lengths: Vec<u32> = packets.iter().map(|body| word(body, 12)).collect();
    assert_eq!(lengths, [1054, 1054, 554, 1054, 554]);
    assert_eq!(word(packets[0], 16), 1054, "nothing is cut off");
    let time = |body: &[u8]| (u64::from(word(body, 4)) << 32 | u64::from(word(body, 8))) as i64;
    assert_eq!(time(packets[3]) - told.realtime_offset_ns, 2_000_000);
    let data = &packets[1][20..20 + 1054];
    assert_eq!(data[54..], pattern(2500)[1000..2000]);
    let options = |body: &[u8]| body[20 + (word(body, 12) as usize).next_multiple_of(4)..].to_vec();
    let id = |body: &[u8]| u64::from_ne_bytes(options(body)[12..20].try_into().unwrap());
    let ids: Vec<u64> = packets.iter().map(|body| id(body)).collect();
    assert_eq!(ids, [7, 8, 9, 1 << 48 | 7, 1 << 63]);
    let flags: Vec<u32> = packets.iter().map(|body| word(&options(body), 4)).collect();
    assert_eq!(flags, [INBOUND, INBOUND, INBOUND, OUTBOUND, OUTBOUND]);
}

#[test]
fn many_packets_of_any_length_make_a_file_without_a_gap() {
    let (told, file) = capture("many", |capture| {
        for n in 0..5_000u64 {
            let mut frame = udp_frame((n % 1400) as usize);
            let layout = parse(&mut frame).unwrap();
            capture.push(
                &frame,
                &layout,
                0,
                Sighting { direction: (n % 2) as usize, copy: 0, ordinal: n, at_ns: n, left: false },
            );
        }
    });
    assert_eq!((told.packets, told.missed), (5_000, 0));
    assert_eq!(blocks(&file).len(), 5_005);
    assert_eq!(said(&file), [(2_500, 0), (2_500, 0)]);
}
