//! Who a session works for: what it asks of its caller, and what it tells.

use crate::error::ErrorClass;
use crate::transport_stats::{QuicStats, TcpStats};

/// A request in flight. Times are on CLOCK_MONOTONIC; 0: did not happen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exchange {
    /// The caller's number for it (in a run of the load generator: its ordinal).
    pub request: u64,
    pub warmup: bool,
    /// Asked with HEAD: a response has no content, whatever length it names (RFC 9110 9.3.2).
    pub to_head: bool,
    /// Whether its row carries the connect times (the first request of a connection). Set by [`Handshake::bind`].
    pub first_on_connection: bool,
    /// Sent as 0-RTT data that the server accepted.
    pub zero_rtt: bool,
    /// When an open loop wanted it to start.
    pub intended_ns: u64,
    pub started_ns: u64,
    pub request_sent_ns: u64,
    pub first_byte_ns: u64,
    /// Status code of the final response; 0 before it came.
    pub status: u16,
    /// Whether a content octet was not what it should be.
    pub wrong_content: bool,
    pub bytes_out: u64,
    pub bytes_in: u64,
    /// Octets of the response's header section as it was on the wire (compressed with HTTP/2 and HTTP/3).
    pub header_bytes_in: u64,
}

impl Exchange {
    /// Takes content octets of the response: the caller sees them, then they are counted.
    #[inline]
    pub fn content(&mut self, caller: &mut impl Caller, octets: &[u8]) {
        caller.content(self, octets);
        self.bytes_in += octets.len() as u64;
    }
}

/// What a connection's rows say of its establishment. Times in ns; 0: did not happen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handshake {
    pub connection: u32,
    pub connect_start_ns: u64,
    /// Stays 0 with QUIC.
    pub tcp_connected_ns: u64,
    pub secured_ns: u64,
    /// The negotiated protocol: `h1`, `h2`, `h3`.
    pub protocol: Option<&'static str>,
    pub tls_version: Option<&'static str>,
    pub cipher: Option<&'static str>,
    pub resumed: bool,
    /// A request already carries the connect times.
    pub bound: bool,
}

impl Handshake {
    /// Marks the first request of the connection.
    #[inline]
    pub fn bind(&mut self, exchange: &mut Exchange) {
        exchange.first_on_connection = !self.bound;
        self.bound = true;
    }
}

/// What the sessions of one caller add up.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Connections whose handshake was completed.
    pub connections_opened: u64,
    /// Connections that broke while no request was in flight: no row says so.
    pub connections_lost_idle: u64,
    /// Octets given to and taken from the kernel, encrypted.
    pub wire_bytes_out: u64,
    pub wire_bytes_in: u64,
    /// Datagrams that the kernel dropped for want of receive buffer (SO_RXQ_OVFL), and receive errors.
    pub udp_receive_errors: u64,
    /// Name of the key exchange group of the last handshake.
    pub key_exchange: Option<&'static str>,
    pub tcp: TcpStats,
    pub quic: QuicStats,
}

impl Totals {
    /// Adds what another worker's sessions saw.
    pub fn merge(&mut self, other: &Self) {
        self.connections_opened += other.connections_opened;
        self.connections_lost_idle += other.connections_lost_idle;
        self.wire_bytes_out += other.wire_bytes_out;
        self.wire_bytes_in += other.wire_bytes_in;
        self.udp_receive_errors += other.udp_receive_errors;
        self.key_exchange = self.key_exchange.or(other.key_exchange);
        self.tcp.merge(&other.tcp);
        self.quic.merge(&other.quic);
    }
}

/// Who gives a session its requests and takes them back.
pub trait Caller {
    /// Where the session adds what it saw.
    fn totals(&mut self) -> &mut Totals;

    /// The next request, if one may start at `now_ns`; it is in flight from now on, and is handed back by
    /// [`Caller::finish`].
    fn next_request(&mut self, now_ns: u64) -> Option<Exchange>;

    /// Content octets of a response, in order, before they are counted in `exchange.bytes_in`.
    fn content(&mut self, exchange: &mut Exchange, octets: &[u8]);

    /// Takes a request back. `done_ns`: when the last octet of its response came, 0 when it did not.
    fn finish(
        &mut self,
        exchange: &Exchange,
        handshake: &Handshake,
        stream: Option<u64>,
        done_ns: u64,
        error: Option<ErrorClass>,
    );

    /// A connection that no request was bound to could not be opened.
    fn fail_attempt(&mut self, handshake: &Handshake, now_ns: u64, error: ErrorClass);
}
