//! Impairments: what may happen to a wire packet on its way. One file each; a new one is a file and a line in the table
//! at the end of this one.
//!
//! An impairment works in virtual time: it is given the time at which a packet reaches it and moves that time on, so a
//! link that wakes up late still computes the schedule that was asked for.

use schemars::JsonSchema;
use serde_json::Value;

use crate::place::{ConfigError, Place};
use crate::random::Identity;

pub mod queue;
pub mod serializer;

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

/// What the kernel's netem, and what may stand behind it, does instead of an impairment.
#[derive(Clone, Debug, PartialEq)]
pub enum ByKernel {
    Delay {
        delay_ns: u64,
    },
    /// On top of the delay; `distribution` in the words of tc-netem(8).
    Jitter {
        jitter_ns: u64,
        distribution: &'static str,
    },
    /// In the words of tc-netem(8).
    Loss(String),
    /// `codel`: its target and interval.
    Rate {
        bits_per_s: u64,
        limit: queue::Limit,
        codel: Option<(u64, u64)>,
    },
}

/// What an impairment does, and what the chain, the configuration and the summary ask of it.
pub trait Impair {
    /// Takes a packet that reaches the impairment at `packet.at_ns`.
    fn apply(&mut self, packet: &mut WirePacket) -> Outcome;

    /// When the next packet it holds comes out.
    fn next_release_ns(&self) -> Option<u64> {
        None
    }

    /// Gives out the packets it holds whose time has come by `until_ns`, the dropped ones with `QueueDropped`.
    fn release(&mut self, _until_ns: u64, _out: impl FnMut(WirePacket, Outcome)) {}

    /// Whether packets may leave in another order than they came.
    fn breaks_order(&self) -> bool {
        false
    }

    /// Whether the outcome depends on the order in which packets come.
    fn needs_order(&self) -> bool {
        false
    }

    /// Whether it may only be given packets when their time has come.
    fn needs_real_time(&self) -> bool {
        false
    }

    /// Whether packets leave it later than they came.
    fn delays(&self) -> bool {
        false
    }

    /// Whether a later impairment may take back some of its delay.
    fn can_be_overtaken(&self) -> bool {
        false
    }

    /// Whether the packets it hits are sent ahead of others, for which it needs a delay before it.
    fn overtakes(&self) -> bool {
        false
    }

    /// The least time from arrival that a packet behind it has surely spent, when that is `before_ns` before it.
    fn least_ns(&self, before_ns: u64) -> u64 {
        before_ns
    }

    /// The constant delay asked for.
    fn delay_asked_ns(&self) -> u64 {
        0
    }

    /// Share of the `met` packets it met that it was asked to lose.
    fn loss_asked(&self, _met: u64) -> f64 {
        0.0
    }

    /// The rate asked for, of those that limit it.
    fn rate_asked_bits_per_s(&self) -> Option<u64> {
        None
    }

    /// Largest backlog so far in octets, of those with a queue.
    fn queue_peak_bytes(&self) -> Option<u64> {
        None
    }

    /// Packets whose delay would have been negative and was cut to none.
    fn clamped(&self) -> u64 {
        0
    }

    /// What the kernel does instead.
    ///
    /// # Errors
    /// Why it does not, or not so that anybody could tell.
    fn by_kernel(&self) -> Result<ByKernel, &'static str> {
        Err("is not done by netem, or not counted; use the engine's own link")
    }
}

/// The answer of whichever impairment this is; a `match`, since `apply` is asked for every packet.
macro_rules! of_whichever {
    ($impairment:expr, [$($Type:ident)*], $it:ident => $answer:expr) => {
        match $impairment { $(Impairment::$Type($it) => $answer,)* }
    };
}

/// Makes all that is known of impairments from a line for each kind: its module, which has its `Fields` and `build`, and
/// the type that is built. What it may build besides follows after `or`.
macro_rules! impairments {
    ($($kind:ident => $Type:ident $(or $other:ident => $Other:ident)*,)*) => {
        $(pub mod $kind; $(pub mod $other;)*)*

        /// One impairment and its state.
        #[derive(Debug)]
        pub enum Impairment {
            $($Type($kind::$Type), $($Other($other::$Other),)*)*
        }

        /// An impairment as a document has it; for the schema, since messages about its fields name their place in the list.
        #[derive(JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        #[allow(dead_code, reason = "only its schema is wanted")]
        pub(crate) enum Form {
            $($Type($kind::Fields),)*
        }

        /// The kinds, for messages.
        pub(crate) const KINDS: &[&str] = &[$(stringify!($kind)),*];

        /// Checks the fields of an impairment and builds it.
        pub(crate) fn build(kind: &str, document: &Value, place: Place<'_>) -> Result<Impairment, ConfigError> {
            match kind {
                $(stringify!($kind) => $kind::build(place.read(kind, document)?, place),)*
                other => {
                    let message = format!("unknown '{other}'; use one of {}", KINDS.join(", "));
                    Err(place.wrong_in("kind", message))
                }
            }
        }

        impairments! { @dispatch [$($Type $($Other)*)*] }
    };
    (@dispatch $types:tt) => {
        impl Impair for Impairment {
            fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
                of_whichever!(self, $types, it => it.apply(packet))
            }

            fn next_release_ns(&self) -> Option<u64> {
                of_whichever!(self, $types, it => it.next_release_ns())
            }

            fn release(&mut self, until_ns: u64, out: impl FnMut(WirePacket, Outcome)) {
                of_whichever!(self, $types, it => it.release(until_ns, out))
            }

            fn breaks_order(&self) -> bool {
                of_whichever!(self, $types, it => it.breaks_order())
            }

            fn needs_order(&self) -> bool {
                of_whichever!(self, $types, it => it.needs_order())
            }

            fn needs_real_time(&self) -> bool {
                of_whichever!(self, $types, it => it.needs_real_time())
            }

            fn delays(&self) -> bool {
                of_whichever!(self, $types, it => it.delays())
            }

            fn can_be_overtaken(&self) -> bool {
                of_whichever!(self, $types, it => it.can_be_overtaken())
            }

            fn overtakes(&self) -> bool {
                of_whichever!(self, $types, it => it.overtakes())
            }

            fn least_ns(&self, before_ns: u64) -> u64 {
                of_whichever!(self, $types, it => it.least_ns(before_ns))
            }

            fn delay_asked_ns(&self) -> u64 {
                of_whichever!(self, $types, it => it.delay_asked_ns())
            }

            fn loss_asked(&self, met: u64) -> f64 {
                of_whichever!(self, $types, it => it.loss_asked(met))
            }

            fn rate_asked_bits_per_s(&self) -> Option<u64> {
                of_whichever!(self, $types, it => it.rate_asked_bits_per_s())
            }

            fn queue_peak_bytes(&self) -> Option<u64> {
                of_whichever!(self, $types, it => it.queue_peak_bytes())
            }

            fn clamped(&self) -> u64 {
                of_whichever!(self, $types, it => it.clamped())
            }

            fn by_kernel(&self) -> Result<ByKernel, &'static str> {
                of_whichever!(self, $types, it => it.by_kernel())
            }
        }
    };
}

// The table.
impairments! {
    delay => Delay,
    jitter => Jitter,
    loss => Loss,
    gilbert_elliott => GilbertElliott,
    loss_schedule => LossSchedule,
    corrupt => Corrupt,
    duplicate => Duplicate,
    reorder => Reorder,
    rate => Rate or codel => Codel,
    trace => Trace,
}
