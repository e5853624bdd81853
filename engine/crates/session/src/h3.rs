//! HTTP/3 over QUIC: quinn-proto, which does no I/O, driven over one connected UDP socket a connection.
//!
//! A receive call takes what has arrived, as trains of datagrams; then responses are read, requests are begun and all
//! that results leaves in as few sends as there are trains. Dynamic QPACK tables are off, the request block is cached.

mod flight;
mod requests;
mod responses;
mod shared;
mod transport;

use std::collections::VecDeque;
use std::os::fd::RawFd;

use quinn_proto::{Connection, ConnectionHandle, Endpoint, Event, StreamEvent, StreamId};
use trifecta_wire::clock::now_ns;
use trifecta_wire::epoll;
use trifecta_wire::h3::{Code, ControlPlane, Role};
use trifecta_wire::quic;
use trifecta_wire::udp::UdpSocket;

use crate::caller::{Caller, Exchange, Handshake};
use crate::handshakes::Arrivals;
use crate::options::{FieldError, Options};
use crate::{NEVER_NS, Session, State};
use trifecta_wire::ErrorClass;

use flight::Flights;
pub use shared::H3Shared;
use transport::BlockedSend;

/// A connection that carries requests over HTTP/3.
pub struct H3Session {
    socket: UdpSocket,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    control: ControlPlane,
    handshake: Handshake,
    arrivals: Arrivals,
    state: State,
    flights: Flights,
    /// Requests that were taken from the caller and wait for a stream: the one this connection was made for, until it is
    /// open, and those that a refusal of 0-RTT threw back.
    waiting: VecDeque<Exchange>,
    /// A stream that is open and unused: while there is one, another request can be begun.
    spare: Option<StreamId>,
    /// Made for one request (connection mode `new`).
    single: bool,
    max_in_flight: u32,
    /// Requests go out as 0-RTT data, before the handshake is complete.
    early: bool,
    /// Streams whose requests were written since the last send.
    unsent: Vec<StreamId>,
    blocked: BlockedSend,
    connect_deadline_ns: u64,
    /// Not later than the first time limit of a request in flight.
    request_deadline_ns: u64,
    request_timeout_ns: u64,
    protocol_timer_ns: u64,
    /// Until when a connection that has served its purpose waits for session tickets.
    linger_deadline_ns: u64,
}

/// Longest wait for session tickets after a response that outran the handshake.
const LINGER_NS: u64 = 1_000_000_000;

impl Session for H3Session {
    type Shared = H3Shared;

    /// A UDP socket becomes writable anew whenever a datagram has left it, which would wake the worker once for each send.
    /// It hardly ever refuses one; then a timer tries again.
    const WATCHED: u32 = epoll::READABLE | epoll::EDGE;

    fn shared(options: &Options) -> Result<H3Shared, FieldError> {
        H3Shared::new(options)
    }

    fn open(
        shared: &mut H3Shared,
        caller: &mut impl Caller,
        connection: u32,
        request: Option<Exchange>,
        now_ns: u64,
    ) -> Result<Self, ErrorClass> {
        let socket =
            UdpSocket::connect(shared.peer, &shared.socket).map_err(|error| ErrorClass::from_io(&error, true))?;
        let (endpoint, handle, quic) = shared.connect(connection, now_ns)?;
        let connect_start_ns = request.map_or(now_ns, |exchange| exchange.started_ns);
        caller.totals().quic.congestion_control.get_or_insert_with(|| shared.congestion_control.clone());
        caller.totals().quic.adaptations.get_or_insert(shared.adaptations);
        caller.totals().quic.initial_window_bytes.get_or_insert(quic.congestion_state().initial_window());
        let mut session = Self {
            socket,
            endpoint,
            handle,
            connection: quic,
            control: ControlPlane::new(Role::Client),
            handshake: Handshake { connection, connect_start_ns, ..Handshake::default() },
            arrivals: Arrivals::default(),
            state: State::Opening,
            flights: Flights::new(shared.streams),
            waiting: VecDeque::new(),
            spare: None,
            single: !shared.reused,
            max_in_flight: shared.streams,
            early: false,
            unsent: Vec::new(),
            blocked: BlockedSend::default(),
            connect_deadline_ns: connect_start_ns + shared.connect_timeout_ns,
            request_deadline_ns: NEVER_NS,
            request_timeout_ns: shared.request_timeout_ns,
            protocol_timer_ns: NEVER_NS,
            linger_deadline_ns: NEVER_NS,
        };
        if let Some(mut exchange) = request {
            session.handshake.bind(&mut exchange);
            session.waiting.push_back(exchange);
        }
        if shared.zero_rtt && session.connection.has_0rtt() {
            session.early = true;
            session.state = State::Open;
            session.open_control_stream(shared);
            session.begin_requests(shared, caller);
        }
        session.flush(shared, caller, now_ns);
        session.refresh_timer(shared);
        Ok(session)
    }

