//! One TCP connection: octets between its socket, TLS and its session, and an end in good order.

use crate::answer::Plan;
use crate::config::{Config, Protocol};
use crate::context::{BATCH_OCTETS, Context, Fate};
use crate::h2::H2;
use crate::session::Session;
use crate::summary::ServerFault;
use rustls::ServerConfig;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use trifecta_wire::ErrorClass;
use trifecta_wire::epoll::{CLOSING, READABLE, WRITABLE};
use trifecta_wire::tcp::TcpSocket;
use trifecta_wire::tls::{ReceiveBuffer, RecordSizes, TlsError, TlsStream};

/// How long the peer may take to close its side after we have closed ours.
const LINGER_NS: u64 = 1_000_000_000;
/// The batch where responses have priorities: what has been made is sent before anything more urgent.
const PAGE_BATCH_OCTETS: usize = 32 * 1024;
/// Receives and sends of one connection before others have their turn.
const ROUNDS: usize = 4;

/// What the worker does with a connection after it was driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The socket will tell.
    Wait,
    /// It could go on, but others come first.
    Again,
    Remove,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// close_notify is to follow what is there.
    Closing,
    /// Our last octet is in the output; when it is sent our side is closed.
    LastOctets,
    /// When the output is sent the connection is dropped without a word.
    Dropping,
    /// Our side is closed; closing the socket now could reset what the peer has not read (RFC 9112 9.6).
    Lingering {
        until_ns: u64,
    },
}

/// One connection.
pub struct Connection {
    socket: TcpSocket,
    tls: TlsStream,
    session: Option<Session>,
    /// Plaintext made before TLS could write it.
    held: Vec<u8>,
    record_sizes: RecordSizes,
    phase: Phase,
    readable: bool,
    writable: bool,
    /// The peer has sent its last octet, or the socket has an error that only a receive will tell.
    hung_up: bool,
    input_ended: bool,
    /// When octets last moved, on the engine's clock.
    active_ns: u64,
}

