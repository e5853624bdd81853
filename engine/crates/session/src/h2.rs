//! HTTP/2 over TLS (RFC 9113): many requests at a time on a connection.
//!
//! What comes in one receive is processed as a whole, and all that results from it, acknowledgements and new requests,
//! leaves in one send. The request's header block is encoded once; the dynamic table is off on both sides.

mod ending;
mod frames;
mod requests;
mod sending;
mod streams;

use std::os::fd::RawFd;

use trifecta_wire::clock::now_ns;
use trifecta_wire::epoll;
use trifecta_wire::h2::{self, ErrorCode, Windows, write};

use crate::caller::{Caller, Exchange};
use crate::content::Body;
use crate::options::{ConnectionMode, FieldError, Options};
use crate::transport::{Received, Transport, TransportShared};
use crate::{NEVER_NS, Session, State};
use trifecta_wire::ErrorClass;

use frames::{Frames, WINDOWS};
use requests::{headers, hello, write_headers};

/// The last stream identifier that can be used is 2^31 - 1 (RFC 9113 5.1.1); the connection is given up a little before.
const LAST_STREAM: u32 = (1 << 31) - 1_000;

/// With so many requests in flight more answers arrive while some are read: they are asked for once more before new requests
/// are sent, so that these leave together.
const SEVERAL_STREAMS: usize = 5;

/// What the HTTP/2 sessions of a worker share.
pub struct H2Shared {
    transport: TransportShared,
    windows: Windows,
    /// Preface, SETTINGS and the connection's WINDOW_UPDATE.
    hello: Vec<u8>,
    /// HEADERS frame of every request; octets 5 to 9 are the stream identifier.
    headers: Vec<u8>,
    body_octets: u64,
    authority: String,
    reused: bool,
    zero_rtt: bool,
    streams: u32,
    request_timeout_ns: u64,
}

/// A connection that speaks HTTP/2.
pub struct H2Session {
    transport: Transport,
    state: State,
    frames: Frames,
    /// The request that the connection is made for, until it is open.
    first: Option<Exchange>,
    next_stream: u32,
    /// Streams whose HEADERS are not all with the kernel yet.
    unsent: Vec<u32>,
    /// Streams with a body to write, in turn.
    uploads: std::collections::VecDeque<u32>,
    /// Early data, to be written again if it is rejected.
    sent_early: bool,
    /// All is done, and session tickets are waited for.
    lingering: bool,
    deadline_ns: u64,
}

impl Session for H2Session {
    type Shared = H2Shared;

    const WAITS_IN_RECEIVE: bool = true;

    fn shared(options: &Options) -> Result<H2Shared, FieldError> {
        let headers = headers(options);
        if headers.len() > h2::DEFAULT_MAX_FRAME_OCTETS as usize {
            return Err(FieldError::new("path", "is too long: the header block must fit into one frame of 16 KiB"));
        }
        let windows = options.tuning.windows(WINDOWS);
        Ok(H2Shared {
            transport: TransportShared::new(options)?,
            windows,
            hello: hello(windows),
            headers,
            body_octets: options.request_body_bytes,
            authority: options.authority(),
            reused: options.connection_mode == ConnectionMode::Reused,
            zero_rtt: options.zero_rtt,
            streams: options.streams,
            request_timeout_ns: options.request_timeout_ns,
        })
    }

