//! The impairments of one direction, in the order they act.

use crate::impair::{Impair, Impairment, Outcome, WirePacket};

/// Why a packet went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    Lost,
    Queue,
}

/// What becomes of packets: the clockwork, or a test.
pub trait Sink {
    /// The packet leaves at `packet.at_ns`.
    fn depart(&mut self, packet: WirePacket);
    fn drop(&mut self, packet: WirePacket, why: Dropped);
    /// The packet has to be given back to `Chain::advance` at `packet.at_ns`, for impairment `stage`.
    fn defer(&mut self, packet: WirePacket, stage: usize);
    /// `Chain::release` has to be called for impairment `stage` at `at_ns`.
    fn wake(&mut self, stage: usize, at_ns: u64);
    /// A second packet with the same octets is on its way.
    fn duplicate(&mut self, packet: &WirePacket);
    /// Flips the bit; false when the packet has none to flip.
    fn corrupt(&mut self, packet: &mut WirePacket, random: u64) -> bool;
}

/// How many packets an impairment met, and how many it did its work on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub met: u64,
    pub hit: u64,
}

#[derive(Debug)]
struct Stage {
    impairment: Impairment,
    tally: Tally,
    /// Packets may come out of order, or must not come early: give it one only when its time has come.
    deferred: bool,
    /// When a `wake` is already on its way.
    wake_ns: Option<u64>,
}

/// One direction's impairments.
#[derive(Debug)]
pub struct Chain {
    stages: Vec<Stage>,
}

impl Chain {
    #[must_use]
    pub fn new(impairments: Vec<Impairment>) -> Self {
        let (mut out_of_order, mut late) = (false, false);
        let stage = |impairment: Impairment| {
            let deferred = impairment.needs_order() && out_of_order || impairment.needs_real_time() && late;
            // What was given back in time comes out in order.
            out_of_order = out_of_order && !deferred || impairment.breaks_order();
            late = late && !deferred || impairment.delays();
            Stage { impairment, tally: Tally::default(), deferred, wake_ns: None }
        };
        Chain { stages: impairments.into_iter().map(stage).collect() }
    }

    /// Whether packets may overtake each other.
    #[must_use]
    pub fn breaks_order(&self) -> bool {
        self.stages.iter().any(|stage| stage.impairment.breaks_order())
    }

    /// The impairments with what they did so far.
    pub fn stages(&self) -> impl Iterator<Item = (&Impairment, Tally)> {
        self.stages.iter().map(|stage| (&stage.impairment, stage.tally))
    }

    /// A time that a packet surely spends here, so that it need not be looked at sooner.
    #[must_use]
    pub fn least_delay_ns(&self) -> u64 {
        let mut least_ns = 0u64;
        for stage in &self.stages {
            // What comes after depends on when it is looked at.
            if stage.deferred || stage.impairment.needs_real_time() {
                break;
            }
            least_ns = stage.impairment.least_ns(least_ns);
        }
        least_ns
    }

    /// Takes a packet that arrives.
    pub fn admit(&mut self, packet: WirePacket, sink: &mut impl Sink) {
        self.run(packet, 0, false, sink);
    }

    /// Takes back a packet given to `Sink::defer`.
    pub fn advance(&mut self, packet: WirePacket, stage: usize, sink: &mut impl Sink) {
        self.run(packet, stage, true, sink);
    }

    /// Lets impairment `stage` give out what it holds, as asked for by `Sink::wake`.
    pub fn release(&mut self, stage: usize, until_ns: u64, sink: &mut impl Sink) {
        let mut released = Vec::new();
        let Stage { impairment, wake_ns, .. } = &mut self.stages[stage];
        impairment.release(until_ns, |packet, outcome| released.push((packet, outcome)));
        *wake_ns = None;
        for (packet, outcome) in released {
            if outcome == Outcome::Pass {
                self.run(packet, stage + 1, false, sink);
            } else {
                self.stages[stage].tally.hit += 1;
                sink.drop(packet, Dropped::Queue);
            }
        }
        self.ask_for_wake(stage, sink);
    }

    fn ask_for_wake(&mut self, stage: usize, sink: &mut impl Sink) {
        let Stage { impairment, wake_ns, .. } = &mut self.stages[stage];
        let sooner = |due_ns: &u64| wake_ns.is_none_or(|asked| *due_ns < asked);
        if let Some(due_ns) = impairment.next_release_ns().filter(sooner) {
            *wake_ns = Some(due_ns);
            sink.wake(stage, due_ns);
        }
    }

    fn run(&mut self, mut packet: WirePacket, from: usize, due: bool, sink: &mut impl Sink) {
        for index in from..self.stages.len() {
            let stage = &mut self.stages[index];
            if stage.deferred && !(due && index == from) {
                return sink.defer(packet, index);
            }
            stage.tally.met += 1;
            let outcome = stage.impairment.apply(&mut packet);
            if outcome == Outcome::Pass {
                continue;
            }
            stage.tally.hit += 1;
            match outcome {
                Outcome::Lost => return sink.drop(packet, Dropped::Lost),
                Outcome::QueueDropped => return sink.drop(packet, Dropped::Queue),
                Outcome::Corrupted(random) => {
                    if !sink.corrupt(&mut packet, random) {
                        stage.tally.hit -= 1;
                    }
                }
                Outcome::Duplicated => {
                    sink.duplicate(&packet);
                    let mut copy = packet;
                    copy.identity.copy = copy.identity.copy.saturating_add(1);
                    // The original first: the copy follows it.
                    self.run(packet, index + 1, false, sink);
                    packet = copy;
                }
                Outcome::Held => {
                    stage.tally.hit -= 1;
                    return self.ask_for_wake(index, sink);
                }
                Outcome::Pass | Outcome::Marked => {}
            }
        }
        sink.depart(packet);
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
