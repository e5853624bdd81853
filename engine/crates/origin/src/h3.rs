//! HTTP/3 over QUIC, driven by the worker's event loop through this interface.
//!
//! The worker calls, with the same handler and stats that HTTP/1.1 and HTTP/2 use: [`Server::on_readable`] and
//! [`Server::on_writable`] when [`Server::fd`] is (level-triggered; writability only while [`Server::wants_write`]),
//! [`Server::on_timer`] when [`Server::next_timeout_ns`] has passed, and [`Server::close`] once at the end, after which it
//! goes on until [`Server::is_drained`] or a short time has passed.

mod connection;
mod outbox;
mod priority;
mod receiving;
mod request;
mod response;
mod timers;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

use quinn_proto::{
    ConnectionEvent, ConnectionHandle, DatagramEvent, Endpoint, Incoming, ServerConfig, Transmit, VarInt,
};
use trifecta_wire::quic::{self, InstantClock, TransportOptions};
use trifecta_wire::udp::{ReceiveBatch, UdpOptions};

use crate::answer::Plan;
use crate::config::{Config, ConfigError};
use crate::handler::Handler;
use crate::stats::Stats;
use crate::summary::ServerFault;

use connection::{H3Connection, Turn};
use outbox::Outbox;
use request::RequestReader;
use response::HeadCache;
use timers::Timers;

/// Messages (trains of datagrams) taken by one receive call.
const MESSAGES_PER_RECEIVE: usize = 16;
/// Octets of receive and send buffer when the configuration names none: a worker serves all its peers by one socket.
const SOCKET_BUFFER_BYTES: usize = 8 << 20;
/// Octets of responses that a connection may have unacknowledged.
const SEND_WINDOW_BYTES: u64 = 8 << 20;
/// The same where responses have priorities: quinn-proto orders what it was given, so it is given all at once. Content is not copied.
const PAGE_SEND_WINDOW_BYTES: u64 = 1 << 30;
/// Octets of requests that a peer may send ahead, on one stream and in all.
const STREAM_WINDOW_BYTES: u64 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u64 = 16 << 20;

/// An answer that waits (fault `delay_ns`). All wait equally long, so the first to come is the first to go.
struct Delayed {
    due_ns: u64,
    connection: usize,
    /// Number of the connection, since places are used again.
    serial: u64,
    stream: u64,
}

/// What all connections share.
struct Shared {
    clock: InstantClock,
    requests: RequestReader,
    heads: HeadCache,
    delayed: VecDeque<Delayed>,
    /// Responses are sent in the order of RFC 9218.
    by_priority: bool,
    /// They are sent one after the other, in the order of their answers.
    in_order: bool,
}

/// All QUIC connections of one worker, behind one UDP socket.
pub struct Server {
    outbox: Outbox,
    batch: ReceiveBatch,
    endpoint: Endpoint,
    /// By connection handle, which quinn-proto keeps small.
    connections: Vec<Option<Box<H3Connection>>>,
    /// Connections that something happened to, and those that have more to send than one turn allows.
    dirty: VecDeque<usize>,
    timers: Timers,
    shared: Shared,
    serial: u64,
    closing: bool,
    qlog: Option<Qlog>,
    local: SocketAddr,
    seen_bytes: (u64, u64),
}

/// How qlog files are made: the transport has to be configured for each connection.
struct Qlog {
    folder: std::path::PathBuf,
    config: Config,
    tls: Arc<rustls::ServerConfig>,
}

