//! What HTTP/1.1 and HTTP/2 work with on the connection that carries them.

use crate::answer::Relayed;
use crate::handler::Handler;
use crate::relay::Ticket;
use crate::stats::Stats;
use std::collections::VecDeque;

/// Plaintext that is made before it is encrypted and sent; a batch ends when it is reached.
pub const BATCH_OCTETS: usize = 128 * 1024;
/// Content up to this is copied behind its head at once, more is produced in batches as the socket takes it.
pub const INLINE_OCTETS: u64 = 32 * 1024;

/// What a session works with; all but the first three is scratch that a worker's connections share.
pub struct Context<'w> {
    pub handler: &'w mut Handler,
    pub stats: &'w mut Stats,
    pub delays: &'w mut DelayQueue,
    /// Plaintext for the peer.
    pub plain: &'w mut Vec<u8>,
    pub scratch: &'w mut Vec<u8>,
    /// Names the connection in `delays`.
    pub token: u64,
    /// When the worker woke up, on the engine's clock.
    pub now_ns: u64,
}

impl Context<'_> {
    /// A request for the relay has come in whole.
    pub fn submit(&mut self, stream: u32, relayed: Relayed, content: Vec<u8>) {
        self.handler.submit(Ticket::Tcp { token: self.token, stream }, relayed, content);
    }
}

/// An answer that waits (`delay_ns`).
#[derive(Clone, Copy, Debug)]
pub struct Delayed {
    pub due_ns: u64,
    pub token: u64,
    /// The stream, 0 in HTTP/1.1.
    pub stream: u32,
}

/// Answers that wait; since all wait equally long, the first to come is the first to go.
pub type DelayQueue = VecDeque<Delayed>;

/// What is to become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Open,
    /// To be closed in good order when all is sent.
    Close,
    /// To be closed without a word when all is sent (a fault that was asked for).
    Drop,
}
