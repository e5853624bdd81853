//! One event loop: a listening socket, its connections, and HTTP/3's socket.

use crate::config::Config;
use crate::connection::{Connection, Next};
use crate::context::{Context, DelayQueue};
use crate::h3;
use crate::handler::Handler;
use crate::relay::{Relay, Ticket};
use crate::stats::Stats;
use crate::summary::ServerFault;
use rustls::ServerConfig;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use trifecta_wire::clock::{now_ns, thread_cpu_ns};
use trifecta_wire::epoll::{CLOSING, EDGE, Epoll, READABLE, WRITABLE};
use trifecta_wire::tcp::TcpSocket;
use trifecta_wire::tls::ReceiveBuffer;

const LISTENER: u64 = 0;
const QUIC: u64 = 1;
const STOP: u64 = 2;
/// Tokens from here on are connections: the place in the table, and its generation in the upper half.
const FIRST_CONNECTION: u64 = 16;

/// Octets taken from a socket at once.
const RECEIVE_OCTETS: usize = 128 * 1024;
/// Connections accepted before others have their turn.
const ACCEPTS: usize = 64;
/// How long no connection is accepted after the process ran out of descriptors.
const ACCEPT_PAUSE_NS: u64 = 50_000_000;
/// What is under way at the end has that long.
const GRACE_NS: u64 = 1_000_000_000;

/// What a worker is made of.
pub(crate) struct Parts {
    pub config: Arc<Config>,
    pub handler: Handler,
    pub tls: Arc<ServerConfig>,
    pub listener: Option<TcpSocket>,
    pub quic: Option<h3::Server>,
    pub relay: Option<Relay>,
    /// Becomes readable when the worker is to end (an eventfd).
    pub stop: OwnedFd,
}

struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

struct Worker {
    parts: Parts,
    epoll: Epoll,
    stats: Stats,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Connections that can go on without waiting.
    ready: Vec<u64>,
    delays: DelayQueue,
    receive: ReceiveBuffer,
    plain: Vec<u8>,
    scratch: Vec<u8>,
    next_sweep_ns: u64,
    sweep_every_ns: u64,
    accept_again_ns: Option<u64>,
    quic_wants_write: bool,
    stop_by_ns: Option<u64>,
}

/// Serves until told to end.
///
/// # Errors
/// When the event loop itself cannot work.
pub(crate) fn run(parts: Parts) -> io::Result<Stats> {
    let cpu_before = thread_cpu_ns();
    let mut worker = Worker::new(parts)?;
    while !worker.ended() {
        worker.turn()?;
    }
    if let Some(relay) = worker.parts.relay.take() {
        worker.stats.relay = Some(relay.finish());
    }
    worker.stats.thread_cpu_ns = thread_cpu_ns() - cpu_before;
    Ok(worker.stats)
}

impl Worker {
    fn new(parts: Parts) -> io::Result<Self> {
        let epoll = Epoll::new(512)?;
        if let Some(listener) = &parts.listener {
            epoll.add(listener.as_raw_fd(), READABLE, LISTENER)?;
        }
        if let Some(quic) = &parts.quic {
            epoll.add(quic.fd(), READABLE, QUIC)?;
        }
        epoll.add(parts.stop.as_raw_fd(), READABLE, STOP)?;
        let sweep_every_ns = (parts.config.idle_timeout_ns / 4).clamp(1_000_000, 500_000_000);
        Ok(Self {
            epoll,
            stats: Stats::default(),
            slots: Vec::new(),
            free: Vec::new(),
            ready: Vec::new(),
            delays: DelayQueue::new(),
            receive: ReceiveBuffer::new(RECEIVE_OCTETS),
            plain: Vec::new(),
            scratch: Vec::new(),
            next_sweep_ns: now_ns() + sweep_every_ns,
            sweep_every_ns,
            accept_again_ns: None,
            quic_wants_write: false,
            stop_by_ns: None,
            parts,
        })
    }

    fn ended(&self) -> bool {
        let Some(stop_by_ns) = self.stop_by_ns else { return false };
        let idle = self.slots.iter().flat_map(|slot| &slot.connection).all(|connection| connection.is_lingering());
        let quic_done = self.parts.quic.as_ref().is_none_or(h3::Server::is_drained);
        (idle && quic_done) || now_ns() >= stop_by_ns
    }