impl Server {
    /// Binds the UDP socket (SO_REUSEPORT when there are several workers). `tls` offers `h3` alone.
    ///
    /// # Errors
    /// Names the field that cannot be used; the exit code is then 3.
    pub fn bind(config: &Config, address: SocketAddr, tls: Arc<rustls::ServerConfig>) -> Result<Self, ConfigError> {
        let wrong = |field: &str, message: String| ConfigError { field: field.into(), message };
        let buffer_bytes = match config.udp_receive_buffer_bytes {
            0 => SOCKET_BUFFER_BYTES,
            bytes => bytes,
        };
        let options = UdpOptions {
            receive_buffer_bytes: config.tuning.udp_buffer(buffer_bytes),
            send_buffer_bytes: SOCKET_BUFFER_BYTES,
            ecn: !config.quic_adaptations.no_ecn,
            ..UdpOptions::default()
        };
        let outbox = Outbox::bind(address, config.workers > 1, &options)
            .map_err(|error| wrong("port", format!("UDP {address}: {error}")))?;
        let local = outbox.local_address();
        let server = server_config(config, &tls, None).map_err(named)?;
        let payload_bytes = config.tuning.udp_payload(config.max_udp_payload_bytes);
        let endpoint = quic::server_endpoint_config(payload_bytes, config.quic_adaptations).map_err(named)?;
        let qlog = match &config.qlog_dir {
            None => None,
            Some(folder) => {
                std::fs::create_dir_all(folder)
                    .map_err(|error| wrong("qlog_dir", format!("{}: {error}", folder.display())))?;
                Some(Qlog { folder: folder.clone(), config: config.clone(), tls })
            }
        };
        Ok(Self {
            outbox,
            batch: ReceiveBatch::new(MESSAGES_PER_RECEIVE),
            endpoint: Endpoint::new(Arc::new(endpoint), Some(Arc::new(server)), true, None),
            connections: Vec::new(),
            dirty: VecDeque::new(),
            timers: Timers::default(),
            shared: Shared {
                clock: InstantClock::new(),
                requests: RequestReader::new(),
                heads: HeadCache::default(),
                delayed: VecDeque::new(),
                by_priority: config.serves_pages(),
                in_order: config.quic_adaptations.settings && !config.serves_pages(),
            },
            serial: 0,
            closing: false,
            qlog,
            local,
            seen_bytes: (0, 0),
        })
    }

    /// The UDP socket.
    pub fn fd(&self) -> RawFd {
        self.outbox.fd()
    }

    /// The address the socket is bound to.
    pub fn local_address(&self) -> Option<SocketAddr> {
        Some(self.local)
    }

    /// Datagrams that the kernel dropped because the receive buffer was full.
    fn receive_drops(&self) -> u64 {
        self.outbox.kernel_drops()
    }