    fn open(
        shared: &mut H2Shared,
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
            frames: Frames::new(shared.streams, shared.windows),
            first: request,
            next_stream: 1,
            unsent: Vec::with_capacity(shared.streams as usize),
            uploads: std::collections::VecDeque::new(),
            sent_early: false,
            lingering: false,
            deadline_ns,
        })
    }

    fn fd(&self) -> RawFd {
        self.transport.fd()
    }

    fn on_ready(&mut self, shared: &mut H2Shared, caller: &mut impl Caller, flags: u32) {
        if let Err(error) = self.ready(shared, caller, flags) {
            self.fail(caller, error);
        }
    }

    fn receive_waiting(&mut self, shared: &mut H2Shared, caller: &mut impl Caller) -> bool {
        let waits = self.state == State::Open && self.uploads.is_empty() && self.transport.wait_in_receive();
        if waits {
            self.on_ready(shared, caller, epoll::READABLE);
        }
        waits
    }

    fn on_timer(&mut self, shared: &mut H2Shared, caller: &mut impl Caller, now_ns: u64) {
        if now_ns < self.deadline_ns {
            return;
        }
        if self.transport.is_held(now_ns) {
            self.deadline_ns = self.transport.connect_deadline_ns;
            self.on_ready(shared, caller, epoll::WRITABLE);
            return;
        }
        if self.state == State::Opening {
            self.fail(caller, ErrorClass::ConnectTimeout);
            return;
        }
        for id in self.frames.streams.ids(|stream| stream.deadline_ns <= now_ns) {
            if let Some(stream) = self.frames.streams.remove(id) {
                write::rst_stream(id, ErrorCode::CANCEL, &mut self.frames.reply);
                caller.finish(
                    &stream.exchange,
                    &self.transport.handshake,
                    Some(u64::from(id)),
                    0,
                    Some(ErrorClass::Timeout),
                );
            }
        }
        if self.lingering {
            shared.transport.no_tickets();
            self.end(caller, ErrorCode::NO_ERROR, false);
            return;
        }
        self.deadline_ns = self.frames.streams.earliest_deadline_ns();
        self.start_requests(shared, caller);
        if self.is_done(shared) {
            self.end(caller, ErrorCode::NO_ERROR, true);
        }
    }

    fn next_timeout_ns(&self) -> u64 {
        self.deadline_ns
    }

    fn free_slots(&self) -> u32 {
        if self.state != State::Open {
            return 0;
        }
        let streams = &self.frames.streams;
        streams.room().min(self.frames.max_concurrent.saturating_sub(streams.len() as u32))
    }

    fn start_requests(&mut self, shared: &mut H2Shared, caller: &mut impl Caller) {
        if let Err(error) = self.fill(shared, caller) {
            self.fail(caller, error);
        }
    }

    fn state(&self) -> State {
        self.state
    }

    fn close(&mut self, _: &mut H2Shared, caller: &mut impl Caller, error: ErrorClass) {
        self.hand_back_all(caller, error);
        self.end(caller, ErrorCode::NO_ERROR, false);
    }
}

impl H2Session {
    fn ready(&mut self, shared: &mut H2Shared, caller: &mut impl Caller, flags: u32) -> Result<(), ErrorClass> {
        if !self.transport.is_connected() {
            return self.connected(shared, caller, flags);
        }
        if flags & epoll::WRITABLE != 0 && (self.transport.unsent() > 0 || !self.uploads.is_empty()) {
            self.send()?;
        }
        if flags & (epoll::READABLE | epoll::CLOSING) != 0 {
            self.receive(shared, caller, flags & epoll::CLOSING != 0)?;
        }
        Ok(())
    }

    fn connected(&mut self, shared: &mut H2Shared, caller: &mut impl Caller, flags: u32) -> Result<(), ErrorClass> {
        if let Some(until_ns) = self.transport.hold(&shared.transport, flags) {
            self.deadline_ns = until_ns;
            return Ok(());
        }
        let mut early = Vec::new();
        if shared.zero_rtt && flags & epoll::WRITABLE != 0 {
            if self.first.is_none()
                && let Some(mut exchange) = caller.next_request(now_ns())
            {
                self.transport.handshake.bind(&mut exchange);
                self.first = Some(exchange);
            }
            if let Some(exchange) = &self.first {
                early.extend_from_slice(&shared.hello);
                write_headers(shared, caller.request(exchange).as_ref(), 1, &mut early);
            }
        }
        self.sent_early = self.transport.on_connected(caller, flags, &early)?;
        if self.sent_early
            && let Some(exchange) = self.first.take()
        {
            // Everything that was sent by now is early data.
            let deadline_ns = self.transport.connect_deadline_ns;
            self.add_stream(exchange, deadline_ns, Body::Pattern, 0);
            if let Some(stream) = self.frames.streams.get_mut(1) {
                stream.exchange.request_sent_ns = now_ns();
            }
        }
        Ok(())
    }

