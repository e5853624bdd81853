//! HTTP/1.1 over TLS (RFC 9112): one request at a time on a connection, nothing is pipelined.

use std::os::fd::RawFd;

use trifecta_wire::clock::now_ns;
use trifecta_wire::epoll;

use crate::caller::{Caller, Exchange};
use crate::content::Body;
use crate::options::{ConnectionMode, FieldError, Options};
use crate::transport::{Received, Transport, TransportShared};
use crate::{NEVER_NS, Session, State};
use trifecta_wire::ErrorClass;

mod request;
mod response;

use request::{Own, WHOLE_REQUEST_OCTETS, request_head};
use response::{ResponseReader, Verdict};

/// Octets that may wait for the kernel before more of a body is encrypted.
const SEND_AHEAD_OCTETS: usize = 256 * 1024;

/// What the HTTP/1.1 sessions of a worker share.
pub struct H1Shared {
    transport: TransportShared,
    /// Head of every request, with the body behind it if that is small.
    request: Vec<u8>,
    /// Octets of the body in `request`.
    body_in_request: u64,
    body_octets: u64,
    authority: String,
    reused: bool,
    zero_rtt: bool,
    request_timeout_ns: u64,
}

/// A connection that speaks HTTP/1.1.
pub struct H1Session {
    transport: Transport,
    state: State,
    exchange: Option<Exchange>,
    /// The request in flight, if it is one of its own.
    own: Option<Own>,
    reader: ResponseReader,
    /// Octets of the request body that are still to be encrypted.
    body_left: u64,
    /// The request's octets are not all with the kernel.
    sending: bool,
    /// The request went out as 0-RTT data.
    sent_early: bool,
    deadline_ns: u64,
}

impl Session for H1Session {
    type Shared = H1Shared;

    const WAITS_IN_RECEIVE: bool = true;

    fn shared(options: &Options) -> Result<H1Shared, FieldError> {
        let mut request = request_head(options);
        let body_octets = options.request_body_bytes;
        let body_in_request = if body_octets <= WHOLE_REQUEST_OCTETS { body_octets } else { 0 };
        Body::Pattern.append(body_in_request, &mut request);
        Ok(H1Shared {
            transport: TransportShared::new(options)?,
            request,
            body_in_request,
            body_octets,
            authority: options.authority(),
            reused: options.connection_mode == ConnectionMode::Reused,
            zero_rtt: options.zero_rtt,
            request_timeout_ns: options.request_timeout_ns,
        })
    }

    fn open(
        shared: &mut H1Shared,
        _: &mut impl Caller,
        connection: u32,
        mut request: Option<Exchange>,
        now_ns: u64,
    ) -> Result<Self, ErrorClass> {
        let mut transport = Transport::open(&shared.transport, connection, now_ns)?;
        if let Some(exchange) = &mut request {
            transport.handshake.bind(exchange);
        }
        let deadline_ns = transport.connect_deadline_ns;
        Ok(Self {
            transport,
            state: State::Opening,
            exchange: request,
            own: None,
            reader: ResponseReader::default(),
            body_left: 0,
            sending: false,
            sent_early: false,
            deadline_ns,
        })
    }

    fn fd(&self) -> RawFd {
        self.transport.fd()
    }

    fn on_ready(&mut self, shared: &mut H1Shared, caller: &mut impl Caller, flags: u32) {
        if let Err(error) = self.ready(shared, caller, flags) {
            self.fail(caller, error);
        }
    }

    fn receive_waiting(&mut self, shared: &mut H1Shared, caller: &mut impl Caller) -> bool {
        let waits = self.state == State::Open && self.body_left == 0 && self.transport.wait_in_receive();
        if waits {
            self.on_ready(shared, caller, epoll::READABLE);
        }
        waits
    }

    fn on_timer(&mut self, shared: &mut H1Shared, caller: &mut impl Caller, now_ns: u64) {
        if now_ns < self.deadline_ns {
            return;
        }
        if self.state == State::Draining {
            shared.transport.no_tickets();
            self.end(caller, false);
            return;
        }
        if self.transport.is_held(now_ns) {
            self.deadline_ns = self.transport.connect_deadline_ns;
            self.on_ready(shared, caller, epoll::WRITABLE);
            return;
        }
        let error = if self.state == State::Opening { ErrorClass::ConnectTimeout } else { ErrorClass::Timeout };
        self.fail(caller, error);
    }

    fn next_timeout_ns(&self) -> u64 {
        self.deadline_ns
    }

    fn free_slots(&self) -> u32 {
        u32::from(self.state == State::Open && self.exchange.is_none())
    }