    fn fd(&self) -> RawFd {
        self.socket.raw_fd()
    }

    fn on_ready(&mut self, shared: &mut H3Shared, caller: &mut impl Caller, flags: u32) {
        if flags & (epoll::READABLE | epoll::CLOSING) != 0 {
            loop {
                let more = match self.receive(shared) {
                    Ok((more, received_ns)) => {
                        self.process(shared, caller, received_ns);
                        more
                    }
                    Err(error) => {
                        let opening = self.state == State::Opening || !self.secured();
                        self.fail(caller, ErrorClass::from_io(&error, opening));
                        false
                    }
                };
                self.advance(shared, caller);
                if !more || self.is_closed() {
                    break;
                }
            }
        }
    }

    fn on_timer(&mut self, shared: &mut H3Shared, caller: &mut impl Caller, now_ns: u64) {
        if !self.secured() && now_ns >= self.connect_deadline_ns {
            self.abandon(shared, Code::NoError);
            self.fail(caller, ErrorClass::ConnectTimeout);
            return;
        }
        if now_ns >= self.linger_deadline_ns {
            shared.tickets_come = false;
        }
        if now_ns >= self.request_deadline_ns {
            self.expire_requests(caller, now_ns);
        }
        if now_ns >= self.protocol_timer_ns {
            self.connection.handle_timeout(shared.clock.instant(now_ns));
            self.process(shared, caller, now_ns);
        }
        self.advance(shared, caller);
    }

    fn next_timeout_ns(&self) -> u64 {
        let connect = if self.secured() { NEVER_NS } else { self.connect_deadline_ns };
        connect
            .min(self.request_deadline_ns)
            .min(self.protocol_timer_ns)
            .min(self.linger_deadline_ns)
            .min(self.blocked.retry_ns())
    }

    fn free_slots(&self) -> u32 {
        if self.state != State::Open || self.single || self.spare.is_none() {
            return 0;
        }
        self.max_in_flight.saturating_sub(self.flights.len())
    }

    fn start_requests(&mut self, shared: &mut H3Shared, caller: &mut impl Caller) {
        if self.begin_requests(shared, caller) {
            self.flush(shared, caller, now_ns());
            self.refresh_timer(shared);
        }
    }

    fn state(&self) -> State {
        self.state
    }

    fn close(&mut self, shared: &mut H3Shared, caller: &mut impl Caller, error: ErrorClass) {
        if self.is_closed() {
            return;
        }
        self.abandon(shared, Code::NoError);
        self.hand_back_all(caller, error);
        self.retire(caller, false);
    }
}

