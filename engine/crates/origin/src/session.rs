//! What HTTP/1.1 and HTTP/2 have in common for the connection that carries them: octets of plaintext in, octets out.

use crate::answer::Plan;
use crate::context::{BATCH_OCTETS, Context, Fate};
use crate::h1::H1;
use crate::h2::H2;

/// The protocol that was agreed on.
pub enum Session {
    H1(Box<H1>),
    H2(Box<H2>),
}

impl Session {
    /// Takes plaintext in; `early` says that it came as 0-RTT data.
    #[inline]
    pub fn receive(&mut self, data: &[u8], early: bool, context: &mut Context<'_>) {
        match self {
            Self::H1(session) => session.receive(data, early, context),
            Self::H2(session) => session.receive(data, early, context),
        }
    }

    /// Makes up to about `limit` octets more of what is to be sent.
    #[inline]
    pub fn produce(&mut self, limit: usize, context: &mut Context<'_>) {
        match self {
            Self::H1(session) => session.produce(limit, context),
            Self::H2(session) => session.produce(limit, context),
        }
    }

    /// Whether [`Session::produce`] would make something now.
    #[inline]
    pub fn has_more(&self) -> bool {
        match self {
            Self::H1(session) => session.has_more(),
            Self::H2(session) => session.has_more(),
        }
    }

    /// Whether more input is welcome, with that many octets of output waiting for the socket.
    #[inline]
    pub fn can_receive(&self, output_octets: usize) -> bool {
        match self {
            Self::H1(session) => session.can_receive(),
            Self::H2(_) => output_octets < 8 * BATCH_OCTETS,
        }
    }

    /// Lets an answer go: `plan` from the relay, or the one whose delay has passed. False when nobody waits for it any more.
    pub fn release(&mut self, stream: u32, plan: Option<Plan>, context: &mut Context<'_>) -> bool {
        match self {
            Self::H1(session) => session.release(plan, context),
            Self::H2(session) => session.release(stream, plan, context),
        }
    }

    /// Whether the relay has yet to answer: nothing moves meanwhile, and yet the connection is not idle.
    pub fn is_relaying(&self) -> bool {
        match self {
            Self::H1(session) => session.is_relaying(),
            Self::H2(session) => session.is_relaying(),
        }
    }

    /// The peer sends no more; what was asked is still answered.
    pub fn end_of_input(&mut self) {
        match self {
            Self::H1(session) => session.end_of_input(),
            Self::H2(session) => session.end_of_input(),
        }
    }

    /// The server ends: no new requests.
    pub fn shut_down(&mut self, context: &mut Context<'_>) {
        match self {
            Self::H1(session) => session.shut_down(),
            Self::H2(session) => session.shut_down(context),
        }
    }

    /// What is to become of the connection.
    #[inline]
    pub fn fate(&self) -> Fate {
        match self {
            Self::H1(session) => session.fate(),
            Self::H2(session) => session.fate(),
        }
    }
}