    fn turn(&mut self) -> io::Result<()> {
        let timeout_ns = self.timeout_ns();
        let events = self.epoll.wait(timeout_ns)?;
        let now = now_ns();
        let mut ready = std::mem::take(&mut self.ready);
        for index in 0..events {
            let event = self.epoll.event(index);
            match event.token {
                LISTENER => self.accept(now)?,
                QUIC => self.quic_ready(event.flags, now),
                STOP => self.stop(now)?,
                token if Relay::owns(token) => {
                    if let Some(relay) = &mut self.parts.relay {
                        relay.on_event(token, event.flags, &self.epoll);
                    }
                }
                token => {
                    if let Some(connection) = self.connection(token) {
                        connection.note(event.flags);
                        self.drive(token, now);
                    }
                }
            }
            self.relay(now);
        }
        for token in ready.drain(..) {
            self.drive(token, now);
        }
        if self.ready.is_empty() {
            self.ready = ready;
        }
        self.timers(now)
    }

    /// Hands the relay what has come in, and sends what it has to answer.
    #[inline]
    fn relay(&mut self, now: u64) {
        if self.parts.relay.is_some() {
            self.relay_all(now);
        }
    }

    fn relay_all(&mut self, now: u64) {
        loop {
            let Some(relay) = &mut self.parts.relay else { return };
            for submission in self.parts.handler.take_submitted() {
                relay.submit(submission, &self.epoll);
            }
            let Some((ticket, plan)) = relay.next_answer() else { return };
            let mut released = false;
            match ticket {
                Ticket::Tcp { token, stream } => self.with(token, now, |connection, context| {
                    released = connection.release(stream, Some(plan), context);
                }),
                Ticket::Quic { connection, serial, stream } => {
                    if let Some(quic) = &mut self.parts.quic {
                        let place = (connection, serial, stream);
                        released = quic.release(place, plan, &mut self.parts.handler, &mut self.stats, now);
                    }
                }
            }
            if let Some(relay) = self.parts.relay.as_mut().filter(|_| !released) {
                relay.dropped();
            }
        }
    }

    fn timeout_ns(&mut self) -> Option<u64> {
        if !self.ready.is_empty() {
            return Some(0);
        }
        let quic = self.parts.quic.as_ref().and_then(h3::Server::next_timeout_ns);
        let delayed = self.delays.front().map(|delayed| delayed.due_ns);
        let relay = self.parts.relay.as_mut().and_then(Relay::next_timeout_ns);
        let due = [quic, delayed, relay, self.accept_again_ns, self.stop_by_ns];
        let due = due.into_iter().flatten().fold(self.next_sweep_ns, u64::min);
        Some(due.saturating_sub(now_ns()))
    }

    fn timers(&mut self, now: u64) -> io::Result<()> {
        if let Some(quic) = &mut self.parts.quic {
            if quic.next_timeout_ns().is_some_and(|due| due <= now) {
                quic.on_timer(&mut self.parts.handler, &mut self.stats, now);
            }
            let wants_write = quic.wants_write();
            if wants_write != self.quic_wants_write {
                self.quic_wants_write = wants_write;
                let flags = if wants_write { READABLE | WRITABLE } else { READABLE };
                self.epoll.modify(quic.fd(), flags, QUIC)?;
            }
        }
        while let Some(delayed) = self.delays.front().copied().filter(|delayed| delayed.due_ns <= now) {
            self.delays.pop_front();
            self.with(delayed.token, now, |connection, context| {
                connection.release(delayed.stream, None, context);
            });
        }
        if let (Some(again_ns), Some(listener)) = (self.accept_again_ns, &self.parts.listener)
            && again_ns <= now
        {
            self.accept_again_ns = None;
            self.epoll.add(listener.as_raw_fd(), READABLE, LISTENER)?;
        }
        if let Some(relay) = &mut self.parts.relay
            && relay.next_timeout_ns().is_some_and(|due_ns| due_ns <= now)
        {
            relay.on_timer(now, &self.epoll);
        }
        self.relay(now);
        if now >= self.next_sweep_ns {
            self.next_sweep_ns = now + self.sweep_every_ns;
            self.sweep(now);
        }
        Ok(())
    }