    /// Takes datagrams in and answers.
    pub fn on_readable(&mut self, handler: &mut Handler, stats: &mut Stats, now_ns: u64) {
        let now = self.shared.clock.instant(now_ns);
        // Taken out while it is read, because what is read is handled by all of `self`.
        let mut batch = std::mem::replace(&mut self.batch, ReceiveBatch::new(0));
        let mut reply = self.outbox.take_scratch();
        let mut incoming = Vec::new();
        let Self { outbox, endpoint, connections, dirty, .. } = self;
        let mut replies: Vec<(Transmit, Vec<u8>)> = Vec::new();
        let result = outbox.receive(&mut batch, |mut message| {
            let codepoint = quic::ecn::from_socket(message.ecn);
            while let Some(datagram) = message.next_datagram() {
                reply.clear();
                match endpoint.handle(now, message.from, message.to, codepoint, datagram, &mut reply) {
                    Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                        deliver(connections, dirty, handle, event);
                    }
                    Some(DatagramEvent::NewConnection(new)) => incoming.push(new),
                    Some(DatagramEvent::Response(transmit)) => {
                        let packets = reply[..transmit.size].to_vec();
                        replies.push((transmit, packets));
                    }
                    None => {}
                }
            }
        });
        self.outbox.return_scratch(reply);
        self.batch = batch;
        if let Err(error) = result {
            stats.error(receive_error(&error));
        }
        for (transmit, packets) in replies {
            self.send_reply(&transmit, &packets, stats);
        }
        for new in incoming {
            self.accept(new, stats, now_ns);
        }
        self.work(handler, stats, now_ns);
    }

    /// Sends what the socket did not take before.
    pub fn on_writable(&mut self, handler: &mut Handler, stats: &mut Stats, now_ns: u64) {
        if self.outbox.retry().is_err() {
            stats.error(ServerFault::UdpSend);
        }
        self.work(handler, stats, now_ns);
    }

    /// Whether the socket refused datagrams that are still to be sent.
    pub fn wants_write(&self) -> bool {
        self.outbox.is_blocked()
    }

    /// When [`Server::on_timer`] is to be called, on the engine's clock.
    pub fn next_timeout_ns(&self) -> Option<u64> {
        if !self.dirty.is_empty() && !self.outbox.is_blocked() {
            return Some(0);
        }
        let delayed = self.shared.delayed.front().map(|answer| answer.due_ns);
        [self.timers.next_ns(), delayed].into_iter().flatten().min()
    }

    /// Lets timers expire: loss detection, pacing, idle connections, delayed answers.
    pub fn on_timer(&mut self, handler: &mut Handler, stats: &mut Stats, now_ns: u64) {
        let now = self.shared.clock.instant(now_ns);
        while let Some(index) = self.timers.pop_due(now_ns, |index| {
            self.connections.get(index).and_then(Option::as_ref).map_or(0, |connection| connection.timer_ns)
        }) {
            if let Some(connection) = self.connections[index].as_mut() {
                connection.timer_ns = 0;
                connection.quic.handle_timeout(now);
                mark(connection, &mut self.dirty, index);
            }
        }
        while self.shared.delayed.front().is_some_and(|answer| answer.due_ns <= now_ns) {
            let Some(answer) = self.shared.delayed.pop_front() else { break };
            if let Some(connection) = self.connections.get_mut(answer.connection).and_then(Option::as_mut)
                && connection.serial == answer.serial
            {
                connection.release(answer.stream, None, &mut self.shared, handler, stats);
                mark(connection, &mut self.dirty, answer.connection);
            }
        }
        self.work(handler, stats, now_ns);
    }

    /// Sends an answer of the relay. False when its client has gone.
    pub(crate) fn release(
        &mut self,
        (index, serial, stream): (usize, u64, u64),
        plan: Plan,
        handler: &mut Handler,
        stats: &mut Stats,
        now_ns: u64,
    ) -> bool {
        let found = self.connections.get_mut(index).and_then(Option::as_mut);
        let Some(connection) = found.filter(|connection| connection.serial == serial) else { return false };
        let released = connection.release(stream, Some(plan), &mut self.shared, handler, stats);
        mark(connection, &mut self.dirty, index);
        self.work(handler, stats, now_ns);
        released
    }

    /// Begins the end: GOAWAY where requests are in flight, CONNECTION_CLOSE elsewhere; no new connections.
    pub fn close(&mut self, handler: &mut Handler, stats: &mut Stats, now_ns: u64) {
        stats.udp_receive_drops = self.receive_drops();
        self.closing = true;
        self.endpoint.set_server_config(None);
        for index in 0..self.connections.len() {
            if let Some(connection) = self.connections[index].as_mut() {
                connection.shut_down(self.shared.clock.instant(now_ns));
                mark(connection, &mut self.dirty, index);
            }
        }
        self.work(handler, stats, now_ns);
    }

    /// Whether nothing is left to be sent after [`Server::close`].
    pub fn is_drained(&self) -> bool {
        !self.outbox.is_blocked()
            && self.dirty.is_empty()
            && self.connections.iter().flatten().all(|connection| connection.quic.is_closed())
    }

    fn accept(&mut self, new: Incoming, stats: &mut Stats, now_ns: u64) {
        let now = self.shared.clock.instant(now_ns);
        let mut reply = self.outbox.take_scratch();
        reply.clear();
        let config = match self.qlog.as_ref().map(|qlog| qlog.server_config(self.serial, now)) {
            None => None,
            Some(Ok(config)) => Some(Arc::new(config)),
            Some(Err(_)) => {
                stats.error(ServerFault::Qlog);
                None
            }
        };
        match self.endpoint.accept(new, now, &mut reply, config) {
            Ok((ConnectionHandle(index), quic)) => {
                if self.connections.len() <= index {
                    self.connections.resize_with(index + 1, || None);
                }
                self.serial += 1;
                let mut connection = Box::new(H3Connection::new(quic, index, self.serial));
                mark(&mut connection, &mut self.dirty, index);
                self.connections[index] = Some(connection);
            }
            Err(error) => {
                stats.error(quic::classify(&error.cause, None));
                if let Some(transmit) = error.response {
                    let packets = std::mem::take(&mut reply);
                    self.send_reply(&transmit, &packets[..transmit.size], stats);
                }
            }
        }
        self.outbox.return_scratch(reply);
    }

    /// Sends a packet that belongs to no connection. While the socket is full it is dropped, as in a full queue.
    fn send_reply(&mut self, transmit: &Transmit, packets: &[u8], stats: &mut Stats) {
        if self.outbox.is_blocked() {
            return;
        }
        if self.outbox.send(transmit, packets).is_err() {
            stats.error(ServerFault::UdpSend);
        }
    }

    /// Gives every connection that has something to do a turn.
    fn work(&mut self, handler: &mut Handler, stats: &mut Stats, now_ns: u64) {
        // One round: who is not done goes behind the others, and the next round begins after the next receive.
        for _ in 0..self.dirty.len() {
            if self.outbox.is_blocked() {
                break;
            }
            let Some(index) = self.dirty.pop_front() else { break };
            let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else { continue };
            connection.dirty = false;
            let turn =
                connection.take_turn(&mut self.endpoint, &mut self.outbox, &mut self.shared, handler, stats, now_ns);
            match turn {
                Turn::Done => connection.schedule(index, &mut self.timers, &self.shared.clock),
                Turn::More => {
                    mark(connection, &mut self.dirty, index);
                    connection.schedule(index, &mut self.timers, &self.shared.clock);
                }
                Turn::Gone => self.connections[index] = None,
            }
        }
        let counters = self.outbox.counters();
        stats.wire_bytes_out += counters.bytes_out - self.seen_bytes.0;
        stats.wire_bytes_in += counters.bytes_in - self.seen_bytes.1;
        self.seen_bytes = (counters.bytes_out, counters.bytes_in);
    }
}