impl Connection {
    /// A connection that was just accepted.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(socket: TcpSocket, tls: &Arc<ServerConfig>, now_ns: u64) -> Result<Self, TlsError> {
        Ok(Self {
            socket,
            tls: TlsStream::server(tls)?,
            session: None,
            held: Vec::new(),
            record_sizes: RecordSizes::with(tls.max_fragment_size),
            phase: Phase::Open,
            readable: false,
            writable: true,
            hung_up: false,
            input_ended: false,
            active_ns: now_ns,
        })
    }

    /// The socket's descriptor.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Notes what epoll said (edge-triggered).
    #[inline]
    pub fn note(&mut self, flags: u32) {
        self.readable |= flags & (READABLE | CLOSING) != 0;
        self.writable |= flags & WRITABLE != 0;
        self.hung_up |= flags & CLOSING != 0;
    }

    /// Receives, answers and sends as far as the socket allows.
    pub fn drive(&mut self, config: &Config, shared: &mut ReceiveBuffer, context: &mut Context<'_>) -> Next {
        for _ in 0..ROUNDS {
            match self.round(config, shared, context) {
                Ok(true) if self.can_go_on() => {}
                Ok(true) => return Next::Wait,
                Ok(false) => return Next::Remove,
                Err(error) => {
                    context.plain.clear();
                    if self.phase == Phase::Open {
                        context.stats.error(class_of(&error));
                    }
                    return Next::Remove;
                }
            }
        }
        if self.can_go_on() { Next::Again } else { Next::Wait }
    }

    /// One receive, one send; `false` when the connection is over.
    fn round(&mut self, config: &Config, shared: &mut ReceiveBuffer, context: &mut Context<'_>) -> io::Result<bool> {
        if self.readable && self.wants_input() {
            self.receive(config, shared, context)?;
        }
        if self.phase == Phase::Open {
            if let Some(session) = &mut self.session {
                let batch = if config.serves_pages() { PAGE_BATCH_OCTETS } else { BATCH_OCTETS };
                let room = batch.saturating_sub(self.tls.output().len() + context.plain.len());
                if room > 0 {
                    session.produce(room, context);
                }
                match session.fate() {
                    Fate::Open => {}
                    Fate::Close => self.phase = Phase::Closing,
                    Fate::Drop => self.phase = Phase::Dropping,
                }
            } else if self.input_ended {
                self.phase = Phase::Dropping;
            }
        }
        self.encrypt(context);
        if self.phase == Phase::Closing {
            // An error here means that the handshake did not get that far; then there is nobody to notify.
            let _ = self.tls.close_notify();
            self.phase = Phase::LastOctets;
        }
        self.send(context)?;
        let sent = self.tls.output().is_empty();
        if self.phase == Phase::LastOctets && sent && !self.input_ended {
            self.socket.shutdown_write()?;
            self.phase = Phase::Lingering { until_ns: context.now_ns + LINGER_NS };
        }
        Ok(match self.phase {
            Phase::Open | Phase::Closing => true,
            Phase::LastOctets | Phase::Dropping => !sent,
            Phase::Lingering { .. } => !self.input_ended,
        })
    }

    fn wants_input(&self) -> bool {
        if self.input_ended {
            return false;
        }
        match (&self.session, self.phase) {
            (Some(session), Phase::Open) => session.can_receive(self.tls.output().len()),
            _ => true,
        }
    }

    fn can_go_on(&self) -> bool {
        let more = self.phase == Phase::Open && self.session.as_ref().is_some_and(Session::has_more);
        (self.readable && self.wants_input()) || (more && self.writable && self.tls.output().is_empty())
    }

    fn receive(&mut self, config: &Config, shared: &mut ReceiveBuffer, context: &mut Context<'_>) -> io::Result<()> {
        let buffer = self.tls.prepare(shared);
        let room = buffer.len();
        let Some(octets) = self.socket.receive(buffer)? else {
            self.readable = false;
            return Ok(());
        };
        if octets == 0 {
            self.readable = false;
            self.input_ended = true;
            match &mut self.session {
                Some(session) => session.end_of_input(),
                None => context.stats.error(ServerFault::ClosedInHandshake),
            }
            return Ok(());
        }
        // A short receive has emptied the socket; the next octets bring a new edge. Its end may already be there, though.
        self.readable = octets == room || self.hung_up;
        self.active_ns = context.now_ns;
        context.stats.wire_bytes_in += octets as u64;
        if self.phase != Phase::Open {
            return Ok(());
        }
        self.decrypt(config, shared, octets, context);
        Ok(())
    }

    fn decrypt(&mut self, config: &Config, shared: &mut ReceiveBuffer, octets: usize, context: &mut Context<'_>) {
        let result = if let Some(session) = &mut self.session {
            self.tls.process(shared, octets, &mut |data, early| session.receive(data, early, context))
        } else {
            // The protocol is known when the ClientHello is read, but what follows it can come in the same receive.
            let mut first = Vec::new();
            let mut first_early = false;
            let result = self.tls.process(shared, octets, &mut |data, early| {
                first.extend_from_slice(data);
                first_early |= early;
            });
            if result.is_ok() && (self.tls.can_write() || !first.is_empty()) {
                self.start_session(config, context);
            }
            if let Some(session) = &mut self.session
                && !first.is_empty()
            {
                session.receive(&first, first_early, context);
            }
            result
        };
        match result {
            Ok(()) if self.tls.peer_closed() => {
                if let Some(session) = &mut self.session {
                    session.end_of_input();
                }
            }
            Ok(()) => {}
            Err(error) => {
                // The alert is in the output.
                context.stats.error(error.class);
                context.plain.clear();
                self.phase = Phase::LastOctets;
            }
        }
    }

    fn start_session(&mut self, config: &Config, context: &mut Context<'_>) {
        // RFC 7301 3.2: without ALPN a client speaks what the port meant before it.
        let protocol = match self.tls.alpn() {
            Some(name) if name == Protocol::H2.alpn() => Protocol::H2,
            Some(name) if name == Protocol::H1.alpn() => Protocol::H1,
            None if config.serves(Protocol::H1) => Protocol::H1,
            _ => {
                context.stats.error(ErrorClass::TlsAlpn);
                self.phase = Phase::Closing;
                return;
            }
        };
        context.stats.connection(protocol, self.tls.resumed(), self.tls.key_exchange());
        self.session = Some(match protocol {
            Protocol::H2 => Session::H2(Box::new(H2::new(
                config.max_concurrent_streams,
                config.serves_pages(),
                &config.tuning,
                context.plain,
            ))),
            _ => Session::H1(Box::default()),
        });
    }

    /// Moves plaintext into TLS.
    #[inline]
    fn encrypt(&mut self, context: &mut Context<'_>) {
        if context.plain.is_empty() && self.held.is_empty() {
            return;
        }
        if !self.tls.can_write() {
            self.held.extend_from_slice(context.plain);
            context.plain.clear();
            return;
        }
        let held;
        let mut rest = &context.plain[..];
        if !self.held.is_empty() {
            self.held.extend_from_slice(context.plain);
            held = std::mem::take(&mut self.held);
            rest = &held;
        }
        let mut result = Ok(());
        while result.is_ok() && !rest.is_empty() {
            let (record, later) = rest.split_at(self.record_sizes.next(rest.len()));
            result = self.tls.write(record);
            rest = later;
        }
        context.plain.clear();
        if let Err(error) = result {
            context.stats.error(error.class);
            self.phase = Phase::Dropping;
        }
    }

    #[inline]
    fn send(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while self.writable && !self.tls.output().is_empty() {
            let pending = self.tls.output().len();
            match self.socket.send(self.tls.output())? {
                None => self.writable = false,
                Some(octets) => {
                    self.tls.consume_output(octets);
                    self.active_ns = context.now_ns;
                    context.stats.wire_bytes_out += octets as u64;
                    // A short send has filled the socket; room brings an edge.
                    self.writable = octets == pending;
                }
            }
        }
        Ok(())
    }

    /// Lets an answer go: `plan` from the relay, or the one whose delay has passed; to be driven afterwards. False when nobody
    /// waits for it any more.
    pub fn release(&mut self, stream: u32, plan: Option<Plan>, context: &mut Context<'_>) -> bool {
        match &mut self.session {
            Some(session) if self.phase == Phase::Open => session.release(stream, plan, context),
            _ => false,
        }
    }

    /// The server ends; to be driven afterwards.
    pub fn shut_down(&mut self, context: &mut Context<'_>) {
        match &mut self.session {
            Some(session) => session.shut_down(context),
            None if self.phase == Phase::Open => self.phase = Phase::Dropping,
            None => {}
        }
    }

    /// Whether nothing has moved for too long.
    pub fn is_idle(&self, idle_timeout_ns: u64, now_ns: u64) -> bool {
        match self.phase {
            Phase::Lingering { until_ns } => now_ns >= until_ns,
            Phase::Open if self.session.as_ref().is_some_and(Session::is_relaying) => false,
            _ => now_ns.saturating_sub(self.active_ns) >= idle_timeout_ns,
        }
    }

    /// Whether our side is closed and only the peer's close is awaited.
    pub fn is_lingering(&self) -> bool {
        matches!(self.phase, Phase::Lingering { .. })
    }
}

fn class_of(error: &io::Error) -> ErrorClass {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ErrorClass::Reset,
        io::ErrorKind::TimedOut => ErrorClass::Timeout,
        _ => ErrorClass::Socket,
    }
}
