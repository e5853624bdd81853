//! `rate` with `discipline: codel`: a link of limited rate behind a queue managed by CoDel (RFC 8289).
//!
//! Which packet is dropped is decided when one is taken out of the queue, so this impairment holds packets and says
//! when it has to be asked again. Names of the variables are those of RFC 8289 section 5.

use std::collections::VecDeque;

use super::queue::Limit;
use super::serializer::Serializer;
use super::{ByKernel, Impair, Outcome, WirePacket};

/// RFC 8289 section 5.6, `maxpacket`: with no more than one full packet waiting the queue is good.
const MAX_PACKET_BYTES: u64 = 1514;

#[derive(Debug)]
pub struct Codel {
    link: Serializer,
    limit: Limit,
    target_ns: u64,
    interval_ns: u64,
    queue: VecDeque<WirePacket>,
    bytes: u64,
    peak_bytes: u64,
    first_above_time_ns: Option<u64>,
    drop_next_ns: u64,
    count: u64,
    lastcount: u64,
    dropping: bool,
}

impl Codel {
    #[must_use]
    pub fn new(bits_per_s: u64, limit: Limit, target_ns: u64, interval_ns: u64) -> Self {
        Codel {
            link: Serializer::new(bits_per_s),
            limit,
            target_ns,
            interval_ns,
            queue: VecDeque::new(),
            bytes: 0,
            peak_bytes: 0,
            first_above_time_ns: None,
            drop_next_ns: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
        }
    }

    /// RFC 8289 section 5.5.
    fn dequeue(&mut self, now_ns: u64, out: &mut impl FnMut(WirePacket, Outcome)) -> Option<WirePacket> {
        let (mut packet, mut ok_to_drop) = self.take(now_ns);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now_ns >= self.drop_next_ns {
                out(packet?, Outcome::QueueDropped);
                self.count += 1;
                (packet, ok_to_drop) = self.take(now_ns);
                if ok_to_drop {
                    self.drop_next_ns = self.control_law(self.drop_next_ns);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            out(packet?, Outcome::QueueDropped);
            (packet, _) = self.take(now_ns);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            let recently = now_ns.saturating_sub(self.drop_next_ns) < 16 * self.interval_ns;
            self.count = if delta > 1 && recently { delta } else { 1 };
            self.drop_next_ns = self.control_law(now_ns);
            self.lastcount = self.count;
        }
        packet
    }

    /// The packet at the head and whether it may be dropped: RFC 8289 section 5.6, `dodequeue`.
    fn take(&mut self, now_ns: u64) -> (Option<WirePacket>, bool) {
        let Some(packet) = self.queue.pop_front() else {
            self.first_above_time_ns = None;
            return (None, false);
        };
        self.bytes -= u64::from(packet.bytes);
        let sojourn_ns = now_ns - packet.at_ns;
        let mut ok_to_drop = false;
        if sojourn_ns < self.target_ns || self.bytes <= MAX_PACKET_BYTES {
            self.first_above_time_ns = None;
        } else {
            match self.first_above_time_ns {
                None => self.first_above_time_ns = Some(now_ns + self.interval_ns),
                Some(first_above_ns) => ok_to_drop = now_ns >= first_above_ns,
            }
        }
        (Some(packet), ok_to_drop)
    }

    /// RFC 8289 section 5.6.
    fn control_law(&self, from_ns: u64) -> u64 {
        from_ns + (self.interval_ns as f64 / (self.count as f64).sqrt()) as u64
    }
}

impl Impair for Codel {
    /// Puts the packet at the end of the queue; a full queue drops it.
    fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        if !self.limit.admits(self.bytes, self.queue.len(), packet.bytes) {
            return Outcome::QueueDropped;
        }
        self.bytes += u64::from(packet.bytes);
        self.peak_bytes = self.peak_bytes.max(self.bytes);
        self.queue.push_back(*packet);
        Outcome::Held
    }

    /// At once on an idle link, else when the packet before it has left.
    fn next_release_ns(&self) -> Option<u64> {
        self.queue.front().map(|packet| packet.at_ns.max(self.link.free_ns()))
    }