    fn accept(&mut self, now: u64) -> io::Result<()> {
        for _ in 0..ACCEPTS {
            let Some(listener) = &self.parts.listener else { return Ok(()) };
            let socket = match listener.accept() {
                Ok(Some(socket)) => socket,
                Ok(None) => return Ok(()),
                Err(_) => {
                    // Out of descriptors or memory: a level-triggered listener would spin.
                    self.stats.error(ServerFault::Accept);
                    self.epoll.remove(listener.as_raw_fd())?;
                    self.accept_again_ns = Some(now + ACCEPT_PAUSE_NS);
                    return Ok(());
                }
            };
            self.stats.tcp_accepted += 1;
            if self.stats.tcp_congestion_control.is_none() {
                self.stats.tcp_congestion_control = socket.congestion_control().ok();
                self.stats.tcp_nodelay = socket.nodelay().ok();
            }
            match Connection::new(socket, &self.parts.tls, now) {
                Ok(connection) => self.insert(connection)?,
                Err(error) => self.stats.error(error.class),
            }
        }
        Ok(())
    }

    fn insert(&mut self, connection: Connection) -> io::Result<()> {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None });
            self.slots.len() - 1
        });
        let slot = &mut self.slots[place];
        let token = u64::from(slot.generation) << 32 | (place as u64 + FIRST_CONNECTION);
        self.epoll.add(connection.fd(), READABLE | WRITABLE | CLOSING | EDGE, token)?;
        slot.connection = Some(Box::new(connection));
        Ok(())
    }

    fn place(token: u64) -> (usize, u32) {
        (((token & 0xffff_ffff) - FIRST_CONNECTION) as usize, (token >> 32) as u32)
    }

    fn connection(&mut self, token: u64) -> Option<&mut Connection> {
        let (place, generation) = Self::place(token);
        let slot = self.slots.get_mut(place).filter(|slot| slot.generation == generation)?;
        slot.connection.as_deref_mut()
    }

    fn drive(&mut self, token: u64, now: u64) {
        self.with(token, now, |_, _| {});
    }

    /// Runs `act` on a connection that still exists, then drives it.
    #[inline]
    fn with(&mut self, token: u64, now: u64, act: impl FnOnce(&mut Connection, &mut Context<'_>)) {
        let (place, generation) = Self::place(token);
        let Some(slot) = self.slots.get_mut(place).filter(|slot| slot.generation == generation) else { return };
        let Some(connection) = slot.connection.as_deref_mut() else { return };
        self.plain.clear();
        let mut context = Context {
            handler: &mut self.parts.handler,
            stats: &mut self.stats,
            delays: &mut self.delays,
            plain: &mut self.plain,
            scratch: &mut self.scratch,
            token,
            now_ns: now,
        };
        act(connection, &mut context);
        match connection.drive(&self.parts.config, &mut self.receive, &mut context) {
            Next::Wait => {}
            Next::Again => self.ready.push(token),
            Next::Remove => self.remove(place),
        }
    }

    fn remove(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        // Closing the descriptor ends its watch.
        slot.connection = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(place);
    }

    fn sweep(&mut self, now: u64) {
        let idle_timeout_ns = self.parts.config.idle_timeout_ns;
        for place in 0..self.slots.len() {
            let Some(connection) = &self.slots[place].connection else { continue };
            if connection.is_idle(idle_timeout_ns, now) {
                if !connection.is_lingering() {
                    self.stats.error(ServerFault::IdleTimeout);
                }
                self.remove(place);
            }
        }
    }

    fn quic_ready(&mut self, flags: u32, now: u64) {
        let Some(quic) = &mut self.parts.quic else { return };
        if flags & WRITABLE != 0 {
            quic.on_writable(&mut self.parts.handler, &mut self.stats, now);
        }
        if flags & (READABLE | CLOSING) != 0 {
            quic.on_readable(&mut self.parts.handler, &mut self.stats, now);
        }
    }

    fn stop(&mut self, now: u64) -> io::Result<()> {
        self.epoll.remove(self.parts.stop.as_raw_fd())?;
        self.stop_by_ns = Some(now + GRACE_NS);
        self.accept_again_ns = None;
        self.parts.listener = None;
        if let Some(quic) = &mut self.parts.quic {
            quic.close(&mut self.parts.handler, &mut self.stats, now);
        }
        for place in 0..self.slots.len() {
            let token = u64::from(self.slots[place].generation) << 32 | (place as u64 + FIRST_CONNECTION);
            self.with(token, now, Connection::shut_down);
        }
        Ok(())
    }
}