    fn receive(&mut self, shared: &mut H2Shared, caller: &mut impl Caller, to_the_end: bool) -> Result<(), ErrorClass> {
        let mut sends_after_next = false;
        while !matches!(self.state, State::Closed { .. }) {
            let (frames, next_stream) = (&mut self.frames, self.next_stream);
            let reading = &mut *caller;
            // Only read here and handed back below, as the answer to 0-RTT data may come together with the end of the handshake.
            let mut seen = Ok(());
            let received = self.transport.receive(&mut shared.transport, |octets, now_ns| {
                if seen.is_ok() {
                    seen = frames.read(reading, octets, now_ns, next_stream);
                }
            })?;
            let (now_ns, more, end) = match received {
                Received::Nothing => return if sends_after_next { self.send() } else { Ok(()) },
                Received::Octets { now_ns, more } => (now_ns, more, false),
                Received::End { now_ns, .. } => (now_ns, false, true),
            };
            if self.transport.take_secured(&shared.transport, caller, now_ns)? {
                self.secured(shared, caller)?;
            }
            self.hand_back_finished(caller);
            if let Err(code) = seen {
                self.malformed(caller, code);
                return Ok(());
            }
            if end {
                return self.ended(caller);
            }
            if self.transport.is_secured() {
                if self.is_done(shared) && !self.lingers(shared) {
                    self.end(caller, ErrorCode::NO_ERROR, false);
                    return Ok(());
                }
                self.begin_due(shared, caller);
                sends_after_next = !sends_after_next && !more && self.frames.streams.len() >= SEVERAL_STREAMS;
                if sends_after_next {
                    continue;
                }
                self.send()?;
            }
            if !more && !to_the_end {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The handshake is done: preface and the request that the connection was made for go out.
    fn secured(&mut self, shared: &H2Shared, caller: &mut impl Caller) -> Result<(), ErrorClass> {
        self.state = State::Open;
        self.deadline_ns = NEVER_NS;
        let deadline_ns = self.transport.handshake.secured_ns + shared.request_timeout_ns;
        if self.sent_early {
            let accepted = self.transport.early_data_accepted();
            self.deadline_ns = deadline_ns;
            if let Some(stream) = self.frames.streams.get_mut(1) {
                stream.exchange.zero_rtt = accepted;
                stream.deadline_ns = deadline_ns;
            }
            // The whole response may have come with the end of the handshake.
            for finished in &mut self.frames.finished {
                finished.exchange.zero_rtt = accepted;
            }
            if accepted {
                return Ok(());
            }
            // Rejected 0-RTT data was never seen by the server's HTTP: sending it again is no retry (RFC 8446 4.2.10).
            self.transport.write(&shared.hello)?;
            let request = self.frames.streams.get_mut(1).and_then(|stream| caller.request(&stream.exchange));
            write_headers(shared, request.as_ref(), 1, &mut self.frames.reply);
            self.unsent.push(1);
            return Ok(());
        }
        self.transport.write(&shared.hello)?;
        if let Some(exchange) = self.first.take() {
            self.begin(shared, caller, exchange, deadline_ns);
        }
        Ok(())
    }

    /// Starts requests while there is room, and sends all there is to send.
    fn fill(&mut self, shared: &H2Shared, caller: &mut impl Caller) -> Result<(), ErrorClass> {
        self.begin_due(shared, caller);
        self.send()
    }
}

#[cfg(test)]
mod tests;
