//! One connection that carries requests, whatever the protocol.
//!
//! A worker drives many sessions of one type from one epoll loop. A session never blocks, and allocates nothing for a
//! request. It asks the [`Caller`] for the next request to start and hands finished ones back. Times are read where the
//! octets are: after each receive (`first_byte`, `done`), before requests are built (`started`) and after each send
//! (`request_sent`).

pub mod caller;
pub mod content;
pub mod h1;
pub mod h2;
pub mod h3;
pub mod handshakes;
pub mod options;
#[cfg(test)]
pub(crate) mod testing;
mod transport;
pub mod transport_stats;

pub use transport::tls_config;

use std::os::fd::RawFd;

use trifecta_wire::epoll;

use crate::caller::{Caller, Exchange};
use crate::options::{FieldError, Options};
use trifecta_wire::ErrorClass;

/// A timeout that never comes.
pub const NEVER_NS: u64 = u64::MAX;

/// The `user-agent` of each request that has no other.
pub const USER_AGENT: &str = concat!("trifecta/", env!("CARGO_PKG_VERSION"));

/// Header fields of every request, the same in all protocols, besides method, target, scheme and authority: small, and in
/// lower case as HTTP/2 and HTTP/3 want it.
#[must_use]
pub fn request_fields(options: &Options) -> Vec<(&'static str, String)> {
    let agent = options.user_agent.as_deref().unwrap_or(USER_AGENT);
    let mut fields = vec![("user-agent", agent.to_owned())];
    // RFC 9110 8.6: a method that gives content a meaning names its length, 0 included.
    if options.method.has_content() {
        fields.push(("content-type", "application/octet-stream".to_owned()));
        fields.push(("content-length", options.request_body_bytes.to_string()));
    }
    fields
}

/// What became of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The transport or TLS handshake is going on.
    Opening,
    /// Requests can be carried.
    Open,
    /// No new requests are taken (GOAWAY, `Connection: close`); those in flight go on.
    Draining,
    /// Over. All its requests were handed back, its statistics too; the worker drops it. `failed`: it ended with an error,
    /// so that the next attempt in its place is held back a little.
    Closed { failed: bool },
}

/// A connection of one protocol.
pub trait Session: Sized {
    /// What all sessions of a worker share: configurations, cached request blocks, receive buffers.
    type Shared: Send;

    /// What the worker watches of the descriptor, once, at its opening. Both directions, reported at changes, unless a session
    /// says otherwise: so it has to receive until nothing is left (less than asked for, or EAGAIN), and on [`epoll::CLOSING`] to
    /// the end.
    const WATCHED: u32 = epoll::READABLE | epoll::WRITABLE | epoll::EDGE | libc::EPOLLRDHUP as u32;

    /// Makes what the sessions of one worker share.
    ///
    /// # Errors
    /// The field of the configuration that cannot be used.
    fn shared(options: &Options) -> Result<Self::Shared, FieldError>;

    /// Starts to connect. `request` is the one that this connection is made for (connection mode `new`); its `started_ns` is
    /// the time to give as `connect_start_ns`. Without it, requests are asked of the caller once the connection is open (it may
    /// have none then, as requests begin when all connections stand; [`Session::start_requests`] is called at that time).
    /// `connection` is its number for the sample rows.
    ///
    /// # Errors
    /// When there is not even a socket; the worker then records the failed attempt.
    fn open(
        shared: &mut Self::Shared,
        caller: &mut impl Caller,
        connection: u32,
        request: Option<Exchange>,
        now_ns: u64,
    ) -> Result<Self, ErrorClass>;

    /// The descriptor to watch for [`Session::WATCHED`]. It does not change, and is closed when the session is dropped.
    fn fd(&self) -> RawFd;

    /// The descriptor is ready for `flags` (of [`epoll`]). Receives, processes, starts new requests, sends.
    fn on_ready(&mut self, shared: &mut Self::Shared, caller: &mut impl Caller, flags: u32);

    /// Whether [`Session::receive_waiting`] is there to be asked.
    const WAITS_IN_RECEIVE: bool = false;

    /// Waits for octets in the receive itself, until a signal comes, and handles them, which saves a system call a request; asked
    /// of the only connection of a worker. False when it cannot, and has to be waited for by its descriptor.
    fn receive_waiting(&mut self, _: &mut Self::Shared, _: &mut impl Caller) -> bool {
        false
    }

    /// [`Session::next_timeout_ns`] has come.
    fn on_timer(&mut self, shared: &mut Self::Shared, caller: &mut impl Caller, now_ns: u64);

    /// When [`Session::on_timer`] is to be called at the latest, or [`NEVER_NS`]: connect and request time limits and the
    /// protocol's own timers. May be earlier than needed. Asked after every other call.
    fn next_timeout_ns(&self) -> u64;

    /// How many requests could be started now. 0 unless [`State::Open`].
    fn free_slots(&self) -> u32;

    /// Asks the caller for requests while there are free slots, and sends them.
    fn start_requests(&mut self, shared: &mut Self::Shared, caller: &mut impl Caller);

    /// What became of the connection.
    fn state(&self) -> State;

    /// Ends the connection now, in the orderly way of its protocol as far as that needs no waiting. Requests in flight are
    /// handed back with `error`. The state is [`State::Closed`] afterwards.
    fn close(&mut self, shared: &mut Self::Shared, caller: &mut impl Caller, error: ErrorClass);
}