impl H3Session {
    fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. })
    }

    /// Whether the handshake is complete.
    fn secured(&self) -> bool {
        self.handshake.secured_ns != 0
    }

    /// Begins what is due, sends, and sees whether the connection has served its purpose.
    fn advance(&mut self, shared: &mut H3Shared, caller: &mut impl Caller) {
        if self.is_closed() {
            return;
        }
        self.begin_requests(shared, caller);
        let idle = self.flights.is_empty() && self.waiting.is_empty();
        let finished = idle && (self.single && self.secured() || self.state == State::Draining);
        if finished && !self.lingers(shared) {
            // What was written is acknowledged by nothing more than the response; nothing is left to wait for.
            self.abandon(shared, Code::NoError);
            self.retire(caller, false);
            return;
        }
        self.flush(shared, caller, now_ns());
        if !self.is_closed() {
            self.refresh_timer(shared);
        }
    }

    /// Whether to wait for session tickets before closing. A server sends them when it has the client's Finished, and the
    /// answer to a request in 0-RTT is there before that: closing at once would leave no ticket for the next connection, and
    /// every third or so would go without 0-RTT. The wait is outside of what any row measures.
    fn lingers(&mut self, shared: &H3Shared) -> bool {
        if !shared.zero_rtt || !shared.tickets_come || self.state == State::Opening {
            return false;
        }
        if quic::Handshake::of(&self.connection).is_none_or(|agreed| agreed.has_tickets) {
            return false;
        }
        if self.linger_deadline_ns == NEVER_NS {
            self.linger_deadline_ns = now_ns() + LINGER_NS;
            self.state = State::Draining;
        }
        true
    }

    /// Handles what quinn-proto has to say after a receive or a timeout.
    fn process(&mut self, shared: &mut H3Shared, caller: &mut impl Caller, received_ns: u64) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => self.on_connected(shared, caller, received_ns),
                Event::Stream(StreamEvent::Readable { id }) => self.on_readable(shared, caller, id, received_ns),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = self.connection.streams().accept(dir) {
                        self.on_readable(shared, caller, id, received_ns);
                    }
                }
                Event::Stream(StreamEvent::Writable { id }) => self.write_request(id),
                Event::Stream(StreamEvent::Stopped { id, .. }) => self.stop_body(id),
                Event::ConnectionLost { reason } => {
                    let known = quic::Handshake::of(&self.connection);
                    let class = quic::classify(&reason, known.as_ref());
                    self.fail(caller, class);
                }
                _ => {}
            }
            if self.is_closed() {
                return;
            }
        }
    }

    fn on_connected(&mut self, shared: &mut H3Shared, caller: &mut impl Caller, received_ns: u64) {
        self.handshake.secured_ns = received_ns;
        self.handshake.tls_version = Some("1.3");
        if let Some(agreed) = quic::Handshake::of(&self.connection) {
            self.handshake.protocol = (agreed.alpn.as_deref() == Some(b"h3")).then_some("h3");
            self.handshake.cipher = agreed.cipher;
            self.handshake.resumed = agreed.resumed;
            if agreed.key_exchange.is_some() {
                caller.totals().key_exchange = agreed.key_exchange;
            }
            caller.totals().handshakes.add(agreed.chain, self.arrivals);
        }
        caller.totals().connections_opened += 1;
        self.state = State::Open;
        // The time of what was begun before counts from here.
        self.request_deadline_ns = received_ns + self.request_timeout_ns;
        if !self.early {
            self.open_control_stream(shared);
            return;
        }
        self.early = false;
        if self.connection.accepted_0rtt() {
            self.flights.for_each(|flight| flight.exchange.zero_rtt = true);
            return;
        }
        // The server refused 0-RTT, and with it everything that was sent: streams start again at 0 (RFC 9001 section
        // 4.6.2). This is the same attempt of the same requests, not a retry: the server has seen none of them.
        self.spare = None;
        self.unsent.clear();
        self.open_control_stream(shared);
        self.waiting.extend(self.flights.take_exchanges());
    }

    /// Octets or an end have come on a stream.
    fn on_readable(&mut self, shared: &mut H3Shared, caller: &mut impl Caller, id: StreamId, received_ns: u64) {
        let outcome = if id.dir() == quinn_proto::Dir::Bi {
            self.read_response(caller, id, received_ns)
        } else {
            self.read_uni_stream(caller, id)
        };
        if let Err(error) = outcome {
            self.abandon(shared, error.code);
            self.fail(caller, ErrorClass::MalformedHttp3);
        }
    }

    /// The connection is lost: every request in flight failed, or the attempt to connect did.
    fn fail(&mut self, caller: &mut impl Caller, error: ErrorClass) {
        if self.is_closed() {
            return;
        }
        if self.flights.is_empty() && self.waiting.is_empty() {
            // An idle peer that closes in good order, or falls silent, has ended the connection and not broken it.
            let in_order = matches!(error, ErrorClass::Closed | ErrorClass::QuicTimeout);
            if !self.secured() || (!self.handshake.bound && !in_order) {
                caller.fail_attempt(&self.handshake, now_ns(), error);
            } else if !in_order {
                caller.totals().connections_lost_idle += 1;
            }
        }
        self.hand_back_all(caller, error);
        self.retire(caller, true);
    }

    fn hand_back_all(&mut self, caller: &mut impl Caller, error: ErrorClass) {
        for exchange in self.waiting.drain(..) {
            caller.finish(&exchange, &self.handshake, None, 0, Some(error));
        }
        let handshake = &self.handshake;
        self.flights.drain(|id, flight| {
            caller.finish(&flight.exchange, handshake, Some(id), 0, Some(error));
        });
    }
}
