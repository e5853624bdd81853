//! Whole directions without devices: order, repeatability, independence of impairments.

use super::*;
use crate::config::Config;
use crate::impair::testing::{assert_share, packets};

/// Remembers what happens, and plays the part of the schedule.
#[derive(Default)]
struct Recorder {
    departed: Vec<WirePacket>,
    lost: Vec<u64>,
    queue_dropped: Vec<u64>,
    corrupted: Vec<(u64, u64)>,
    duplicated: Vec<u64>,
    waiting: Vec<(u64, usize, Option<WirePacket>)>,
}

impl Sink for Recorder {
    fn depart(&mut self, packet: WirePacket) {
        self.departed.push(packet);
    }

    fn drop(&mut self, packet: WirePacket, why: Dropped) {
        match why {
            Dropped::Lost => self.lost.push(packet.identity.ordinal),
            Dropped::Queue => self.queue_dropped.push(packet.identity.ordinal),
        }
    }

    fn defer(&mut self, packet: WirePacket, stage: usize) {
        self.waiting.push((packet.at_ns, stage, Some(packet)));
    }

    fn wake(&mut self, stage: usize, at_ns: u64) {
        self.waiting.push((at_ns, stage, None));
    }

    fn duplicate(&mut self, packet: &WirePacket) {
        self.duplicated.push(packet.identity.ordinal);
    }

    fn corrupt(&mut self, packet: &mut WirePacket, random: u64) -> bool {
        self.corrupted.push((packet.identity.ordinal, random));
        packet.corrupted = true;
        true
    }
}

impl Recorder {
    fn run_until(&mut self, chain: &mut Chain, until_ns: u64) {
        while let Some(first) = (0..self.waiting.len()).min_by_key(|index| self.waiting[*index].0) {
            if self.waiting[first].0 > until_ns {
                return;
            }
            let (at_ns, stage, packet) = self.waiting.remove(first);
            match packet {
                Some(packet) => chain.advance(packet, stage, self),
                None => chain.release(stage, at_ns, self),
            }
        }
    }
}

