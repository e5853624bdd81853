//! Impairments: what may happen to a wire packet on its way. One file each; a new one is a file, a kind in
//! `Impairment` and a line in `config.rs`.
//!
//! An impairment works in virtual time: it is given the time at which a packet reaches it and moves that time on, so a
//! link that wakes up late still computes the schedule that was asked for.

use crate::random::Identity;

pub mod codel;
pub mod corrupt;
pub mod delay;
pub mod duplicate;
pub mod gilbert_elliott;
pub mod jitter;
pub mod loss;
pub mod loss_schedule;
pub mod queue;
pub mod rate;
pub mod reorder;
pub mod trace;

#[cfg(test)]
pub mod testing;

/// A wire packet on its way through the impairments of a direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WirePacket {
    pub identity: Identity,
    /// Ethernet frame without FCS, in octets.
    pub bytes: u32,
    /// When it reaches the next impairment, or leaves after the last one.
    pub at_ns: u64,
    /// It cannot be sent ahead of this time: it arrived then, or left the last queue then.
    pub floor_ns: u64,
    /// It followed the packet before it without a pause on the last link of limited rate.
    pub back_to_back: bool,
    /// Where the octets are; of no concern to impairments.
    pub frame: u32,
    pub segment: u32,
    pub corrupted: bool,
}

/// What an impairment does to a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// It goes on, perhaps later.
    Pass,
    /// It goes on, and the impairment did to it what it is for, other than delaying it.
    Marked,
    Lost,
    QueueDropped,
    /// It goes on with the bit flipped that this number chooses.
    Corrupted(u64),
    /// It goes on, and so does a copy.
    Duplicated,
    /// The impairment keeps it until a later `release`.
    Held,
}

/// One impairment and its state.
#[derive(Debug)]
pub enum Impairment {
    Delay(delay::Delay),
    Jitter(jitter::Jitter),
    Loss(loss::Loss),
    GilbertElliott(gilbert_elliott::GilbertElliott),
    LossSchedule(loss_schedule::LossSchedule),
    Corrupt(corrupt::Corrupt),
    Duplicate(duplicate::Duplicate),
    Reorder(reorder::Reorder),
    Rate(rate::Rate),
    Codel(codel::Codel),
    Trace(trace::Trace),
}

impl Impairment {
    /// Takes a packet that reaches the impairment at `packet.at_ns`.
    pub fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        match self {
            Impairment::Delay(delay) => delay.apply(packet),
            Impairment::Jitter(jitter) => jitter.apply(packet),
            Impairment::Loss(loss) => loss.apply(packet),
            Impairment::GilbertElliott(loss) => loss.apply(packet),
            Impairment::LossSchedule(loss) => loss.apply(packet),
            Impairment::Corrupt(corrupt) => corrupt.apply(packet),
            Impairment::Duplicate(duplicate) => duplicate.apply(packet),
            Impairment::Reorder(reorder) => reorder.apply(packet),
            Impairment::Rate(rate) => rate.apply(packet),
            Impairment::Codel(codel) => codel.apply(packet),
            Impairment::Trace(trace) => trace.apply(packet),
        }
    }

    /// Whether packets may leave in another order than they came.
    #[must_use]
    pub fn breaks_order(&self) -> bool {
        match self {
            Impairment::Jitter(jitter) => jitter.breaks_order(),
            Impairment::Reorder(_) => true,
            _ => false,
        }
    }

    /// Whether the outcome depends on the order in which packets come.
    #[must_use]
    pub fn needs_order(&self) -> bool {
        matches!(
            self,
            Impairment::GilbertElliott(_) | Impairment::Rate(_) | Impairment::Codel(_) | Impairment::Trace(_)
        ) || matches!(self, Impairment::Jitter(jitter) if !jitter.breaks_order())
    }

    /// Whether it may only be given packets when their time has come.
    #[must_use]
    pub fn needs_real_time(&self) -> bool {
        matches!(self, Impairment::Codel(_))
    }

    /// Whether packets leave it later than they came.
    #[must_use]
    pub fn delays(&self) -> bool {
        matches!(
            self,
            Impairment::Delay(_)
                | Impairment::Jitter(_)
                | Impairment::Rate(_)
                | Impairment::Codel(_)
                | Impairment::Trace(_)
        )
    }

    /// Largest backlog so far in octets, for impairments with a queue.
    #[must_use]
    pub fn queue_peak_bytes(&self) -> Option<u64> {
        match self {
            Impairment::Rate(rate) => Some(rate.queue_peak_bytes()),
            Impairment::Codel(codel) => Some(codel.queue_peak_bytes()),
            Impairment::Trace(trace) => Some(trace.queue_peak_bytes()),
            _ => None,
        }
    }

    /// Packets whose delay would have been negative and was cut to none.
    #[must_use]
    pub fn clamped(&self) -> u64 {
        if let Impairment::Jitter(jitter) = self { jitter.clamped() } else { 0 }
    }
}
