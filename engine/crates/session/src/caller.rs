//! Who a session works for: what it asks of its caller, and what it tells.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use crate::handshakes::Handshakes;
use crate::options::Method;
use crate::transport_stats::{QuicStats, TcpStats};
use trifecta_wire::ErrorClass;

/// A request in flight. Times are on CLOCK_MONOTONIC; 0: did not happen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exchange {
    /// The caller's number for it (in a run of the load generator: its ordinal).
    pub request: u64,
    /// The caller's number for who asks; each has one request in flight at most.
    pub client: u32,
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

/// A request that differs from the one the options describe.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// Path and query. With HTTP/2 the whole head has to fit into a frame of 16 KiB, so callers keep it short.
    pub path: Arc<str>,
    /// Fields besides `user-agent` and `content-length`, names in lower case.
    pub fields: Vec<(&'static str, Cow<'static, str>)>,
    /// Sent with POST, PUT and PATCH only.
    pub content: Bytes,
}

impl Request {
    /// Octets of content that are sent.
    #[must_use]
    pub fn content_octets(&self) -> u64 {
        if self.method.has_content() { self.content.len() as u64 } else { 0 }
    }

    /// Calls `field` with each header field, in order; pseudo-fields are the session's.
    pub fn for_each_field(&self, mut field: impl FnMut(&str, &str)) {
        field("user-agent", crate::USER_AGENT);
        for (name, value) in &self.fields {
            field(name, value);
        }
        // RFC 9110 8.6: a method that gives content a meaning names its length, 0 included.
        if self.method.has_content() {
            field("content-length", &self.content.len().to_string());
        }
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
    pub handshakes: Handshakes,
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
        self.handshakes.merge(&other.handshakes);
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

    /// The request to send for `exchange`, when it is not the one of the options. Asked when it is about to be written; twice
    /// when 0-RTT was refused. [`Exchange::to_head`] has to agree with it.
    fn request(&mut self, _exchange: &Exchange) -> Option<Request> {
        None
    }

    /// Whether the fields of the final response are to be handed to [`Caller::field`].
    fn wants_fields(&self, _exchange: &Exchange) -> bool {
        false
    }

    /// A field of the final response, in order; its name in any case with HTTP/1.1.
    fn field(&mut self, _exchange: &Exchange, _name: &[u8], _value: &[u8]) {}

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