    fn start_requests(&mut self, shared: &mut H1Shared, caller: &mut impl Caller) {
        if let Err(error) = self.start_next(shared, caller) {
            self.fail(caller, error);
        }
    }

    fn state(&self) -> State {
        self.state
    }

    fn close(&mut self, _: &mut H1Shared, caller: &mut impl Caller, error: ErrorClass) {
        if let Some(exchange) = self.exchange.take() {
            caller.finish(&exchange, &self.transport.handshake, None, 0, Some(error));
        }
        self.end(caller, false);
    }
}

impl H1Session {
    fn ready(&mut self, shared: &mut H1Shared, caller: &mut impl Caller, flags: u32) -> Result<(), ErrorClass> {
        if !self.transport.is_connected() {
            self.connected(shared, caller, flags)?;
            return Ok(());
        }
        if flags & epoll::WRITABLE != 0 && self.transport.unsent() > 0 {
            self.send(shared)?;
        }
        if flags & (epoll::READABLE | epoll::CLOSING) != 0 {
            self.receive(shared, caller, flags & epoll::CLOSING != 0)?;
        }
        Ok(())
    }

    fn connected(&mut self, shared: &mut H1Shared, caller: &mut impl Caller, flags: u32) -> Result<(), ErrorClass> {
        if let Some(until_ns) = self.transport.hold(&shared.transport, flags) {
            self.deadline_ns = until_ns;
            return Ok(());
        }
        let mut early: &[u8] = &[];
        if shared.zero_rtt && flags & epoll::WRITABLE != 0 {
            if self.exchange.is_none()
                && let Some(mut exchange) = caller.next_request(now_ns())
            {
                self.transport.handshake.bind(&mut exchange);
                self.exchange = Some(exchange);
            }
            if let Some(exchange) = &self.exchange {
                self.own = caller.request(exchange).map(|request| Own::new(request, shared));
                early = self.own.as_ref().map_or(&shared.request, |own| &own.octets);
            }
        }
        self.sent_early = self.transport.on_connected(caller, flags, early)?;
        if self.sent_early {
            self.reader.expect(self.to_head());
            self.mark_sent();
        }
        Ok(())
    }