fn chain(seed: u64, impairments: &str) -> Chain {
    let document = format!(r#"{{"a_device": "a", "b_device": "b", "seed": {seed}, "a_to_b": [{impairments}]}}"#);
    Chain::new(Config::parse(&document).unwrap().impairments(0, 1_000_000_000).unwrap())
}

fn run(seed: u64, impairments: &str, n: u64, spacing_ns: u64) -> Recorder {
    let mut chain = chain(seed, impairments);
    let mut recorder = Recorder::default();
    for packet in packets(n, spacing_ns) {
        recorder.run_until(&mut chain, packet.at_ns);
        chain.admit(packet, &mut recorder);
    }
    recorder.run_until(&mut chain, u64::MAX);
    recorder
}

const EVERYTHING: &str = r#"{"kind": "loss", "probability": 0.01},
    {"kind": "gilbert_elliott", "good_to_bad": 0.01, "bad_to_good": 0.3, "loss_bad": 0.5},
    {"kind": "loss_schedule", "drop": [3, 7]}, {"kind": "corrupt", "probability": 0.01},
    {"kind": "duplicate", "probability": 0.01}, {"kind": "delay", "delay_ns": 5000000},
    {"kind": "jitter", "distribution": "normal", "sigma_ns": 500000, "reorder": true},
    {"kind": "reorder", "probability": 0.01, "gap_ns": 2000000}"#;

#[test]
fn the_same_seed_gives_the_same_fates_whatever_the_timing() {
    let (one, two) = (run(7, EVERYTHING, 20_000, 10_000), run(7, EVERYTHING, 20_000, 33_333));
    assert!(one.lost.len() > 100 && one.corrupted.len() > 100 && one.duplicated.len() > 100);
    assert_eq!((&one.lost, &one.corrupted, &one.duplicated), (&two.lost, &two.corrupted, &two.duplicated));
    let delays = |run: &Recorder| run.departed.iter().map(|p| p.at_ns - p.floor_ns).collect::<Vec<_>>();
    assert_eq!(delays(&one), delays(&two));
    let other = run(8, EVERYTHING, 20_000, 10_000);
    assert_ne!(one.lost, other.lost);
    assert_ne!(one.corrupted, other.corrupted);
}

#[test]
fn removing_an_impairment_leaves_the_draws_of_the_others() {
    let loss = r#"{"kind": "loss", "probability": 0.1}"#;
    let corrupt = r#"{"kind": "corrupt", "probability": 0.1}"#;
    let both = run(7, &format!("{loss}, {corrupt}"), 10_000, 1000);
    let alone = run(7, corrupt, 10_000, 1000);
    let survivors: Vec<_> =
        alone.corrupted.iter().filter(|(ordinal, _)| !both.lost.contains(ordinal)).copied().collect();
    assert_eq!(both.corrupted, survivors);
    let exchanged = run(7, &format!("{corrupt}, {loss}"), 10_000, 1000);
    assert_eq!(exchanged.lost, both.lost);
}

#[test]
fn two_losses_in_a_row_are_independent() {
    let loss = r#"{"kind": "loss", "probability": 0.1}"#;
    let twice = run(7, &format!("{loss}, {loss}"), 100_000, 1000);
    assert_share(twice.lost.len() as u64, 100_000, 1.0 - 0.9 * 0.9);
}

#[test]
fn impairments_act_in_the_order_listed() {
    let rate = r#"{"kind": "rate", "bits_per_s": 12112000, "queue_packets": 5}"#;
    let loss = r#"{"kind": "loss", "probability": 1}"#;
    assert_eq!(run(1, &format!("{rate}, {loss}"), 20, 0).queue_dropped.len(), 15);
    assert_eq!(run(1, &format!("{loss}, {rate}"), 20, 0).queue_dropped.len(), 0);
}

#[test]
fn a_copy_follows_its_original_and_meets_what_comes_after() {
    let run = run(
        1,
        r#"{"kind": "duplicate", "probability": 1}, {"kind": "loss", "probability": 0.5}, {"kind": "delay", "delay_ns": 10}"#,
        10_000,
        1000,
    );
    assert_eq!(run.duplicated.len(), 10_000);
    assert_share(run.lost.len() as u64, 20_000, 0.5);
    let copies = run.departed.iter().filter(|packet| packet.identity.copy == 1).count() as u64;
    assert_share(copies, 10_000, 0.5);
    assert!(run.departed.is_sorted_by_key(|packet| (packet.identity.ordinal, packet.identity.copy)));
}

#[test]
fn a_rate_behind_reordering_sees_packets_in_the_order_they_reach_it() {
    // Without deferring, a packet that overtakes would be serialized behind those it overtook.
    let impairments = r#"{"kind": "delay", "delay_ns": 10000000}, {"kind": "reorder", "probability": 0.2, "gap_ns": 5000000},
        {"kind": "rate", "bits_per_s": 121120000}"#;
    let run = run(3, impairments, 2_000, 200_000);
    assert_eq!(run.departed.len(), 2_000);
    assert!(run.departed.is_sorted_by_key(|packet| packet.at_ns), "one link sends one packet at a time");
    assert!(run.departed.windows(2).all(|pair| pair[1].at_ns - pair[0].at_ns >= 100_000));
    assert!(run.departed.windows(2).filter(|pair| pair[1].identity.ordinal < pair[0].identity.ordinal).count() > 100);
}

#[test]
fn codel_behind_a_delay_drops_from_a_standing_queue_and_loses_nothing_else() {
    let impairments = r#"{"kind": "delay", "delay_ns": 10000000},
        {"kind": "rate", "bits_per_s": 12112000, "discipline": "codel"}, {"kind": "delay", "delay_ns": 1000000}"#;
    let run = run(3, impairments, 3_000, 900_000);
    assert!(run.queue_dropped.len() > 10);
    assert_eq!(run.departed.len() + run.queue_dropped.len(), 3_000);
    assert!(run.departed.is_sorted_by_key(|packet| packet.at_ns));
    assert!(run.departed.iter().all(|p| p.at_ns >= 1_000_000_000 + p.identity.ordinal * 900_000 + 12_000_000));
}

#[test]
fn the_least_delay_is_what_no_packet_undercuts() {
    let delay = r#"{"kind": "delay", "delay_ns": 10000000}"#;
    assert_eq!(chain(1, delay).least_delay_ns(), 10_000_000);
    assert_eq!(chain(1, "").least_delay_ns(), 0);
    let reordered = format!(r#"{delay}, {{"kind": "reorder", "probability": 0.1, "gap_ns": 4000000}}"#);
    assert_eq!(chain(1, &reordered).least_delay_ns(), 6_000_000);
    let uniform = format!(r#"{delay}, {{"kind": "jitter", "distribution": "uniform", "range_ns": 3000000}}"#);
    assert_eq!(chain(1, &uniform).least_delay_ns(), 7_000_000);
    let codel = format!(r#"{delay}, {{"kind": "rate", "bits_per_s": 1000000, "discipline": "codel"}}, {delay}"#);
    assert_eq!(chain(1, &codel).least_delay_ns(), 10_000_000);
    let behind_codel = format!(r#"{{"kind": "rate", "bits_per_s": 1000000, "discipline": "codel"}}, {delay}"#);
    assert_eq!(chain(1, &behind_codel).least_delay_ns(), 0);
}