fn deliver(
    connections: &mut [Option<Box<H3Connection>>],
    dirty: &mut VecDeque<usize>,
    handle: ConnectionHandle,
    event: ConnectionEvent,
) {
    if let Some(connection) = connections.get_mut(handle.0).and_then(Option::as_mut) {
        connection.quic.handle_event(event);
        mark(connection, dirty, handle.0);
    }
}

fn mark(connection: &mut H3Connection, dirty: &mut VecDeque<usize>, index: usize) {
    if !connection.dirty {
        connection.dirty = true;
        dirty.push_back(index);
    }
}

impl Qlog {
    fn server_config(&self, number: u64, now: std::time::Instant) -> Result<ServerConfig, String> {
        let path = self.folder.join(format!("origin-{}-{number}.sqlog", std::process::id()));
        let stream = quic::qlog_stream(&path, "trifecta origin", now).map_err(|error| error.to_string())?;
        server_config(&self.config, &self.tls, Some(stream))
    }
}

fn server_config(
    config: &Config,
    tls: &Arc<rustls::ServerConfig>,
    qlog: Option<quinn_proto::QlogStream>,
) -> Result<ServerConfig, String> {
    let transport = quic::transport_config(&TransportOptions {
        congestion_control: &config.congestion_control,
        max_udp_payload_bytes: config.tuning.udp_payload(config.max_udp_payload_bytes),
        mtu_discovery: false,
        idle_timeout_ns: config.idle_timeout_ns,
        stream_window_bytes: STREAM_WINDOW_BYTES,
        connection_window_bytes: CONNECTION_WINDOW_BYTES,
        send_window_bytes: if config.serves_pages() { PAGE_SEND_WINDOW_BYTES } else { SEND_WINDOW_BYTES },
        max_bidi_streams: config.max_concurrent_streams,
        adaptations: config.quic_adaptations,
        tuning: config.tuning,
        qlog,
        ..TransportOptions::default()
    })?;
    quic::server_config(Arc::clone(tls), transport, config.quic_adaptations)
}

/// Splits `field: what is wrong`, the form of the configuration errors of `trifecta_wire::quic`.
fn named(message: String) -> ConfigError {
    let (field, rest) = message.split_once(": ").unwrap_or(("config", &message));
    ConfigError { field: field.into(), message: rest.into() }
}

fn receive_error(error: &io::Error) -> ServerFault {
    match error.kind() {
        // ICMP errors are not told to unconnected sockets unless asked for.
        io::ErrorKind::ConnectionRefused => ServerFault::UdpRefused,
        _ => ServerFault::UdpReceive,
    }
}

/// A code of HTTP/3 as quinn-proto takes it.
fn varint(code: trifecta_wire::h3::Code) -> VarInt {
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}