    fn receive(&mut self, shared: &mut H1Shared, caller: &mut impl Caller, to_the_end: bool) -> Result<(), ErrorClass> {
        while !matches!(self.state, State::Closed { .. }) {
            let (reader, exchange, reading) = (&mut self.reader, &mut self.exchange, &mut *caller);
            // Only read here and judged below, as the answer to 0-RTT data may come together with the end of the handshake.
            let mut seen = Ok(());
            let received = self.transport.receive(&mut shared.transport, |octets, now_ns| {
                if seen.is_ok() {
                    seen = reader.read(exchange.as_mut(), reading, octets, now_ns);
                }
            })?;
            let (now_ns, more, end) = match received {
                Received::Nothing => return Ok(()),
                Received::Octets { now_ns, more } => (now_ns, more, None),
                Received::End { now_ns, clean } => (now_ns, false, Some(clean)),
            };
            if self.transport.take_secured(&shared.transport, caller, now_ns)? {
                self.secured(shared, caller)?;
            }
            seen?;
            if let Some(clean) = end {
                return self.ended(caller, now_ns, clean);
            }
            if self.reader.is_complete() {
                self.complete(shared, caller, now_ns)?;
            } else if self.state == State::Draining && self.transport.linger_until_ns(&shared.transport).is_none() {
                self.end(caller, false);
            }
            if !more && !to_the_end {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The handshake is done: the request that the connection was made for goes out, or any other.
    fn secured(&mut self, shared: &H1Shared, caller: &mut impl Caller) -> Result<(), ErrorClass> {
        self.state = State::Open;
        self.deadline_ns = NEVER_NS;
        let Some(exchange) = &mut self.exchange else { return self.start_next(shared, caller) };
        self.deadline_ns = self.transport.handshake.secured_ns + shared.request_timeout_ns;
        if self.sent_early {
            exchange.zero_rtt = self.transport.early_data_accepted();
            if exchange.zero_rtt {
                // The client's Finished still has to go.
                return self.send(shared);
            }
            // Rejected 0-RTT data was never seen by the server's HTTP: sending it again is no retry (RFC 8446 4.2.10).
        }
        self.write_request(shared, caller)
    }

    fn start_next(&mut self, shared: &H1Shared, caller: &mut impl Caller) -> Result<(), ErrorClass> {
        if self.free_slots() == 0 {
            return Ok(());
        }
        let now_ns = now_ns();
        let Some(mut exchange) = caller.next_request(now_ns) else { return self.send(shared) };
        self.transport.handshake.bind(&mut exchange);
        self.exchange = Some(exchange);
        self.deadline_ns = now_ns + shared.request_timeout_ns;
        self.write_request(shared, caller)
    }

    fn to_head(&self) -> bool {
        self.exchange.is_some_and(|exchange| exchange.to_head)
    }

    fn write_request(&mut self, shared: &H1Shared, caller: &mut impl Caller) -> Result<(), ErrorClass> {
        self.reader.expect(self.to_head());
        self.own =
            self.exchange.and_then(|exchange| caller.request(&exchange)).map(|request| Own::new(request, shared));
        let (octets, body_in_request, body_octets) = match &self.own {
            Some(own) => (&own.octets, own.body_in_request, own.body_octets),
            None => (&shared.request, shared.body_in_request, shared.body_octets),
        };
        self.transport.write(octets)?;
        self.body_left = body_octets - body_in_request;
        if let Some(exchange) = &mut self.exchange {
            exchange.bytes_out = body_in_request;
        }
        self.sending = true;
        self.send(shared)
    }

    /// Hands the kernel what it takes, and encrypts more of the body while it takes all.
    fn send(&mut self, shared: &H1Shared) -> Result<(), ErrorClass> {
        while self.transport.flush()? {
            if self.body_left == 0 {
                if self.sending {
                    self.mark_sent();
                }
                return Ok(());
            }
            while self.body_left > 0 && self.transport.unsent() < SEND_AHEAD_OCTETS {
                let (body, body_octets) = match &self.own {
                    Some(own) => (&own.body, own.body_octets),
                    None => (&Body::Pattern, shared.body_octets),
                };
                // In pieces, so that no more is encrypted than the kernel may take soon.
                let piece = body.piece(body_octets - self.body_left, self.body_left.min(SEND_AHEAD_OCTETS as u64));
                let octets = piece.len() as u64;
                self.transport.write(piece)?;
                self.body_left -= octets;
                if let Some(exchange) = &mut self.exchange {
                    exchange.bytes_out += octets;
                }
            }
        }
        Ok(())
    }

    fn mark_sent(&mut self) {
        self.sending = false;
        if let Some(exchange) = &mut self.exchange {
            exchange.request_sent_ns = now_ns();
        }
    }

    /// The last octet of the response came at `now_ns`.
    fn complete(&mut self, shared: &H1Shared, caller: &mut impl Caller, now_ns: u64) -> Result<(), ErrorClass> {
        let verdict = self.reader.finish();
        self.deadline_ns = NEVER_NS;
        let half_sent = self.sending || self.body_left > 0;
        if let Some(exchange) = self.exchange.take() {
            caller.finish(&exchange, &self.transport.handshake, None, now_ns, None);
        }
        // An answer before the end of the request leaves a connection on which nothing can follow.
        if !shared.reused || verdict == Verdict::Close || half_sent {
            match self.transport.linger_until_ns(&shared.transport) {
                Some(until_ns) => {
                    self.state = State::Draining;
                    self.deadline_ns = until_ns;
                    return self.send(shared);
                }
                None => self.end(caller, false),
            }
            return Ok(());
        }
        self.start_next(shared, caller)
    }

    /// The peer ended the stream.
    fn ended(&mut self, caller: &mut impl Caller, now_ns: u64, clean: bool) -> Result<(), ErrorClass> {
        self.reader.end_of_stream(clean);
        if self.reader.is_complete()
            && let Some(exchange) = self.exchange.take()
        {
            caller.finish(&exchange, &self.transport.handshake, None, now_ns, None);
        }
        if self.exchange.is_some() || !self.transport.is_secured() {
            // Octets that were announced and did not come are a matter of length, anything before is an early end.
            return Err(if self.reader.misses_content() { ErrorClass::Length } else { ErrorClass::Closed });
        }
        self.end(caller, false);
        Ok(())
    }

    /// The connection is over because of `error`.
    fn fail(&mut self, caller: &mut impl Caller, error: ErrorClass) {
        if let Some(exchange) = self.exchange.take() {
            caller.finish(&exchange, &self.transport.handshake, None, 0, Some(error));
        } else if !self.transport.is_secured() || !self.transport.handshake.bound {
            caller.fail_attempt(&self.transport.handshake, now_ns(), error);
        } else {
            caller.totals().connections_lost_idle += 1;
        }
        self.end(caller, true);
    }

    fn end(&mut self, caller: &mut impl Caller, failed: bool) {
        self.transport.close(caller);
        self.state = State::Closed { failed };
        self.deadline_ns = NEVER_NS;
    }
}

#[cfg(test)]
mod tests;
