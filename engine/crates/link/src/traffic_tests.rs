//! All of the link but the devices: frames in, departures out, and everything accounted for.

use super::*;
use crate::buffer::LARGE_BYTES;
use crate::config::Config;
use crate::frame::tests::{Builder, pattern, udp_frame};
use crate::frame::{MAX_HEADER_BYTES, Transport, VNET_HEADER_BYTES};
use crate::segment::run_headers;
use crate::statistics::OfDevices;

const START: u64 = 1_000_000_000;

fn traffic(impairments: &str, memory_bytes: u64) -> Traffic {
    let document = format!(r#"{{"a_device": "a", "b_device": "b", "seed": 5, "a_to_b": [{impairments}]}}"#);
    let config = Config::parse(&document).unwrap();
    let chains = [Chain::new(config.impairments(0, START).unwrap()), Chain::new(vec![])];
    Traffic::new(chains, memory_bytes, None, None)
}

fn arrive(traffic: &mut Traffic, frame: &[u8], at_ns: u64) {
    let mut buffer = traffic.frames.pool.take(frame.len());
    buffer[..frame.len()].copy_from_slice(frame);
    traffic.arrive(0, buffer, frame.len(), at_ns);
}

/// Everything that leaves, as (due, frame octets), settled as sent.
fn leave(traffic: &mut Traffic, until_ns: u64) -> Vec<(u64, Vec<u8>)> {
    let mut left = vec![];
    while let Some((due_ns, departure)) = traffic.next_departure(until_ns) {
        let frame = traffic.frames.get(departure.run.frame);
        let mut header = [0; MAX_HEADER_BYTES];
        let parts = run_headers(frame.bytes(), &frame.layout, departure.run.first, departure.run.end, &mut header);
        let mut octets = header[..parts.header_bytes].to_vec();
        octets.extend(&frame.bytes()[parts.payload]);
        left.push((due_ns, octets));
        traffic.settle(due_ns, departure, Left { given_ns: due_ns, taken_ns: due_ns + 100 }, true);
    }
    left
}

fn super_packet() -> Vec<u8> {
    Builder::new(false, Transport::Tcp, pattern(10 * 1000)).super_packet(1000)
}

#[test]
fn an_undamaged_super_packet_leaves_whole() {
    let mut traffic = traffic(r#"{"kind": "delay", "delay_ns": 5000}"#, 1 << 20);
    arrive(&mut traffic, &super_packet(), START);
    assert!(leave(&mut traffic, START + 4_999).is_empty());
    let left = leave(&mut traffic, START + 5_000);
    assert_eq!((left.len(), left[0].0), (1, START + 5_000));
    assert_eq!(left[0].1[VNET_HEADER_BYTES..], super_packet()[VNET_HEADER_BYTES..]);
    assert_eq!(traffic.directions[0].statistics.delivered, 10);
}

#[test]
fn survivors_of_a_loss_leave_as_the_runs_around_it() {
    let mut traffic =
        traffic(r#"{"kind": "loss_schedule", "drop": [0, 4, 5]}, {"kind": "delay", "delay_ns": 5000}"#, 1 << 20);
    arrive(&mut traffic, &super_packet(), START);
    let left = leave(&mut traffic, u64::MAX);
    let payloads: Vec<usize> = left.iter().map(|(_, octets)| (octets.len() - 64) / 1000).collect();
    assert_eq!(payloads, [3, 4], "packets 1 to 3 and 6 to 9");
    let statistics = &traffic.directions[0].statistics;
    assert_eq!((statistics.wire_packets, statistics.delivered, statistics.lost), (10, 7, 3));
}

#[test]
fn a_damaged_packet_is_cut_out_and_the_rest_is_as_it_was() {
    let mut traffic = traffic(r#"{"kind": "corrupt", "probability": 0.3}"#, 1 << 22);
    let whole = super_packet();
    arrive(&mut traffic, &whole, START);
    let left = leave(&mut traffic, u64::MAX);
    let corrupted = traffic.directions[0].statistics.corrupted;
    assert!((1..9).contains(&corrupted), "{corrupted}");
    let mut payload = vec![];
    left.iter().for_each(|(_, octets)| payload.extend(&octets[64..]));
    let flipped: u32 = payload.iter().zip(pattern(10_000)).map(|(a, b)| (a ^ b).count_ones()).sum();
    // A bit of the TCP header may be the one that flips.
    assert!(u64::from(flipped) <= corrupted && payload.len() == 10_000);
    assert!(
        left.iter().filter(|(_, octets)| octets[..VNET_HEADER_BYTES] == [0; VNET_HEADER_BYTES]).count() as u64
            >= corrupted
    );
}

#[test]
fn packets_of_a_slow_link_leave_one_by_one() {
    let mut traffic = traffic(r#"{"kind": "rate", "bits_per_s": 8432000}"#, 1 << 20);
    arrive(&mut traffic, &super_packet(), START);
    // 1054 octets each: 1 ms.
    let due: Vec<u64> =
        leave(&mut traffic, u64::MAX).into_iter().map(|(due_ns, _)| (due_ns - START) / 1_000_000).collect();
    assert_eq!(due, (1..=10).collect::<Vec<_>>());
}

/// What the link says of a path of 100 Mbit/s that a window of twenty packets crosses now and then, and how many of
/// them came out of order.
fn rate_of_windows(behind_the_rate: &str) -> (f64, u64) {
    let chain = format!(
        r#"{{"kind": "rate", "bits_per_s": 100000000}}, {{"kind": "delay", "delay_ns": 20000000}}, {behind_the_rate}"#
    );
    let mut traffic = traffic(&chain, 8 << 20);
    for n in 0..1_000u64 {
        arrive(&mut traffic, &super_packet(), START + n * 10_000_000);
        arrive(&mut traffic, &super_packet(), START + n * 10_000_000);
    }
    leave(&mut traffic, u64::MAX);
    let of = &traffic.directions[0];
    let told = of.statistics.summary(&[], &of.chain, OfDevices::default());
    (told.rate_given_bits_per_s.unwrap(), told.out_of_order)
}

#[test]
fn a_path_that_reorders_still_tells_its_rate() {
    // One that is sent ahead leaves before the whole window.
    let (given, out_of_order) = rate_of_windows(r#"{"kind": "reorder", "probability": 0.05, "gap_ns": 2000000}"#);
    assert!(out_of_order > 0 && (given / 100e6 - 1.0).abs() < 0.005, "{given}");
}

#[test]
fn a_path_with_jitter_behind_its_queue_still_tells_its_rate() {
    for reorder in [false, true] {
        let jitter = r#"{"kind": "jitter", "distribution": "normal", "sigma_ns": 2000000, "reorder": REORDER}"#;
        let (given, out_of_order) = rate_of_windows(&jitter.replace("REORDER", &reorder.to_string()));
        assert_eq!(out_of_order > 0, reorder);
        assert!((given / 100e6 - 1.0).abs() < 0.005, "reorder {reorder}: {given}");
    }
}

#[test]
fn every_packet_is_accounted_for_and_no_buffer_is_kept() {
    let impairments = r#"{"kind": "loss", "probability": 0.1}, {"kind": "corrupt", "probability": 0.1},
        {"kind": "duplicate", "probability": 0.1}, {"kind": "rate", "bits_per_s": 1000000000, "queue_packets": 40},
        {"kind": "delay", "delay_ns": 1000000}, {"kind": "jitter", "distribution": "normal", "sigma_ns": 100000, "reorder": true},
        {"kind": "duplicate", "probability": 0.1}, {"kind": "rate", "bits_per_s": 900000000, "discipline": "codel"}"#;
    let mut traffic = traffic(impairments, 8 << 20);
    for n in 0..3_000u64 {
        let at_ns = START + n * 60_000;
        arrive(&mut traffic, if n % 3 == 0 { &[7; 50] } else { &[] }, at_ns);
        arrive(&mut traffic, &super_packet(), at_ns);
        arrive(&mut traffic, &udp_frame(500), at_ns + 5);
        leave(&mut traffic, at_ns);
    }
    let in_flight = traffic.in_flight(0);
    assert!(in_flight > 0);
    let balance = |traffic: &Traffic| {
        let s = &traffic.directions[0].statistics;
        assert_eq!(
            s.wire_packets + s.duplicated,
            s.delivered + s.lost + s.queue_dropped + s.memory_dropped + s.send_errors + traffic.in_flight(0)
        );
    };
    balance(&traffic);
    leave(&mut traffic, u64::MAX);
    balance(&traffic);
    assert_eq!((traffic.in_flight(0), traffic.frames.bytes(), traffic.schedule.len()), (0, 0, 0));
    let s = &traffic.directions[0].statistics;
    assert!(s.lost > 0 && s.queue_dropped > 0 && s.corrupted > 0 && s.duplicated > 0 && s.delivered > 0);
}

#[test]
fn what_does_not_fit_into_the_memory_is_dropped_and_counted() {
    let mut traffic = traffic(r#"{"kind": "delay", "delay_ns": 1000000000}"#, 1 << 20);
    let large = Builder::new(false, Transport::Tcp, pattern(60_000)).super_packet(1000);
    for n in 0..100 {
        arrive(&mut traffic, &large, START + n);
    }
    let kept = (1u64 << 20) / LARGE_BYTES as u64;
    let statistics = &traffic.directions[0].statistics;
    assert_eq!((traffic.in_flight(0), statistics.memory_dropped), (kept * 60, (100 - kept) * 60));
}

#[test]
fn a_refused_frame_is_counted_by_reason() {
    let mut traffic = traffic("", 1 << 20);
    let mut arp = udp_frame(30);
    arp[VNET_HEADER_BYTES + 12..VNET_HEADER_BYTES + 14].copy_from_slice(&[8, 6]);
    arrive(&mut traffic, &arp, START);
    assert!(leave(&mut traffic, u64::MAX).is_empty());
    let of = &traffic.directions[0];
    let summary = of.statistics.summary(&[], &of.chain, OfDevices::default());
    assert_eq!((summary.refused.arp, summary.wire_packets), (1, 0));
}

fn arp(sender: u8) -> Vec<u8> {
    let mut frame = vec![0; VNET_HEADER_BYTES];
    frame.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, sender, 0x08, 0x06]);
    frame.extend([0; 28]);
    frame
}

#[test]
fn what_hosts_ask_for_neighbours_is_refused_but_by_a_bridge() {
    let mut traffic = traffic("", 1 << 20);
    arrive(&mut traffic, &arp(1), START);
    assert!(leave(&mut traffic, u64::MAX).is_empty());
    assert_eq!(refused_arp(&traffic), 1);
}

#[test]
fn on_a_bridge_it_passes_at_once_and_no_packet_has_another_fate_for_it() {
    let mut traffic =
        traffic(r#"{"kind": "loss_schedule", "drop": [1]}, {"kind": "delay", "delay_ns": 5000}"#, 1 << 20);
    traffic.neighbours = Some(Neighbours::default());
    arrive(&mut traffic, &udp_frame(100), START);
    arrive(&mut traffic, &arp(1), START);
    arrive(&mut traffic, &udp_frame(200), START);
    arrive(&mut traffic, &udp_frame(300), START);
    let passing = traffic.neighbours.as_mut().unwrap().waiting.pop().unwrap();
    assert_eq!((passing.direction, &passing.buffer[..passing.length]), (0, &arp(1)[..]));
    traffic.passed(passing, true);
    assert_eq!(leave(&mut traffic, u64::MAX).len(), 2, "the second packet is lost, as without the question before it");
    assert_eq!(traffic.directions[0].statistics.wire_packets, 3);
    assert_eq!((traffic.neighbours.as_ref().unwrap().carried, refused_arp(&traffic)), ([1, 0], 0));
}

#[test]
fn a_question_that_no_device_takes_is_counted_as_refused() {
    let mut traffic = traffic("", 1 << 20);
    traffic.neighbours = Some(Neighbours::default());
    arrive(&mut traffic, &arp(1), START);
    let passing = traffic.neighbours.as_mut().unwrap().waiting.pop().unwrap();
    traffic.passed(passing, false);
    assert_eq!((traffic.neighbours.as_ref().unwrap().carried, refused_arp(&traffic)), ([0, 0], 1));
}

fn refused_arp(traffic: &Traffic) -> u64 {
    let of = &traffic.directions[0];
    of.statistics.summary(&[], &of.chain, OfDevices::default()).refused.arp
}
