//! What a direction did, counted while it runs.

use crate::busy::Busy;
use crate::chain::{Chain, Tally};
use crate::config::Spec;
use crate::frame::Refusal;
use crate::histogram::Histogram;
use crate::impair::{Impair, Impairment};
use crate::leaving::Leaving;
use crate::summary::{DirectionSummary, ImpairmentSummary, RefusedSummary};

/// Counters of one direction. Wire packets are Ethernet frames without FCS, after splitting super-packets.
#[derive(Default)]
pub struct Statistics {
    pub wire_packets: u64,
    pub wire_bytes: u64,
    pub delivered: u64,
    pub delivered_bytes: u64,
    pub lost: u64,
    pub queue_dropped: u64,
    pub corrupted: u64,
    pub duplicated: u64,
    /// Left after one that arrived later (RFC 4737 section 3).
    pub out_of_order: u64,
    /// Dropped because more was in flight than the memory allowed.
    pub memory_dropped: u64,
    pub send_errors: u64,
    pub super_packets: u64,
    refused: [u64; 5],
    next_ordinal_out: u64,
    /// From arrival to departure.
    pub given: Histogram,
    /// From arrival to the time at which the impairments wanted it to leave.
    pub scheduled: Histogram,
    /// From that time to the departure.
    pub lateness: Histogram,
    busy: Busy,
}

/// What the devices of a direction know of it at the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfDevices {
    pub in_flight: u64,
    pub receive_drops: u64,
    pub transmit_drops: u64,
    pub truncated: u64,
    pub timestamps_replaced: u64,
}

impl Statistics {
    /// Of what leaves these impairments.
    #[must_use]
    pub fn of(chain: &Chain) -> Self {
        Statistics { busy: Busy::new(chain.breaks_order()), ..Statistics::default() }
    }

    pub fn refuse(&mut self, why: Refusal) {
        self.refused[why as usize] += 1;
    }

    pub fn leave(&mut self, leaving: Leaving) {
        let Leaving { packets, bytes, arrived_ns, due_ns, left_ns, .. } = leaving;
        self.delivered += packets;
        self.delivered_bytes += bytes;
        self.given.record(left_ns - arrived_ns.min(left_ns), packets);
        self.scheduled.record(due_ns - arrived_ns.min(due_ns), packets);
        self.lateness.record(left_ns - due_ns.min(left_ns), packets);
        let end = leaving.ordinal + packets;
        if leaving.ordinal < self.next_ordinal_out && leaving.copy == 0 {
            self.out_of_order += packets;
        }
        self.next_ordinal_out = self.next_ordinal_out.max(end);
        self.busy.leave(&leaving);
    }

    /// The part of the summary that belongs to this direction.
    #[must_use]
    pub fn summary(&self, specs: &[Spec], chain: &Chain, of_devices: OfDevices) -> DirectionSummary {
        let stages: Vec<(&Impairment, Tally)> = chain.stages().collect();
        let busy = self.busy.complete();
        let passed: f64 = stages.iter().map(|(stage, tally)| 1.0 - stage.loss_asked(tally.met)).product();
        let of_stage = |((stage, tally), spec): (&(&Impairment, Tally), &Spec)| ImpairmentSummary {
            kind: spec.kind.clone(),
            asked: spec.asked(),
            met: tally.met,
            hit: tally.hit,
            clamped: stage.clamped(),
            queue_peak_bytes: stage.queue_peak_bytes(),
        };
        let met = self.wire_packets + self.duplicated;
        let refused = |why: Refusal| self.refused[why as usize];
        DirectionSummary {
            wire_packets: self.wire_packets,
            wire_bytes: self.wire_bytes,
            super_packets: self.super_packets,
            delivered: self.delivered,
            delivered_bytes: self.delivered_bytes,
            lost: self.lost,
            queue_dropped: self.queue_dropped,
            corrupted: self.corrupted,
            duplicated: self.duplicated,
            reordered: stages.iter().filter(|(stage, _)| stage.overtakes()).map(|(_, tally)| tally.hit).sum(),
            out_of_order: self.out_of_order,
            memory_dropped: self.memory_dropped,
            in_flight: of_devices.in_flight,
            delay_asked_ns: stages.iter().map(|(stage, _)| stage.delay_asked_ns()).sum(),
            delay_given_ns: (&self.given).into(),
            delay_scheduled_ns: (&self.scheduled).into(),
            lateness_ns: (&self.lateness).into(),
            loss_asked: 1.0 - passed,
            loss_given: (met > 0).then(|| self.lost as f64 / met as f64),
            rate_asked_bits_per_s: stages.iter().filter_map(|(stage, _)| stage.rate_asked_bits_per_s()).min(),
            rate_given_bits_per_s: busy.bits_per_s(),
            rate_busy_ns: busy.ns(),
            rate_busy_periods: busy.periods(),
            queue_peak_bytes: stages.iter().filter_map(|(stage, _)| stage.queue_peak_bytes()).max(),
            device_drops: of_devices.receive_drops,
            transmit_drops: of_devices.transmit_drops,
            send_errors: self.send_errors,
            refused: RefusedSummary {
                arp: refused(Refusal::Arp),
                neighbour_discovery: refused(Refusal::NeighbourDiscovery),
                multicast: refused(Refusal::Multicast),
                other_protocol: refused(Refusal::OtherProtocol),
                malformed: refused(Refusal::Malformed),
            },
            impairments: stages.iter().zip(specs).map(of_stage).collect(),
            truncated: of_devices.truncated,
            timestamps_replaced: of_devices.timestamps_replaced,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::leaving::leaving;

    #[test]
    fn what_was_asked_is_put_together_from_all_impairments() {
        let document = r#"{"a_device": "a", "b_device": "b", "a_to_b": [
            {"kind": "loss", "probability": 0.5}, {"kind": "loss", "probability": 0.5},
            {"kind": "rate", "bits_per_s": 9000000, "discipline": "codel"}, {"kind": "rate", "bits_per_s": 12000000},
            {"kind": "delay", "delay_ns": 5000000}, {"kind": "delay", "delay_ns": 7000000}]}"#;
        let config = Config::parse(document).unwrap();
        let chain = Chain::new(config.impairments(0, 0).unwrap());
        let told = Statistics::default().summary(&config.directions[0], &chain, OfDevices::default());
        assert_eq!((told.delay_asked_ns, told.loss_asked), (12_000_000, 0.75));
        assert_eq!(told.rate_asked_bits_per_s, Some(9_000_000));
    }

    #[test]
    fn order_is_judged_by_what_has_left_before() {
        let mut statistics = Statistics::default();
        for (ordinal, left_ns) in [(0, 1), (3, 2), (1, 3), (2, 4), (4, 5)] {
            statistics.leave(leaving(ordinal, left_ns, false));
        }
        statistics.leave(Leaving { copy: 1, ..leaving(2, 6, false) });
        assert_eq!(statistics.out_of_order, 2);
    }
}