    fn release(&mut self, until_ns: u64, mut out: impl FnMut(WirePacket, Outcome)) {
        while let Some(now_ns) = self.next_release_ns().filter(|due_ns| *due_ns <= until_ns) {
            if let Some(mut packet) = self.dequeue(now_ns, &mut out) {
                self.link.send(&mut packet);
                out(packet, Outcome::Pass);
            }
        }
    }

    fn needs_order(&self) -> bool {
        true
    }

    fn needs_real_time(&self) -> bool {
        true
    }

    fn delays(&self) -> bool {
        true
    }

    fn rate_asked_bits_per_s(&self) -> Option<u64> {
        Some(self.link.bits_per_s())
    }

    fn queue_peak_bytes(&self) -> Option<u64> {
        Some(self.peak_bytes)
    }

    fn by_kernel(&self) -> Result<ByKernel, &'static str> {
        let codel = Some((self.target_ns, self.interval_ns));
        Ok(ByKernel::Rate { bits_per_s: self.link.bits_per_s(), limit: self.limit, codel })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::packets;
    use super::*;

    const MS: u64 = 1_000_000;

    /// Runs packets through and returns (ordinals that left with the time, ordinals dropped).
    fn run(codel: &mut Codel, arrivals: impl Iterator<Item = WirePacket>) -> (Vec<(u64, u64)>, Vec<u64>) {
        let (mut left, mut dropped) = (vec![], vec![]);
        let mut out = |packet: WirePacket, outcome| match outcome {
            Outcome::Pass => left.push((packet.identity.ordinal, packet.at_ns)),
            _ => dropped.push(packet.identity.ordinal),
        };
        let mut refused = vec![];
        for mut packet in arrivals {
            codel.release(packet.at_ns, &mut out);
            if codel.apply(&mut packet) == Outcome::QueueDropped {
                refused.push(packet.identity.ordinal);
            }
        }
        codel.release(u64::MAX, &mut out);
        dropped.extend(refused);
        (left, dropped)
    }

    #[test]
    fn below_its_rate_nothing_waits_and_nothing_is_dropped() {
        let mut codel = Codel::new(12_112_000, Limit::default(), 5 * MS, 100 * MS);
        let (left, dropped) = run(&mut codel, packets(1000, 2 * MS));
        assert!(dropped.is_empty());
        assert!(left.iter().all(|(n, at_ns)| *at_ns == 1_000_000_000 + n * 2 * MS + MS));
    }

    #[test]
    fn a_standing_queue_is_dropped_from_after_an_interval_with_growing_frequency() {
        let mut codel = Codel::new(12_112_000, Limit::default(), 5 * MS, 100 * MS);
        // 1 ms to send each, one every 0.9 ms: sojourn grows by 0.1 ms a packet.
        let (left, dropped) = run(&mut codel, packets(4000, 900_000));
        assert_eq!(left.len() + dropped.len(), 4000);
        // Sojourn passes 5 ms with packet 50, at about 50 ms; 100 ms later the first is dropped.
        assert!((140..160).contains(&dropped[0]), "first drop is packet {}", dropped[0]);
        let gaps: Vec<u64> = dropped.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // The control law: the second drop follows after interval / sqrt(1), the next after interval / sqrt(2), ...
        for (count, gap) in gaps.iter().take(8).enumerate() {
            let expected = 100.0 / ((count + 1) as f64).sqrt();
            assert!((*gap as f64 - expected).abs() <= 3.0, "drop {count}: {gap} packets, expected {expected}");
        }
    }

    #[test]
    fn a_full_queue_drops_at_the_tail() {
        let mut codel = Codel::new(12_112_000, Limit { bytes: None, packets: Some(4) }, 5 * MS, 100 * MS);
        let (left, dropped) = run(&mut codel, packets(10, 0));
        // One is on the link at once when the second arrives at the same time, so five are taken.
        assert_eq!(left.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(dropped, [5, 6, 7, 8, 9]);
        assert_eq!(codel.queue_peak_bytes(), Some(4 * 1514));
    }

    #[test]
    fn a_busy_link_sends_at_its_rate() {
        let mut codel = Codel::new(12_112_000, Limit::default(), 5 * MS, 100 * MS);
        let (left, _) = run(&mut codel, packets(2000, 100_000));
        assert!(left.windows(2).all(|pair| pair[1].1 - pair[0].1 == MS));
    }
}
